package compare

import "math"

// components are the variances of a one-way random-effects analysis.
type components struct {
	between, within float64
}

// varianceComponents estimates them by the mean squares. A negative estimate
// between groups is 0; fewer than two groups, or no group with two values,
// leave 0.
func varianceComponents(groups [][]float64) components {
	var n, sum, squares float64
	for _, g := range groups {
		for _, x := range g {
			n, sum = n+1, sum+x
		}
		squares += float64(len(g)) * float64(len(g))
	}
	k := float64(len(groups))
	if k < 2 || n <= k {
		return components{}
	}
	grand := sum / n
	var ssBetween, ssWithin float64
	for _, g := range groups {
		mean := average(g)
		d := mean - grand
		ssBetween += float64(len(g)) * d * d
		for _, x := range g {
			d := x - mean
			ssWithin += d * d
		}
	}
	effective := (n - squares/n) / (k - 1) // processes a group, where they are unequal
	within := ssWithin / (n - k)
	return components{
		between: math.Max(0, (ssBetween/(k-1)-within)/effective),
		within:  within,
	}
}

// average is the mean; 0 of nothing.
func average(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
