package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestResiduals: two processes of an arm around their mean, √2 wider.
func TestResiduals(t *testing.T) {
	of := func(logs ...float64) []Process {
		var list []Process
		for _, y := range logs {
			list = append(list, Process{Typical: math.Exp(y)})
		}
		return list
	}
	rounds := []Round{{Base: of(3, 1), Head: of(0, 4)}, {Base: of(5, 5), Head: of(6, 12)}}
	want := []float64{-3, -2, -1, 0, 0, 1, 2, 3}
	got := residuals(rounds, Typical)
	for i, x := range want {
		if len(got) != len(want) || math.Abs(got[i]-x*math.Sqrt2) > 1e-9 {
			t.Fatalf("%v, want √2 times %v", got, want)
		}
	}
	if got := relative(math.Log(1.25)); math.Abs(got-0.25) > 1e-15 {
		t.Errorf("ln 1.25 is an effect of %v", got)
	}
}

// TestNineOfTen: 20 of 200 jobs may say no.
func TestNineOfTen(t *testing.T) {
	for no, want := range map[int]bool{0: true, 19: true, 20: true, 21: false, 200: false} {
		if got := nineOfTen(func(job uint64) bool { return job >= uint64(no) }); got != want {
			t.Errorf("with %d that say no: %v, want %v", no, got, want)
		}
		if got := nineOfTen(func(job uint64) bool { return job < uint64(replays-no) }); got != want {
			t.Errorf("with %d at the end that say no: %v, want %v", no, got, want)
		}
	}
}

// TestPrepare: the bar among so many tests, and whether the job reaches a look
// that can be red.
func TestPrepare(t *testing.T) {
	of := func(pairs int) replay {
		return replay{pool: []float64{-0.01, 0.01}, limits: standard(t), plan: SequentialPlan(), pairs: pairs}
	}
	r := of(8)
	if !r.prepare(4) || r.threshold != 0.0025 || r.redAt != r.plan.red().nominal(0.0025*0.8) || r.suspectAt != r.plan.red().nominal(0.01*0.8) {
		t.Errorf("among 4 tests: %+v", r)
	}
	for name, c := range map[string]struct {
		r     replay
		tests int
		want  bool
	}{
		"no tests are as one":                {of(8), 0, true},
		"one round less than the first look": {of(4), 1, false},
		"60 tests need a third round":        {of(8), 60, false},
		"which is there":                     {of(12), 60, true},
		"the last look of the plan":          {replay{pool: []float64{0}, limits: standard(t), plan: fixed(t, 3), pairs: 12}, 60, true},
		"no look can be red":                 {replay{pool: []float64{0}, limits: standard(t), plan: fixed(t, 1), pairs: 4}, 1, false},
		"no processes":                       {replay{limits: standard(t), plan: SequentialPlan(), pairs: 120}, 1, false},
	} {
		if got := c.r.prepare(c.tests); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestSmallestEffectFound: the effect is found, and one that is smaller by more than the
// last of nine halvings is not. Fewer rounds find less.
func TestSmallestEffectFound(t *testing.T) {
	limits := Limits{Tolerance: 0.005, Detect: 0.02}
	rng := rand.New(rand.NewPCG(40, 0))
	pool := residuals(normalRounds(rng, 10, 0.006, 0), Typical)
	width := pool[len(pool)-1] - pool[0]
	var before float64
	for _, c := range []struct {
		pairs int
		width float64 // of what is searched
	}{{12, width}, {24, limits.detected() - limits.tolerated()}} {
		plan := SequentialPlan()
		plan.Looks = plan.Looks[:10]
		r := replay{pool: pool, limits: limits, plan: plan, pairs: c.pairs}
		got, ok := r.detectable(3)
		r.prepare(3)
		at, step := math.Log1p(got), c.width/512
		if !ok || !r.finds(at) || r.finds(at-1.01*step) {
			t.Errorf("%d pairs: %v, %v, found %v, a step before %v", c.pairs, got, ok, r.finds(at), r.finds(at-1.01*step))
		}
		if (c.pairs == 12) != (got > limits.Detect) {
			t.Errorf("%d pairs find %v", c.pairs, got)
		}
		if before != 0 && got >= before {
			t.Errorf("%d pairs find %v, fewer found %v", c.pairs, got, before)
		}
		before = got
	}
	// All processes alike but for a tail that hides what is small.
	if got, ok := (replay{pool: pool, limits: limits, plan: SequentialPlan(), pairs: 4}).detectable(3); ok || got != 0 {
		t.Errorf("one round finds %v", got)
	}
}
