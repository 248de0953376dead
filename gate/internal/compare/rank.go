package compare

import (
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// A stratum is one round of one metric: the logarithms of its processes.
type stratum struct{ base, head []float64 }

// strataOf takes logarithms once per process.
func strataOf(rounds []Round, m Summary) []stratum {
	out := make([]stratum, 0, len(rounds))
	for _, b := range rounds {
		out = append(out, stratum{logsOf(b.Base, m), logsOf(b.Head, m)})
	}
	return out
}

func logsOf(processes []Process, m Summary) []float64 {
	logs := make([]float64, len(processes))
	for i, p := range processes {
		logs[i] = math.Log(m.of(p))
	}
	return logs
}

// count returns how many pairs inside the round have a head that exceeds its
// base by more than shift, and how many by exactly shift. Pairs across rounds
// are never formed, so that a drift between rounds cancels.
func (s stratum) count(shift float64) (above, ties int) {
	for _, h := range s.head {
		for _, b := range s.base {
			if x := h - b; x > shift {
				above++
			} else if x == shift {
				ties++
			}
		}
	}
	return above, ties
}

// pAbove is the p value of a count against "the effect is at most the shift".
// Ties count against the claim: with half ties the count can be less extreme
// than the share of orders that reach it (base 1,1,1,2, head 2,2,2,2 gives 4/70
// where 5/70 of the orders are as extreme), with none it never is.
func pAbove(perArm, rounds, above int) float64 { return nullOf(perArm, rounds).atLeast(above) }

// pBelow is the p value against "the effect is at least the shift", ties
// counting against the claim again.
func pBelow(perArm, rounds, above, ties int) float64 {
	return nullOf(perArm, rounds).atMost(above + ties)
}

// differences are ln head − ln base for every pair inside a round, sorted.
func differences(strata []stratum) []float64 {
	var d []float64
	for _, s := range strata {
		for _, h := range s.head {
			for _, b := range s.base {
				d = append(d, h-b)
			}
		}
	}
	slices.Sort(d)
	return d
}

// hodgesLehmann returns the median difference, which is the shift estimate
// that belongs to the rank test, and its interval at the given confidence by
// inversion of the same null. Where the pairs are too few for the confidence,
// the interval is the whole range of the differences, the widest there is.
func hodgesLehmann(strata []stratum, confidence float64) (estimate, low, high float64) {
	sorted := differences(strata)
	estimate, err := stats.Median(sorted)
	if err != nil { // no differences; callers ask only for measured experiments
		return math.NaN(), math.NaN(), math.NaN()
	}
	n := len(sorted)
	cut := 0
	if u, ok := nullOf(len(strata[0].base), len(strata)).critical((1 - confidence) / 2); ok {
		cut = n - u // P(U <= cut) is within the tail
	}
	return estimate, sorted[cut], sorted[n-1-cut]
}

// rankExcludes is the smallest shift that the rank test refutes from below at
// the given nominal p value; infinite where no count does.
func rankExcludes(strata []stratum, p float64) float64 {
	sorted := differences(strata)
	u, ok := nullOf(len(strata[0].base), len(strata)).critical(p)
	if !ok {
		return math.Inf(1)
	}
	return sorted[u-1] // n−u differences may lie above it
}
