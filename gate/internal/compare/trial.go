package compare

import (
	"fmt"
	"math"
)

// collapseBelow is the effect from which on a kernel that became faster is
// taken for one that stopped working: 90 % of the time gone.
const collapseBelow = -0.9

// A test is one gated metric of one experiment: its differences and, for each
// look that was reached, the smallest p value so far over the look's weight.
// Such a running minimum is a p value that holds at whichever look one stops.
type test struct {
	metric    Summary
	d         differences
	regressed []float64
	passed    []float64
	improved  float64
	constant  bool // an arm gave the same value in every process
	collapsed bool
}

// A trial is an experiment reduced to its tests.
type trial struct {
	experiment Series
	invalid    error
	looks      []Look
	tests      []test
}

// newTrial computes the p values of an experiment. Without a usable round the
// tests stay empty, and count with a p value of 1.
func newTrial(e Series, plan Plan) trial {
	t := trial{experiment: e}
	for i, b := range e.Rounds {
		if err := b.valid(e.used()); err != nil {
			t.invalid = fmt.Errorf("round %d, %w", i, err)
			break
		}
	}
	if t.invalid == nil {
		t.looks = plan.reached(e.pairs())
	}
	for _, m := range e.summaries() {
		one := test{metric: m, improved: 1}
		if t.invalid == nil && len(e.Rounds) > 0 {
			one = newTest(newDifferences(e.Rounds, m), e.Limits, t.looks)
			one.metric, one.constant = m, constantArm(e.Rounds, m)
		}
		t.tests = append(t.tests, one)
	}
	return t
}

// newTest computes the p values of one metric at the given looks.
func newTest(d differences, limits Limits, looks []Look) test {
	t := test{d: d, improved: 1}
	regressed, passed := 1.0, 1.0
	for _, l := range looks {
		upTo := d[:l.Pairs/perArm*pairsPerRound]
		regressed = min(regressed, upTo.pAbove(limits.tolerated())/l.Weight)
		passed = min(passed, upTo.pBelow(limits.detected())/l.Weight)
		t.regressed, t.passed = append(t.regressed, regressed), append(t.passed, passed)
		if !limits.Reference {
			t.improved = min(t.improved, upTo.pBelow(limits.mirrored())/l.Weight)
		}
	}
	above, _ := d.count(math.Log1p(collapseBelow))
	t.collapsed = !limits.Reference && 2*above <= len(d)
	return t
}

// constantArm reports whether all processes of an arm gave one value, which
// real timing does not do.
func constantArm(rounds []Round, m Summary) bool {
	first := rounds[0]
	base, head := true, true
	for _, b := range rounds {
		for i := range perArm {
			base = base && m.of(b.Base[i]) == m.of(first.Base[0])
			head = head && m.of(b.Head[i]) == m.of(first.Head[0])
		}
	}
	return base || head
}

// last returns the final value of a running minimum, 1 where no look was
// reached.
func last(ps []float64) float64 {
	if len(ps) == 0 {
		return 1
	}
	return ps[len(ps)-1]
}

// decided applies the limits look by look; the first decision stands, so that
// taking away the rounds after it cannot change it. Several tests are red when
// one is and green when all are.
func decided(tests []test, threshold, beta float64) Decision {
	for look := range tests[0].passed {
		red, green := false, true
		for _, t := range tests {
			red = red || t.regressed[look] <= threshold
			green = green && t.passed[look] <= beta
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

// verdict judges a trial. A pass is refused where the times themselves are
// suspect; a regression never is.
func (t trial) verdict(threshold, faster float64, plan Plan) (Decision, Reason) {
	switch {
	case t.invalid != nil:
		return Inconclusive, invalidProcess
	case len(t.experiment.Rounds) == 0:
		return Inconclusive, notMeasured
	}
	v := decided(t.tests, threshold, plan.Beta)
	if v == Regressed {
		return Regressed, aboveTolerance
	}
	for _, one := range t.tests {
		if one.collapsed && !t.experiment.Explained {
			return Inconclusive, suspectCollapse
		}
		if one.constant {
			return Inconclusive, zeroVariance
		}
	}
	switch {
	case v == Pass && t.improvedP() <= faster:
		return Improved, provenFaster
	case v == Pass:
		return Pass, belowDetect
	case !canReject(t.looks, threshold):
		return Inconclusive, tooFewPairs
	}
	return Inconclusive, notDecided
}

// improvedP is the p value of "every gated metric is faster by more than the
// tolerance": the largest of them.
func (t trial) improvedP() float64 {
	p := 0.0
	for _, one := range t.tests {
		p = max(p, one.improved)
	}
	return p
}

// canReject reports whether any of the looks has enough pairs for a p value
// as small as the threshold.
func canReject(looks []Look, threshold float64) bool {
	for _, l := range looks {
		if _, ok := nullOf(l.Pairs / perArm).critical(threshold * l.Weight); ok {
			return true
		}
	}
	return false
}

// thresholds runs Holm over all tests of all trials and the procedure of
// Benjamini and Hochberg over the trials.
func thresholds(trials []trial, plan Plan) (red, faster float64, tests int) {
	var ps, improved []float64
	for _, t := range trials {
		for _, one := range t.tests {
			ps = append(ps, last(one.regressed))
		}
		if !t.experiment.Limits.Reference {
			improved = append(improved, t.improvedP())
		}
	}
	return holmThreshold(ps, plan.Elsewhere, plan.Alpha), benjaminiHochbergThreshold(improved, plan.FDR), len(ps) + plan.Elsewhere
}
