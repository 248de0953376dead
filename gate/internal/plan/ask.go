package plan

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Kind says how a question is answered. It is part of the question's
// identity, and judging derives nothing again.
type Kind string

// The kinds. No evidence can change a Settled question. Uncompared is a
// comparison without a base, Fresh one of what the base does not have, Unchanged
// one with the base's own code. A Condition is that of a trade.
const (
	Settled    Kind = "settled"
	Correct    Kind = "correct"
	Limit      Kind = "limit"
	Regression Kind = "regression"
	Unchanged  Kind = "unchanged"
	Uncompared Kind = "uncompared"
	Fresh      Kind = "new"
	TimeLimit  Kind = "time limit"
	Experiment Kind = "experiment" // base and head in one run
	History    Kind = "history"    // the head against stored sessions of the base
	Ratio      Kind = "ratio"      // the head and a reference in one run
	Condition  Kind = "condition"
)

// An asker makes the questions of one subject. Equal needs are shared.
type asker struct {
	policy        *policy.Policy
	options       Options
	recent, young *evidence.Window // of calibrations, and of what the policy bounds
	subject       *Subject
	at            place
	forms         map[Form]*Form
	needed        map[need]*evidence.Need
	wanted        map[evidence.Wanted]*evidence.Wanted
	keys          map[evidence.Key]*evidence.Key
}

// questions adds those of the subject on one machine: what is settled,
// correctness, which no policy leaves out, and every rule that names the kernel.
func (a *asker) questions(out []Question, at place) []Question {
	s := a.subject
	a.at = at
	clear(a.needed)
	clear(a.wanted)
	clear(a.keys)
	if s.State == verdict.Gone {
		return append(out, a.gone(Loss{Cause: GoneKernel, Declared: s.Retired}))
	}
	if s.Head.Why != "" {
		return append(out, a.settled("builds", NotBuilt))
	}
	first := len(out)
	out = append(append(out, a.present()...), a.correctness()...)
	for i := range a.policy.Rules {
		r := &a.policy.Rules[i]
		switch {
		case s.RuledAs(r) == "":
		case r.Replaces != "":
			out = append(out, a.conditions(r)...)
		case a.options.asks(r.Metric.Tier):
			out = a.rule(out, r)
		}
	}
	judged := false
	for i := first; i < len(out); i++ {
		judged = judged || out[i].Kind != Settled && out[i].Kind != Condition
	}
	if !judged {
		out = append(out, a.settled("builds", NotJudged))
	}
	for i := first; i < len(out); i++ {
		out[i].Waiver = a.waiver(out[i].Name)
	}
	return out
}

// waiver is that of a rule and this kernel.
func (a *asker) waiver(rule string) *policy.Waiver {
	for i := range a.policy.Waivers {
		if w := &a.policy.Waivers[i]; w.Rule == rule && w.Kernel == a.subject.Name {
			return w
		}
	}
	return nil
}

// correctness asks about every case, whatever the policy says.
func (a *asker) correctness() []Question {
	s := a.subject
	if !a.options.asks(evidence.Correctness) {
		return nil
	}
	if len(s.Cases) == 0 {
		return []Question{a.settled("correctness", NoCase)}
	}
	var out []Question
	for _, c := range s.Cases {
		q := a.question(Form{Name: "correctness", Kind: Correct, Case: c.Name, Tier: evidence.Correctness})
		q.Needs = a.needs(a.record(evidence.Correctness, s.Head, c, evidence.Answers))
		out = append(out, q)
	}
	return out
}

// present asks for what the base judges and the head leaves out, and for what
// the base does not judge.
func (a *asker) present() []Question {
	var out []Question
	if a.subject.State == verdict.NoBase && !a.options.LimitsOnly {
		// Limits alone cannot pass it: the base may have had kernels that are gone.
		out = append(out, a.settled(policy.Present, NoBase))
	}
	for _, loss := range a.subject.Lost {
		out = append(out, a.gone(loss))
	}
	if a.subject.NewOp != nil {
		out = append(out, a.settled("op", NewOp))
	}
	return out
}

