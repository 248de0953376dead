package policy

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// when is the condition of a trade: exactly one amount.
type when struct {
	Metric         string `yaml:"metric"`
	MinImprovement Amount `yaml:"min_improvement"`
	Limit          Amount `yaml:"limit"`
}

// trade reads the condition on which a rule takes the place of another. It is a
// rule itself, and one that is never red.
func (c checker) trade(in rule, r *Rule, at string) error {
	key := func(k string) string { return at + "." + k }
	if in.Replaces == "" && in.When == nil {
		return nil
	}
	if in.Replaces == "" || in.When == nil {
		return c.bad(at, "replaces: spills, when: {metric: latency.typical, min_improvement: 3%}", "rule %q: replaces and when go together", r.ID)
	}
	if in.Severity != "" || r.Gain.Set || len(r.Entries) > 0 || r.RelativeTo != nil || in.OnMissing+in.OnUndecided != "" {
		return c.bad(at, "", "rule %q: a trade has the severity, the entries and the rest of the rule that it replaces", r.ID)
	}
	m, err := c.metric(in.When.Metric, key("when.metric"), r.ID)
	if err != nil {
		return err
	}
	w := &Rule{ID: r.ID, Metric: m, Limit: in.When.Limit, MinImprovement: in.When.MinImprovement, Kernels: r.Kernels, Arch: r.Arch, Cases: r.Cases,
		Severity: verdict.Info, Line: r.Line}
	if err := c.condition(w, func(k string) string { return key("when." + k) }); err != nil {
		return err
	}
	r.Replaces, r.When = in.Replaces, w
	return nil
}

func (c checker) condition(w *Rule, key func(string) string) error {
	m, gain := w.Metric, w.MinImprovement
	switch {
	case w.Limit.Set == gain.Set:
		return c.bad(key("metric"), "when: {metric: latency.typical, min_improvement: 3%}", "rule %q: when needs either min_improvement or limit", w.ID)
	case m.Advice || m.Tier == evidence.Correctness:
		return c.bad(key("metric"), "", "rule %q: %s pays for nothing", w.ID, m.Name)
	case len(w.Cases) > 0 && m.Tier == evidence.Static:
		return c.bad(key("metric"), "", "rule %q: %s does not depend on a case", w.ID, m.Name)
	case m.Better == metric.Neither:
		return c.bad(key("metric"), "", "rule %q: %s has no better direction, so it cannot improve", w.ID, m.Name)
	case w.Limit.Set && !sameUnit(w.Limit, m):
		return c.bad(key("limit"), "", "rule %q: a limit of %s does not fit %s, which is in %s", w.ID, w.Limit.Text, m.Name, metric.UnitName(m.Unit))
	case gain.Set && gain.Number == 0:
		return c.bad(key("min_improvement"), "", "rule %q: min_improvement needs an amount above 0", w.ID)
	case gain.Set && gain.Unit != "%" && (m.Time() || !sameUnit(gain, m)):
		return c.bad(key("min_improvement"), "3%", "rule %q: min_improvement of %s does not fit %s", w.ID, gain.Text, m.Name)
	}
	if !m.Time() || w.Limit.Set {
		return nil
	}
	var err error // an improvement of 3 % is a ratio of 0.97 to the base's time
	if w.Bound.Limits, err = compare.ReferenceLimits(1 - gain.Number); err != nil {
		return c.bad(key("min_improvement"), "3%", "rule %q: %s cannot be an improvement of a time", w.ID, gain.Text)
	}
	return nil
}

// trades checks what trades replace, once all rules are known.
func (c checker) trades(p *Policy) error {
	for i, r := range p.Rules {
		if r.Replaces == "" {
			continue
		}
		key := fmt.Sprintf("rules[%d].replaces", i)
		at := slices.IndexFunc(p.Rules, func(x Rule) bool { return x.ID == r.Replaces })
		if at < 0 {
			return c.bad(key, c.nearRule(p, r.Replaces), "rule %q: unknown rule %q: there is nothing to replace", r.ID, r.Replaces)
		}
		switch old := p.Rules[at]; {
		case old.Replaces != "":
			return c.bad(key, "", "rule %q: %q is a trade itself", r.ID, old.ID)
		case old.Metric.Name != r.Metric.Name:
			return c.bad(key, "", "rule %q: a trade is on the metric of the rule that it replaces, %s", r.ID, old.Metric.Name)
		case old.Metric.Time() || old.Metric.Tier == evidence.Correctness:
			return c.bad(key, "", "rule %q: %s is not for trade", r.ID, old.Metric.Name)
		}
		if r.When.Metric.Time() && r.When.MinImprovement.Set && p.Stored {
			return c.bad(key, "", "rule %q: an improvement of a time is proven beside the base, which latency.base: stored does not run", r.ID)
		}
	}
	return nil
}
