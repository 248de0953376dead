package compare

import (
	"math"
	"math/bits"
	"slices"
)

// meanSteps is the number of steps into which the range of the sum of means is
// divided. The statistic is the sum in whole steps of each round, for the order
// that was run as for all others, so rounding costs nothing of its exactness.
const meanSteps = 512

// meanBelow is the p value against "the mean over the head's processes exceeds
// that over the base's by at least the shift": the share of all orders of the
// rounds in which the head's sum is as small as it is, its times divided by the
// shift. Unlike a rank, a mean is moved by the few processes that are slow, so
// it is not proven small while such a process was drawn.
func meanBelow(strata []stratum, shift float64) float64 {
	rounds := make([]headSums, len(strata))
	reach, excess := 0.0, 0.0
	for i, s := range strata {
		rounds[i] = newHeadSums(s, shift)
		reach += rounds[i].reach
		excess += rounds[i].observed - rounds[i].reach/2
	}
	if !(excess < 0) { // all times are equal, or the head has its half: the orders are symmetric
		return 1
	}
	step := reach / meanSteps
	limit := 0
	for _, r := range rounds {
		limit += int(r.observed / step)
	}
	p := []float64{1}
	for _, r := range rounds {
		p = r.add(p, step, limit)
	}
	total := 0.0
	for _, x := range p {
		total += x
	}
	return min(1, total)
}

// headSums are the sums of the head's share under every order of a round, above
// the smallest, and the one that was observed.
type headSums struct {
	all             []float64
	observed, reach float64
}

// newHeadSums takes times relative to the round's geometric mean, so that rounds
// weigh alike whatever the device does between them.
func newHeadSums(s stratum, shift float64) headSums {
	n := len(s.base)
	centre := 0.0
	for i := range n {
		centre += (s.base[i] + s.head[i] - shift) / float64(2*n)
	}
	values := slices.Concat(s.base, s.head)
	for i, y := range s.base {
		values[i] = math.Exp(y - centre)
	}
	for i, y := range s.head {
		values[n+i] = math.Exp(y - shift - centre)
	}
	words := headWords(n)
	h := headSums{all: make([]float64, len(words))}
	low, high := math.Inf(1), 0.0
	for i, word := range words {
		sum := 0.0
		for w := word; w != 0; w &= w - 1 {
			sum += values[bits.TrailingZeros(w)]
		}
		h.all[i], low, high = sum, min(low, sum), max(high, sum)
	}
	for i := range h.all {
		h.all[i] -= low
	}
	h.reach, h.observed = high-low, h.all[len(h.all)-1] // the last word has the heads' bits
	return h
}

var headWordsOf [maxPerArm + 1][]uint

func init() {
	for n := range headWordsOf {
		for word := uint(0); word < 1<<(2*n); word++ {
			if bits.OnesCount(word) == n {
				headWordsOf[n] = append(headWordsOf[n], word)
			}
		}
	}
}

// headWords are the choices of the head's processes, ascending, the one as dealt last.
func headWords(n int) []uint { return headWordsOf[n] }

// add convolves a distribution over steps with the orders of one more round.
// Sums beyond the limit are of no interest and left out.
func (h headSums) add(p []float64, step float64, limit int) []float64 {
	next := make([]float64, min(limit, len(p)+int(h.reach/step))+1)
	for _, x := range h.all {
		shift := int(x / step)
		for i, q := range p[:max(0, min(len(p), len(next)-shift))] {
			next[i+shift] += q / float64(len(h.all))
		}
	}
	return next
}

// meanExcludes is a shift that meanBelow refutes at the given p value, close to
// the smallest one between low and high; high where none smaller is.
func meanExcludes(strata []stratum, p, low, high float64) float64 {
	if meanBelow(strata, low) <= p {
		return low
	}
	for range 10 {
		if middle := (low + high) / 2; meanBelow(strata, middle) <= p {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
