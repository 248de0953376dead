package main

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A rule decides whether the head is slower. History holds the base processes
// of earlier rounds, oldest first; base and head ran in the same round.
type rule struct {
	name     string
	reads    string
	earliest int // round, so that there is a history
	slower   func(history [][]float64, base, head []float64) bool
}

// storedRounds is the shortest history that the rules on stored runs get here.
const storedRounds = 10

// rules are the peers', in the order of the table.
func rules() []rule {
	return []rule{
		{"mean > +5 %", "1 + 1 processes", 0, meanAbove(0.05)},
		{"mean > +10 %", "1 + 1 processes", 0, meanAbove(0.10)},
		{"Welch, p < 0.05, stored values", "values of the process a round before", 1, welchStored},
		{"Mann-Whitney, p < 0.05, n = 10", "1 + 1 processes", 0, mannWhitney},
		{"NVBench legacy", "1 + 1 processes", 0, nvbenchLegacy},
		{"NVBench robust, without clocks", "1 + 1 processes", 0, nvbenchRobust},
		{"Bencher's default", "10–19 stored runs", storedRounds, bencher},
		{"rustc-perf-like", "10–19 stored runs", storedRounds, rustcPerf},
	}
}

func mean(xs []float64) float64 { return stat.Mean(xs, nil) }
func sd(xs []float64) float64   { return stat.StdDev(xs, nil) }

// meanAbove is a fixed threshold on the change of the mean.
func meanAbove(threshold float64) func([][]float64, []float64, []float64) bool {
	return func(_ [][]float64, base, head []float64) bool { return mean(head)/mean(base)-1 > threshold }
}

// welchStored compares the head's values with those stored a round before.
func welchStored(history [][]float64, _, head []float64) bool {
	stored := history[len(history)-1]
	a, b := sd(stored)*sd(stored)/float64(len(stored)), sd(head)*sd(head)/float64(len(head))
	t := (mean(head) - mean(stored)) / math.Sqrt(a+b)
	freedom := (a + b) * (a + b) / (a*a/float64(len(stored)-1) + b*b/float64(len(head)-1))
	return 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Survival(t) < 0.05
}

// mannWhitney is a two-sided U test on ten values of one process each, every
// value the mean of a stretch of batches, by the normal approximation with
// corrections for ties and continuity.
func mannWhitney(_ [][]float64, base, head []float64) bool {
	a, b := tenths(base), tenths(head)
	u, tied := 0.0, map[float64]float64{}
	for _, x := range append(slices.Clone(a), b...) {
		tied[x]++
	}
	for _, h := range b {
		for _, x := range a {
			if h > x {
				u++
			} else if h == x {
				u += 0.5
			}
		}
	}
	n := float64(len(a))
	total, ties := 2*n, 0.0
	for _, t := range tied {
		ties += t*t*t - t
	}
	variance := n * n / 12 * (total + 1 - ties/(total*(total-1)))
	z := (u - n*n/2 - 0.5) / math.Sqrt(variance)
	return 2*distuv.UnitNormal.Survival(z) < 0.05
}

// tenths averages a process over ten stretches of equal length.
func tenths(xs []float64) []float64 {
	const n = 10
	out := make([]float64, n)
	for i := range out {
		out[i] = mean(xs[i*len(xs)/n : (i+1)*len(xs)/n])
	}
	return out
}

// nvbenchLegacy calls the head slower when the mean moved by more than the
// smaller of the two relative standard deviations.
func nvbenchLegacy(_ [][]float64, base, head []float64) bool {
	noise := min(sd(base)/mean(base), sd(head)/mean(head))
	return mean(head)/mean(base)-1 > noise
}

// nvbenchRobust requires [min, q3] of the head to lie above that of the base by
// half a percent. The tool confirms this in clock cycles and says "ambiguous"
// without them; the recording has none, so the confirmation is granted here.
func nvbenchRobust(_ [][]float64, base, head []float64) bool {
	low, high := slices.Min(head), upperQuartile(base)
	return low > high && (low-high)/high >= 0.005
}

// upperQuartile takes the value at the index rounded half up.
func upperQuartile(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[int(math.Floor(0.75*float64(len(sorted)-1)+0.5))]
}

// bencher is the upper prediction bound of Student's t at 0.99 over the means
// of the stored runs.
func bencher(history [][]float64, _, head []float64) bool {
	values := means(history)
	n := float64(len(values))
	spread := sd(values) * math.Sqrt(1+1/n)
	if !(spread > 0) {
		return false // no boundary, no alert
	}
	return mean(head) > distuv.StudentsT{Mu: mean(values), Sigma: spread, Nu: n - 1}.Quantile(0.99)
}

// rustcPerf calls a change significant when it exceeds the upper outer fence
// of the changes between neighbouring stored runs. The tool uses 30 of them.
func rustcPerf(history [][]float64, _, head []float64) bool {
	values := means(history)
	var changes []float64
	for i := 1; i < len(values); i++ {
		changes = append(changes, math.Abs(values[i]/values[i-1]-1))
	}
	slices.Sort(changes)
	q1, q3 := interpolated(changes, 0.25), interpolated(changes, 0.75)
	return mean(head)/values[len(values)-1]-1 >= q3+3*(q3-q1)
}

// interpolated is a quantile of a sorted sample, linear between its values.
func interpolated(sorted []float64, p float64) float64 {
	rank := p * float64(len(sorted)-1)
	below := int(rank)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (rank-float64(below))*(sorted[above]-sorted[below])
}

// means lists the mean of every process.
func means(processes [][]float64) []float64 {
	var values []float64
	for _, p := range processes {
		values = append(values, mean(p))
	}
	return values
}
