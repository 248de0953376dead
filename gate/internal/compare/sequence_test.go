package compare

import (
	"math"
	"testing"
)

// designFor is the design of a plan that looks after each of so many rounds of four.
func designFor(looks int, limits Limits) *design {
	plan := SequentialPlan()
	plan.Looks = plan.Looks[:looks]
	return newDesign(limits, plan)
}

// flat is a round whose base takes no time in logarithms, against these heads.
func flat(heads ...float64) stratum {
	return stratum{base: make([]float64, len(heads)), head: heads}
}

// TestCountsOfASequence: what is exactly at a limit counts against the claim.
func TestCountsOfASequence(t *testing.T) {
	d := designFor(2, Limits{Tolerance: 0.005, Detect: 0.02})
	s := newSequence(d)
	s.read(flat(d.detected, d.detected, d.tolerated, d.mirrored))
	// Two exceed the tolerance, two reach detect, and all reach the mirror; four pairs each.
	if s.above != 8 || s.below != 8 || s.better != 16 || s.collapsed != 0 {
		t.Errorf("at the limits: %d above, %d below, %d better, %d collapsed, want 8, 8, 16 and 0", s.above, s.below, s.better, s.collapsed)
	}
	gone := math.Log1p(CollapseBelow)
	s.read(flat(gone, gone-1, gone+0.01, -5))
	if s.above != 8 || s.below != 8 || s.better != 16 || s.collapsed != 12 {
		t.Errorf("with three that are gone: %d above, %d below, %d better, %d collapsed, want 8, 8, 16 and 12", s.above, s.below, s.better, s.collapsed)
	}
	s.read(flat(1, 1, 1, 1))
	if s.above != 24 || s.below != 24 || s.better != 32 || len(s.looks) != 2 {
		t.Errorf("after the last look: %d above, %d below, %d better, %d looks, want 24, 24, 32 and 2", s.above, s.below, s.better, len(s.looks))
	}
	reference := newSequence(designFor(2, Limits{Tolerance: -0.5, Detect: -0.5, Reference: true}))
	reference.read(flat(1, 1, 1, 3))
	if reference.better != 0 || reference.slow.head != 0 || !math.IsInf(reference.tFaster, 1) || reference.looks[0].pSlow != 1 {
		t.Errorf("against a reference: %+v", reference)
	}
}

// TestConstantArms: an arm is constant while all its processes gave one value.
func TestConstantArms(t *testing.T) {
	s := newSequence(designFor(3, Limits{Tolerance: 0.005, Detect: 0.02}))
	for i, c := range []struct {
		one  stratum
		want [2]bool
	}{
		{stratum{[]float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}}, [2]bool{true, true}},
		{stratum{[]float64{1, 1, 1, 1}, []float64{2, 2, 2, 3}}, [2]bool{true, false}},
		{stratum{[]float64{2, 2, 2, 2}, []float64{2, 2, 2, 2}}, [2]bool{false, false}},
	} {
		s.read(c.one)
		if s.same != c.want || s.looks[i].constant != (c.want != [2]bool{}) {
			t.Errorf("after %d rounds the arms are constant: %v, looks %+v", i+1, s.same, s.looks)
		}
	}
}

// TestLooksOfASequence: a look keeps the smallest so far of each claim. Its share
// of the error on slow processes is 1 of 1 + 1/√2, then 1/√2 of it.
func TestLooksOfASequence(t *testing.T) {
	d := designFor(2, Limits{Tolerance: 0.005, Detect: 0.02})
	shares := []float64{1 / (1 + math.Sqrt2/2), math.Sqrt2 / 2 / (1 + math.Sqrt2/2)}
	for i, want := range shares {
		if math.Abs(d.slowShares[i]-want) > 1e-15 {
			t.Errorf("look %d may spend %v, want %v", i, d.slowShares[i], want)
		}
	}
	s := newSequence(d)
	s.read(stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.1, 0.2, 0.3, 0.4}}) // four above: 1 of 70
	s.read(stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.001, 0.002, 0.003, 0}})
	slow := s.slow.p()
	if slow < 0.01 || slow > 0.2 {
		t.Fatalf("the heads of the first round are slow with a p value of %v", slow)
	}
	if got := s.looks[0].tRed; math.Abs(got-1.0/70) > 1e-15 {
		t.Errorf("the first look has a t of %v, want 1/70", got)
	}
	if got, want := s.looks[1].tRed, min(1.0/70, nullOf(4, 2).atLeast(16)*math.Sqrt2); math.Abs(got-want) > 1e-15 {
		t.Errorf("the second look has a t of %v, want %v", got, want)
	}
	if got, want := s.looks[1].pSlow, min(s.looks[0].pSlow, slow/shares[1]); got != want || s.looks[0].pSlow != slow/shares[0] {
		t.Errorf("p values over their shares of %v and %v, want %v and %v", s.looks[0].pSlow, got, slow/shares[0], want)
	}
}

