package compare

import (
	"math"
	"testing"
)

// TestSlowProcesses: of two base processes at 0 and two heads, the bound is detect
// above the middle of all four, and what is at the bound is not slow.
func TestSlowProcesses(t *testing.T) {
	const tolerated, detected = 0.25, 0.5
	for _, c := range []struct {
		s          stratum
		from       float64
		base, head int
	}{
		{stratum{[]float64{0, 0}, []float64{0.25, 0.25}}, 0.5, 0, 0},
		{stratum{[]float64{0, 2}, []float64{0.25, 3}}, 1.5, 1, 1},
		{stratum{[]float64{0, 2}, []float64{4.25, 0.25}}, 1.5, 1, 1},
		{stratum{[]float64{0, 1}, []float64{0.25, 1.25}}, 1, 0, 0},
		{stratum{[]float64{0, 0.5}, []float64{0.25, 0.75}}, 0.75, 0, 0},
		{stratum{[]float64{0, 0}, []float64{0.25, 0.75}}, 0.5, 0, 0},
		{stratum{[]float64{0, 0}, []float64{0.25, 0.751}}, 0.5, 0, 1},
		{stratum{[]float64{0, 0}, []float64{5, 7}}, 2.875, 0, 2},
		{stratum{[]float64{0, 9}, []float64{0, 0}}, 0.375, 1, 0},
	} {
		if got := c.s.slowFrom(tolerated, detected); got != c.from {
			t.Errorf("%+v: slow from %v, want %v", c.s, got, c.from)
		}
		if base, head := c.s.slow(tolerated, detected); base != c.base || head != c.head {
			t.Errorf("%+v: %d and %d are slow, want %d and %d", c.s, base, head, c.base, c.head)
		}
	}
}

// TestSlowCounts: of three slow among two and two, the head has one or two, with
// the same probability; of two it has 0, 1 or 2 in 1, 4 and 1 of six draws.
func TestSlowCounts(t *testing.T) {
	none := stratum{[]float64{0, 0}, []float64{0, 0}}
	equal := stratum{[]float64{0, 9}, []float64{9, 0}}
	heads := stratum{[]float64{0, 0}, []float64{9, 9}}
	one := newSlowTest(0, 0.5)
	for i, c := range []struct {
		s          stratum
		base, head int
		p          float64
	}{
		{none, 0, 0, 1},
		{equal, 1, 1, 5.0 / 6},
		{heads, 1, 3, 9.0 / 36}, // 3 of (1,2), (2,1) in 4·1 each and 4 in 1 of 36
		{none, 1, 3, 9.0 / 36},
	} {
		one.add(c.s)
		if one.base != c.base || one.head != c.head || math.Abs(one.p()-c.p) > 1e-12 {
			t.Errorf("after %d rounds: %d and %d slow, p %v, want %+v", i+1, one.base, one.head, one.p(), c)
		}
	}
	for marked, want := range [][]float64{{1}, {0.5, 0.5}, {1.0 / 6, 4.0 / 6, 1.0 / 6}, {0, 0.5, 0.5}, {0, 0, 1}} {
		got := hypergeometric(2, marked)
		for k, p := range want {
			if len(got) != len(want) || math.Abs(got[k]-p) > 1e-12 {
				t.Errorf("%d marked of 4: %v, want %v", marked, got, want)
			}
		}
	}
}

// TestMostShare: none of ten are drawn of a share s with (1 − s)^10, and all of
// them say nothing of the largest share.
func TestMostShare(t *testing.T) {
	if got, want := mostShare(0, 10, 0.003), 1-math.Pow(0.003, 0.1); math.Abs(got-want) > 1e-8 {
		t.Errorf("none of 10: a share of %v, want %v", got, want)
	}
	if got := mostShare(10, 10, 0.003); got != 1 {
		t.Errorf("all of 10: a share of %v, want 1", got)
	}
	// 0.7⁴ = 0.2401, 4·0.3·0.7³ = 0.4116, 6·0.09·0.49 = 0.2646
	for k, want := range []float64{0.2401, 0.6517, 0.9163} {
		if got := binomialAtMost(k, 4, 0.3); math.Abs(got-want) > 1e-12 {
			t.Errorf("at most %d of 4: %v, want %v", k, got, want)
		}
		if got := mostShare(k, 4, want); math.Abs(got-0.3) > 1e-8 {
			t.Errorf("%d of 4 with %v: a share of %v, want 0.3", k, want, got)
		}
	}
}

// TestCouldReach works the share out by hand: with one slow of so many heads, at
// twice the time of the others, a share s brings the mean to 1 + s.
func TestCouldReach(t *testing.T) {
	limits := Limits{Tolerance: 0.005, Detect: 0.02}
	tolerated, detected := limits.tolerated(), limits.detected()
	at := func(level float64, s stratum) stratum {
		moved := stratum{}
		for i := range s.base {
			moved.base, moved.head = append(moved.base, s.base[i]+level), append(moved.head, s.head[i]+level)
		}
		return moved
	}
	one, none := flat(0, math.Ln2, 0, 0), flat(0, 0, 0, 0)
	bound := flat(0, 0, 0, detected+tolerated)
	for name, c := range map[string]struct {
		strata []stratum
		head   int
		mean   float64 // in times of the base
	}{
		"one of four":                {[]stratum{one}, 1, 1 + mostShare(1, 4, shareMissed)},
		"two of eight":               {[]stratum{one, one}, 2, 1 + mostShare(2, 8, shareMissed)},
		"one of eight, levels apart": {[]stratum{at(3, one), at(-2, none)}, 1, 1 + mostShare(1, 8, shareMissed)},
		"a slow head at the bound":   {[]stratum{bound}, 1, (1 - mostShare(0, 4, shareMissed)) * (3 + math.Exp(detected+tolerated)) / 4},
	} {
		test := slowTest{tolerated: tolerated, detected: detected, head: c.head}
		shift := math.Log(c.mean)
		if !test.couldReach(c.strata, shift-1e-9) || test.couldReach(c.strata, shift+1e-9) {
			t.Errorf("%s: reaches a little less than %v: %v, a little more: %v", name, c.mean, test.couldReach(c.strata, shift-1e-9), test.couldReach(c.strata, shift+1e-9))
		}
		test.head = 0
		if test.couldReach(c.strata, 0) {
			t.Errorf("%s: without a slow head the share is not asked", name)
		}
	}
	all := slowTest{tolerated: tolerated, detected: detected, head: 4}
	if !all.couldReach([]stratum{flat(9, 9, 9, 9)}, 99) {
		t.Error("where all heads are slow, the mean can be anything")
	}
	base := slowTest{tolerated: tolerated, detected: detected, head: 1}
	wide := stratum{[]float64{0, 0, 0, math.Log(5)}, []float64{0, 0, 0, math.Ln2}}
	// The base's mean is 2, and the head's is at most 1 + share.
	if base.couldReach([]stratum{wide}, 0) || !base.couldReach([]stratum{wide}, math.Log((1+mostShare(1, 4, shareMissed))/2)-1e-9) {
		t.Error("the base's own slow process is left out of its mean")
	}
}
