package compare

import (
	"math"
	"math/rand/v2"
	"slices"
)

// replays is the number of resampled jobs that MDE90 is taken from; its 90 % quantile then
// has a standard error of 2 points of probability.
const replays = 200

// power is the probability with which MDE90 and NeedPairs promise a decision.
const power = 0.9

// relative turns a difference of logarithms into a relative effect.
func relative(shift float64) float64 { return math.Expm1(shift) }

// residuals pools the processes of an experiment as logarithms around the mean
// of their arm and round, sorted. Taking a few values about their own mean
// shrinks them, which the factor undoes.
func residuals(rounds []Round, m Summary) []float64 {
	var pool []float64
	for _, s := range strataOf(rounds, m) {
		for _, logs := range [][]float64{s.base, s.head} {
			n := float64(len(logs))
			slices.Sort(logs) // so that the rounding of the mean does not depend on the order
			mean := average(logs)
			for _, y := range logs {
				pool = append(pool, (y-mean)*math.Sqrt(n/(n-1)))
			}
		}
	}
	slices.Sort(pool)
	return pool
}

// A replay runs the whole procedure, its passes included, on jobs resampled from
// a pool, the head slower by an effect. Each job has its own generator, seeded
// with its number: all effects meet the same processes, and the same processes
// give the same figure.
type replay struct {
	pool      []float64
	limits    Limits
	plan      Plan
	pairs     int // where a job ends
	threshold float64
	design    *design
	// redAt and suspectAt are the t of a red, and of what would be red alone.
	redAt, suspectAt float64
}

// prepare sets the bar among so many tests; false where no look reaches it.
func (r *replay) prepare(tests int) bool {
	r.design = newDesign(r.limits, r.plan)
	r.threshold = r.plan.Alpha / float64(max(1, tests))
	if k := r.plan.canReject(r.threshold); len(r.pool) == 0 || k > len(r.plan.Looks) || r.plan.Looks[k-1] > r.pairs {
		return false
	}
	r.redAt, r.suspectAt = r.design.red.nominal(r.threshold*(1-spentOnSlow)), r.design.red.nominal(r.plan.Alpha*(1-spentOnSlow))
	return true
}

// detectable is MDE90: the smallest effect that is called a regression with 90 %
// probability. False where none is.
func (r replay) detectable(tests int) (float64, bool) {
	if !r.prepare(tests) {
		return 0, false
	}
	low, high := r.limits.tolerated(), r.limits.detected()+r.pool[len(r.pool)-1]-r.pool[0]
	switch middle := r.limits.detected(); { // whether detect is found is asked of detect itself
	case middle > low && r.finds(middle):
		high = middle
	case r.finds(high):
		low = middle
	default:
		return 0, false
	}
	for range 9 {
		if middle := (low + high) / 2; r.finds(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return relative(high), true
}

// finds reports whether nine jobs of ten are red under an effect.
func (r replay) finds(effect float64) bool {
	return nineOfTen(func(job uint64) bool { return r.red(job, effect) })
}

// nineOfTen asks the jobs, until too many say no.
func nineOfTen(holds func(job uint64) bool) bool {
	const mayMiss = (1 - power) * replays
	missed := 0
	for job := range uint64(replays) {
		if !holds(job) {
			missed++
		}
		if missed > mayMiss {
			return false
		}
	}
	return true
}

// red runs one job until it is decided.
func (r replay) red(job uint64, effect float64) bool {
	rng := rand.New(rand.NewPCG(1, job))
	s := newSequence(r.design)
	for range r.pairs / r.plan.PerArm {
		looks := len(s.looks)
		s.read(stratum{r.draw(rng, 0), r.draw(rng, effect)})
		if len(s.looks) == looks {
			continue
		}
		switch l := s.looks[looks]; {
		case l.isRed(r.redAt, r.threshold):
			return true
		case l.tPass <= r.design.mostPass && !l.isRed(r.suspectAt, r.plan.Alpha) && !l.constant:
			return false
		}
	}
	return false
}

func (r replay) draw(rng *rand.Rand, effect float64) []float64 {
	values := make([]float64, r.plan.PerArm)
	for i := range values {
		values[i] = r.pool[rng.IntN(len(r.pool))] + effect
	}
	return values
}
