package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of gate/docs/measured.md")

const (
	recorded = "../../compare/testdata/h200-aa.jsonl.gz"
	document = "../../../docs/measured.md"
	begin    = "<!-- made by gate/internal/study/peers -->\n"
	end      = "<!-- end -->\n"
)

// TestDocument holds the tables of the document to the command's output.
func TestDocument(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{recorded}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	between, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the markers of the tables", document)
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+out.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if between != out.String() {
		t.Errorf("%s is not what the command writes; run go test ./gate/internal/study/peers -update\n%s", document, &out)
	}
}

func TestRunRefuses(t *testing.T) {
	torn := filepath.Join(t.TempDir(), "torn.gz")
	whole, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
	}{{nil, 2}, {[]string{"a", "b"}, 2}, {[]string{filepath.Join(t.TempDir(), "none")}, 3}, {[]string{torn}, 3}} {
		var out, errs bytes.Buffer
		if code := run(c.args, &out, &errs); code != c.code || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit %d with %q, want %d and a message", c.args, code, &out, c.code)
		}
	}
}

// wave is a process of sixty batches around a level, with a spread of a few
// parts in a thousand and a mean of exactly the level.
func wave(level, spread float64) []float64 {
	xs := make([]float64, 60)
	for i := range xs {
		xs[i] = level * (1 + spread*math.Sin(2*math.Pi*float64(i)/60))
	}
	return xs
}

// Each rule calls a clear slowdown slower, and its own margin not.
func TestRules(t *testing.T) {
	var history [][]float64
	for i := range 12 {
		history = append(history, wave(100+0.1*math.Sin(float64(i-11)), 0.003)) // the last is 100
	}
	for name, margin := range map[string][2]float64{
		"mean > +5 %":                    {5.1, 4.9},
		"mean > +10 %":                   {10.1, 9.9},
		"Welch, p < 0.05, stored values": {0.2, 0},
		"Mann-Whitney, p < 0.05, n = 10": {0.6, 0},
		"NVBench legacy":                 {0.25, 0.15}, // the standard deviation is 0.21 %
		"NVBench robust, without clocks": {1.2, 0.6},
		"Bencher's default":              {0.4, 0.1},
		"rustc-perf-like":                {0.7, 0.1},
	} {
		found := false
		for _, r := range rules() {
			if r.name != name {
				continue
			}
			found = true
			base := wave(100, 0.003)
			if !r.slower(history, base, wave(100+margin[0], 0.003)) {
				t.Errorf("%s does not find +%v %%", name, margin[0])
			}
			if r.slower(history, base, wave(100+margin[1], 0.003)) {
				t.Errorf("%s calls +%v %% slower", name, margin[1])
			}
			if r.slower(history, base, wave(97, 0.003)) {
				t.Errorf("%s calls -3 %% slower", name)
			}
		}
		if !found {
			t.Errorf("there is no rule %q", name)
		}
	}
	if len(rules()) != 8 {
		t.Errorf("%d rules, the test knows 8", len(rules()))
	}
}
