package compare

import (
	"math"
	"math/rand/v2"
	"slices"
)

// replays is the number of resampled jobs behind MDE90; its 90 % quantile then
// has a standard error of 2 points of probability.
const replays = 200

// power is the probability with which MDE90 and NeedPairs promise a decision.
const power = 0.9

// relative turns a difference of logarithms into a relative effect.
func relative(shift float64) float64 { return math.Expm1(shift) }

// residuals pools the processes of an experiment as logarithms around the mean
// of their arm and round, sorted. Taking four values about their own mean
// shrinks them, which the factor undoes.
func residuals(rounds []Round, m Summary) []float64 {
	inflate := math.Sqrt(float64(perArm) / (perArm - 1))
	pool := make([]float64, 0, roundSize*len(rounds))
	for _, b := range rounds {
		for _, side := range [][perArm]Process{b.Base, b.Head} {
			var logs [perArm]float64
			for i, l := range side {
				logs[i] = math.Log(m.of(l))
			}
			slices.Sort(logs[:]) // so that the rounding of the mean does not depend on the order
			mean := average(logs[:])
			for _, y := range logs {
				pool = append(pool, (y-mean)*inflate)
			}
		}
	}
	slices.Sort(pool)
	return pool
}

// detectable is MDE90: the relative effect that the plan finds with 90 %
// probability, by running the decision on jobs resampled from the pool. False
// where no look can reject. The generator is seeded with a constant, so that
// the same processes give the same figure.
func detectable(pool []float64, limits Limits, plan Plan, tests int) (float64, bool) {
	looks := rejecting(plan, tests)
	if len(pool) == 0 || len(looks) == 0 {
		return 0, false
	}
	r := replay{looks: looks, tolerated: limits.tolerated(), size: looks[len(looks)-1].rounds * pairsPerRound}
	r.draw(pool)
	return relative(r.needed(int(math.Ceil(power * replays)))), true
}

// A rejection is a look and the count from which on it rejects.
type rejection struct{ rounds, critical int }

// rejecting lists the looks of a plan that can reject at Holm's first step.
func rejecting(plan Plan, tests int) []rejection {
	var list []rejection
	for _, l := range plan.Looks {
		rounds := l.Pairs / perArm
		if u, ok := nullOf(rounds).critical(plan.Alpha / float64(max(1, tests)) * l.Weight); ok {
			list = append(list, rejection{rounds, u})
		}
	}
	return list
}

// A replay holds the differences of resampled jobs of two equal arms. An effect
// e on the head adds e to each of them, so a job is red from some effect on.
type replay struct {
	looks     []rejection
	tolerated float64
	size      int // differences of a job
	d         differences
	reach     float64 // no difference is larger
}

// draw fills the jobs. Sixteen bits choose a value well enough: a pool holds
// 2,048 at most.
func (r *replay) draw(pool []float64) {
	rng := rand.New(rand.NewPCG(1, 1))
	n := uint64(len(pool))
	r.d = make(differences, 0, replays*r.size)
	for len(r.d) < replays*r.size {
		var base, head [perArm]float64
		b, h := rng.Uint64(), rng.Uint64()
		for i := range perArm {
			base[i], head[i] = pool[b>>(16*i)&0xffff*n>>16], pool[h>>(16*i)&0xffff*n>>16]
		}
		r.d = r.d.appendRound(&base, &head)
	}
	r.reach = pool[len(pool)-1] - pool[0]
}

// needed returns the effect from which on the given number of jobs is red. It
// halves the range of effects, keeping only the jobs that turn red inside it,
// and ends exactly, with the order statistics of the few that are left.
func (r *replay) needed(jobs int) float64 {
	const few = 4
	active := make([]int, replays)
	for j := range active {
		active[j] = j
	}
	low, high := r.tolerated-r.reach, r.tolerated+r.reach
	for range 64 {
		if len(active) <= few {
			break
		}
		middle := low + (high-low)/2
		split := r.partition(active, middle)
		if split >= jobs {
			active, high = active[:split], middle
		} else {
			active, jobs, low = active[split:], jobs-split, middle
		}
	}
	effects := make([]float64, len(active))
	for i, j := range active {
		effects[i] = r.effect(j)
	}
	slices.Sort(effects)
	return effects[jobs-1]
}

// partition moves the jobs that are red under an effect to the front and
// returns how many they are.
func (r *replay) partition(jobs []int, effect float64) int {
	red := 0
	for i, j := range jobs {
		if r.red(j, effect) {
			jobs[red], jobs[i] = jobs[i], jobs[red]
			red++
		}
	}
	return red
}

// red reports whether a job is red under an effect at any look.
func (r *replay) red(job int, effect float64) bool {
	shift, above, from := r.tolerated-effect, 0, 0
	d := r.d[job*r.size:]
	for _, l := range r.looks {
		to := l.rounds * pairsPerRound
		for _, x := range d[from:to] {
			above += int(math.Float64bits(shift-x) >> 63) // 1 where x exceeds the shift, without a branch
		}
		if above >= l.critical {
			return true
		}
		from = to
	}
	return false
}

// effect is the smallest shift that makes a job red: at a look, as many
// differences as the critical count have to exceed the tolerance with it.
func (r *replay) effect(job int) float64 {
	d := r.d[job*r.size:]
	least := math.Inf(1)
	for _, l := range r.looks {
		sorted := slices.Sorted(slices.Values(d[:l.rounds*pairsPerRound]))
		least = min(least, r.tolerated-sorted[len(sorted)-l.critical])
	}
	return least
}
