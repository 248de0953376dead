package compare

import (
	"math"
	"slices"
	"testing"
)

// TestWidestGap: of eight values or more, with at least two (15 %) on either side
// of the gap, and a gap four times as wide as its sides are spread.
func TestWidestGap(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		split  float64 // 0: no gap
		found  bool
	}{
		"four and four":                   {[]float64{8, 2, 8, 2, 8, 2, 8, 2}, 4, true},
		"six and two":                     {[]float64{2, 2, 2, 2, 2, 2, 8, 8}, 4, true},
		"two and six":                     {[]float64{2, 2, 8, 8, 8, 8, 8, 8}, 4, true},
		"seven and one":                   {[]float64{2, 2, 2, 2, 2, 2, 2, 8}, 0, false},
		"seven values":                    {[]float64{2, 2, 2, 2, 8, 8, 8}, 0, false},
		"one value":                       {[]float64{2, 2, 2, 2, 2, 2, 2, 2}, 0, false},
		"of equal gaps the first":         {[]float64{1, 1, 1, 4, 4, 16, 16, 16}, 2, true},
		"the wider of two":                {[]float64{1, 1, 1, 2, 2, 32, 32, 32}, 8, true},
		"a gap like any other":            {[]float64{100, 101, 102, 103, 104, 105, 106, 107}, math.Sqrt(101 * 102), false},
		"two spread groups, apart":        {[]float64{99, 100, 101, 102, 159, 160, 161, 162}, math.Sqrt(102 * 159), true},
		"two spread groups, almost apart": {[]float64{90, 100, 110, 120, 150, 160, 170, 180}, math.Sqrt(120 * 150), false},
		"four and four, finer than what a process resolves": {[]float64{1, 1, 1, 1, 1.0003, 1.0003, 1.0003, 1.0003}, math.Sqrt(1.0003), false},
	} {
		if split, found := widestGap(c.values); math.Abs(split-c.split) > 1e-9 || found != c.found {
			t.Errorf("%s: split at %v, %v, want %v, %v", name, split, found, c.split, c.found)
		}
	}
	// The median is 3, and the deviations are 2, 1, 0, 1 and 7.
	if got := spread([]float64{1, 2, 3, 4, 10}); math.Abs(got-1.4826/3) > 1e-12 {
		t.Errorf("a spread of %v, want 1.4826/3", got)
	}
}

// TestModesOf: shares, medians and Fisher's p of a table that is known.
func TestModesOf(t *testing.T) {
	base := []float64{10, 10, 10, 10, 10, 10, 40, 40}
	head := []float64{12, 12, 60, 60, 60, 60, 60, 60}
	m := modesOf(base, head)
	if m == nil || m.Split != 20 || m.BaseSlow != 0.25 || m.HeadSlow != 0.75 {
		t.Fatalf("%+v", m)
	}
	if math.Abs(*m.Fast-0.2) > 1e-12 || math.Abs(*m.Slow-0.5) > 1e-12 {
		t.Errorf("effects of %v and %v, want 0.2 and 0.5", *m.Fast, *m.Slow)
	}
	// Of C(16, 8) = 12870 tables those with 0, 1, 2, 6, 7 and 8 slow of the base are as rare.
	if want := 2 * (1.0 + 64 + 784) / 12870; math.Abs(m.ShareP-want) > 1e-9 {
		t.Errorf("p %v, want %v", m.ShareP, want)
	}
	one := []float64{9, 9, 9, 9, 9, 9, 9, 9}
	if m := modesOf(one, head); m == nil || m.BaseSlow != 0 || m.HeadSlow != 0.75 || m.Slow != nil || m.Fast == nil {
		t.Errorf("modes of the head alone: %+v", m)
	}
	if m := modesOf(base, []float64{99, 99, 99, 99, 99, 99, 99, 99}); m == nil || m.Split != 20 || m.HeadSlow != 1 || m.Fast != nil || m.Slow == nil {
		t.Errorf("modes of the base alone: %+v", m)
	}
	if m := modesOf(one, []float64{99, 99, 99, 99, 99, 99, 99, 99}); m != nil {
		t.Errorf("a shift is not a mode: %+v", m)
	}
	if fast, slow := cut([]float64{3, 1, 2}, 2); !slices.Equal(fast, []float64{1, 2}) || !slices.Equal(slow, []float64{3}) {
		t.Errorf("cut at 2: %v and %v", fast, slow)
	}
	// 1 of 3 against 4 of 5: C(8,5) = 56 tables; 0 to 3 of the first row have
	// C(3,k)·C(5,5−k) = 1, 15, 30 and 10.
	if got, want := fisherExact(1, 2, 4, 1), (1.0+15+10)/56; math.Abs(got-want) > 1e-9 {
		t.Errorf("p %v, want %v", got, want)
	}
}

// TestFinite: every number that is one.
func TestFinite(t *testing.T) {
	for x, want := range map[float64]bool{0: true, math.MaxFloat64: true, -math.MaxFloat64: true, math.Inf(1): false, math.Inf(-1): false} {
		if finite(x) != want {
			t.Errorf("%v is finite: %v", x, finite(x))
		}
	}
	if finite(math.NaN()) {
		t.Error("NaN is finite")
	}
}