// gone is the question of what the base has and the head does not.
func (a *asker) gone(l Loss) Question {
	q := a.question(Form{Name: policy.Present, Kind: Settled, Cause: l.Cause, Case: l.Case, Entry: l.Entry})
	q.Loss, q.Waiver = &l, a.waiver(policy.Present)
	return q
}

// question is one of the subject. Equal forms are shared.
func (a *asker) question(f Form) Question {
	if f.Weight = verdict.Red; f.Rule != nil {
		f.Weight, f.Tier = f.Rule.Severity, f.Rule.Metric.Tier
	}
	if f.ofMachine() {
		f.Machine, f.On = a.at.name, a.at.key
	}
	return Question{Form: shared(a.forms, f), Subject: a.subject}
}

// settled is a question whose answer no evidence can change.
func (a *asker) settled(rule string, why Cause) Question {
	return a.question(Form{Name: rule, Kind: Settled, Cause: why})
}

// rule asks one rule about everything that it selects of the subject.
func (a *asker) rule(out []Question, r *policy.Rule) []Question {
	switch {
	case r.Metric.Tier != evidence.Static:
		for _, c := range a.subject.Cases {
			if r.At(c.Name) && (r.Metric.Tier == evidence.Correctness || !c.CheckOnly) {
				out = a.about(out, r, c, nil)
			}
		}
	case len(r.Entries) == 0:
		return a.about(out, r, Case{}, nil)
	}
	for i := range a.subject.Head.Entries {
		if e := &a.subject.Head.Entries[i]; r.Of(*e) {
			out = a.about(out, r, Case{}, e)
		}
	}
	return out
}

// about asks a rule of the static tier (the zero Case), of one __global__
// function, or of one case: a question for its limit, and one for its comparison.
func (a *asker) about(out []Question, r *policy.Rule, c Case, e *policy.Entry) []Question {
	for _, reference := range r.References(a.subject.RuledAs(r)) {
		out = append(out, a.ratio(r, c, reference))
	}
	if r.Beside() {
		return out
	}
	if r.Limit.Set {
		out = append(out, a.one(r, a.limit(r), c, e))
	}
	if r.Compares() {
		out = append(out, a.one(r, a.compares(r, e), c, e))
	}
	return out
}

func (a *asker) one(r *policy.Rule, kind Kind, c Case, e *policy.Entry) Question {
	f := Form{Name: r.ID, Rule: r, Kind: kind, Case: c.Name}
	if e != nil {
		f.Entry = e.Name
	}
	q := a.question(f)
	if r.Metric.Time() {
		return a.time(q, c)
	}
	q.Trades = a.trades(r)
	head := a.figure(r, a.subject.Head, c, evidence.Answers)
	switch {
	case q.Kind == Regression:
		q.Needs = a.needs(head, a.figure(r, a.subject.Base, c, evidence.Answers))
	case len(q.Trades) > 0 && a.subject.Base.Identity.Known():
		q.Needs = a.needs(head, a.figure(r, a.subject.Base, c, evidence.Shown))
	default:
		q.Needs = a.needs(head)
	}
	return q
}

func (a *asker) limit(r *policy.Rule) Kind {
	if r.Metric.Time() {
		return TimeLimit
	}
	return Limit
}

// compares is the kind of a rule's comparison with the base.
func (a *asker) compares(r *policy.Rule, e *policy.Entry) Kind {
	s := a.subject
	switch {
	case e != nil && s.State == verdict.Changed && s.Base.Why == "" && !slices.Contains(s.Base.Entries, *e):
		return Fresh
	case !r.Metric.Time():
		return a.comparison(Regression)
	case a.policy.Stored:
		return a.comparison(History)
	case a.options.Force && s.State == verdict.Unchanged:
		return Experiment
	}
	return a.comparison(Experiment)
}

// comparison is the kind of a comparison with the base.
func (a *asker) comparison(changed Kind) Kind {
	switch a.subject.State {
	case verdict.Changed:
		return changed
	case verdict.Unchanged:
		return Unchanged
	case verdict.New:
		return Fresh
	}
	return Uncompared
}

