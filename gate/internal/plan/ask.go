package plan

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// An asker makes the questions of one subject. Equal needs are shared.
type asker struct {
	policy  *policy.Policy
	options Options
	subject *Subject
	shared  map[string]*evidence.Need
}

// questions are those of one subject: what is settled, correctness, which no
// policy leaves out, and every rule that names the kernel.
func (a *asker) questions() []Question {
	s := a.subject
	if s.State == verdict.Gone {
		return []Question{a.settled("present", "", verdict.Fail, "the base has this kernel and the head does not: a kernel that is gone is red until that is declared")}
	}
	if s.Head.Why != "" {
		q := a.settled("builds", "", verdict.Inconclusive, s.Head.Why)
		if q.Settled.Tool = !s.Head.Blame && !s.Head.Absent; s.Head.Blame {
			q.Settled.Status = verdict.Fail
		}
		return []Question{q}
	}
	out := a.present()
	if len(s.Cases) == 0 {
		out = append(out, a.settled("correctness", "", verdict.Inconclusive, "no case was judged"))
	}
	for _, c := range s.Cases {
		q := a.question("correctness", Correct, c.Name, nil)
		q.Tier, q.Needs = evidence.Correctness, a.needs(a.record(evidence.Correctness, s.Head, c, evidence.Answers))
		out = append(out, q)
	}
	for i := range a.policy.Rules {
		r := &a.policy.Rules[i]
		switch {
		case !r.Matches(s.Name):
		case r.Metric.Tier == evidence.Static:
			out = append(out, a.rule(r, Case{}))
		default:
			for _, c := range s.Cases {
				out = append(out, a.rule(r, c))
			}
		}
	}
	return out
}

// present asks for what the base judges and the head leaves out.
func (a *asker) present() []Question {
	var out []Question
	if a.subject.State == verdict.NoBase && !a.options.LimitsOnly {
		// Limits alone cannot pass it: the base may have had kernels that are gone.
		out = append(out, a.settled("present", "", verdict.Inconclusive, "there is no base: "+a.options.NoBase))
	}
	for _, loss := range a.subject.Lost {
		q := a.settled("present", loss.Case, verdict.Fail, loss.Reason)
		q.Entry = loss.Entry
		out = append(out, q)
	}
	return out
}

func (a *asker) question(rule string, kind Kind, name string, r *policy.Rule) Question {
	s := a.subject
	q := Question{ID: ID{Rule: rule, Kind: kind, Kernel: s.Name, Arch: s.Arch, Case: name}, Subject: s, Rule: r, Weight: verdict.Red}
	if r != nil {
		q.Weight, q.Tier = r.Severity, r.Metric.Tier
	}
	return q
}

func (a *asker) settled(rule, name string, status verdict.Status, reason string) Question {
	q := a.question(rule, Settled, name, nil)
	q.Settled = &verdict.Finding{Rule: rule, Case: name, Status: status, Severity: verdict.Red, Reason: reason}
	return q
}

// rule asks one rule of the static tier (the zero Case) or of one case.
func (a *asker) rule(r *policy.Rule, c Case) Question {
	switch {
	case r.RelativeTo != "":
		return a.ratio(r, c)
	case r.Metric.Time():
		return a.time(r, c)
	}
	q := a.question(r.ID, a.kind(r), c.Name, r)
	q.Needs = a.needs(a.figure(r, a.subject.Head, c))
	if q.Kind == Regression {
		q.Needs = a.needs(q.Needs[0], a.figure(r, a.subject.Base, c))
	}
	return q
}

// kind says how a rule on anything but a time is answered.
func (a *asker) kind(r *policy.Rule) Kind {
	if r.Limit.Set {
		return Limit
	}
	return a.comparison(Regression)
}

// comparison is the kind of a comparison with the base.
func (a *asker) comparison(changed Kind) Kind {
	switch a.subject.State {
	case verdict.Changed:
		return changed
	case verdict.Unchanged:
		return Unchanged
	}
	return Uncompared
}

