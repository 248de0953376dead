package compare

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNeededAgainstSorting holds the search to the effects of all jobs, sorted,
// and the two ways to judge a job to each other.
func TestNeededAgainstSorting(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 101))
		pool := residuals(normalRounds(rng, 3, 0.003, 0.01), Mean)
		looks := rejecting(SequentialPlan(), 60)
		r := replay{looks: looks, tolerated: 0.005, size: looks[len(looks)-1].rounds * pairsPerRound}
		r.draw(pool)
		var effects []float64
		for j := range replays {
			e := r.effect(j)
			effects = append(effects, e)
			if !r.red(j, e+1e-12) || r.red(j, e-1e-12) {
				t.Errorf("seed %d: job %d does not turn red at its effect %v", seed, j, e)
			}
		}
		slices.Sort(effects)
		for _, jobs := range []int{1, 20, 100, 180, 200} {
			if got := r.needed(jobs); got != effects[jobs-1] {
				t.Errorf("seed %d: %d jobs are red from %v on, want %v", seed, jobs, got, effects[jobs-1])
			}
		}
	}
}
