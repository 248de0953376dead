package compare

import "slices"

// holmThreshold returns the largest p value that Holm's step-down procedure
// rejects among all the given ones at level alpha, which bounds the
// probability of any wrong rejection. Where none is rejected it is alpha/m,
// which no p value reaches. Elsewhere is the number of further tests, whose p
// values count as 1.
func holmThreshold(ps []float64, elsewhere int, alpha float64) float64 {
	sorted := slices.Sorted(slices.Values(ps))
	m := len(sorted) + elsewhere
	threshold := alpha / float64(max(1, m))
	for i, p := range sorted {
		step := alpha / float64(m-i)
		if !(p <= step) {
			break
		}
		threshold = step
	}
	return threshold
}

// benjaminiHochbergThreshold returns the largest p value that the procedure
// of Benjamini and Hochberg rejects, which bounds the expected share of wrong
// rejections; 0 where none is.
func benjaminiHochbergThreshold(ps []float64, rate float64) float64 {
	sorted := slices.Sorted(slices.Values(ps))
	for i := len(sorted) - 1; i >= 0; i-- {
		if sorted[i] <= rate*float64(i+1)/float64(len(sorted)) {
			return sorted[i]
		}
	}
	return 0
}
