package collect

import (
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A unit that is too large for one state of the caches is timed in the other one, and
// said to be so once; one without any time is out, and one that is lost is as before.
func TestStatesThatAreAbsent(t *testing.T) {
	cold := timeMsg{Kernel: "op/k", Case: "small", Regime: "cold"}
	large := absentMsg{Kernel: "op/k", Case: "small", Regime: "warm", Reason: "it is too large"}
	both := []evidence.CacheState{evidence.Warm, evidence.Cold}
	for _, c := range []struct {
		name   string
		s      stream
		states []evidence.CacheState
		want   string
		notes  int
	}{
		{"one of two", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, both, "", 1},
		{"the only one", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, both[:1], "it has no warm time: it is too large", 1},
		{"of another case", stream{times: []timeMsg{cold}, absent: []absentMsg{{Kernel: "op/k", Case: "large", Regime: "warm", Reason: "it is too large"}}}, both, "the harness sent no warm time of it", 0},
		{"lost", stream{times: []timeMsg{cold}}, both, "the harness sent no warm time of it", 0},
		{"whatever there is", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, nil, "", 0},
	} {
		b, got := &Bench{}, ""
		for range 2 {
			got = ""
			if f := b.untimed(&c.s, of("op/k", "small"), c.states); f != nil {
				got = f.Message
			}
		}
		if got != c.want || len(b.Notes) != c.notes {
			t.Errorf("%s: %q and notes %q, want %q and %d", c.name, got, b.Notes, c.want, c.notes)
		}
	}
}

// A test about a state that the pair has no time in is counted, and not measured: the
// other tests of the pair are.
func TestAbsentStateIsNotATest(t *testing.T) {
	timed := evidence.Sample{CacheState: evidence.Cold, Calls: 8, BatchesNS: []float64{100, 101}}
	asked := func(tests ...plan.Test) *compare.Driver {
		t.Helper()
		x := &experiment{arms: []*arms{{pair: twoPairs()[0], experiment: evidence.Experiment{Pilot: []evidence.Sample{timed}}}}}
		if err := x.plan(tests, compare.Budget{Pairs: 8}, compare.SequentialPlan()); err != nil {
			t.Fatal(err)
		}
		if x.driver != nil && len(x.tests) != 1 {
			t.Errorf("%d tests are measured, want 1", len(x.tests))
		}
		return x.driver
	}
	warm, cold := question(0), question(0)
	cold.CacheState = evidence.Cold
	if asked(warm) != nil {
		t.Error("a test without any time has a driver")
	}
	if asked(warm, cold) == nil {
		t.Error("the test of the state that is there has no driver")
	}
}
