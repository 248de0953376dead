package collect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// manyTimes answers for every unit of a process from one program, so that a thousand
// of them take no time. It writes nothing, since it runs confined.
const manyTimes = `exec awk 'BEGIN {
  print "` + `CONFIG"
  for (i = 1; i < ARGC; i++) if (ARGV[i] == "--run") {
    split(ARGV[i + 1], u, "@"); n++
    line = "TIME"; sub("op/k", u[1], line); print line
  }
  printf "{\"end\":{\"begin\":0,\"check\":0,\"time\":%d,\"profile\":0,\"error\":0}}\n", n
}' "$@"
`

// many are kernels whose libraries are files, with paths as long as a cache's.
func many(t *testing.T, n int, role string) []unit {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("0123456789abcdef", 8))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var units []unit
	for i := range n {
		u := of(fmt.Sprintf("op/k%04d", i), "small")
		u.artifact = &build.Artifact{Arch: "sm_90", Library: filepath.Join(dir, fmt.Sprintf("k%04d.so", i)), Compiler: "13.0.88"}
		u.address.Code = fmt.Sprint(role, i)
		if err := os.WriteFile(u.artifact.Library, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		units = append(units, u)
	}
	return units
}

// ofMany is a bench for them, whose processes are confined where they can be: the
// list of the files that a process may read grows with them, too.
func ofMany(t *testing.T) *Bench {
	t.Helper()
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	c, _ := fake(t, strings.NewReplacer("CONFIG", escaped.Replace(configLine), "TIME", escaped.Replace(timeLine)).Replace(manyTimes))
	t.Setenv("GATE_CONFINE", "")
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	c.Spans = []Span{{}}
	return c
}

// TestAThousandKernelsAreTimed in as many processes as they need.
func TestAThousandKernelsAreTimed(t *testing.T) {
	const n = 1100
	c := ofMany(t)
	units := many(t, n, "head")
	records, err := c.timeAlone(context.Background(), units, warm)
	if err != nil || len(records) != n {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, r := range records {
		if r.Failure != nil || len(r.Samples) != singleProcesses || r.Provenance.Kernel != units[i].kernel {
			t.Fatalf("%s: %+v", units[i].kernel, r)
		}
	}
	if want := singleProcesses * len(c.groups(units)); len(c.Spans[0].processes) != want || want <= singleProcesses {
		t.Errorf("%d processes, want %d", len(c.Spans[0].processes), want)
	}
}

// TestAThousandPairsAreTimed in rounds of their own, and stay in one family.
func TestAThousandPairsAreTimed(t *testing.T) {
	const n = 1100
	c := ofMany(t)
	bases, heads := many(t, n, "base"), many(t, n, "head")
	var pairs []pair
	var tests []plan.Test
	for i := range n {
		pairs, tests = append(pairs, pair{Base: bases[i], Head: heads[i]}), append(tests, question(i))
	}
	records, err := c.timeTogether(context.Background(), pairs, tests, warm, compare.Budget{Pairs: 4}, compare.SequentialPlan())
	if err != nil || len(records) != n {
		t.Fatalf("%d records, %v", len(records), err)
	}
	orders := map[string]int{}
	for i, r := range records {
		if r.Failure != nil || len(r.Experiment.Rounds) != 1 || len(r.Experiment.Rounds[0].Head) != 4 || len(r.Experiment.Rounds[0].Base) != 4 || r.Provenance.Kernel != heads[i].kernel {
			t.Fatalf("%s: %+v", heads[i].kernel, r)
		}
		orders[r.Experiment.Rounds[0].Order]++
	}
	groups := len(c.groups(bases))
	if got := len(c.Spans[0].processes); got < groups*9 || got > (groups+1)*9 || groups < 2 || len(orders) < 2 {
		t.Errorf("%d processes for %d groups, in %d orders", got, groups, len(orders))
	}
}

// TestGroupsHoldAllUnits: all units, in their order, each group within the bound.
func TestGroupsHoldAllUnits(t *testing.T) {
	units := []unit{of("op/a", "small"), of("op/b", "small"), of("op/c", "small"), of("op/d", "small"), of("op/e", "small")}
	for most, want := range map[int]string{1: "a|b|c|d|e", 2: "ab|cd|e", 4: "abcd|e", 5: "abcde", mostUnits: "abcde"} {
		c := &Bench{most: most}
		var got []string
		for _, g := range c.groups(units) {
			word := ""
			for _, u := range g {
				word += strings.TrimPrefix(u.kernel, "op/")
			}
			got = append(got, word)
		}
		if word := strings.Join(got, "|"); word != want {
			t.Errorf("%d: %s, want %s", most, word, want)
		}
	}
	if got := (&Bench{most: mostUnits}).groups(nil); got != nil {
		t.Errorf("%v", got)
	}
}

// TestPartsOfARoundKeepAPairTogether: all tests of a pair are in one part, both arms
// of it run in the part's processes, and every pair has as many rounds.
func TestPartsOfARoundKeepAPairTogether(t *testing.T) {
	c, _ := fake(t, timesOf(""))
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	var pairs []pair
	var tests []plan.Test
	for i, k := range []string{"op/a", "op/b", "op/c", "op/d", "op/e"} {
		pairs = append(pairs, pair{Base: side(k, "", "base"), Head: side(k, "", "head")})
		mean := question(i)
		mean.Summary = compare.Mean
		tests = append(tests, question(i), mean)
	}
	c.most = 2
	records, err := c.timeTogether(context.Background(), pairs, tests, warm, compare.Budget{Pairs: 8}, compare.SequentialPlan())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		x := r.Experiment
		if r.Failure != nil || len(x.Rounds) != 2 || x.Rounds[0].Number != 0 || x.Rounds[1].Number != 1 || !x.Ended() {
			t.Errorf("%+v", r)
		}
	}
	// Three processes of the pilot, and three parts of both rounds.
	all := processesOf(t, c)
	if len(all) != 3+2*3*8 {
		t.Fatalf("%d processes", len(all))
	}
	for i := 3; i < len(all); i += 8 {
		for _, l := range all[i : i+8] {
			if l != all[i] {
				t.Errorf("a part times %q and %q", all[i], l)
			}
		}
	}
}
