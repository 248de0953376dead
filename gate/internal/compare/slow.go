package compare

import (
	"math"
	"slices"
)

// Slow counts the processes of each arm that are slower than the median of
// both arms of their round by more than detect: a mode that some processes are
// in and others are not.
type Slow struct {
	Base int `json:"base"`
	Head int `json:"head"`
	// P is that of the head's excess, exact inside rounds; before Holm.
	P float64 `json:"p"`
}

// slowTest is the exact stratified test of the share of slow processes. Given
// how many are slow in each round, the head's number follows hypergeometric
// distributions when the labels are a shuffle, whatever the modes are. The head
// is taken faster by the tolerance first, so that a harmless shift counts for nothing.
type slowTest struct {
	base, head int
	pmf        []float64 // of the head's number so far
}

func newSlowTest() slowTest { return slowTest{pmf: []float64{1}} }

func (t *slowTest) add(s stratum, tolerated, detected float64) {
	base, head := s.slow(tolerated, detected)
	t.base, t.head = t.base+base, t.head+head
	if base+head > 0 {
		t.pmf = convolve(t.pmf, hypergeometric(len(s.base), base+head))
	}
}

// p is the probability of as many slow heads or more.
func (t *slowTest) p() float64 {
	sum := 0.0
	for _, q := range t.pmf[t.head:] {
		sum += q
	}
	return min(1, sum)
}

// slow counts the slow processes of a round.
func (s stratum) slow(tolerated, detected float64) (base, head int) {
	all := slices.Clone(s.base)
	for _, y := range s.head {
		all = append(all, y-tolerated)
	}
	sorted := slices.Sorted(slices.Values(all))
	n := len(s.base)
	bound := (sorted[n-1]+sorted[n])/2 + detected
	for i, y := range all {
		switch {
		case !(y > bound):
		case i < n:
			base++
		default:
			head++
		}
	}
	return base, head
}

// hypergeometric is the distribution of the marked among n of 2n.
func hypergeometric(n, marked int) []float64 {
	pmf := make([]float64, min(n, marked)+1)
	for k := max(0, marked-n); k < len(pmf); k++ {
		pmf[k] = math.Exp(logHypergeometric(k, n, marked, 2*n))
	}
	return pmf
}
