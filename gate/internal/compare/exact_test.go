package compare

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func exactly(x float64) evidence.Value { return evidence.Of(x, "byte") }

var unknown = evidence.Value{Missing: "not measured"}

func TestExact(t *testing.T) {
	nan, inf := exactly(math.NaN()), exactly(math.Inf(-1))
	for _, c := range []struct {
		name       string
		base, head evidence.Value
		state      ChangeState
		absolute   float64
	}{
		{"unchanged", exactly(96), exactly(96), Unchanged, 0},
		{"higher", exactly(96), exactly(168), changed, 72},
		{"lower", exactly(168), exactly(84), changed, -84},
		{"from 0", exactly(0), exactly(16), changed, 16},
		{"still 0", exactly(0), exactly(0), Unchanged, 0},
		{"from below 0", exactly(-1), exactly(1), changed, 2},
		{"no base", unknown, exactly(3), noBaseline, 0},
		{"no head", exactly(3), unknown, missing, 0},
		{"neither", unknown, unknown, missing, 0},
		{"the head is not a number", exactly(3), nan, missing, 0},
		{"the base is not a number", nan, exactly(3), noBaseline, 0},
		{"base infinite", inf, exactly(3), noBaseline, 0},
		{"new and NaN", unknown, nan, missing, 0},
		{"difference overflows", exactly(-math.MaxFloat64), exactly(math.MaxFloat64), notFinite, 0},
	} {
		got := Exact(c.base, c.head)
		if got.State != c.state || got.Absolute != c.absolute {
			t.Errorf("%s: %+v, want %s, %v", c.name, got, c.state, c.absolute)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWorsening(t *testing.T) {
	up := Exact(exactly(50), exactly(55))
	for _, c := range []struct {
		name   string
		change Change
		better Better
		want   any // a float64, or nil where it is not known
	}{
		{"more registers", up, LowerBetter, 5.0},
		{"occupancy rises", up, HigherBetter, -5.0},
		{"from 0", Exact(exactly(0), exactly(5)), LowerBetter, 5.0},
		{"unchanged at 0", Exact(exactly(0), exactly(0)), LowerBetter, 0.0},
		{"no baseline", Exact(unknown, exactly(5)), LowerBetter, nil},
		{"missing", Exact(exactly(5), unknown), LowerBetter, nil},
		{"not finite", Exact(exactly(-math.MaxFloat64), exactly(math.MaxFloat64)), LowerBetter, nil},
		{"nothing computed", Change{}, LowerBetter, nil},
		{"no direction", up, 0, nil},
	} {
		got, ok := c.change.Worsening(c.better)
		if want, known := c.want.(float64); ok != known || known && got != want {
			t.Errorf("%s: %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}
