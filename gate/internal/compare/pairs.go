package compare

import (
	"math"

	"github.com/montanaflynn/stats"
)

// maxNeed is where counting pairs stops: nobody measures more.
const maxNeed = 100_000

// needPairs says how many pairs would decide an undecided trial: for each
// metric the cheaper of proving it above or below, and the most expensive of
// the metrics.
func (t trial) needPairs(o Outcome, tests int, plan Plan) int {
	switch {
	case o.Decision != Inconclusive:
		return 0
	case o.Reason == SuspectCollapse || o.Reason == ZeroVariance: // no number of pairs explains these
		return -1
	}
	if len(t.experiment.Rounds) == 0 {
		return fewestPairs(plan, tests)
	}
	need := 0
	for i, one := range t.tests {
		if o.Summaries[i].Decision == Inconclusive {
			need = max(need, one.needPairs(t.experiment, tests, plan))
		}
	}
	return need
}

// needPairs is the number of pairs for one metric, from the normal
// approximation of the rank test at what the last look rejects.
func (t test) needPairs(e Series, tests int, plan Plan) int {
	estimate, _, _ := hodgesLehmann(t.strata, intervalConfidence)
	sigma, _ := stats.StandardDeviationSample(residuals(e.Rounds, t.metric)) // its error is for no values
	above := pairsFor(sigma, estimate-e.Limits.tolerated(), plan.lastLevel(tests), plan.PerArm)
	pass := plan.pass(e.Limits)
	below := pairsFor(sigma, e.Limits.detected()-estimate, pass.nominal(plan.Beta)*pass.shape[len(pass.shape)-1], plan.PerArm)
	return max(min(above, max(below, e.Limits.fewestPairs())), fewestPairs(plan, tests))
}

// lastLevel is the p value that the last look rejects among so many tests.
func (p Plan) lastLevel(tests int) float64 {
	red := p.red()
	return red.nominal(p.redLevel(tests)) * red.shape[len(red.shape)-1]
}

// redLevel is what the rank test has at Holm's first step.
func (p Plan) redLevel(tests int) float64 {
	return p.Alpha / float64(max(1, tests)) * (1 - spentOnSlow)
}

// pairsFor is the number of pairs that separates an effect from a limit, gap
// away from it, with 90 % power at the given level: 2((z_level + z_power) σ/gap)²
// over the rank test's efficiency of 3/π, in whole rounds. Without a gap or a
// level it is infinite or not a number, so maxNeed.
func pairsFor(sigma, gap, level float64, perArm int) int {
	z := (normalQuantile(level) + normalQuantile(1-power)) * sigma / max(0, gap)
	pairs := 2 * z * z * math.Pi / 3
	if !(pairs < maxNeed) {
		return maxNeed
	}
	return perArm * int(math.Ceil(pairs/float64(perArm)))
}

// normalQuantile is the value that a standard normal exceeds with probability p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfcinv(2*p) }

// fewestPairs is the first look that can reject at Holm's first step; where
// none can, the number of pairs whose smallest p value would do.
func fewestPairs(plan Plan, tests int) int {
	level := plan.Alpha / float64(max(1, tests))
	if k := plan.canReject(level); k <= len(plan.Looks) {
		return plan.Looks[k-1]
	}
	return plan.PerArm * int(math.Ceil(math.Log(level*(1-spentOnSlow))/-math.Log(float64(ordersOf(plan.PerArm)))))
}
