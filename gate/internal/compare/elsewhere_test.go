package compare

import (
	"math/rand/v2"
	"testing"
)

// Tests that are judged elsewhere raise the bar here: three rounds, whose
// smallest p value is 70⁻³, reject at four fifths of 1 % among 2,744 tests and not among more,
// whoever judges the others.
func TestElsewhereCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(91, 0))
	slow := Series{Limits: standard(t), Rounds: normalRounds(rng, 3, 0.001, 0.2), Summaries: []Summary{Typical}}
	plan := fixed(t, 3)
	for elsewhere, want := range map[int]Decision{0: Regressed, 2743: Regressed, 2744: Inconclusive} {
		plan.Elsewhere = elsewhere
		if o := decideOne(t, slow, plan); o.Decision != want || o.Tests != 1+elsewhere {
			t.Errorf("%d tests elsewhere: %s among %d (%v), want %s", elsewhere, o.Decision, o.Tests, o.Reason, want)
		}
	}
	now := Stored{Limits: storedLimits, History: sessions(rng, 9, 0.002, 0.001), Now: session(rng, 0.002, 0.001, 0.02)}
	for elsewhere, red := range map[int]bool{0: true, 1 << 19: false} {
		plan.Elsewhere = elsewhere
		outcomes, err := DecideStored([]Stored{now}, plan)
		if err != nil || (outcomes[0].Decision == Regressed) != red {
			t.Errorf("%d tests elsewhere: %+v, %v, want red %v", elsewhere, outcomes, err, red)
		}
	}
	for _, bad := range []int{-1, maxExperiments + 1} {
		plan.Elsewhere = bad
		if _, err := Decide([]Series{slow}, plan); err == nil {
			t.Errorf("%d tests elsewhere are accepted", bad)
		}
	}
}

// P99 is asked for by name, and a process without it is then no process.
func TestP99(t *testing.T) {
	rng := rand.New(rand.NewPCG(92, 0))
	rounds := normalRounds(rng, 3, 0.001, 0)
	e := Series{Limits: standard(t), Rounds: rounds, Summaries: []Summary{P99}}
	if o := decideOne(t, e, fixed(t, 3)); o.Reason != InvalidProcess || o.Decision != Inconclusive {
		t.Errorf("processes without a p99: %+v", o)
	}
	for i := range rounds {
		for j := range perArm {
			rounds[i].Base[j].P99 = rounds[i].Base[j].Mean * 1.1
			rounds[i].Head[j].P99 = rounds[i].Head[j].Mean * 1.5
		}
	}
	if o := decideOne(t, e, fixed(t, 3)); o.Decision != Regressed {
		t.Errorf("a tail that grew from 1.1 to 1.5 of the mean: %+v", o)
	}
}

// One gated metric is one test, in stored mode too.
func TestStoredMetrics(t *testing.T) {
	rng := rand.New(rand.NewPCG(93, 0))
	k := Stored{Limits: storedLimits, History: sessions(rng, 9, 0.002, 0.001), Now: session(rng, 0.002, 0.001, 0)}
	for i := range k.Now.Processes {
		k.Now.Processes[i].Mean *= 1.5
	}
	k.Summaries = []Summary{Typical}
	if o := storedOne(t, k); o.Decision != Pass || len(o.Summaries) != 1 {
		t.Errorf("typical alone: %+v", o)
	}
	k.Summaries = []Summary{Mean}
	if o := storedOne(t, k); o.Decision != Regressed || len(o.Summaries) != 1 {
		t.Errorf("mean alone: %+v", o)
	}
}
