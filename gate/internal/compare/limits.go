package compare

import (
	"fmt"
	"math"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Limits are the two bounds that an experiment is judged by, as relative
// effects. One threshold cannot work: an effect at the threshold is never
// decidable, and "not significant" is not "unchanged".
type Limits struct {
	// Tolerance is the largest effect that is harmless: a regression is
	// reported only on proof of more.
	Tolerance float64 `json:"tolerance"`
	// Detect is the smallest effect that must be found: a pass needs proof of
	// less.
	Detect float64 `json:"detect"`
	// Tail is the share of slow processes of which at least one is drawn with 98 %
	// before anything passes: what no process showed cannot be judged. 0 promises nothing.
	Tail float64 `json:"tail,omitempty"`
	// Reference marks a comparison of the head with a reference contender in
	// the same run, where both bounds are the one ratio that is allowed.
	Reference bool `json:"reference,omitempty"`
}

// maxEffect bounds every limit: 100 times slower.
const maxEffect = 99

// tailMissed is the probability with which a mode of the share Tail stays
// unseen in a pass.
const tailMissed = 0.02

// fewestPairs is the number of processes of the head without which nothing passes.
func (l Limits) fewestPairs() int {
	if l.Tail == 0 {
		return 1
	}
	return int(math.Ceil(math.Log(tailMissed) / math.Log1p(-l.Tail)))
}

// Profile returns the limits of a named profile: standard (0.5 %, 2 %, a tail
// of 40 %), strict (0.25 %, 1 %, 20 %) or loose (1 %, 3 %, none).
func Profile(name string) (Limits, error) {
	switch name {
	case "standard":
		return Limits{Tolerance: 0.005, Detect: 0.02, Tail: 0.4}, nil
	case "strict":
		return Limits{Tolerance: 0.0025, Detect: 0.01, Tail: 0.2}, nil
	case "loose":
		return Limits{Tolerance: 0.01, Detect: 0.03}, nil
	}
	return Limits{}, fmt.Errorf("unknown latency profile %q: known are standard, strict and loose", name)
}

// NewLimits checks explicit limits: 0 < tolerance < detect, 0 <= tail < 1. A tolerance of 0
// is refused because a build-layout bias, which no new process averages out, would
// then be reported as a regression.
func NewLimits(tolerance, detect, tail float64) (Limits, error) {
	l := Limits{Tolerance: tolerance, Detect: detect, Tail: tail}
	return l, l.Valid()
}

// MaxRegression turns "at most this much slower" into limits: that effect must
// be found, and the tolerance is the same share of it as in the profile.
func MaxRegression(profile Limits, detect float64) (Limits, error) {
	if err := profile.Valid(); err != nil {
		return Limits{}, err
	}
	return NewLimits(detect*profile.Tolerance/profile.Detect, detect, profile.Tail)
}

// withFloor raises the limits to an absolute floor: a difference below floor is
// harmless whatever it is in percent. Both are nanoseconds per call. The zone
// between the limits keeps its width, so that the number of pairs does too.
func (l Limits) withFloor(floor, base float64) (Limits, error) {
	if l.Reference {
		return Limits{}, fmt.Errorf("a floor has no meaning for a ratio to a reference")
	}
	if !(floor >= 0) || math.IsInf(floor, 1) || !usable(base) {
		return Limits{}, fmt.Errorf("a floor of %v ns on a base of %v ns cannot be made relative", floor, base)
	}
	rise := max(0, floor/base-l.Tolerance)
	l.Tolerance, l.Detect = l.Tolerance+rise, l.Detect+rise
	return l, l.Valid()
}

// A Bound is what a rule accepts of a time. A floor is an absolute difference
// that is harmless, so the limits depend on the base's time.
type Bound struct {
	Limits  Limits
	FloorNS float64 // 0: none
}

// At are the limits for a base that takes so many nanoseconds.
func (b Bound) At(baseNS float64) (Limits, error) {
	if b.FloorNS == 0 {
		return b.Limits, b.Limits.Valid()
	}
	return b.Limits.withFloor(b.FloorNS, baseNS)
}

// A Test is what a question asks of the times of two arms.
type Test struct {
	CacheState evidence.CacheState
	Summary    Summary
	Bound      Bound
}

// ReferenceLimits bounds the ratio of the head to a reference contender, which
// takes the place of the base in the rounds. There is no zone between the
// limits: the ratio is proven below (pass), above (regressed), or neither.
func ReferenceLimits(ratio float64) (Limits, error) {
	l := Limits{Tolerance: ratio - 1, Detect: ratio - 1, Reference: true}
	return l, l.Valid()
}

// Valid reports what is wrong with limits, or nil.
func (l Limits) Valid() error {
	if l.Reference {
		if !(l.Tolerance > -1 && l.Tolerance <= maxEffect) || l.Tolerance != l.Detect {
			return fmt.Errorf("a ratio to a reference must be above 0 and at most %d, got %v", maxEffect+1, l.Detect+1)
		}
		return nil
	}
	if !(l.Tolerance > 0 && l.Tolerance < l.Detect && l.Detect <= maxEffect) {
		return fmt.Errorf("limits need 0 < tolerance < detect <= %d, got tolerance %v and detect %v", maxEffect, l.Tolerance, l.Detect)
	}
	if !(l.Tail == 0 || l.Tail >= leastTail && l.Tail < 1) {
		return fmt.Errorf("a tail needs to be 0 or from %v to below 1, got %v", leastTail, l.Tail)
	}
	return nil
}

// leastTail is the smallest share that a sequential plan can promise to see.
const leastTail = 0.035

// tolerated, detected and mirrored are the limits as differences of logarithms.
// The mirror is the tolerance with the sides swapped.
func (l Limits) tolerated() float64 { return math.Log1p(l.Tolerance) }
func (l Limits) detected() float64  { return math.Log1p(l.Detect) }
func (l Limits) mirrored() float64  { return -l.tolerated() }
