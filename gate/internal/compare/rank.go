package compare

import (
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// differences holds ln head − ln base for every pair inside a round, round
// after round, 16 each. Pairs across rounds are never formed, so that a drift
// between rounds cancels.
type differences []float64

// newDifferences takes logarithms once per process.
func newDifferences(rounds []Round, m Summary) differences {
	d := make(differences, 0, pairsPerRound*len(rounds))
	for _, b := range rounds {
		var base, head [perArm]float64
		for i := range perArm {
			base[i], head[i] = math.Log(m.of(b.Base[i])), math.Log(m.of(b.Head[i]))
		}
		d = d.appendRound(&base, &head)
	}
	return d
}

// appendRound adds the 16 pairs of one round, given the logarithms.
func (d differences) appendRound(base, head *[perArm]float64) differences {
	for _, h := range head {
		for _, b := range base {
			d = append(d, h-b)
		}
	}
	return d
}

// count returns how many differences exceed shift and how many equal it.
func (d differences) count(shift float64) (above, ties int) {
	for _, x := range d {
		if x > shift {
			above++
		} else if x == shift {
			ties++
		}
	}
	return above, ties
}

// pAbove is the p value against "the effect is at most shift". Ties count
// against the claim: with half ties the count can be less extreme than the
// share of orders that reach it (base 1,1,1,2, head 2,2,2,2 gives 4/70 where
// 5/70 of the orders are as extreme), with none it never is.
func (d differences) pAbove(shift float64) float64 {
	above, _ := d.count(shift)
	return nullOf(len(d) / pairsPerRound).atLeast(above)
}

// pBelow is the p value against "the effect is at least shift", ties counting
// against the claim again.
func (d differences) pBelow(shift float64) float64 {
	above, ties := d.count(shift)
	return nullOf(len(d) / pairsPerRound).atMost(above + ties)
}

// hodgesLehmann returns the median difference, which is the shift estimate
// that belongs to the rank test, and its interval at the given confidence by
// inversion of the same null. Where the pairs are too few for the confidence,
// the interval is the whole range of the differences, the widest there is.
func (d differences) hodgesLehmann(confidence float64) (estimate, low, high float64) {
	sorted := slices.Sorted(slices.Values(d))
	estimate, err := stats.Median(sorted)
	if err != nil { // no differences; callers ask only for measured experiments
		return math.NaN(), math.NaN(), math.NaN()
	}
	n := len(sorted)
	cut := 0
	if u, ok := nullOf(n / pairsPerRound).critical((1 - confidence) / 2); ok {
		cut = n - u // P(U <= cut) is within the tail
	}
	return estimate, sorted[cut], sorted[n-1-cut]
}
