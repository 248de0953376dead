package compare

import (
	"math"
	"testing"
)

func TestCapped(t *testing.T) {
	for _, c := range []struct {
		pairs, looks, last int
	}{{4, 1, 4}, {12, 3, 12}, {14, 3, 12}, {40, 10, 40}, {120, 30, 120}, {500, 30, 120}} {
		p, err := SequentialPlan().capped(c.pairs)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Looks) != c.looks || p.LastPairs() != c.last {
			t.Errorf("capped at %d: %v, want %d looks up to %d", c.pairs, p.Looks, c.looks, c.last)
		}
	}
	if _, err := SequentialPlan().capped(3); err == nil {
		t.Error("a plan without a round is accepted")
	}
	for _, rounds := range []int{0, -1, maxRounds + 1} {
		if _, err := fixedPlan(rounds); err == nil {
			t.Errorf("a plan of %d rounds is accepted", rounds)
		}
	}
}

func TestLimits(t *testing.T) {
	near := func(got, want Limits) bool {
		return math.Abs(got.Tolerance-want.Tolerance) < 1e-12 && math.Abs(got.Detect-want.Detect) < 1e-12 && got.Reference == want.Reference
	}
	standard := standard(t)
	for _, c := range []struct {
		name string
		got  func() (Limits, error)
		want Limits
	}{
		{"5 % at the standard profile", func() (Limits, error) { return MaxRegression(standard, 0.05) }, Limits{Tolerance: 0.0125, Detect: 0.05}},
		{"50 ns on 100 µs", func() (Limits, error) { return standard.withFloor(50, 1e5) }, standard},
		{"50 ns on 2 µs", func() (Limits, error) { return standard.withFloor(50, 2000) }, Limits{Tolerance: 0.025, Detect: 0.04}},
		{"no floor", func() (Limits, error) { return standard.withFloor(0, 2000) }, standard},
		{"half of a reference", func() (Limits, error) { return ReferenceLimits(0.5) }, Limits{Tolerance: -0.5, Detect: -0.5, Reference: true}},
	} {
		if got, err := c.got(); err != nil || !near(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	for name, f := range map[string]func() (Limits, error){
		"unknown profile":      func() (Limits, error) { return Profile("Standard") },
		"a base of 0":          func() (Limits, error) { return standard.withFloor(50, 0) },
		"a floor of NaN":       func() (Limits, error) { return standard.withFloor(math.NaN(), 1e5) },
		"a negative floor":     func() (Limits, error) { return standard.withFloor(-1, 1e5) },
		"a floor of the base":  func() (Limits, error) { return standard.withFloor(1e9, 1) },
		"a ratio of 0":         func() (Limits, error) { return ReferenceLimits(0) },
		"a ratio of NaN":       func() (Limits, error) { return ReferenceLimits(math.NaN()) },
		"a regression of 0":    func() (Limits, error) { return MaxRegression(standard, 0) },
		"a negative tolerance": func() (Limits, error) { return NewLimits(-0.01, 0.02, 0) },
	} {
		if l, err := f(); err == nil {
			t.Errorf("%s is accepted as %+v", name, l)
		}
	}
}

func TestHolmAndBenjaminiHochberg(t *testing.T) {
	for _, c := range []struct {
		ps         []float64
		holm, hoch int // how many are rejected at 5 %
	}{
		{nil, 0, 0},
		{[]float64{1, 1, 1}, 0, 0},
		{[]float64{0.01, 0.04, 0.03, 0.005}, 2, 4},
		{[]float64{0.04, 0.001, 0.026}, 1, 3},
		{[]float64{0.02}, 1, 1},
		{[]float64{0, 0.9}, 1, 1},
	} {
		holm, hoch := 0, 0
		h, b := holmThreshold(c.ps, 0, 0.05), benjaminiHochbergThreshold(c.ps, 0.05)
		for _, p := range c.ps {
			if p <= h {
				holm++
			}
			if p <= b {
				hoch++
			}
		}
		if holm != c.holm || hoch != c.hoch {
			t.Errorf("%v: Holm rejects %d and Benjamini-Hochberg %d, want %d and %d", c.ps, holm, hoch, c.holm, c.hoch)
		}
	}
}

func TestZeroValuesAreNoEvidence(t *testing.T) {
	if Decision(0) != Inconclusive || Reason(0) != NotMeasured {
		t.Error("a zero value is evidence")
	}
}

// fixedPlan looks once, after the given number of rounds, and spends the whole
// error probability there.
func fixedPlan(rounds int) (Plan, error) {
	p := SequentialPlan()
	p.Looks = []int{rounds * perArm}
	return p, p.valid()
}
