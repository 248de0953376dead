package compare

import "fmt"

// CollapseBelow is the effect from which on a kernel that became faster is
// taken for one that stopped working: 90 % of the time gone.
const CollapseBelow = -0.9

// A test is one gated metric of one experiment, with the p values that held at
// each look that was reached.
type test struct {
	*sequence
	metric Summary
	ps     []lookP
}

// lookP are the p values at a look, of all looks so far.
type lookP struct {
	regressed, passed float64
	constant          bool // an arm gave the same value in every process until then
}

// A trial is an experiment reduced to its tests.
type trial struct {
	experiment Series
	invalid    error
	tests      []test
}

// newTrial computes the p values of an experiment. Tests without a usable round
// count with a p value of 1.
func newTrial(e Series, plan Plan) trial {
	rounds := e.Rounds
	e.Rounds = nil
	t := trial{experiment: e}
	design := newDesign(e.Limits, plan)
	for _, m := range e.summaries() {
		t.tests = append(t.tests, test{sequence: newSequence(design), metric: m})
	}
	for _, b := range rounds {
		t.read(b)
	}
	return t
}

// read takes one more round. One that cannot be used makes all of them nothing.
func (t *trial) read(b Round) {
	if err := b.valid(t.experiment.used()); err != nil && t.invalid == nil {
		t.invalid = fmt.Errorf("round %d, %w", len(t.experiment.Rounds), err)
		for i := range t.tests {
			t.tests[i] = test{sequence: newSequence(t.tests[i].design), metric: t.tests[i].metric}
		}
	}
	t.experiment.Rounds = append(t.experiment.Rounds, b)
	if t.invalid != nil {
		return
	}
	for i := range t.tests {
		t.tests[i].take(b)
	}
}

func (t *test) take(b Round) {
	t.read(stratum{logsOf(b.Base, t.metric), logsOf(b.Head, t.metric)})
	for k := len(t.ps); k < len(t.looks); k++ {
		t.ps = append(t.ps, t.p(t.looks[k]))
	}
}

// last are the p values at the last look, 1 where none was reached.
func (t test) last() lookP {
	if len(t.ps) == 0 {
		return lookP{regressed: 1, passed: 1}
	}
	return t.ps[len(t.ps)-1]
}

// gone reports whether most of the time is.
func (t test) gone() bool {
	return !t.limits.Reference && 2*t.collapsed >= len(t.strata)*t.plan.PerArm*t.plan.PerArm
}

// decided applies the limits look by look; the first decision stands, so that
// taking away the rounds after it cannot change it. Several tests are red when
// one is and green when all are.
func decided(tests []test, threshold float64, plan Plan) Decision {
	for look := range tests[0].ps {
		red, green := false, true
		for _, t := range tests {
			red = red || t.ps[look].regressed <= threshold
			green = green && t.ps[look].green(plan)
		}
		if red {
			return Regressed
		}
		if green {
			return Pass
		}
	}
	return Inconclusive
}

// green holds for a pass at a look. What would be red if it were the only test
// does not pass, however many tests there are: more tests move the bar of a red
// past this look, and must not turn it into a pass. A constant arm goes on.
func (l lookP) green(plan Plan) bool {
	return l.passed <= plan.Beta && l.regressed > plan.Alpha && !l.constant
}

// decision judges a trial. A pass is refused where the times themselves are
// suspect; a regression never is.
func (t trial) decision(threshold, faster float64, plan Plan) (Decision, Reason) {
	switch {
	case t.invalid != nil:
		return Inconclusive, InvalidProcess
	case len(t.experiment.Rounds) == 0:
		return Inconclusive, NotMeasured
	}
	v := decided(t.tests, threshold, plan)
	if v == Regressed {
		return Regressed, AboveTolerance
	}
	for _, one := range t.tests {
		if one.gone() && !t.experiment.Explained {
			return Inconclusive, SuspectCollapse
		}
		if one.constant() {
			return Inconclusive, ZeroVariance
		}
	}
	switch {
	case v == Pass && t.improvedP() <= faster:
		return Improved, ProvenFaster
	case v == Pass:
		return Pass, BelowDetect
	case t.tooFew(threshold, plan):
		return Inconclusive, TooFewPairs
	}
	return Inconclusive, NotDecided
}

// tooFew reports whether the looks that were reached could decide neither way.
func (t trial) tooFew(threshold float64, plan Plan) bool {
	reached := plan.reached(t.experiment.pairs())
	return reached < plan.canReject(threshold) && t.experiment.pairs() < t.experiment.Limits.fewestPairs()
}

// improvedP is the p value of "every gated metric is faster by more than the
// tolerance": the largest of them.
func (t trial) improvedP() float64 {
	p := 0.0
	for _, one := range t.tests {
		p = max(p, one.faster.exact(one.tFaster))
	}
	return p
}

// canReject is the first look, from 1, that can be red at a threshold; more
// than there are where none can.
func (p Plan) canReject(threshold float64) int {
	red := p.red()
	for k, rounds := range red.rounds {
		if red.exact(red.scaled(k, nullOf(p.PerArm, rounds).least())) <= threshold*(1-spentOnSlow) {
			return k + 1
		}
	}
	return len(p.Looks) + 1
}

// thresholds runs Holm over all tests of all trials and the procedure of
// Benjamini and Hochberg over the trials.
func thresholds(trials []trial, plan Plan) (red, faster float64, tests int) {
	var ps, improved []float64
	for _, t := range trials {
		for _, one := range t.tests {
			ps = append(ps, one.last().regressed)
		}
		if !t.experiment.Limits.Reference {
			improved = append(improved, t.improvedP())
		}
	}
	return holmThreshold(ps, plan.Elsewhere, plan.Alpha), benjaminiHochbergThreshold(improved, plan.FDR), len(ps) + plan.Elsewhere
}
