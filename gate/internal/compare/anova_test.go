package compare

import (
	"math"
	"testing"
)

// Worked out by hand. In the first, the means 2, 7 and 11 around 6 give squares of
// 2·16 + 3·1 + 1·25 = 60 between and 2 + 8 within, an effective size of
// (6 − 14/6)/2 = 11/6, so 10/3 within and (30 − 10/3)/(11/6) = 160/11 between.
func TestVarianceComponents(t *testing.T) {
	for name, c := range map[string]struct {
		groups [][]float64
		want   components
	}{
		"three groups of unequal size":  {[][]float64{{1, 3}, {5, 7, 9}, {11}}, components{160.0 / 11, 10.0 / 3}},
		"two groups":                    {[][]float64{{1, 3}, {5, 7}}, components{7, 2}},
		"less between than by chance":   {[][]float64{{1, 9}, {5, 5}}, components{0, 16}},
		"one group":                     {[][]float64{{1, 2, 3}}, components{}},
		"no group with two values":      {[][]float64{{1}, {2}, {4}}, components{}},
		"nothing":                       {nil, components{}},
		"one group has one value alone": {[][]float64{{4}, {1, 3}}, components{(8.0/3 - 2) / (4.0 / 3), 2}},
	} {
		got := varianceComponents(c.groups)
		if !(math.Abs(got.between-c.want.between) < 1e-12 && math.Abs(got.within-c.want.within) < 1e-12) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := average([]float64{1, 2, 6}); got != 3 {
		t.Errorf("the mean of 1, 2 and 6 is %v", got)
	}
	if got := average(nil); got != 0 {
		t.Errorf("the mean of nothing is %v", got)
	}
}
