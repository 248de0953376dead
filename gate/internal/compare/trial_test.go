package compare

import (
	"math"
	"testing"
)

// TestGone: half of the pairs are enough, and against a reference none are.
func TestGone(t *testing.T) {
	d := designFor(2, Limits{Tolerance: 0.005, Detect: 0.02})
	for collapsed, want := range map[int]bool{0: false, 15: false, 16: true, 32: true} {
		one := test{sequence: &sequence{design: d, strata: make([]stratum, 2), collapsed: collapsed}}
		if one.gone() != want {
			t.Errorf("%d of 32 pairs have collapsed: %v, want %v", collapsed, one.gone(), want)
		}
	}
	reference := designFor(2, Limits{Tolerance: -0.5, Detect: -0.5, Reference: true})
	if one := (test{sequence: &sequence{design: reference, strata: make([]stratum, 2), collapsed: 32}}); one.gone() {
		t.Error("against a reference nothing is gone")
	}
}

// TestDecidedLookByLook: p values that are exactly at their bounds, and the first
// decision of several tests.
func TestDecidedLookByLook(t *testing.T) {
	plan := SequentialPlan()
	const open, beta = 0.3, 0.01 // alpha is 0.01, too
	green := lookP{regressed: 1, passed: beta}
	neither := lookP{regressed: open, passed: open}
	of := func(ps ...lookP) test { return test{ps: ps} }
	for name, c := range map[string]struct {
		tests []test
		want  Decision
	}{
		"no look":                          {[]test{of()}, Inconclusive},
		"p of a red at the threshold":      {[]test{of(lookP{regressed: 0.005, passed: 1})}, Regressed},
		"above the threshold":              {[]test{of(lookP{regressed: 0.0051, passed: 1})}, Inconclusive},
		"p of a pass at beta":              {[]test{of(green)}, Pass},
		"above beta":                       {[]test{of(lookP{regressed: 1, passed: 0.0101})}, Inconclusive},
		"red alone at alpha":               {[]test{of(lookP{regressed: 0.01, passed: beta})}, Inconclusive},
		"not quite red alone":              {[]test{of(lookP{regressed: 0.0101, passed: beta})}, Pass},
		"constant":                         {[]test{of(lookP{regressed: 1, passed: beta, constant: true})}, Inconclusive},
		"one of two passes":                {[]test{of(green), of(neither)}, Inconclusive},
		"both pass":                        {[]test{of(green), of(green)}, Pass},
		"one of two is red":                {[]test{of(green), of(lookP{regressed: 0, passed: 1})}, Regressed},
		"passed before it was red":         {[]test{of(neither, green, lookP{passed: beta})}, Pass},
		"red before it passed":             {[]test{of(neither, lookP{passed: 1}, green)}, Regressed},
		"each passes, at different looks":  {[]test{of(green, neither), of(neither, green)}, Inconclusive},
		"the second look of the other one": {[]test{of(neither, neither), of(neither, lookP{passed: 1})}, Regressed},
	} {
		if got := decided(c.tests, 0.005, plan); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCanReject: a look can be red at its smallest p value over the four fifths
// that the rank test has.
func TestCanReject(t *testing.T) {
	plan := SequentialPlan()
	red := plan.red()
	for k := range 5 {
		p := red.exact(red.scaled(k, nullOf(perArm, k+1).least()))
		threshold := p / (1 - spentOnSlow)
		for threshold*(1-spentOnSlow) < p {
			threshold = math.Nextafter(threshold, 1)
		}
		if got := plan.canReject(threshold); got != k+1 {
			t.Errorf("at %v look %d is the first that can be red, want %d", threshold, got, k+1)
		}
		if got := plan.canReject(threshold * (1 - 1e-9)); got != k+2 {
			t.Errorf("below %v look %d is the first that can be red, want %d", threshold, got, k+2)
		}
	}
	if got := fixed(t, 1).canReject(0.01); got != 2 {
		t.Errorf("no look of one round can be red at 1 %%, got look %d", got)
	}
}

// TestTooFew: too few to be red, and too few to pass.
func TestTooFew(t *testing.T) {
	for _, c := range []struct {
		profile   string
		rounds    int
		threshold float64
		want      bool
	}{
		{"standard", 1, 0.01, true},
		{"standard", 2, 0.01, false},
		{"standard", 2, 1e-9, false}, // eight pairs can pass
		{"strict", 2, 0.01, false},   // they can be red
		{"strict", 2, 1e-9, true},
		{"strict", 4, 1e-9, true},
		{"strict", 5, 1e-9, false},
		{"loose", 1, 0.01, false},
	} {
		limits, err := Profile(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		one := trial{experiment: Series{Limits: limits, Rounds: steady(c.rounds, 0)}}
		if got := one.tooFew(c.threshold, SequentialPlan()); got != c.want {
			t.Errorf("%s, %d rounds at %v: %v, want %v", c.profile, c.rounds, c.threshold, got, c.want)
		}
	}
}

// TestNominalReachesItsProbability: a probability that some t has exactly is used up.
func TestNominalReachesItsProbability(t *testing.T) {
	s := spendingOf(4, []int{1, 2, 3}, rootShape(0, 3))
	for _, at := range []float64{0.02, 0.05, 0.3} {
		p := s.exact(at)
		if got := s.exact(s.nominal(p)); got != p {
			t.Errorf("of a probability of %v only %v is spent", p, got)
		}
	}
	if got := s.nominal(1e-7); got*s.shape[2] >= nullOf(4, 3).least() {
		t.Errorf("no look rejects with a probability of 1e-7, and t is %v", got)
	}
}
