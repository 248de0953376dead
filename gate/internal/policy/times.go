package policy

import (
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

func isLatency(m Metric) bool { return m.Tier == evidence.Latency }

// regime is the name that the harness gives to the state of the caches.
func regime(m Metric) string {
	if strings.HasPrefix(m.Name, "latency.cold_") {
		return "cold"
	}
	return "warm"
}

func summary(m Metric) compare.Metric {
	if strings.HasSuffix(m.Name, "mean") {
		return compare.Mean
	}
	return compare.Typical
}

func experimentName(r Rule, k *KernelFacts, c *CaseFacts) string {
	return strings.Join([]string{r.ID, k.Name, k.Arch, c.Name, c.Machine}, "\x00")
}

// A Trial is one question that a rule asks of the times of a kernel and case.
type Trial struct {
	Name   string
	Rule   string
	Regime string
	Metric compare.Metric
	Limits func(base float64) (compare.Limits, error)
}

// Trials are the questions that the policy asks of a case whose head is timed
// against its base.
func (p *Policy) Trials(k *KernelFacts, c *CaseFacts) []Trial {
	var out []Trial
	for _, r := range p.Rules {
		if !isLatency(r.Metric) || !r.MaxRegression.Set || !r.Matches(k.Name) || !k.timed() {
			continue
		}
		out = append(out, Trial{Name: experimentName(r, k, c), Rule: r.ID, Regime: regime(r.Metric), Metric: summary(r.Metric),
			Limits: func(base float64) (compare.Limits, error) { return p.timeLimits(r, base) }})
	}
	return out
}

// timeLimits turns a rule into a tolerance and an effect to be found; base is
// the base's time in ns.
func (p *Policy) timeLimits(r Rule, base float64) (compare.Limits, error) {
	limits, err := compare.MaxRegression(p.Limits, r.MaxRegression.Number)
	if err != nil || !r.Floor.Set {
		return limits, err
	}
	return limits.WithFloor(r.Floor.Number, base)
}

// decideTimes puts every latency question of the change to the test at once,
// because the error rate is that of the whole change and not of one kernel.
//
// A record that holds no comparison leaves its own question open, by its name
// in unread, and not those of the others.
func decideTimes(p *Policy, f Facts) (decided map[string]compare.Outcome, unread map[string]string, err error) {
	var experiments []compare.Experiment
	decided, unread = map[string]compare.Outcome{}, map[string]string{}
	for i := range f.Kernels {
		k := &f.Kernels[i]
		for j := range k.Cases {
			c := &k.Cases[j]
			record := c.Latency.Experiment.Record
			if record == nil || record.Experiment == nil || record.Failure != nil {
				continue
			}
			for _, t := range p.Trials(k, c) {
				e, err := t.experiment(record.Experiment)
				if err != nil {
					unread[t.Name] = "the experiment cannot be judged: " + err.Error()
					continue
				}
				experiments = append(experiments, e)
			}
		}
	}
	if len(experiments) == 0 {
		return decided, unread, nil
	}
	outcomes, err := compare.Decide(experiments, compare.SequentialPlan())
	if err != nil {
		return nil, nil, err
	}
	for _, o := range outcomes {
		decided[o.Name] = o
	}
	return decided, unread, nil
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
		if !j.kernel.Forced {
			j.unchangedTime(f)
			return
		}
	}
	arm := c.Latency.Experiment
	if arm.Record == nil {
		f.Reason = arm.Missing
		return
	}
	if fail := arm.Record.Failure; fail != nil {
		f.Status, f.Reason, f.Tool = blame(fail.Blames()), fail.Message, !fail.Blames()
		return
	}
	name := experimentName(r, j.kernel, c)
	if why := j.unread[name]; why != "" {
		f.Reason = why
		return
	}
	o, ok := j.times[name]
	if !ok || len(o.Metrics) == 0 {
		f.Reason = "the experiment holds no comparison"
		return
	}
	timeFinding(f, o)
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
	f.Interval = &Interval{Estimate: m.Estimate, Low: m.Low, High: m.High, Pairs: o.Pairs, MDE90: m.MDE90}
	f.Reason = o.Detail
	switch o.Verdict {
	case compare.Regressed:
		f.Status = Fail
	case compare.Pass, compare.Improved:
		f.Status = Pass
	}
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
	f.Reason = o.Detail
	switch o.Verdict {
	case compare.Regressed:
		f.Status = Fail
	case compare.Pass, compare.Improved:
		f.Status = Pass
	}
}
