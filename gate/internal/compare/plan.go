package compare

import (
	"fmt"
	"math"
	"slices"
)

// perArm is the number of processes of each arm in a round of the product.
// With four, two rounds keep the promise of the standard profile on tails and
// can decide both ways; TestRoundSizes holds it against rounds of five.
const perArm = 4

// lastPairs is where a sequential plan ends.
const lastPairs = 120

// A Plan is everything about the procedure that has to be fixed before the
// first process.
type Plan struct {
	// PerArm is the number of processes of each arm in a round.
	PerArm int `json:"per_arm"`
	// Looks are the numbers of pairs at which an experiment may be decided.
	// What each may spend follows from its place (see spending).
	Looks []int `json:"looks"`
	// Alpha bounds the probability that any kernel of the pull request is red
	// when no effect exceeds its tolerance.
	Alpha float64 `json:"alpha"`
	// Beta bounds, per kernel, the probability of a pass when the effect is at
	// least detect.
	Beta float64 `json:"beta"`
	// FDR is the share of wrong entries that the list of improvements may hold.
	FDR float64 `json:"fdr"`
	// Elsewhere is the number of tests of the same change that another call
	// judges. Holm's procedure counts each as a test that rejects nothing, so
	// that Alpha holds over all of them.
	Elsewhere int `json:"elsewhere,omitempty"`
}

// maxLooks bounds the looks of a plan.
const maxLooks = 256

// SequentialPlan looks after every round, up to 120 pairs.
func SequentialPlan() Plan { return roundsOf(perArm) }

// roundsOf is the sequential plan in rounds of another size.
func roundsOf(size int) Plan {
	p := Plan{PerArm: size, Alpha: 0.01, Beta: 0.01, FDR: 0.05}
	for pairs := size; pairs <= lastPairs; pairs += size {
		p.Looks = append(p.Looks, pairs)
	}
	return p
}

// capped ends a plan at the given number of pairs, rounded down to whole
// rounds. It has to be chosen before measuring.
func (p Plan) capped(pairs int) (Plan, error) {
	if err := p.valid(); err != nil {
		return Plan{}, err
	}
	pairs -= pairs % p.PerArm
	if pairs < p.PerArm {
		return Plan{}, fmt.Errorf("a plan needs at least %d pairs", p.PerArm)
	}
	pairs = min(pairs, p.LastPairs())
	kept := []int{}
	for _, l := range p.Looks {
		if l < pairs {
			kept = append(kept, l)
		}
	}
	p.Looks = append(kept, pairs)
	return p, p.valid()
}

// valid reports what is wrong with a plan, or nil.
func (p Plan) valid() error {
	if p.PerArm < 2 || p.PerArm > maxPerArm {
		return fmt.Errorf("a round needs 2 to %d processes of an arm, got %d", maxPerArm, p.PerArm)
	}
	if len(p.Looks) == 0 || len(p.Looks) > maxLooks {
		return fmt.Errorf("a plan needs 1 to %d looks, got %d", maxLooks, len(p.Looks))
	}
	if p.Elsewhere < 0 || p.Elsewhere > maxExperiments {
		return fmt.Errorf("the number of tests elsewhere must be in [0, %d], got %d", maxExperiments, p.Elsewhere)
	}
	last := 0
	for _, pairs := range p.Looks {
		if pairs <= last || pairs%p.PerArm != 0 || pairs > maxRounds*p.PerArm {
			return fmt.Errorf("looks must grow in steps of %d pairs up to %d, got %d after %d", p.PerArm, maxRounds*p.PerArm, pairs, last)
		}
		last = pairs
	}
	for _, level := range []float64{p.Alpha, p.Beta, p.FDR} {
		if !(level > 0 && level < 0.5) {
			return fmt.Errorf("error probabilities must be in (0, 0.5), got alpha %v, beta %v, fdr %v", p.Alpha, p.Beta, p.FDR)
		}
	}
	return nil
}

// LastPairs is the number of pairs at the last look.
func (p Plan) LastPairs() int { return p.Looks[len(p.Looks)-1] }

// nextLook is the first look that needs more pairs than there are.
func (p Plan) nextLook(pairs int) (int, bool) {
	i := slices.IndexFunc(p.Looks, func(l int) bool { return l > pairs })
	if i < 0 {
		return 0, false
	}
	return p.Looks[i], true
}

// reached is how many looks the given number of pairs covers.
func (p Plan) reached(pairs int) int {
	i := slices.IndexFunc(p.Looks, func(l int) bool { return l > pairs })
	if i < 0 {
		return len(p.Looks)
	}
	return i
}

// rounds are the numbers of rounds at the looks.
func (p Plan) rounds() []int {
	rounds := make([]int, len(p.Looks))
	for i, pairs := range p.Looks {
		rounds[i] = pairs / p.PerArm
	}
	return rounds
}

// spentOnSlow is the share of the error of a red that the test of slow
// processes has; the rank test has the rest.
const spentOnSlow = 0.2

// red, pass and faster are how the three claims spend their error over the
// looks. A pass spends nothing before the promise on tails is kept, and more
// for each look from then on than a red, because a pass ends the cost.
func (p Plan) red() *spending { return spendingOf(p.PerArm, p.rounds(), rootShape(0, len(p.Looks))) }

func (p Plan) pass(l Limits) *spending {
	return spendingOf(p.PerArm, p.rounds(), rootShape(p.reached(l.fewestPairs()-1), len(p.Looks)))
}

// faster puts most on the first look that can pass: what leaves there as a pass
// is measured no more, and shall still be provable among many kernels.
func (p Plan) faster(l Limits) *spending {
	first, pass := p.reached(l.fewestPairs()-1), p.pass(l)
	for first < len(p.Looks) && pass.exact(pass.scaled(first, nullOf(p.PerArm, pass.rounds[first]).least())) > p.Beta {
		first++
	}
	shape := make([]float64, len(p.Looks))
	for i := first; i < len(shape); i++ {
		shape[i] = 0.1
	}
	if first < len(shape) {
		shape[first] = 1
	}
	return spendingOf(p.PerArm, p.rounds(), shape)
}

// rootShape gives look i, counted from the first that may decide, 1/√(i+1): the
// early looks decide most kernels, and the late ones must keep their power.
func rootShape(first, looks int) []float64 {
	shape := make([]float64, looks)
	for i := first; i < looks; i++ {
		shape[i] = 1 / math.Sqrt(float64(i-first+1))
	}
	return shape
}
