package compare

import (
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// Two modes are reported when a gap is wider than gapScales times the spread
// of the processes on its sides, and each side holds minShare of them.
const (
	gapScales = 4
	minShare  = 0.15
)

// Modes describes processes that fall into two groups. It is information: the
// rank test stays exact whatever the number of modes.
type Modes struct {
	Split    float64 `json:"split_ns"` // the middle of the gap
	BaseSlow float64 `json:"base_slow"`
	HeadSlow float64 `json:"head_slow"` // share of each arm's processes above it
	// ShareP is Fisher's exact two-sided p value against equal shares.
	ShareP float64 `json:"share_p"`
	// Fast and Slow are the effects inside a mode (ratio of medians minus 1);
	// nil where an arm has no process in it.
	Fast *float64 `json:"fast,omitempty"`
	Slow *float64 `json:"slow,omitempty"`
}

// findModes looks for two modes in the processes of an experiment.
func findModes(rounds []Round, m Summary) *Modes {
	return modesOf(armValues(rounds, m, Base), armValues(rounds, m, Head))
}

// modesOf looks for two modes inside either arm, so that a plain shift between
// the arms is not taken for them; nil where there are none.
func modesOf(base, head []float64) *Modes {
	split, found := widestGap(base)
	if inHead, ok := widestGap(head); ok && !found {
		split, found = inHead, true
	}
	if !found {
		return nil
	}
	baseFast, baseSlow := cut(base, split)
	headFast, headSlow := cut(head, split)
	return &Modes{
		Split:    split,
		BaseSlow: float64(len(baseSlow)) / float64(len(base)),
		HeadSlow: float64(len(headSlow)) / float64(len(head)),
		ShareP:   fisherExact(len(baseSlow), len(baseFast), len(headSlow), len(headFast)),
		Fast:     medianRatio(baseFast, headFast),
		Slow:     medianRatio(baseSlow, headSlow),
	}
}

// widestGap returns the middle of the widest inner gap of the logarithms, and
// whether it separates two modes. Eight values are the fewest that show any.
func widestGap(values []float64) (split float64, found bool) {
	if len(values) < 2*perArm {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	edge := int(math.Ceil(minShare * float64(len(sorted))))
	at, widest := 0, 0.0
	for i := edge; i <= len(sorted)-edge; i++ {
		if gap := math.Log(sorted[i] / sorted[i-1]); gap > widest {
			at, widest = i, gap
		}
	}
	if at == 0 {
		return 0, false
	}
	const resolution = 1e-4 // of a process; below it equal values would make any gap wide
	scale := max(spread(sorted[:at]), spread(sorted[at:]), resolution)
	return math.Sqrt(sorted[at-1] * sorted[at]), widest > gapScales*scale
}

// spread is the median absolute deviation relative to the median, scaled to
// the standard deviation of a normal distribution.
func spread(values []float64) float64 {
	deviation, _ := stats.MedianAbsoluteDeviation(values) // its error is for no values
	return 1.4826 * deviation / median(values)
}

// cut separates values at a split.
func cut(values []float64, split float64) (fast, slow []float64) {
	for _, v := range values {
		if v > split {
			slow = append(slow, v)
		} else {
			fast = append(fast, v)
		}
	}
	return fast, slow
}

// medianRatio is the effect between two groups; nil where one is empty.
func medianRatio(base, head []float64) *float64 {
	if len(base) == 0 || len(head) == 0 {
		return nil
	}
	effect := median(head)/median(base) - 1
	return &effect
}

// median is NaN of nothing.
func median(values []float64) float64 {
	m, _ := stats.Median(values)
	return m
}

// fisherExact is the two-sided p value of a 2×2 table with fixed margins: the
// probability of all tables that are no more probable than this one.
func fisherExact(a, b, c, d int) float64 {
	row, column, n := a+b, a+c, a+b+c+d
	observed := logHypergeometric(a, row, column, n)
	const rounding = 1e-9 // equal probabilities differ by rounding only
	p := 0.0
	for k := range row + 1 { // tables that cannot be have a probability of 0
		if l := logHypergeometric(k, row, column, n); l <= observed+rounding {
			p += math.Exp(l)
		}
	}
	return min(1, p)
}

// logHypergeometric is the logarithm of the probability that a sample of row
// from n holds k of the column marked ones.
func logHypergeometric(k, row, column, n int) float64 {
	return logChoose(column, k) + logChoose(n-column, row-k) - logChoose(n, row)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// finite holds for numbers that can be compared.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
