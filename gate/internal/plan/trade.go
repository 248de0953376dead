package plan

import (
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// trades are the rules that may take the place of another on this subject.
func (a *asker) trades(r *policy.Rule) []*policy.Rule {
	var out []*policy.Rule
	for i := range a.policy.Rules {
		if t := &a.policy.Rules[i]; t.Replaces == r.ID && a.subject.RuledAs(t) != "" {
			out = append(out, t)
		}
	}
	return out
}

// conditions asks for what a trade needs. Without a base, or with the base's own
// code, nothing can have improved, and there is no question.
func (a *asker) conditions(r *policy.Rule) []Question {
	w, s := r.When, a.subject
	if !a.replaced(r) || w.MinImprovement.Set && s.State != verdict.Changed {
		return nil
	}
	cases := []Case{{}}
	if w.Metric.Tier != evidence.Static {
		cases = nil
		for _, c := range s.Cases {
			if w.At(c.Name) && (w.Metric.Tier == evidence.Correctness || !c.CheckOnly) {
				cases = append(cases, c)
			}
		}
	}
	var out []Question
	for _, c := range cases {
		q := a.question(Form{Name: r.ID, Rule: w, Kind: Condition, Case: c.Name})
		switch {
		case !w.Metric.Time():
			asked := []need{a.figure(w, s.Head, c, evidence.Answers)}
			if w.MinImprovement.Set {
				asked = append(asked, a.figure(w, s.Base, c, evidence.Answers))
			}
			q.Needs = a.needs(asked...)
		case w.Limit.Set:
			q.Needs = a.needs(timed(a.record(evidence.Latency, s.Head, c, evidence.Answers), w))
		default:
			q.Needs = a.needs(timed(a.pair(s.Base, c, evidence.Answers), w))
			q.Test = &compare.Test{CacheState: w.Metric.CacheState, Summary: w.Metric.Summary, Bound: w.Bound}
		}
		if !a.options.asks(w.Metric.Tier) {
			q.Stopped = "not asked for: the " + string(w.Metric.Tier) + " tier was left out"
		}
		out = append(out, q)
	}
	return out
}

// replaced reports whether the rule that a trade replaces is asked of the subject.
func (a *asker) replaced(r *policy.Rule) bool {
	for i := range a.policy.Rules {
		if old := &a.policy.Rules[i]; old.ID == r.Replaces {
			return a.subject.RuledAs(old) != "" && a.options.asks(old.Metric.Tier)
		}
	}
	return false
}
