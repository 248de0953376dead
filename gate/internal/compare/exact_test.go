package compare

import (
	"encoding/json"
	"math"
	"testing"
)

func TestExact(t *testing.T) {
	unknown, nan, inf := Value{}, Known(math.NaN()), Known(math.Inf(-1))
	for _, c := range []struct {
		name       string
		base, head Value
		state      ChangeState
		absolute   float64
		relative   any // a float64, or nil where it is not defined
	}{
		{"unchanged", Known(96), Known(96), Unchanged, 0, 0.0},
		{"higher", Known(96), Known(168), Higher, 72, 0.75},
		{"lower", Known(168), Known(84), Lower, -84, -0.5},
		{"from 0", Known(0), Known(16), Higher, 16, nil},
		{"still 0", Known(0), Known(0), Unchanged, 0, nil},
		{"from below 0", Known(-1), Known(1), Higher, 2, nil},
		{"no base", unknown, Known(3), NoBaseline, 0, nil},
		{"no head", Known(3), unknown, Missing, 0, nil},
		{"neither", unknown, unknown, Missing, 0, nil},
		{"head NaN", Known(3), nan, NotFinite, 0, nil},
		{"base NaN", nan, Known(3), NotFinite, 0, nil},
		{"base infinite", inf, Known(3), NotFinite, 0, nil},
		{"new and NaN", unknown, nan, NotFinite, 0, nil},
		{"difference overflows", Known(-math.MaxFloat64), Known(math.MaxFloat64), NotFinite, 0, nil},
	} {
		got := Exact(c.base, c.head)
		if got.State != c.state || got.Absolute != c.absolute || (got.Relative == nil) != (c.relative == nil) {
			t.Errorf("%s: %+v, want %s, %v, %v", c.name, got, c.state, c.absolute, c.relative)
		}
		if want, ok := c.relative.(float64); ok && got.Relative != nil && *got.Relative != want {
			t.Errorf("%s: relative %v, want %v", c.name, *got.Relative, want)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWorsening(t *testing.T) {
	up, from0 := Exact(Known(50), Known(55)), Exact(Known(0), Known(5))
	for _, c := range []struct {
		name   string
		change Change
		kind   Kind
		better Better
		want   any
	}{
		{"8 registers", up, Absolute, LowerBetter, 5.0},
		{"occupancy rises", up, Points, HigherBetter, -5.0},
		{"10 %", up, Relative, LowerBetter, *up.Relative},
		{"relative to 0", from0, Relative, LowerBetter, nil},
		{"absolute from 0", from0, Absolute, LowerBetter, 5.0},
		{"unchanged at 0", Exact(Known(0), Known(0)), Relative, LowerBetter, 0.0},
		{"no baseline", Exact(Value{}, Known(5)), Absolute, LowerBetter, nil},
		{"missing", Exact(Known(5), Value{}), Absolute, LowerBetter, nil},
		{"not finite", Exact(Known(5), Known(math.NaN())), Absolute, LowerBetter, nil},
		{"nothing computed", Change{}, Absolute, LowerBetter, nil},
		{"no direction", up, Absolute, 0, nil},
		{"no kind", up, 0, LowerBetter, nil},
	} {
		got, ok := c.change.Worsening(c.kind, c.better)
		if want, known := c.want.(float64); ok != known || known && got != want {
			t.Errorf("%s: %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}
