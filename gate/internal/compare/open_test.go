package compare

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// steady makes rounds in which the processes of each arm lie 0.1 % apart from
// 100 µs on, the head slower by effect.
func steady(rounds int, effect float64) []Round { return spaced(rounds, 100, effect) }

func spaced(rounds int, apart, effect float64) []Round {
	list := make([]Round, rounds)
	for i := range list {
		for j := range perArm {
			base, head := 1e5+apart*float64(j)+float64(i), (1e5+apart*float64(j)+7*float64(i))*(1+effect)
			list[i].Base = append(list[i].Base, Process{Typical: base, Mean: base})
			list[i].Head = append(list[i].Head, Process{Typical: head, Mean: head})
		}
	}
	return list
}

// TestOpen: what can be continued was measured, can be used, is undecided and has
// looks left.
func TestOpen(t *testing.T) {
	plan := SequentialPlan()
	plan.Looks = plan.Looks[:3]
	of := func(rounds []Round) Series {
		return Series{Limits: standard(t), Summaries: []Summary{Typical}, Rounds: rounds}
	}
	broken := steady(1, 0)
	broken[0].Head[2].Mean = math.NaN()
	cases := []struct {
		name string
		one  Series
		want bool
	}{
		{"not measured", of(nil), false},
		{"one round", of(steady(1, 0)), true},
		{"passed", of(steady(2, 0)), false},
		{"red", of(steady(2, 0.1)), false},
		{"noisy", of(spaced(2, 3000, 0.01)), true},
		{"noisy at the last look", of(spaced(3, 3000, 0.01)), false},
		{"a time that cannot be used", of(broken), false},
	}
	var all []Series
	var want []bool
	for _, c := range cases {
		all, want = append(all, c.one), append(want, c.want)
	}
	got, err := Open(all, plan)
	if err != nil || !reflect.DeepEqual(got, want) {
		for i, o := range outcomesOf(t, all, plan) {
			t.Logf("%s: %s, %s", cases[i].name, o.Decision, o.Reason)
		}
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if open, err := Open([]Series{of(steady(4, 0))}, plan); err == nil || open != nil || !strings.Contains(err.Error(), "voids the error bound") {
		t.Errorf("more rounds than the plan has: %v, %v", open, err)
	}
}

// TestOutcomeFigures: the medians of the arms, and what is known of a trial that
// cannot be used.
func TestOutcomeFigures(t *testing.T) {
	rounds := steady(2, 0)
	o := decideOne(t, Series{Limits: standard(t), Summaries: []Summary{Typical}, Rounds: rounds}, SequentialPlan())
	// base 100000 … 100300 and one more in the second round; head the same and seven more.
	if m := o.Summaries[0]; m.Base != 100150.5 || m.Head != 100153.5 || o.Pairs != 8 || o.NeedPairs != 0 {
		t.Errorf("%+v with %+v", o, m)
	}
	rounds[1].Head[2].Mean = math.Inf(1)
	o = decideOne(t, Series{Limits: standard(t), Rounds: rounds}, SequentialPlan())
	if o.NeedPairs != -1 || o.Pairs != 0 || len(o.Summaries) != 0 || o.Tests != 2 || o.Invalid == nil || !strings.Contains(o.Invalid.Error(), "round 1, head process 2") {
		t.Errorf("a time that cannot be used: %+v", o)
	}
}

// TestExcludedIsTheSmallest searches the smallest slowdown that the tests of a
// pass refute after three rounds, in steps of 0.001 %: where the ranks say more,
// and where a process of the head moves the mean alone.
func TestExcludedIsTheSmallest(t *testing.T) {
	plan := SequentialPlan()
	for name, slow := range map[string]float64{"no process is slow": 1, "one is": 1.025} {
		e := Series{Limits: Limits{Tolerance: 0.005, Detect: 0.02}, Summaries: []Summary{Typical}, Rounds: steady(3, 0)}
		e.Rounds[2].Head[1].Typical *= slow
		one := newTrial(e, plan).tests[0]
		p := plan.pass(e.Limits).nominal(plan.Beta) / math.Sqrt(3) // the third look
		byRank, byMean := math.NaN(), math.NaN()
		for x := 0.0; x < 0.03; x += 1e-5 {
			shift := math.Log1p(x)
			if math.IsNaN(byRank) && pBelowAll(one.strata, shift) <= p {
				byRank = x
			}
			if math.IsNaN(byMean) && meanBelow(one.strata, shift) <= p {
				byMean = x
			}
		}
		t.Logf("%s: excluded from %.3f %% by the ranks, from %.3f %% by the mean", name, 100*byRank, 100*byMean)
		want := min(max(byRank, byMean), e.Limits.Detect)
		o := decideOne(t, e, plan)
		if m := o.Summaries[0]; o.Decision != Pass || m.Excluded == nil || math.Abs(*m.Excluded-want) > 3e-5 {
			t.Errorf("%s: %s, %+v, want an effect of %v", name, o.Reason, m.Excluded, want)
		}
	}
}
