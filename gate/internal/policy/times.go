package policy

import (
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

func isLatency(m Metric) bool { return m.Tier == evidence.Latency }

// isAdvice holds for a metric that is never red.
func isAdvice(m Metric) bool { return isLatency(m) && strings.HasSuffix(m.Name, "p99") }

// regime is the name that the harness gives to the state of the caches.
func regime(m Metric) string {
	if strings.HasPrefix(m.Name, "latency.cold_") {
		return "cold"
	}
	return "warm"
}

func summary(m Metric) compare.Metric {
	switch {
	case strings.HasSuffix(m.Name, "mean"):
		return compare.Mean
	case strings.HasSuffix(m.Name, "p99"):
		return compare.P99
	}
	return compare.Typical
}

func experimentName(r Rule, k *KernelFacts, c *CaseFacts) string {
	return strings.Join([]string{r.ID, k.Name, k.Arch, c.Name, c.Machine}, "\x00")
}

// A Trial is one question that a rule asks of the times of a kernel and case:
// against the base, or against a reference.
type Trial struct {
	Name      string
	Rule      string
	Reference string // the kernel in the base's place, "" for the base
	Advice    bool   // read from the launches that the others ask for
	Regime    string
	Metric    compare.Metric
	Limits    func(base float64) (compare.Limits, error)
}

// Trials are the questions that the policy asks of a case in experiments.
func (p *Policy) Trials(k *KernelFacts, c *CaseFacts) []Trial {
	var out []Trial
	for _, r := range p.Rules {
		if !isLatency(r.Metric) || !r.Matches(k.Name) {
			continue
		}
		t := Trial{Name: experimentName(r, k, c), Rule: r.ID, Reference: r.Reference(k.Name), Advice: isAdvice(r.Metric), Regime: regime(r.Metric), Metric: summary(r.Metric)}
		switch {
		case r.RelativeTo != "":
			t.Limits = func(float64) (compare.Limits, error) { return compare.ReferenceLimits(r.Limit.Number) }
		case r.Compares() && k.timed() && !p.Stored:
			t.Limits = func(base float64) (compare.Limits, error) { return p.timeLimits(r, base) }
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// timeLimits turns a rule into a tolerance and an effect to be found; base is
// the base's time in ns.
func (p *Policy) timeLimits(r Rule, base float64) (compare.Limits, error) {
	limits, err := p.Limits, error(nil)
	if r.MaxRegression.Set {
		limits, err = compare.MaxRegression(p.Limits, r.MaxRegression.Number)
	}
	if err != nil || !r.Floor.Set {
		return limits, err
	}
	return limits.WithFloor(r.Floor.Number, base)
}

// times are the answers to all latency questions of a change, by their names.
// A record that holds no comparison leaves its own question open, with the
// reason in unread, and not those of the others.
type times struct {
	decided map[string]compare.Outcome
	stored  map[string]compare.StoredOutcome
	unread  map[string]string
}

// decideTimes puts every latency question of the change to the test at once,
// because the error rate is that of the whole change and not of one kernel:
// experiments and stored sessions count each other's tests. Advice has an error
// rate of its own, so that asking for it costs the others nothing.
func decideTimes(p *Policy, f Facts) (*times, error) {
	t := &times{decided: map[string]compare.Outcome{}, stored: map[string]compare.StoredOutcome{}, unread: map[string]string{}}
	gated, advice := t.experiments(p, f)
	stored := t.sessions(p, f)
	plan := compare.SequentialPlan()
	plan.Elsewhere = len(stored)
	if err := t.decide(gated, plan); err != nil {
		return nil, err
	}
	if err := t.decide(advice, compare.SequentialPlan()); err != nil {
		return nil, err
	}
	plan.Elsewhere = len(gated)
	outcomes, err := compare.DecideStored(stored, plan)
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		t.stored[o.Name] = o
	}
	return t, nil
}

func (t *times) decide(experiments []compare.Experiment, plan compare.Plan) error {
	outcomes, err := compare.Decide(experiments, plan)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		t.decided[o.Name] = o
	}
	return nil
}

// Answered is the number of questions that facts already answer, over which
// those that are still to be measured share the error rate.
func Answered(p *Policy, f Facts) int {
	t := &times{unread: map[string]string{}}
	gated, _ := t.experiments(p, f)
	return len(gated) + len(t.sessions(p, f))
}

// experiments gathers what was measured of every question.
func (t *times) experiments(p *Policy, f Facts) (gated, advice []compare.Experiment) {
	for i := range f.Kernels {
		k := &f.Kernels[i]
		for j := range k.Cases {
			c := &k.Cases[j]
			for _, trial := range p.Trials(k, c) {
				record := c.Latency.experiment(trial.Reference).Record
				if record == nil || record.Experiment == nil || record.Failure != nil {
					continue
				}
				e, err := trial.experiment(record.Experiment)
				if err == nil {
					err = e.Valid(compare.SequentialPlan())
				}
				switch {
				case err != nil:
					t.unread[trial.Name] = "the experiment cannot be judged: " + err.Error()
				case trial.Advice:
					advice = append(advice, e)
				default:
					gated = append(gated, e)
				}
			}
		}
	}
	return gated, advice
}

// experiment is the arm that holds head and base, or head and a reference.
func (l *LatencyFacts) experiment(reference string) Arm {
	if reference == "" {
		return l.Experiment
	}
	return l.reference(reference).Experiment
}

func (t Trial) experiment(e *evidence.Experiment) (compare.Experiment, error) {
	out := compare.Experiment{Name: t.Name, Metrics: []compare.Metric{t.Metric}}
	for _, b := range e.Blocks {
		block, err := compare.BlockOf(b, t.Regime)
		if err != nil {
			return out, err
		}
		out.Blocks = append(out.Blocks, block)
	}
	base, err := compare.BaseTime(e.Pilot, t.Regime, t.Metric)
	if err != nil {
		return out, fmt.Errorf("the pilot: %w", err)
	}
	out.Limits, err = t.Limits(base)
	return out, err
}

// timed reports whether head and base are timed against each other.
func (k *KernelFacts) timed() bool {
	return k.State == Changed || k.Forced && k.State == Unchanged
}

// applyTime judges a bound on how much slower a kernel may become.
func (j *judge) applyTime(r Rule, c *CaseFacts, f *Finding) {
	switch j.kernel.State {
	case New:
		f.Status, f.Reason = NotCompared, "the kernel is new: there is nothing to compare with"
		if !f.Head.Known() {
			f.Status, f.Reason = Inconclusive, f.Head.Missing
		}
		return
	case NoBase:
		f.Reason = j.noBase()
		return
	case Unchanged:
		if !j.kernel.Forced || j.policy.Stored {
			j.unchangedTime(f)
			return
		}
	}
	if j.policy.stored(c) {
		j.applyStored(r, c, f)
		return
	}
	j.applyExperiment(r, c, c.Latency.Experiment, f)
}

// applyExperiment takes over what an experiment proved.
func (j *judge) applyExperiment(r Rule, c *CaseFacts, arm Arm, f *Finding) {
	if arm.Record == nil {
		f.Reason = arm.Missing
		return
	}
	if fail := arm.Record.Failure; fail != nil {
		f.Status, f.Reason, f.Tool, f.Hint = blame(fail.Blames()), fail.Message, !fail.Blames(), fail.Hint
		return
	}
	name := experimentName(r, j.kernel, c)
	if why := j.times.unread[name]; why != "" {
		f.Reason = why
		return
	}
	o, ok := j.times.decided[name]
	if !ok || len(o.Metrics) == 0 {
		f.Reason = "the experiment holds no comparison"
		return
	}
	timeFinding(f, o)
	if budget := budgets[arm.Record.Experiment.Stopped]; f.Status == Inconclusive && budget != "" {
		f.Reason += "; " + budget + " is used up"
	}
}

// budgets are what ends an experiment that is not decided, by the driver's
// words for it.
var budgets = map[string]string{"wall": "latency.budget", "gpu": "latency.gpu_budget"}

// applyReference judges a limit on the ratio to a reference's time. It holds
// whatever the base is: a new kernel is held against its reference too.
func (j *judge) applyReference(r Rule, c *CaseFacts, f *Finding) {
	ref := c.Latency.reference(r.Reference(j.kernel.Name))
	f.RelativeTo = ref.Name
	ok, why := Correct(ref.Correctness)
	switch {
	case !ok && (ref.Correctness.Record != nil || ref.Experiment.Record != nil):
		f.Reason = fmt.Sprintf("the reference %s is no measure: %s", ref.Name, why)
		if fail := ref.Correctness.failure(); fail != nil {
			f.Tool, f.Hint = !fail.Blames(), fail.Hint
		}
	default:
		j.applyExperiment(r, c, ref.Experiment, f)
	}
	f.Reason = orElse(f.Reason, "not measured")
}

// unchangedTime passes code that is the base's own, once it was timed at all.
func (j *judge) unchangedTime(f *Finding) {
	if !f.Head.Known() {
		f.Reason = f.Head.Missing
		return
	}
	base := *f.Head
	f.Base = &base
	f.Status, f.Reason = Pass, "unchanged code"
}

func timeFinding(f *Finding, o compare.Outcome) {
	m := o.Metrics[0]
	base, head := evidence.Of(m.Base, "ns"), evidence.Of(m.Head, "ns")
	f.Base, f.Head = &base, &head
	f.Interval = &Interval{Estimate: m.Estimate, Low: m.Low, High: m.High, Pairs: o.Pairs, MDE90: m.MDE90, Modes: m.Modes}
	f.Status, f.Reason = statusOfTimes(o.Verdict), o.Detail
}

func statusOfTimes(v compare.Verdict) Status {
	switch v {
	case compare.Regressed:
		return Fail
	case compare.Pass, compare.Improved:
		return Pass
	}
	return Inconclusive
}

// applyTimeLimit judges a bound on the time itself: the interval must lie
// below it.
func applyTimeLimit(r Rule, c *CaseFacts, f *Finding) {
	launches, err := compare.Launches(c.Latency.Head.Record.Samples, regime(r.Metric))
	if err != nil {
		f.Reason = err.Error()
		return
	}
	o := compare.DecideAbsolute(launches, summary(r.Metric), r.Limit.Number)
	f.Status, f.Reason = statusOfTimes(o.Verdict), o.Detail
}
