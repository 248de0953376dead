package calibrate

import (
	"fmt"
	"math"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// remedies are what would make a kernel gateable, each by itself.
func (c calibration) remedies(row verdict.Calibrated) []string {
	var out []string
	last := lastPairs()
	switch need := row.Figures.NeedPairs; {
	case need > last:
		out = append(out, fmt.Sprintf("more processes do not: about %d pairs would be needed, and the plan ends at %d", need, last))
	case need > c.BudgetPairs:
		out = append(out, fmt.Sprintf("a latency budget of %s, for %d pairs", time.Duration(math.Ceil(c.secondsFor(need)))*time.Second, need))
	}
	if row.Figures.MDE90 != nil {
		if effect, ok := findable(*row.Figures.MDE90, row.Limits, c.limits); ok {
			out = append(out, fmt.Sprintf("a max_regression of %.1f%%", 100*effect))
		}
	}
	return out
}

// secondsFor is the wall time of so many pairs: of the round that completes
// them, because nothing is decided inside one.
func (c calibration) secondsFor(pairs int) float64 {
	size := compare.SequentialPlan().PerArm
	return 2 * float64((pairs+size-1)/size*size) * c.ProcessSeconds
}

// lastPairs is where the plan ends.
func lastPairs() int {
	looks := compare.SequentialPlan().Looks
	return looks[len(looks)-1]
}

// findable is the smallest max_regression, rounded up to 0.1 %, that would be
// found with 90 % probability, given what is at these limits. A larger one
// raises the tolerance with it, by the profile's ratio r: noise alone makes
// MDE90 the (1 + tolerance)-fold of k, so that (1 + tolerance)·k − 1 must not
// exceed detect. Where a floor sets the tolerance, detect lies (1 − r) times
// max_regression above it.
func findable(mde90 float64, limits, profile compare.Limits) (float64, bool) {
	r := profile.Tolerance / profile.Detect
	k := (1 + mde90) / (1 + limits.Tolerance)
	if !(r*k < 1) {
		return 0, false
	}
	effect := max((k-1)/(1-r*k), (1+limits.Tolerance)*(k-1)/(1-r))
	const step = 0.001
	return math.Ceil(effect/step-1e-9) * step, true
}
