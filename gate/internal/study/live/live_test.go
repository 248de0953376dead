package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
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

func TestChoose(t *testing.T) {
	known := map[int]truth{0: {}, 20: {Effect: 0.0102, Error: 0.0004}, 22: {Effect: 0.013}, 29: {Effect: 0.018}, 54: {Effect: 0.0101}, 60: {Effect: 0.022}, 99: {Effect: math.NaN()}}
	got, err := choose(known, []float64{0, 1, 2})
	if err != nil || fmt.Sprint(got) != "map[0:0 1:54 2:60]" { // 20 may cost less, 22 costs more
		t.Errorf("%v, %v", got, err)
	}
	for _, percents := range [][]float64{{3}, {1.9, 2}} {
		if got, err := choose(known, percents); err == nil {
			t.Errorf("%g %%: %v", percents, got)
		}
	}
	if !reached(known, map[float64]int{0: 0, 1: 54}) || reached(known, map[float64]int{2: 60, 1: 20}) {
		t.Error("an amount that costs too little is kept, or one that costs enough is not")
	}
}

func TestAmountsOfASeries(t *testing.T) {
	tried := trialAmounts([]float64{0, 1, 2})
	if len(tried) < 20 || tried[0] != 0 || slices.Min(tried[1:]) != 18 || slices.Max(tried) != 71 || len(slices.Compact(slices.Sorted(slices.Values(tried)))) != len(tried) {
		t.Errorf("%v", tried)
	}
	got := spaced(map[float64]int{1: 30, 2: 60}, tried)
	if len(got) != spacers || got[0] != 0 || got[1] != 30 || got[2] != 60 {
		t.Errorf("%v", got)
	}
	many := map[float64]int{}
	for i := range 20 {
		many[float64(i+1)] = 1000 + i
	}
	if got := spaced(many, tried); len(got) != 21 {
		t.Errorf("%d kernels, want the base and 20", len(got))
	}
}

func TestTruthOf(t *testing.T) {
	base := []float64{100, 100, 100, 100, 50, 100, 100, 100, 100}
	head := []float64{101, 102, 103, 104, 105, 106, 107, 108, 109}
	got := truthOf(base, head) // sorted: 1, 2, 3, 4, 6, 7, 8, 9 % and one far off
	want := (math.Log(1.07) - math.Log(1.04)) / 2
	if got.Processes != 9 || got.Effect != math.Log(1.06) || math.Abs(got.Error-want) > 0.006 || got.Error <= 0 {
		t.Errorf("%+v", got)
	}
	if got := truthOf(base, base); got.Effect != 0 || got.Error != 0 {
		t.Errorf("%+v", got)
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
	v := &verdict.Verdict{}
	plants := []plant{{name: "a", group: "g"}, {name: "b", group: "g"}, {name: "c", group: "g"}}
	for i, s := range []verdict.Status{verdict.Fail, verdict.Inconclusive, verdict.Pass} {
		v.Kernels = append(v.Kernels, verdict.KernelVerdict{Name: plants[i].name, Status: s, Findings: []verdict.Finding{
			{Tier: evidence.Latency, Metric: "latency.typical", Status: s, Interval: &verdict.Interval{Estimate: 0.01, Pairs: 8 + i}}}})
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
	if v := analyse([][]float64{{1, 3, 3}, {1, 3, 3.1}, {1.1, 3, 3}, {1, 3.1, 3}}); v.pNumber > 1e-6 || math.Abs(v.later-2) > 0.1 || !strings.Contains(v.verdict(), "which epoch") {
		t.Errorf("first epochs that are faster: %+v, %s", v, v.verdict())
	}
	if larger, p := steps([][]float64{{0, 1}, {5, 6}, {10, 11}}); larger != 1 || p > 0.05 {
		t.Errorf("steps of 4 and 1: %v, p %v", larger, p)
	}
	if larger, p := steps([][]float64{{0, 1}, {0, 1}}); larger != 0.5 || p != 0.5 {
		t.Errorf("equal steps: %v, p %v", larger, p)
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
	two := `{"kernel":"a","batches_ns":[5]}` + "\n" + `{"kernel":"a","epoch":1,"batches_ns":[6]}` + "\n"
	if err := takeProcess([]byte(two), 2, groups); err != nil || len(groups["a"]) != 1 {
		t.Errorf("%v, %v", groups, err)
	}
}
