package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/montanaflynn/stats"
)

// replays is the number of resampled jobs behind MDE90; its 90 % quantile then
// has a standard error of 2 points of probability.
const replays = 200

// power is the probability with which MDE90 and NeedPairs promise a decision.
const power = 0.9

// relative turns a difference of logarithms into a relative effect.
func relative(shift float64) float64 { return math.Expm1(shift) }

// residuals pools the launches of an experiment as logarithms around the mean
// of their arm and block, sorted. Taking four values about their own mean
// shrinks them, which the factor undoes.
func residuals(blocks []Block, m Metric) []float64 {
	inflate := math.Sqrt(float64(perArm) / (perArm - 1))
	pool := make([]float64, 0, blockSize*len(blocks))
	for _, b := range blocks {
		for _, side := range [][perArm]Launch{b.Base, b.Head} {
			var logs [perArm]float64
			sum := 0.0
			for i, l := range side {
				logs[i] = math.Log(m.of(l))
				sum += logs[i]
			}
			for _, y := range logs {
				pool = append(pool, (y-sum/perArm)*inflate)
			}
		}
	}
	slices.Sort(pool)
	return pool
}

// detectable is MDE90: the relative effect that the plan finds with 90 %
// probability, by running the decision on jobs resampled from the pool. In one
// job the effect from which on it is red follows from an order statistic of
// the differences, so nothing is searched: MDE90 is the 90 % quantile of those.
// False where no look can reject. The generator is seeded with a constant, so
// that the same launches give the same figure.
func detectable(pool []float64, limits Limits, plan Plan, tests int) (float64, bool) {
	looks := rejecting(plan, tests)
	if len(pool) == 0 || len(looks) == 0 {
		return 0, false
	}
	rng := rand.New(rand.NewPCG(1, 1))
	needed := make([]float64, replays)
	for i := range needed {
		needed[i] = neededEffect(rng, pool, looks, limits.tolerated())
	}
	slices.Sort(needed)
	return relative(needed[int(math.Ceil(power*replays))-1]), true
}

// A rejection is a look and the count from which on it rejects.
type rejection struct{ blocks, critical int }

// rejecting lists the looks of a plan that can reject at Holm's first step.
func rejecting(plan Plan, tests int) []rejection {
	var list []rejection
	for _, l := range plan.Looks {
		blocks := l.Pairs / perArm
		if u, ok := nullOf(blocks).critical(plan.Alpha / float64(max(1, tests)) * l.Weight); ok {
			list = append(list, rejection{blocks, u})
		}
	}
	return list
}

// neededEffect draws one job of two equal arms and returns the shift that,
// added to the head, would just make it red at one of the looks.
func neededEffect(rng *rand.Rand, pool []float64, looks []rejection, tolerated float64) float64 {
	d := make(differences, 0, looks[len(looks)-1].blocks*pairsPerBlock)
	effect := math.Inf(1)
	for _, l := range looks {
		for len(d) < l.blocks*pairsPerBlock {
			var base, head [perArm]float64
			for i := range perArm {
				base[i], head[i] = pool[rng.IntN(len(pool))], pool[rng.IntN(len(pool))]
			}
			d = d.appendBlock(&base, &head)
		}
		// Red when at least critical differences plus the effect exceed the tolerance.
		effect = min(effect, tolerated-largest(slices.Clone(d), l.critical))
	}
	return effect
}

// largest returns the k-th largest value (k >= 1) and reorders its argument.
func largest(values []float64, k int) float64 {
	lo, hi, want := 0, len(values)-1, len(values)-k
	for lo < hi {
		pivot := values[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case want <= j:
			hi = j
		case want >= i:
			lo = i
		default:
			return values[want]
		}
	}
	return values[want]
}

// maxNeed is where counting pairs stops: nobody measures more.
const maxNeed = 100_000

// needPairs says how many pairs would decide an undecided trial: for each
// metric the cheaper of proving it above or below, and the most expensive of
// the metrics.
func (t trial) needPairs(o Outcome, tests int, plan Plan) int {
	switch {
	case o.Verdict != Inconclusive:
		return 0
	case o.Reason == Collapse || o.Reason == ZeroVariance: // no number of pairs explains these
		return -1
	}
	if len(t.experiment.Blocks) == 0 {
		return fewestPairs(plan, tests)
	}
	need := 0
	for i, one := range t.tests {
		if o.Metrics[i].Verdict == Inconclusive {
			need = max(need, one.needPairs(t.experiment, tests, plan))
		}
	}
	return need
}

// needPairs is the number of pairs for one metric, from the normal
// approximation of the rank test at the weight of the last look.
func (t test) needPairs(e Experiment, tests int, plan Plan) int {
	estimate, _, _ := t.d.hodgesLehmann(intervalConfidence)
	sigma, err := stats.StandardDeviationSample(residuals(e.Blocks, t.metric))
	if err != nil {
		return -1
	}
	weight := plan.Looks[len(plan.Looks)-1].Weight
	above := pairsFor(sigma, estimate-e.Limits.tolerated(), weight*plan.Alpha/float64(max(1, tests)))
	below := pairsFor(sigma, e.Limits.detected()-estimate, weight*plan.Beta)
	return max(min(above, below), fewestPairs(plan, tests))
}

// pairsFor is the number of pairs that separates an effect from a limit, gap
// away from it, with 90 % power at the given level: 2((z_level + z_power) σ/gap)²
// over the rank test's efficiency of 3/π, in whole blocks.
func pairsFor(sigma, gap, level float64) int {
	if !(gap > 0) {
		return maxNeed
	}
	z := (normalQuantile(level) + normalQuantile(1-power)) * sigma / gap
	pairs := 2 * z * z * math.Pi / 3
	if !(pairs < maxNeed) {
		return maxNeed
	}
	return perArm * int(math.Ceil(pairs/perArm))
}

// normalQuantile is the value that a standard normal exceeds with probability p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }

// fewestPairs is the first look that can reject at Holm's first step; where
// none can, the number of pairs whose smallest p value would do.
func fewestPairs(plan Plan, tests int) int {
	if looks := rejecting(plan, tests); len(looks) > 0 {
		return looks[0].blocks * perArm
	}
	weight := plan.Looks[len(plan.Looks)-1].Weight
	level := plan.Alpha / float64(max(1, tests)) * weight
	return perArm * int(math.Ceil(math.Log(level)/-math.Log(orders)))
}
