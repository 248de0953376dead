package compare

import "sync"

// maxRounds bounds the rounds of one experiment: 1,024 pairs.
const maxRounds = 256

// pairsPerRound is the number of (base, head) comparisons inside a round.
const pairsPerRound = perArm * perArm

// A null is the exact distribution of the stratified Mann-Whitney count U over
// a number of rounds when the labels are a shuffle: 16 comparisons per round.
// No normal approximation is used anywhere.
type null struct {
	pmf   []float64 // P(U = u)
	upper []float64 // P(U >= u); the element after the last is 0
}

var nulls struct {
	sync.Mutex
	of []*null // by number of rounds
}

// nullOf returns the distribution for a number of rounds, computed once.
func nullOf(rounds int) *null {
	nulls.Lock()
	defer nulls.Unlock()
	for len(nulls.of) <= rounds {
		nulls.of = append(nulls.of, nextNull())
	}
	return nulls.of[rounds]
}

// nextNull convolves the last distribution in the cache with that of a round.
func nextNull() *null {
	if len(nulls.of) == 0 {
		return newNull([]float64{1})
	}
	last, one := nulls.of[len(nulls.of)-1].pmf, roundPMF()
	pmf := make([]float64, len(last)+pairsPerRound)
	for i, p := range last {
		for j, q := range one {
			pmf[i+j] += p * q
		}
	}
	return newNull(pmf)
}

// newNull sums the tail from the far end, so that small terms are added first.
func newNull(pmf []float64) *null {
	upper := make([]float64, len(pmf)+1)
	for u := len(pmf) - 1; u >= 0; u-- {
		upper[u] = min(1, upper[u+1]+pmf[u])
	}
	return &null{pmf: pmf, upper: upper}
}

// roundPMF is the distribution of U for four against four: the coefficients of
// the Gaussian binomial, counted by which arm holds the largest value.
func roundPMF() []float64 {
	counts := mannWhitneyCounts(perArm, perArm)
	pmf := make([]float64, len(counts))
	for u, c := range counts {
		pmf[u] = float64(c) / orders
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

// critical is the smallest u with P(U >= u) <= p; false when there is none.
func (n *null) critical(p float64) (int, bool) {
	for u := range n.pmf {
		if n.upper[u] <= p {
			return u, true
		}
	}
	return 0, false
}