// time completes a question about a time. One that compares and has no say asks
// for no measurement: it is read from what the other rules ask for.
func (a *asker) time(q Question, c Case) Question {
	r := q.Rule
	head, base := a.subject.Head, a.subject.Base
	asked := evidence.Answers
	if r.Metric.Advice || r.Severity == verdict.Info && q.Kind != TimeLimit {
		asked = evidence.Shown
	}
	alone := timed(a.record(evidence.Latency, head, c, asked), r)
	switch q.Kind {
	case Experiment:
		q.Needs = a.needs(timed(a.pair(base, c, asked), r), timed(a.record(evidence.Latency, head, c, evidence.Instead), r),
			a.record(evidence.Sessions, base, c, evidence.Instead), timed(a.record(evidence.Latency, head, c, evidence.Shown), r))
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

// timed is a need of a record of the state of the caches that a rule is about: a
// process times only the states that are asked for.
func timed(n need, r *policy.Rule) need {
	n.State = r.Metric.CacheState
	return n
}

// ratio asks a rule on the ratio to a reference's time. It holds whatever the
// base is: a new kernel is held against its reference too. A limit holds beside
// the fastest of several references where it holds beside each, so each is asked
// about, and one that is missing leaves the rule open.
func (a *asker) ratio(r *policy.Rule, c Case, reference string) Question {
	q := a.question(Form{Name: r.ID, Rule: r, Kind: Ratio, Case: c.Name, Reference: reference})
	ref := a.subject.References[reference]
	first := a.record(evidence.Correctness, ref, c, evidence.First)
	q.Needs = a.needs(first, timed(a.pair(ref, c, evidence.Answers), r), timed(a.record(evidence.Latency, a.subject.Head, c, evidence.Shown), r))
	q.Test = &compare.Test{CacheState: r.Metric.CacheState, Summary: r.Metric.Summary, Bound: r.Bound}
	return q
}

// figure is the need of the record that holds a rule's metric. A record that
// lacks what one rule names is still complete for another.
func (a *asker) figure(r *policy.Rule, side Side, c Case, use evidence.Use) need {
	if tool := r.Metric.Tool(); tool != "" {
		return a.need(evidence.Key{Tier: r.Metric.Tier, Tool: tool, At: a.address(side, c)}, use, side.Why)
	}
	n := a.record(r.Metric.Tier, side, c, use)
	if r.Metric.Tier == evidence.Profile {
		n.holds = r.Metric.Name
	}
	return n
}

// record is the need of one tier of one side.
func (a *asker) record(tier evidence.Tier, side Side, c Case, use evidence.Use) need {
	k := evidence.Key{Tier: tier, At: a.address(side, c)}
	if tier == evidence.Static {
		k.At = evidence.Address{Identity: side.Identity}
	}
	return a.need(k, use, side.Why)
}

// pair is the need of an experiment of the head and another contender.
func (a *asker) pair(other Side, c Case, use evidence.Use) need {
	return a.need(evidence.Key{Tier: evidence.Latency, At: a.address(a.subject.Head, c), Base: a.address(other, c)}, use, other.Why)
}

// need is that of a record, which may not be older than the policy has it.
func (a *asker) need(k evidence.Key, use evidence.Use, never string) need {
	n := need{Wanted: evidence.Wanted{Key: shared(a.keys, k), Use: use, Never: never}}
	switch k.Tier {
	case evidence.Static, evidence.Sessions: // a history is old by its nature
	case evidence.Calibration:
		n.Dated = a.recent
	default:
		n.Dated = a.young
	}
	return n
}

func (a *asker) address(side Side, c Case) evidence.Address {
	return evidence.Address{Identity: side.Identity, Op: a.subject.Op, Case: c.Name, Harness: c.Harness, Machine: a.at.key}
}

// A need is one that may be shared: many rules ask for one record.
type need struct {
	evidence.Wanted
	holds string
}

func (a *asker) needs(list ...need) []*evidence.Need {
	out := make([]*evidence.Need, len(list))
	for i, n := range list {
		if out[i] = a.needed[n]; out[i] == nil {
			out[i] = &evidence.Need{Wanted: shared(a.wanted, n.Wanted), Holds: n.holds}
			a.needed[n] = out[i]
		}
	}
	return out
}

// shared is the one copy of a value that all hold who ask for it.
func shared[T comparable](known map[T]*T, x T) *T {
	p := known[x]
	if p == nil {
		own := x // the parameter itself would be allocated at every call
		p, known[x] = &own, &own
	}
	return p
}
