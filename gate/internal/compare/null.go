package compare

import "sync"

// maxRounds bounds the rounds of one experiment, and maxPerArm the processes of
// an arm in one.
const (
	maxRounds = 256
	maxPerArm = 8
)

// A null is the exact distribution of the stratified Mann-Whitney count U over
// a number of rounds when the labels are a shuffle. No normal approximation is
// used anywhere.
type null struct {
	pmf   []float64 // P(U = u)
	upper []float64 // P(U >= u); the element after the last is 0
}

var nulls struct {
	sync.Mutex
	of [maxPerArm + 1][]*null // by processes of an arm and number of rounds
}

// nullOf returns the distribution for a number of rounds, computed once.
func nullOf(perArm, rounds int) *null {
	nulls.Lock()
	defer nulls.Unlock()
	list := nulls.of[perArm]
	for len(list) <= rounds {
		if len(list) == 0 {
			list = append(list, newNull([]float64{1}))
			continue
		}
		list = append(list, newNull(convolve(list[len(list)-1].pmf, roundPMF(perArm))))
	}
	nulls.of[perArm] = list
	return list[rounds]
}

// convolve is the distribution of the sum of two independent counts.
func convolve(a, b []float64) []float64 {
	sum := make([]float64, len(a)+len(b)-1)
	for i, p := range a {
		if p == 0 {
			continue
		}
		for j, q := range b {
			sum[i+j] += p * q
		}
	}
	return sum
}

// newNull sums the tail from the far end, so that small terms are added first.
func newNull(pmf []float64) *null {
	upper := make([]float64, len(pmf)+1)
	for u := len(pmf) - 1; u >= 0; u-- {
		upper[u] = min(1, upper[u+1]+pmf[u])
	}
	return &null{pmf: pmf, upper: upper}
}

// roundPMF is the distribution of U in one round: the coefficients of the
// Gaussian binomial, counted by which arm holds the largest value.
func roundPMF(perArm int) []float64 {
	counts := mannWhitneyCounts(perArm, perArm)
	pmf := make([]float64, len(counts))
	for u, c := range counts {
		pmf[u] = float64(c) / float64(ordersOf(perArm))
	}
	return pmf
}

// mannWhitneyCounts returns how many orders of a base and b head values give
// each U, the number of (base, head) pairs in which the head is larger.
func mannWhitneyCounts(a, b int) []int {
	counts := make([]int, a*b+1)
	if a == 0 || b == 0 {
		counts[0] = 1
		return counts
	}
	for u, c := range mannWhitneyCounts(a-1, b) { // a base is largest: it adds nothing
		counts[u] += c
	}
	for u, c := range mannWhitneyCounts(a, b-1) { // a head is largest: it beats every base
		counts[u+a] += c
	}
	return counts
}

// atLeast is P(U >= u).
func (n *null) atLeast(u int) float64 {
	return n.upper[max(0, min(u, len(n.upper)-1))]
}

// atMost is P(U <= u); the distribution is symmetric.
func (n *null) atMost(u int) float64 { return n.atLeast(len(n.pmf) - 1 - u) }

// least is the smallest p value there is.
func (n *null) least() float64 { return n.upper[len(n.pmf)-1] }

// critical is the smallest u with P(U >= u) <= p; false when there is none.
func (n *null) critical(p float64) (int, bool) {
	low, high := 0, len(n.pmf) // upper falls, and is 0 at the end
	for low < high {
		if middle := (low + high) / 2; n.upper[middle] <= p {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, low < len(n.pmf)
}
