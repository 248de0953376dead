package collect

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// side is a unit of one arm: its library and code differ from the other's.
func side(kernel, role, code string) unit {
	u := of(kernel, "small")
	u.role, u.address.Code = role, code
	return u
}

// question is a test of the typical time of one pair, in the profile's limits.
func question(pair int) plan.Test {
	limits, err := compare.Profile("standard")
	if err != nil {
		panic(err)
	}
	return plan.Test{Task: pair, Test: compare.Test{CacheState: evidence.Warm, Summary: compare.Typical, Bound: compare.Bound{Limits: limits}}}
}

// ask runs an experiment of two rounds on a harness that a shell snippet
// disturbs.
func ask(t *testing.T, shell string, change func(*Bench), pairs []pair, tests ...plan.Test) ([]*evidence.Record, []string, *Bench, error) {
	t.Helper()
	c, _ := fake(t, timesOf(shell))
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	if change != nil {
		change(c)
	}
	records, err := c.timeTogether(context.Background(), pairs, tests, []evidence.CacheState{evidence.Warm}, compare.Budget{Pairs: 8}, compare.SequentialPlan())
	return records, processesOf(t, c), c, err
}

func twoPairs() []pair {
	head := side("op/a", "", "head")
	return []pair{{Base: side("op/a", "", "base"), Head: head}, {Base: side("op/ref", "reference:sm_90", "ref"), Head: head, Reference: true}}
}

// A reference is not started again once every rule that uses it is decided.
func TestDecidedReferenceIsNotStarted(t *testing.T) {
	c, _ := fake(t, timesOf(""))
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	limits, err := compare.ReferenceLimits(0.5)
	if err != nil {
		t.Fatal(err)
	}
	broken := plan.Test{Task: 1, Test: compare.Test{CacheState: evidence.Warm, Summary: compare.Typical, Bound: compare.Bound{Limits: limits}}}
	// All times are one: the ratio of 1 breaks its limit, and the comparison with the base goes on.
	if _, err := c.timeTogether(context.Background(), twoPairs(), []plan.Test{question(0), broken}, []evidence.CacheState{evidence.Warm}, compare.Budget{Pairs: 12}, compare.SequentialPlan()); err != nil {
		t.Fatal(err)
	}
	processes := processesOf(t, c)
	if len(processes) != 1+24 {
		t.Fatalf("%d processes, want the pilot and three rounds", len(processes))
	}
	for i, l := range processes[1:] {
		if i >= 16 && strings.Contains(l, "op/ref") {
			t.Errorf("process %d times %q after the reference was decided", i+1, l)
		}
	}
	if !strings.Contains(strings.Join(processes[1:17], " "), "op/ref") {
		t.Error("the reference was never timed")
	}
}

// Two pairs share the head's time of a process, and every process times one arm.
func TestExperimentTimesEachUnitOnce(t *testing.T) {
	records, processes, _, err := ask(t, "", nil, twoPairs(), question(0), question(1))
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if len(processes) != 1+16 {
		t.Fatalf("%d processes, want the pilot and two rounds", len(processes))
	}
	heads := 0
	for _, l := range processes {
		units := strings.Fields(strings.ReplaceAll(l, "--run", ""))
		slices.Sort(units)
		switch strings.Join(units, " ") {
		case "op/a@small":
			heads++
		case "op/a@small op/ref:reference:sm_90@small":
		default:
			t.Errorf("a process times %q", l)
		}
	}
	if heads != 8 {
		t.Errorf("%d processes of the head, want 8", heads)
	}
	for i, r := range records {
		if r.Failure != nil || len(r.Experiment.Rounds) != 2 || len(r.Experiment.Rounds[0].Head) != 4 || r.Base.Code != twoPairs()[i].Base.address.Code || r.Address.Code != "head" {
			t.Errorf("%+v", r)
		}
	}
	if x := records[0].Experiment; x.TimedSeconds <= 0 || x.TimedSeconds != records[1].Experiment.TimedSeconds {
		t.Errorf("%v s timed", x.TimedSeconds)
	}
}

// A process that comes onto the GPU costs the round it came in, and no other;
// one that was there from the start costs none.
func TestExperimentDiscardsARoundThatWasDisturbed(t *testing.T) {
	asked := 0
	somebody := func(c *Bench) {
		c.processes = func(context.Context) ([]gpu.Process, error) {
			all := []gpu.Process{{UUID: "GPU-1", PID: 7, Name: "old"}, {UUID: "GPU-2", PID: 9, Name: "elsewhere"}}
			if asked++; asked > 2 {
				all = append(all, gpu.Process{UUID: "GPU-1", PID: 8, Name: "train"}, gpu.Process{UUID: "GPU-2", PID: 10, Name: "elsewhere"})
			}
			return all, nil
		}
	}
	records, processes, _, err := ask(t, "", somebody, twoPairs()[:1], question(0))
	if err != nil {
		t.Fatal(err)
	}
	x := records[0].Experiment
	if len(x.Rounds) != 2 || len(x.Discarded) != 1 || x.Discarded[0].Number != 1 || x.Discarded[0].Reason != "another process came onto the GPU: train (pid 8)" || len(processes) != 1+24 {
		t.Errorf("%d rounds, %+v, %d processes", len(x.Rounds), x.Discarded, len(processes))
	}
}

// A reference that breaks takes its own pair along, names itself, and leaves
// the other pair its round anew; no process more is spent on the lost one.
func TestExperimentDropsAReferenceThatBreaks(t *testing.T) {
	fault := strings.NewReplacer("op/k", "op/ref:reference:sm_90", `,"class":"normal"`, "").Replace(errorLine)
	shell := `case "$*" in *reference*) if [ $n -gt 1 ]; then ` + say(configLine, fault, endLine(fault)) + `exit 1; fi;; esac`
	records, processes, c, err := ask(t, shell, nil, twoPairs(), question(0), question(1))
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if r := records[0]; r.Failure != nil || len(r.Experiment.Rounds) != 2 || len(r.Experiment.Discarded) != 1 {
		t.Errorf("the pair that is well: %+v", r)
	}
	f := records[1].Failure
	if f == nil || !f.OtherArm || f.Kind != evidence.Tool || !strings.HasPrefix(f.Message, "the reference op/ref cannot be timed: cudaErrorIllegalAddress") {
		t.Errorf("the reference: %+v", f)
	}
	if n := len(processes) - 1; n < 16+1 || n > 16+7 || probes(c) != 1 { // at most four processes of the head, the broken one that was started early, the broken one alone, and the repetition
		t.Errorf("%d processes, %d probes", n, probes(c))
	}
}

// The head's own fault is its own, whichever pair met it.
func TestExperimentBlamesTheHead(t *testing.T) {
	fault := strings.NewReplacer("op/k", "op/a", `,"class":"normal"`, "").Replace(errorLine)
	shell := `case "$*" in *reference*) ;; *) if [ $n -gt 1 ]; then ` + say(configLine, fault, endLine(fault)) + `exit 1; fi;; esac`
	records, _, _, err := ask(t, shell, nil, twoPairs(), question(0), question(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if f := r.Failure; f == nil || f.OtherArm || f.Kind != evidence.CUDA || !strings.HasPrefix(f.Message, "cudaErrorIllegalAddress") {
			t.Errorf("%+v", f)
		}
	}
}
