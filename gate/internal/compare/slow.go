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
	tolerated, detected float64
	base, head          int
	pmf                 []float64 // of the head's number so far
}

func newSlowTest(tolerated, detected float64) slowTest {
	return slowTest{tolerated: tolerated, detected: detected, pmf: []float64{1}}
}

func (t *slowTest) add(s stratum) {
	base, head := s.slow(t.tolerated, t.detected)
	t.base, t.head = t.base+base, t.head+head
	if base+head == 0 {
		return
	}
	t.pmf = convolve(t.pmf, hypergeometric(len(s.base), base+head))
}

// p is the probability of as many slow heads or more.
func (t *slowTest) p() float64 {
	sum := 0.0
	for _, q := range t.pmf[t.head:] {
		sum += q
	}
	return min(1, sum)
}

// shareMissed is the probability with which the share of slow processes is larger
// than it is taken to be, at one look. Over all looks, a head that drew one and
// whose mean is at detect then passes in 1 to 2 %.
const shareMissed = 0.003

// couldReach reports whether a share of slow processes that is consistent with
// those of the head so far would bring its mean to the base's and the shift: a
// few slow processes do not say yet how many there are.
func (t *slowTest) couldReach(strata []stratum, shift float64) bool {
	if t.head == 0 {
		return false
	}
	var base float64
	var fast, slow []float64
	for _, s := range strata {
		bound := s.slowFrom(t.tolerated, t.detected) + t.tolerated
		centre := average(s.base)
		for _, y := range s.base {
			base += math.Exp(y - centre)
		}
		for _, y := range s.head {
			if y > bound {
				slow = append(slow, math.Exp(y-centre))
			} else {
				fast = append(fast, math.Exp(y-centre))
			}
		}
	}
	n := len(fast) + len(slow)
	if len(fast) == 0 {
		return true
	}
	share := mostShare(len(slow), n, shareMissed)
	return (1-share)*average(fast)+share*average(slow) >= base/float64(n)*math.Exp(shift)
}

// mostShare is the largest share of which so few of n are drawn with the given
// probability (Clopper and Pearson's upper bound).
func mostShare(few, n int, p float64) float64 {
	low, high := 0.0, 1.0
	for range 30 {
		if share := (low + high) / 2; binomialAtMost(few, n, share) > p {
			low = share
		} else {
			high = share
		}
	}
	return high
}

func binomialAtMost(k, n int, share float64) float64 {
	sum := 0.0
	for i := range k + 1 {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(share) + float64(n-i)*math.Log1p(-share))
	}
	return sum
}

// slow counts the slow processes of a round.
func (s stratum) slow(tolerated, detected float64) (base, head int) {
	bound := s.slowFrom(tolerated, detected)
	for _, y := range s.base {
		if y > bound {
			base++
		}
	}
	for _, y := range s.head {
		if y-tolerated > bound {
			head++
		}
	}
	return base, head
}

// slowFrom is the bound of the round's slow processes, its head taken faster by
// what is tolerated.
func (s stratum) slowFrom(tolerated, detected float64) float64 {
	all := slices.Clone(s.base)
	for _, y := range s.head {
		all = append(all, y-tolerated)
	}
	slices.Sort(all)
	n := len(s.base)
	return (all[n-1]+all[n])/2 + detected
}

// hypergeometric is the distribution of the marked among n of 2n.
func hypergeometric(n, marked int) []float64 {
	pmf := make([]float64, min(n, marked)+1)
	for k := max(0, marked-n); k < len(pmf); k++ {
		pmf[k] = math.Exp(logHypergeometric(k, n, marked, 2*n))
	}
	return pmf
}
