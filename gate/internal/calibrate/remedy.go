package calibrate

import (
	"fmt"
	"math"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// remedies are what would make a kernel gateable, each by itself.
func (c calibration) remedies(row verdict.Calibrated, rounds []compare.AARound) []string {
	var out []string
	last := compare.SequentialPlan().LastPairs()
	switch need := row.Figures.NeedPairs; {
	case need > last:
		out = append(out, fmt.Sprintf("more processes do not: about %d pairs would be needed, and the plan ends at %d", need, last))
	case need > c.BudgetPairs:
		out = append(out, fmt.Sprintf("a latency budget of %s, for %d pairs", time.Duration(math.Ceil(c.secondsFor(need)))*time.Second, need))
	}
	effect, ok, err := compare.Findable(rounds, compare.SequentialPlan(), c.BudgetPairs, c.Tests, func(effect float64) (compare.Limits, error) {
		return c.limitsOf(effect, row.Limits)
	})
	if err == nil && ok {
		out = append(out, fmt.Sprintf("a max_regression of %.1f%%", 100*effect))
	}
	return out
}

// limitsOf are the limits of another max_regression than the one that led to
// the given ones. A tolerance above the profile's share was raised to a floor,
// which stays.
func (c calibration) limitsOf(effect float64, given compare.Limits) (compare.Limits, error) {
	limits, err := compare.MaxRegression(c.limits, effect)
	ratio := c.limits.Tolerance / c.limits.Detect
	const rounding = 1e-9
	if rise := given.Tolerance - limits.Tolerance; err == nil && given.Tolerance > ratio*given.Detect+rounding && rise > 0 {
		limits.Tolerance, limits.Detect = limits.Tolerance+rise, limits.Detect+rise
		err = limits.Valid()
	}
	return limits, err
}

// secondsFor is the wall time of so many pairs: of the round that completes
// them, because nothing is decided inside one.
func (c calibration) secondsFor(pairs int) float64 {
	size := compare.SequentialPlan().PerArm
	return 2 * float64((pairs+size-1)/size*size) * c.ProcessSeconds
}
