package compare

import (
	"fmt"
	"slices"
)

// A Look is a point at which an experiment may be decided, and the share of the
// error probability that it may spend.
type Look struct {
	Pairs  int     `json:"pairs"` // processes of each arm, a multiple of 4
	Weight float64 `json:"weight"`
}

// A Plan is everything about the procedure that has to be fixed before the
// first process.
type Plan struct {
	Looks []Look `json:"looks"`
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
const maxLooks = 64

// SequentialPlan looks at 8, 12, 20, 32, 48, 72 and 120 pairs. The gaps grow
// because a look that follows closely sees little that is new; the first two
// are small because most kernels are decided at 12 pairs.
func SequentialPlan() Plan {
	return Plan{
		Looks: []Look{{8, .08}, {12, .10}, {20, .14}, {32, .16}, {48, .16}, {72, .16}, {120, .20}},
		Alpha: 0.01, Beta: 0.01, FDR: 0.05,
	}
}

// FixedPlan looks once, after the given number of rounds, and spends the whole
// error probability there. It has to be chosen before measuring.
func FixedPlan(rounds int) (Plan, error) {
	p := SequentialPlan()
	p.Looks = []Look{{Pairs: rounds * perArm, Weight: 1}}
	return p, p.Valid()
}

// Capped ends a plan at the given number of pairs, rounded down to whole
// rounds. The last look takes the weight of those that are dropped. It has to
// be chosen before measuring.
func (p Plan) Capped(pairs int) (Plan, error) {
	if err := p.Valid(); err != nil {
		return Plan{}, err
	}
	pairs -= pairs % perArm
	if pairs < perArm {
		return Plan{}, fmt.Errorf("a plan needs at least %d pairs", perArm)
	}
	if pairs >= p.lastPairs() {
		return p, nil
	}
	kept, left := []Look{}, 1.0
	for _, l := range p.Looks {
		if l.Pairs < pairs {
			kept, left = append(kept, l), left-l.Weight
		}
	}
	p.Looks = append(kept, Look{Pairs: pairs, Weight: left})
	return p, p.Valid()
}

// Valid reports what is wrong with a plan, or nil.
func (p Plan) Valid() error {
	if len(p.Looks) == 0 || len(p.Looks) > maxLooks {
		return fmt.Errorf("a plan needs 1 to %d looks, got %d", maxLooks, len(p.Looks))
	}
	if p.Elsewhere < 0 || p.Elsewhere > maxExperiments {
		return fmt.Errorf("the number of tests elsewhere must be in [0, %d], got %d", maxExperiments, p.Elsewhere)
	}
	last, sum := 0, 0.0
	for _, l := range p.Looks {
		if l.Pairs <= last || l.Pairs%perArm != 0 || l.Pairs > maxRounds*perArm {
			return fmt.Errorf("looks must grow in steps of %d pairs up to %d, got %d after %d", perArm, maxRounds*perArm, l.Pairs, last)
		}
		if !(l.Weight > 0 && l.Weight <= 1) {
			return fmt.Errorf("the weight of a look must be in (0, 1], got %v", l.Weight)
		}
		last, sum = l.Pairs, sum+l.Weight
	}
	const rounding = 1e-9
	if sum > 1+rounding {
		return fmt.Errorf("the weights of the looks add up to %v, more than 1", sum)
	}
	for _, level := range []float64{p.Alpha, p.Beta, p.FDR} {
		if !(level > 0 && level < 0.5) {
			return fmt.Errorf("error probabilities must be in (0, 0.5), got alpha %v, beta %v, fdr %v", p.Alpha, p.Beta, p.FDR)
		}
	}
	return nil
}

// lastPairs is the number of pairs at the last look.
func (p Plan) lastPairs() int { return p.Looks[len(p.Looks)-1].Pairs }

// nextLook is the first look that needs more pairs than there are.
func (p Plan) nextLook(pairs int) (Look, bool) {
	i := slices.IndexFunc(p.Looks, func(l Look) bool { return l.Pairs > pairs })
	if i < 0 {
		return Look{}, false
	}
	return p.Looks[i], true
}

// reached returns the looks that the given number of pairs covers.
func (p Plan) reached(pairs int) []Look {
	i := slices.IndexFunc(p.Looks, func(l Look) bool { return l.Pairs > pairs })
	if i < 0 {
		return p.Looks
	}
	return p.Looks[:i]
}
