package collect

import (
	"math"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// TestProgressCountsTheWholeStep: whatever order its parts end in, a step is told
// as its records, all of them, and no part of it twice.
func TestProgressCountsTheWholeStep(t *testing.T) {
	told, spoken := 0.0, 0
	c := &Bench{progress: func(more float64, what string) {
		if more < 0 {
			t.Errorf("%q takes back %g", what, more)
		}
		told += more
		if what != "" {
			spoken++
		}
	}}
	for _, parts := range [][]float64{{0, 0.5, 1}, {0.5, 0.25, 0.75}, {2, 0.5}, {}} {
		before := told
		end := c.begin(7)
		for _, p := range parts {
			c.reach(p)
			c.say("at %g", p)
		}
		end()
		if math.Abs(told-before-7) > 1e-9 {
			t.Errorf("%v: told %g of 7 records", parts, told-before)
		}
	}
	if spoken != 8 {
		t.Errorf("%d lines", spoken)
	}
	silent := &Bench{}
	silent.begin(1)()
	silent.say("nobody listens")
}

// TestPartsOfTimingGrow with every process.
func TestPartsOfTimingGrow(t *testing.T) {
	units, done := []unit{of("op/a", "small"), of("op/b", "small")}, map[string]int{}
	last := -1.0
	for process := range singleProcesses + 1 {
		part := passed(units, done)
		if part <= last || part > 1 {
			t.Errorf("process %d: %g after %g", process, part, last)
		}
		last = part
		for _, u := range units {
			done[u.run()]++
		}
	}
	if last != 1 || passed(units, done) != 1 {
		t.Errorf("%g at the end", last)
	}
	last = -1
	for rounds := 0.0; rounds < 40; rounds += 0.125 {
		if w := worth(rounds); w <= last || w >= 1 {
			t.Errorf("%g rounds: %g after %g", rounds, w, last)
		}
		last = worth(rounds)
	}
}

// TestTimingTellsEveryProcess: the number grows while a kernel is timed alone, and
// not only when it is done.
func TestTimingTellsEveryProcess(t *testing.T) {
	b, _ := fake(t, timesOf(""))
	var told []float64
	b.progress = func(more float64, _ string) { told = append(told, more) }
	end := b.begin(1)
	if _, err := b.timeAlone(t.Context(), []unit{of("op/k", "small")}, []evidence.CacheState{evidence.Warm}); err != nil {
		t.Fatal(err)
	}
	end()
	if len(told) != singleProcesses+1 {
		t.Fatalf("told %v", told)
	}
	for i, more := range told[1:] {
		if math.Abs(more-1./singleProcesses) > 1e-9 {
			t.Errorf("after process %d: %g more", i+1, more)
		}
	}
}
