package compare

import (
	"math"
	"strings"
	"testing"
)

// TestLimitsAtTheirBounds: each bound of limits from both sides.
func TestLimitsAtTheirBounds(t *testing.T) {
	reference := func(ratio float64) Limits {
		return Limits{Tolerance: ratio - 1, Detect: ratio - 1, Reference: true}
	}
	for _, c := range []struct {
		limits Limits
		want   string // of the error; "" is none
	}{
		{Limits{Tolerance: 0.01, Detect: 0.02}, ""},
		{Limits{Tolerance: 0.01, Detect: 99}, ""},
		{Limits{Tolerance: 0.01, Detect: 99.01}, "detect <= 99, got tolerance 0.01 and detect 99.01"},
		{Limits{Tolerance: 0.02, Detect: 0.02}, "0 < tolerance < detect"},
		{Limits{Tolerance: 0, Detect: 0.02}, "0 < tolerance < detect"},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: leastTail}, ""},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: 0.999}, ""},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: 1}, "a tail needs to be 0 or from 0.035 to below 1, got 1"},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: 0.0349}, "a tail needs"},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: -0.1}, "a tail needs"},
		{Limits{Tolerance: 0.01, Detect: 0.02, Tail: math.NaN()}, "a tail needs"},
		{reference(100), ""},
		{reference(100.5), "above 0 and at most 100, got 100.5"},
		{reference(0), "above 0 and at most 100, got 0"},
		{Limits{Tolerance: 0.5, Detect: 1, Reference: true}, "above 0 and at most 100, got 2"},
	} {
		err := c.limits.Valid()
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.limits, err, c.want)
		}
	}
}

// TestBoundAt: a floor makes limits of the base's time, and no floor leaves them.
func TestBoundAt(t *testing.T) {
	limits := Limits{Tolerance: 0.01, Detect: 0.03}
	for _, c := range []struct {
		bound Bound
		base  float64
		want  Limits
		err   string
	}{
		{Bound{Limits: limits}, 0, limits, ""},
		{Bound{Limits: Limits{Tolerance: 1}}, 1000, Limits{Tolerance: 1}, "0 < tolerance < detect"},
		{Bound{limits, 50}, 1000, Limits{Tolerance: 0.05, Detect: 0.07}, ""},
		{Bound{limits, 10}, 1000, limits, ""},
		{Bound{limits, 5}, 1000, limits, ""},
		{Bound{limits, math.MaxFloat64}, 1, Limits{}, "0 < tolerance < detect"},
		{Bound{limits, math.Inf(1)}, 1, Limits{}, "a floor of +Inf ns on a base of 1 ns"},
		{Bound{limits, 50}, 0, Limits{}, "a floor of 50 ns on a base of 0 ns"},
		{Bound{Limits{Tolerance: 0.5, Detect: 0.5, Reference: true}, 50}, 1000, Limits{}, "no meaning for a ratio"},
	} {
		got, err := c.bound.At(c.base)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%+v on %v ns: %+v, %v, want %q", c.bound, c.base, got, err, c.err)
			}
			continue
		}
		if err != nil || math.Abs(got.Tolerance-c.want.Tolerance) > 1e-12 || math.Abs(got.Detect-c.want.Detect) > 1e-12 {
			t.Errorf("%+v on %v ns: %+v, %v, want %+v", c.bound, c.base, got, err, c.want)
		}
	}
}