// TestWhatPassedStays: at t = mostPass a claim has passed, and later rounds leave it.
func TestWhatPassedStays(t *testing.T) {
	one := stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.001, 0.002, 0.003, 0}}
	free := newSequence(designFor(3, Limits{Tolerance: 0.005, Detect: 0.02}))
	free.read(one)
	free.read(one)
	if first, second := free.looks[0].tPass, free.looks[1].tPass; !(second < first) {
		t.Fatalf("t is %v after one round and %v after two", first, second)
	}
	d := designFor(3, Limits{Tolerance: 0.005, Detect: 0.02})
	d.mostPass = 1.0 / 70 // the smallest p value of one round
	s := newSequence(d)
	s.read(one)
	if got := s.looks[0].tPass; got != d.mostPass {
		t.Fatalf("the first look has a t of %v, want 1/70", got)
	}
	s.read(one)
	if got := s.looks[1].tPass; got != d.mostPass {
		t.Errorf("a second look makes a t of %v of one that had passed", got)
	}
}

// TestPassNeedsTheMean: where the ranks pass, the mean is asked as well. Against a
// base one slow process of twelve is enough for infinity; against a reference,
// and where none is slow, the larger t of the two is it.
func TestPassNeedsTheMean(t *testing.T) {
	quiet := stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.001, 0.002, 0.003, 0}}
	slow := stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.001, 0.002, 0.003, math.Ln2}}
	high := stratum{[]float64{0, 0.001, 0.002, 0.003}, []float64{0.018, 0.001, 0.018, 0.002}}
	base, reference := Limits{Tolerance: 0.005, Detect: 0.02}, Limits{Tolerance: 0.02, Detect: 0.02, Reference: true}
	for name, c := range map[string]struct {
		limits   Limits
		strata   []stratum
		infinite bool
	}{
		"quiet":                     {base, []stratum{quiet, quiet, quiet}, false},
		"high, and none slow":       {base, []stratum{quiet, high, high}, false},
		"one of twelve is slow":     {base, []stratum{quiet, slow, quiet}, true},
		"the same and a reference":  {reference, []stratum{quiet, slow, quiet}, false},
		"quiet against a reference": {reference, []stratum{quiet, quiet, quiet}, false},
	} {
		d := designFor(3, c.limits)
		s := newSequence(d)
		for _, one := range c.strata {
			s.read(one)
		}
		ranks := pBelowAll(c.strata, d.detected) * math.Sqrt(3)
		if ranks > d.mostPass {
			t.Fatalf("%s: the ranks do not pass, t %v", name, ranks)
		}
		want := max(ranks, meanBelow(c.strata, d.detected)*math.Sqrt(3))
		if c.infinite {
			want = math.Inf(1)
		}
		if got := s.passAt(2); got != want && math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: t %v, want %v", name, got, want)
		}
		d.mostPass = s.pass.scaled(2, pBelow(perArm, 3, s.below, 0))
		if got := s.passAt(2); got != want && math.Abs(got-want) > 1e-12 {
			t.Errorf("%s, where the ranks pass just so: t %v, want %v", name, got, want)
		}
		d.mostPass /= 2
		if got := s.passAt(2); math.Abs(got-ranks) > 1e-12 {
			t.Errorf("%s, where the ranks do not pass: t %v, want their %v", name, got, ranks)
		}
	}
}

// TestRedOfALook: by its ranks, or by its slow processes, which have a fifth.
func TestRedOfALook(t *testing.T) {
	for _, c := range []struct {
		l    look
		want bool
	}{
		{look{tRed: 0.25, pSlow: 1}, true},
		{look{tRed: 0.26, pSlow: 1}, false},
		{look{tRed: 1, pSlow: 0.5 * spentOnSlow}, true},
		{look{tRed: 1, pSlow: 0.5*spentOnSlow + 1e-9}, false},
		{look{tRed: 0.1, pSlow: 0.01}, true},
	} {
		if got := c.l.isRed(0.25, 0.5); got != c.want {
			t.Errorf("%+v is red: %v, want %v", c.l, got, c.want)
		}
	}
	d := designFor(1, Limits{Tolerance: 0.005, Detect: 0.02})
	for _, c := range []struct {
		l    look
		want lookP
	}{
		{look{tRed: 1.0 / 70, tPass: math.Inf(1), pSlow: 1}, lookP{regressed: 1.0 / 70 / 0.8, passed: 1}},
		{look{tRed: math.Inf(1), tPass: 2.0 / 70, pSlow: 0.03, constant: true}, lookP{regressed: 0.15, passed: 2.0 / 70, constant: true}},
		{look{tRed: 1, tPass: 1, pSlow: 1}, lookP{regressed: 1, passed: 1}},
	} {
		if got := d.p(c.l); math.Abs(got.regressed-c.want.regressed) > 1e-12 || math.Abs(got.passed-c.want.passed) > 1e-12 || got.constant != c.want.constant {
			t.Errorf("%+v has %+v, want %+v", c.l, got, c.want)
		}
	}
}
