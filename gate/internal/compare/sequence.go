package compare

import "math"

// A design is what a plan makes of limits: how each claim spends its error.
type design struct {
	limits            Limits
	plan              Plan
	rounds            []int // at each look
	red, pass, faster *spending
	mostPass          float64   // the largest t of a pass
	slowShares        []float64 // what each look may spend on slow processes

	tolerated, detected, mirrored float64
}

func newDesign(limits Limits, plan Plan) *design {
	d := &design{limits: limits, plan: plan, rounds: plan.rounds(), red: plan.red(), pass: plan.pass(limits), faster: plan.faster(limits),
		tolerated: limits.tolerated(), detected: limits.detected(), mirrored: limits.mirrored()}
	d.mostPass = d.pass.nominal(plan.Beta)
	sum := 0.0
	for _, w := range d.red.shape {
		sum += w
	}
	for _, w := range d.red.shape {
		d.slowShares = append(d.slowShares, w/sum)
	}
	return d
}

// A sequence is a test on its way through the looks.
type sequence struct {
	*design
	strata               []stratum
	above, below, better int     // counts at tolerated, detected and mirrored; ties count against the claim
	tFaster              float64 // smallest so far
	slow                 slowTest
	collapsed            int     // pairs that are
	same                 [2]bool // arms that gave one value so far
	looks                []look
}

// A look is what a sequence knows after a look: the smallest so far of what
// each claim's p value is made of.
type look struct {
	tRed, tPass float64
	pSlow       float64 // over what it may spend
	constant    bool
}

func newSequence(d *design) *sequence {
	return &sequence{design: d, tFaster: math.Inf(1), slow: newSlowTest(d.tolerated, d.detected), same: [2]bool{true, true}}
}

// read takes one more round, and looks where the plan does.
func (s *sequence) read(one stratum) {
	s.strata = append(s.strata, one)
	collapsed, _ := one.count(math.Log1p(CollapseBelow))
	s.collapsed += s.plan.PerArm*s.plan.PerArm - collapsed
	above, _ := one.count(s.tolerated)
	s.above += above
	below, ties := one.count(s.detected)
	s.below += below + ties
	if !s.limits.Reference {
		better, ties := one.count(s.mirrored)
		s.better += better + ties
		s.slow.add(one)
	}
	for i, side := range [][]float64{one.base, one.head} {
		first := [][]float64{s.strata[0].base, s.strata[0].head}[i][0]
		for _, y := range side {
			s.same[i] = s.same[i] && y == first
		}
	}
	if k := len(s.looks); k < len(s.rounds) && s.rounds[k] == len(s.strata) {
		s.look(k)
	}
}

func (s *sequence) look(k int) {
	l := look{math.Inf(1), math.Inf(1), 1, s.constant()}
	if k > 0 {
		l = s.looks[k-1]
		l.constant = s.constant()
	}
	n, rounds := s.plan.PerArm, len(s.strata)
	l.tRed = min(l.tRed, s.red.scaled(k, pAbove(n, rounds, s.above)))
	if l.tPass > s.mostPass { // what has passed needs no smaller p value
		l.tPass = min(l.tPass, s.passAt(k))
	}
	if !s.limits.Reference {
		l.pSlow = min(l.pSlow, s.slow.p()/s.slowShares[k])
		s.tFaster = min(s.tFaster, s.faster.scaled(k, pBelow(n, rounds, s.better, 0)))
	}
	s.looks = append(s.looks, l)
}

// passAt is the scaled p value of "below detect" at a look: the larger of those
// of the ranks and of the mean over processes. The mean is worked out where the ranks pass.
func (s *sequence) passAt(k int) float64 {
	t := s.pass.scaled(k, pBelow(s.plan.PerArm, len(s.strata), s.below, 0))
	if t > s.mostPass {
		return t
	}
	if !s.limits.Reference && s.slow.couldReach(s.strata, s.detected) {
		return math.Inf(1)
	}
	return max(t, s.pass.scaled(k, meanBelow(s.strata, s.detected)))
}

// constant reports whether all processes of an arm gave one value, which real
// timing does not do.
func (s *sequence) constant() bool { return s.same[0] || s.same[1] }

// p are the p values of a look.
func (d *design) p(l look) lookP {
	return lookP{regressed: min(1, d.red.exact(l.tRed)/(1-spentOnSlow), l.pSlow/spentOnSlow), passed: d.pass.exact(l.tPass), constant: l.constant}
}

// isRed holds for a look whose p value of a red is within a threshold, given the
// t that belongs to it.
func (l look) isRed(t, threshold float64) bool {
	return l.tRed <= t || l.pSlow <= threshold*spentOnSlow
}
