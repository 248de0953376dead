package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCount: equal to the shift is a tie, and a tie is not above.
func TestCount(t *testing.T) {
	s := stratum{base: []float64{0, 1}, head: []float64{2, 3}}
	for shift, want := range map[float64][2]int{0: {4, 0}, 1: {3, 1}, 2: {1, 2}, 2.5: {1, 0}, 3: {0, 1}, 4: {0, 0}} {
		if above, ties := s.count(shift); above != want[0] || ties != want[1] {
			t.Errorf("by more than %v: %d, and %d ties, want %v", shift, above, ties, want)
		}
	}
	// Of the six orders of two and two, one has a count of 4 and two have 3 or more.
	for _, c := range []struct{ got, want float64 }{
		{pAbove(2, 1, 4), 1.0 / 6}, {pAbove(2, 1, 3), 2.0 / 6},
		{pBelow(2, 1, 0, 0), 1.0 / 6}, {pBelow(2, 1, 0, 1), 2.0 / 6}, {pBelow(2, 1, 1, 1), 4.0 / 6},
	} {
		if math.Abs(c.got-c.want) > 1e-15 {
			t.Errorf("p %v, want %v", c.got, c.want)
		}
	}
}

// TestIntervalOfRanks: the interval cuts off as many differences at either end as
// leave at most 2.5 % beyond it, and none where one round is too few for that.
func TestIntervalOfRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 0))
	for rounds, want := range map[int]int{1: 0, 2: 5, 3: 11} {
		var strata []stratum
		for range rounds {
			strata = append(strata, twoRounds(rng, perArm, 1, 0)[0])
		}
		cut := 0
		for nullOf(perArm, rounds).atMost(cut+1) <= 0.025 {
			cut++
		}
		sorted := differences(strata)
		n := pairsPerRound * rounds
		estimate, low, high := hodgesLehmann(strata, 0.95)
		if len(sorted) != n || estimate != (sorted[n/2-1]+sorted[n/2])/2 || low != sorted[cut] || high != sorted[n-1-cut] {
			t.Errorf("%d rounds: %v (%v to %v), want %v to %v", rounds, estimate, low, high, sorted[cut], sorted[n-1-cut])
		}
		if cut != want {
			t.Errorf("%d rounds cut %d, want %d", rounds, cut, want)
		}
	}
	tooFew := []stratum{{[]float64{1, 2}, []float64{4, 7}}}
	if estimate, low, high := hodgesLehmann(tooFew, 0.95); estimate != 4 || low != 2 || high != 6 {
		t.Errorf("four differences: %v (%v to %v), want 4 (2 to 6)", estimate, low, high)
	}
	if estimate, low, high := hodgesLehmann(nil, 0.95); !math.IsNaN(estimate) || !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("no differences: %v (%v to %v)", estimate, low, high)
	}
}

// TestRankExcludes: what is a little larger is refuted, what is a little smaller
// is not, and where no count refutes, nothing does.
func TestRankExcludes(t *testing.T) {
	rng := rand.New(rand.NewPCG(39, 0))
	strata := twoRounds(rng, perArm, 1, 0)
	for _, p := range []float64{0.0003, 0.01, 0.2} {
		at := rankExcludes(strata, p)
		if after, before := pBelowAll(strata, at+1e-9), pBelowAll(strata, at-1e-9); !(after <= p && before > p) {
			t.Errorf("%v is excluded at %v: p is %v after and %v before it", at, p, after, before)
		}
	}
	if at := rankExcludes(strata, 1.0/5000); !math.IsInf(at, 1) {
		t.Errorf("no count of two rounds has a p value below 1/4900, and %v is excluded", at)
	}
}
