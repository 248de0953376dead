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

// decideTimes puts every latency question of the change to the test at once,
// because the error rate is that of the whole change and not of one kernel.
func decideTimes(p *Policy, f Facts) (map[string]compare.Outcome, error) {
	var experiments []compare.Experiment
	blocks := 0
	for _, r := range p.Rules {
		if !isLatency(r.Metric) || !r.MaxRegression.Set {
			continue
		}
		for i := range f.Kernels {
			k := &f.Kernels[i]
			for j := range k.Cases {
				e, ok, err := experimentOf(p, r, k, &k.Cases[j])
				if err != nil {
					return nil, err
				}
				if ok {
					experiments = append(experiments, e)
					blocks = max(blocks, len(e.Blocks))
				}
			}
		}
	}
	if len(experiments) == 0 {
		return nil, nil
	}
	plan, err := compare.FixedPlan(max(blocks, PlannedBlocks))
	if err != nil {
		return nil, err
	}
	outcomes, err := compare.Decide(experiments, plan)
	if err != nil {
		return nil, err
	}
	byName := map[string]compare.Outcome{}
	for _, o := range outcomes {
		byName[o.Name] = o
	}
	return byName, nil
}

// timed reports whether head and base are timed against each other.
func (k *KernelFacts) timed() bool {
	return k.State == Changed || k.Forced && k.State == Unchanged
}

// PlannedBlocks is how many blocks of 4 + 4 launches a latency experiment
// runs: 12 pairs can be red among up to 343 comparisons.
const PlannedBlocks = 3

func experimentOf(p *Policy, r Rule, k *KernelFacts, c *CaseFacts) (compare.Experiment, bool, error) {
	record := c.Latency.Experiment.Record
	if !r.Matches(k.Name) || !k.timed() || record == nil || record.Experiment == nil || record.Failure != nil {
		return compare.Experiment{}, false, nil
	}
	blocks, err := Blocks(record.Experiment, regime(r.Metric))
	if err != nil {
		return compare.Experiment{}, false, fmt.Errorf("%s, %s: %w", k.Name, c.Name, err)
	}
	limits, err := compare.MaxRegression(p.Limits, r.MaxRegression.Number)
	if err != nil {
		return compare.Experiment{}, false, err
	}
	if base := baseTime(blocks, summary(r.Metric)); r.Floor.Set && base > 0 {
		if limits, err = limits.WithFloor(r.Floor.Number, base); err != nil {
			return compare.Experiment{}, false, err
		}
	}
	return compare.Experiment{Name: experimentName(r, k, c), Limits: limits, Blocks: blocks,
		Metrics: []compare.Metric{summary(r.Metric)}}, true, nil
}

// Blocks summarises the launches of one regime.
func Blocks(e *evidence.Experiment, regime string) ([]compare.Block, error) {
	var blocks []compare.Block
	for n, b := range e.Blocks {
		var out compare.Block
		for _, side := range []struct {
			from []evidence.Sample
			to   *[4]compare.Launch
		}{{b.Base, &out.Base}, {b.Head, &out.Head}} {
			launches, err := Summaries(side.from, regime)
			if err != nil {
				return nil, fmt.Errorf("block %d: %w", n+1, err)
			}
			if len(launches) != len(side.to) {
				return nil, fmt.Errorf("block %d has %d launches of one arm, not %d", n+1, len(launches), len(side.to))
			}
			copy(side.to[:], launches)
		}
		blocks = append(blocks, out)
	}
	return blocks, nil
}

// Summaries are the launches of one regime, in the order measured.
func Summaries(samples []evidence.Sample, regime string) ([]compare.Launch, error) {
	var launches []compare.Launch
	for _, s := range samples {
		if s.Regime != regime {
			continue
		}
		l, err := compare.Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		launches = append(launches, l)
	}
	return launches, nil
}

func baseTime(blocks []compare.Block, m compare.Metric) float64 {
	var launches []compare.Launch
	for _, b := range blocks {
		launches = append(launches, b.Base[:]...)
	}
	s, err := compare.SummarizeArm(launches, m)
	if err != nil {
		return 0
	}
	return s.Median
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
	o, ok := j.times[experimentName(r, j.kernel, c)]
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
	launches, err := Summaries(c.Latency.Head.Record.Samples, regime(r.Metric))
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
