package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
)

func TestParseLevels(t *testing.T) {
	got, err := parseLevels("1:10,2.5:3")
	if err != nil || fmt.Sprint(got) != "[{1 10} {2.5 3}]" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "1", "1:0", ":3", "-1:2", "NaN:2", "1:2,1:3", "1:501", "1:2,"} {
		if got, err := parseLevels(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestFit(t *testing.T) {
	a, b, err := fit([]float64{1, 2, 4}, []float64{5, 7, 11})
	if err != nil || math.Abs(a-3) > 1e-12 || math.Abs(b-2) > 1e-12 {
		t.Errorf("%v + %v x, %v", a, b, err)
	}
	for _, ys := range [][]float64{{3, 3, 3}, {3, 2, 1}, {math.NaN(), 1, 2}} {
		if _, _, err := fit([]float64{1, 2, 4}, ys); err == nil {
			t.Errorf("%v is taken for a rising line", ys)
		}
	}
}

// TestManifestOf reads our own kernels, so that a change of theirs is noticed.
func TestManifestOf(t *testing.T) {
	for _, p := range []plant{{from: r11, extra: -1}, {from: r02, extra: -1}, {from: fixture, extra: 77}} {
		data, err := os.ReadFile("../../../../kernels/" + p.from + "/kernel.yaml")
		if err != nil {
			t.Fatal(err)
		}
		got, err := manifestOf(string(data), p)
		if err != nil || !strings.Contains(string(got), "\ncases: [mission]\n") || strings.Contains(string(got), "EXTRA") != (p.extra == 77) ||
			p.extra == 77 && !strings.Contains(string(got), "-DEXTRA=77]") {
			t.Errorf("%s: %s, %v", p.from, got, err)
		}
	}
	if _, err := manifestOf("cases: [mission]\n", plant{extra: 1}); err == nil {
		t.Error("a kernel without -DEXTRA=0 is taken for the fixture")
	}
}

func TestLineCountsEveryStatus(t *testing.T) {
	v := &policy.Verdict{}
	plants := []plant{{name: "a", group: "g"}, {name: "b", group: "g"}, {name: "c", group: "g"}}
	for i, s := range []policy.Status{policy.Fail, policy.Inconclusive, policy.Pass} {
		v.Kernels = append(v.Kernels, policy.KernelVerdict{Name: plants[i].name, Status: s, Findings: []policy.Finding{
			{Tier: evidence.Latency, Metric: "latency.typical", Status: s, Interval: &policy.Interval{Estimate: 0.01, Pairs: 8 + i}}}})
	}
	l, err := lineOf(&check{verdict: v}, plants)
	if err != nil || l.Red != 1 || l.Inconclusive != 1 || l.Pass != 1 || l.Questions != 3 || l.Outcomes[2].Pairs != 10 || l.Outcomes[0].RedRules != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := lineOf(&check{verdict: v}, plants[:2]); err == nil {
		t.Error("a kernel that was not planted is counted")
	}
	var b bytes.Buffer
	if err := writeTable(&b, []line{l}); err != nil || !strings.Contains(b.String(), "9.0") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestAnalyseTellsProcessesFromEpochs plants variance of processes, or none.
func TestAnalyseTellsProcessesFromEpochs(t *testing.T) {
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	made := func(between float64) [][]float64 {
		var rows [][]float64
		for range 12 {
			shift, row := between*random.NormFloat64(), make([]float64, 8)
			for i := range row {
				row[i] = shift + 0.002*random.NormFloat64()
			}
			rows = append(rows, row)
		}
		return rows
	}
	found, alarms := 0, 0
	for range 200 {
		if analyse(made(0.004)).p < 0.01 {
			found++
		}
		if analyse(made(0)).p < 0.01 {
			alarms++
		}
	}
	if found < 198 || alarms > 8 {
		t.Errorf("seed %d: %d of 200 found, %d of 200 false", seed, found, alarms)
	}
	a := analyse([][]float64{{1, 3}, {5, 7}}) // MSB 16, MSW 2
	if a.f != 8 || math.Abs(a.within-math.Sqrt2) > 1e-12 || math.Abs(a.between-math.Sqrt(7)) > 1e-12 {
		t.Errorf("%+v", a)
	}
	if v := analyse([][]float64{{1, 1}, {1, 1}}).verdict(); !strings.Contains(v, "no verdict") {
		t.Errorf("constant times: %s", v)
	}
}

func TestTakeProcessRefuses(t *testing.T) {
	for _, said := range []string{"", "{}", `{"kernel":"a","batches_ns":[0]}`, `{"kernel":"a","batches_ns":[5]}`} {
		if err := takeProcess([]byte(said), 2, map[string][][]float64{}); err == nil {
			t.Errorf("%q is taken for two epochs", said)
		}
	}
	groups := map[string][][]float64{}
	two := `{"kernel":"a","batches_ns":[5]}` + "\n" + `{"kernel":"a","batches_ns":[6]}` + "\n"
	if err := takeProcess([]byte(two), 2, groups); err != nil || len(groups["a"]) != 1 {
		t.Errorf("%v, %v", groups, err)
	}
}