// time asks a rule on a time. Advice asks for no measurement: it is read from
// what the other rules ask for.
func (a *asker) time(r *policy.Rule, c Case) Question {
	q := a.question(r.ID, a.timeKind(r), c.Name, r)
	head, base := a.subject.Head, a.subject.Base
	asked := evidence.Answers
	if r.Metric.Advice {
		asked = evidence.Shown
	}
	alone := a.record(evidence.Latency, head, c, asked)
	switch q.Kind {
	case Experiment:
		q.Needs = a.needs(a.pair(base, c, asked), a.record(evidence.Latency, head, c, evidence.Instead),
			a.record(evidence.Sessions, base, c, evidence.Instead), a.record(evidence.Latency, head, c, evidence.Shown))
	case History:
		q.Needs = a.needs(a.record(evidence.Sessions, base, c, asked), alone)
	default:
		q.Needs = a.needs(alone)
	}
	if q.Kind == Experiment || q.Kind == History {
		q.Test = &compare.Test{CacheState: r.Metric.CacheState, Summary: r.Metric.Summary, Bound: r.Bound}
	}
	if (q.Kind == Experiment || q.Kind == TimeLimit) && !r.Metric.Advice {
		for _, side := range []Side{head, base} {
			if side.Identity.Known() {
				q.Needs = append(q.Needs, a.needs(a.record(evidence.Calibration, side, c, evidence.Shown))...)
			}
		}
	}
	return q
}

func (a *asker) timeKind(r *policy.Rule) Kind {
	switch {
	case !r.Compares():
		return TimeLimit
	case a.policy.Stored:
		return a.comparison(History)
	case a.options.Force && a.subject.State == verdict.Unchanged:
		return Experiment
	}
	return a.comparison(Experiment)
}

// ratio asks a rule on the ratio to a reference's time. It holds whatever the
// base is: a new kernel is held against its reference too.
func (a *asker) ratio(r *policy.Rule, c Case) Question {
	q := a.question(r.ID, Ratio, c.Name, r)
	ref := a.subject.References[r.Reference(a.subject.Name)]
	first := a.record(evidence.Correctness, ref, c, evidence.First)
	q.Needs = a.needs(first, a.pair(ref, c, evidence.Answers), a.record(evidence.Latency, a.subject.Head, c, evidence.Shown))
	q.Test = &compare.Test{CacheState: r.Metric.CacheState, Summary: r.Metric.Summary, Bound: r.Bound}
	return q
}

// figure is the need of the record that holds a rule's metric. A record that
// lacks what one rule names is still complete for another.
func (a *asker) figure(r *policy.Rule, side Side, c Case) *evidence.Need {
	n := a.record(r.Metric.Tier, side, c, evidence.Answers)
	if r.Metric.Tier == evidence.Profile {
		n.Holds = []string{r.Metric.Name}
	}
	return n
}

// record is the need of one tier of one side.
func (a *asker) record(tier evidence.Tier, side Side, c Case, use evidence.Use) *evidence.Need {
	n := &evidence.Need{Key: evidence.Key{Tier: tier, At: a.address(side, c)}, Use: use, Never: side.Why}
	switch tier {
	case evidence.Calibration:
		n.Since, n.Until = a.options.Now.Add(-calibrationAge), a.options.Now
	case evidence.Static:
		n.At = evidence.Address{Identity: side.Identity}
	}
	return n
}

// pair is the need of an experiment of the head and another contender.
func (a *asker) pair(other Side, c Case, use evidence.Use) *evidence.Need {
	n := a.record(evidence.Latency, a.subject.Head, c, use)
	n.Base, n.Never = a.address(other, c), other.Why
	return n
}

func (a *asker) address(side Side, c Case) evidence.Address {
	return evidence.Address{Identity: side.Identity, Op: a.subject.Op, Case: c.Name, Harness: c.Harness}
}

// needs shares equal needs, since many rules ask for one record.
func (a *asker) needs(list ...*evidence.Need) []*evidence.Need {
	for i, n := range list {
		name := fmt.Sprint(n.Tier, n.Use, n.Holds, n.At, n.Base, n.Never)
		if same := a.shared[name]; same != nil {
			list[i] = same
			continue
		}
		a.shared[name] = n
	}
	return list
}
