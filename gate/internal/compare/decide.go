package compare

import "fmt"

// intervalConfidence is that of the printed intervals, for each metric alone.
const intervalConfidence = 0.95

// An Outcome is what one experiment proved, and how.
type Outcome struct {
	Decision Decision `json:"verdict"`
	Reason   Reason   `json:"reason"`
	Invalid  error    `json:"-"` // why its times cannot be used, of InvalidProcess
	Pairs    int      `json:"pairs"`
	// NeedPairs is the number of pairs that would decide with 90 % probability
	// if the effect is as estimated; 0 where it is decided, -1 where nothing is
	// known about the noise.
	NeedPairs int              `json:"need_pairs"`
	Tests     int              `json:"tests"` // over which the error is bounded
	Limits    Limits           `json:"limits"`
	Summaries []SummaryOutcome `json:"metrics,omitempty"` // none where nothing was measured
}

// A SummaryOutcome is the part of an outcome that belongs to one gated metric.
type SummaryOutcome struct {
	Summary  Summary  `json:"metric"`
	Decision Decision `json:"verdict"`
	Base     float64  `json:"base_ns"` // median of the processes
	Head     float64  `json:"head_ns"`
	// Estimate is the Hodges-Lehmann ratio minus 1; Low and High are its 95 %
	// interval, which holds for this metric at this look and is not widened
	// for the number of looks or tests.
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	// The p values hold at any look; before Holm.
	PRegressed float64 `json:"p_regressed"`
	PPass      float64 `json:"p_pass"`
	PImproved  float64 `json:"p_improved"`
	Looks      []Look  `json:"looks,omitempty"`
	Slow       Slow    `json:"slow"`
	// Excluded is the smallest slowdown that a pass refutes, with 99 %; nil where
	// there is no pass, or against a reference.
	Excluded *float64 `json:"excluded,omitempty"`
	// MDE90 is the effect that the whole plan would call a regression with 90 %
	// probability at this noise; nil where it is decided, where it cannot find any, and against a reference.
	MDE90 *float64 `json:"mde90"`
	Modes *Modes   `json:"modes,omitempty"` // nil against a reference, too
}

// A Look is what was known after some of the pairs: p values that count all
// looks so far.
type Look struct {
	Pairs      int     `json:"pairs"`
	PRegressed float64 `json:"p_regressed"`
	PPass      float64 `json:"p_pass"`
}

// Decide judges all experiments of a pull request. They have to be passed
// together: the error is bounded over the experiments of one call. Outcomes
// stand in the order of the experiments. The error is for misuse only (an
// invalid plan or limits, more rounds than were planned).
func Decide(experiments []Series, plan Plan) ([]Outcome, error) {
	if err := validAll(experiments, plan); err != nil {
		return nil, err
	}
	trials := make([]trial, 0, len(experiments))
	for _, e := range experiments {
		trials = append(trials, newTrial(e, plan))
	}
	red, faster, tests := thresholds(trials, plan)
	outcomes := make([]Outcome, 0, len(trials))
	for _, t := range trials {
		outcomes = append(outcomes, t.outcome(red, faster, tests, plan))
	}
	return outcomes, nil
}

// Open says which experiments are undecided while the plan has looks left: they
// can be continued, since the looks are fixed.
func Open(experiments []Series, plan Plan) ([]bool, error) {
	if err := validAll(experiments, plan); err != nil {
		return nil, err
	}
	d := newDriver(plan, Budget{}, experiments)
	open := make([]bool, len(experiments))
	for _, i := range d.unresolved() {
		open[i] = d.trials[i].invalid == nil && experiments[i].pairs() > 0 && experiments[i].pairs() < plan.LastPairs()
	}
	return open, nil
}

// outcome writes a trial out.
func (t trial) outcome(red, faster float64, tests int, plan Plan) Outcome {
	o := Outcome{Limits: t.experiment.Limits, Tests: tests, NeedPairs: -1}
	o.Decision, o.Reason = t.decision(red, faster, plan)
	if t.invalid != nil {
		o.Invalid = t.invalid
		return o
	}
	o.Pairs = t.experiment.pairs()
	if o.Pairs > 0 {
		for _, one := range t.tests {
			o.Summaries = append(o.Summaries, one.outcome(t.experiment, red, tests, plan))
		}
	}
	o.NeedPairs = t.needPairs(o, tests, plan)
	return o
}

// outcome writes one metric out.
func (t test) outcome(e Series, red float64, tests int, plan Plan) SummaryOutcome {
	estimate, low, high := hodgesLehmann(t.strata, intervalConfidence)
	alone := decided([]test{t}, red, plan)
	m := SummaryOutcome{
		Summary: t.metric, Decision: alone, Slow: Slow{t.slow.base, t.slow.head, t.slow.p()},
		Base: median(armValues(e.Rounds, t.metric, Base)), Head: median(armValues(e.Rounds, t.metric, Head)),
		Estimate: relative(estimate), Low: relative(low), High: relative(high),
		PRegressed: t.last().regressed, PPass: t.last().passed, PImproved: t.faster.exact(t.tFaster),
	}
	for i, l := range t.ps {
		m.Looks = append(m.Looks, Look{plan.Looks[i], l.regressed, l.passed})
	}
	if e.Limits.Reference { // two arms of different scale share neither modes nor a smallest effect
		return m
	}
	m.Modes = findModes(e.Rounds, t.metric)
	switch alone {
	case Pass:
		m.Excluded = t.excluded(plan)
	case Inconclusive:
		if effect, ok := (replay{pool: residuals(e.Rounds, t.metric), limits: e.Limits, plan: plan, pairs: plan.LastPairs()}).detectable(tests); ok {
			m.MDE90 = &effect
		}
	}
	return m
}

// excluded is the smallest slowdown that the tests of a pass refute after all
// rounds, by inversion: that of the ranks, or of the mean over processes where it is larger.
func (t test) excluded(plan Plan) *float64 {
	k := len(t.ps) - 1
	p := t.mostPass * t.pass.shape[k]
	strata := t.strata[:plan.Looks[k]/plan.PerArm]
	effect := relative(meanExcludes(strata, p, min(rankExcludes(strata, p), t.detected), t.detected))
	return &effect
}

// armValues lists one arm's processes, round after round.
func armValues(rounds []Round, m Summary, a Arm) []float64 {
	var values []float64
	for _, b := range rounds {
		side := b.Base
		if a == Head {
			side = b.Head
		}
		for _, l := range side {
			values = append(values, m.of(l))
		}
	}
	return values
}

// Percent writes a relative effect with its sign.
func Percent(effect float64) string { return fmt.Sprintf("%+.2f %%", 100*effect) }
