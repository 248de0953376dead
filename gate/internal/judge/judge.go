// Package judge turns a plan and a ledger into a verdict. It is pure, and every
// status starts as inconclusive until evidence upgrades it. All reasons of a
// verdict are worded here.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A judge answers the questions of one plan from one ledger.
type judge struct {
	plan    plan.Plan
	ledger  *evidence.Ledger
	times   times
	bounds  map[*plan.Form]string // in words
	of      map[*plan.Subject][]plan.Question
	waivers map[*policy.Waiver]verdict.WaiverState // those that a broken rule met
}

func newJudge(p plan.Plan, l *evidence.Ledger) *judge {
	j := &judge{plan: p, ledger: l, of: make(map[*plan.Subject][]plan.Question, len(p.Subjects)), bounds: map[*plan.Form]string{}, waivers: map[*policy.Waiver]verdict.WaiverState{}}
	for from := 0; from < len(p.Questions); {
		to := from
		for to < len(p.Questions) && p.Questions[to].Subject == p.Questions[from].Subject {
			to++
		}
		j.of[p.Questions[from].Subject] = p.Questions[from:to]
		from = to
	}
	return j
}

// Judge answers every question. Deleting any evidence never improves what it
// returns, and no rule turns a failure into a pass.
func Judge(p plan.Plan, l *evidence.Ledger) (*verdict.Verdict, error) {
	j := newJudge(p, l)
	var err error
	if j.times, err = j.decideTimes(); err != nil {
		return nil, fmt.Errorf("comparing latencies: %w", err)
	}
	v := &verdict.Verdict{Schema: verdict.Schema, Policy: p.Policy.File, Tiers: p.Options.Tiers, Kernels: make([]verdict.KernelVerdict, 0, len(p.Subjects))}
	for _, s := range p.Subjects {
		v.Kernels = append(v.Kernels, j.kernel(s, j.of[s]))
	}
	v.Waivers = j.allWaivers()
	v.Counts, v.Machines = j.restsOn()
	v.Conclude()
	return v, nil
}

func (j *judge) kernel(s *plan.Subject, asked []plan.Question) verdict.KernelVerdict {
	k := verdict.KernelVerdict{Name: s.Name, File: s.File, Source: s.Source, Line: s.Line, Arch: s.Arch, State: s.State, Was: s.Was, Identity: s.Head.Identity}
	k.Findings = make([]verdict.Finding, len(asked))
	for i := range asked {
		k.Findings[i] = j.finding(&asked[i])
	}
	nameFastest(asked, k.Findings)
	if s.Head.Why != "" {
		k.Detail = s.Head.Detail
	} else if s.State != verdict.Gone {
		all := j.scenes(s, asked)
		k.Figures, k.Launches, k.Entries = j.figures(s, all), launchChanges(s, all), j.entries(s)
	}
	return k
}

// finding answers one question and applies what the policy says of the answer:
// on_missing where there is none, and a trade or a waiver where the rule is broken.
func (j *judge) finding(q *plan.Question) verdict.Finding {
	f := j.found(q)
	f.Kind, f.Entry = string(q.Kind), q.Entry
	if f, impossible := j.held(q, f); impossible {
		return f // no trade and no waiver excuses it
	}
	if q.Rule != nil && q.Kind != plan.Condition {
		f = j.traded(q, j.unanswered(q, f))
	}
	return j.waived(q, f)
}

// found answers one question.
func (j *judge) found(q *plan.Question) verdict.Finding {
	if q.Kind == plan.Settled {
		return j.settled(q)
	}
	f := verdict.Finding{Rule: q.Name, Case: q.Case, Machine: q.On, Tier: q.Tier, Severity: q.Weight}
	if q.On == "" {
		f.Machine = q.Machine
	}
	if q.Rule == nil {
		return j.correct(q, f)
	}
	f.Metric, f.Unit, f.Accepts = q.Rule.Metric.Name, q.Rule.Metric.Unit, j.accepts(q)
	if q.Kind == plan.Ratio {
		return j.ratio(q, f)
	}
	head, record := j.head(q)
	f.Head = &head
	if record != nil && record.Failure != nil {
		f.Hint, f.Tool = record.Failure.Hint, !record.Failure.Blames()
		if record.Failure.Blames() {
			// What the kernel did is red whether or not there is a base to compare with.
			f.Status, f.Reason = verdict.Fail, orElse(record.Failure.Message, "not measured")
			return f
		}
	}
	f = j.answer(q, f, record)
	f.Reason = orElse(f.Reason, "not measured")
	if head.Where() != "" && f.Status != verdict.Pass {
		f.Reason += ", in " + head.Where()
	}
	return j.withNoise(q, f)
}

// answer judges a question by its kind, once the head's record is known.
func (j *judge) answer(q *plan.Question, f verdict.Finding, head *evidence.Record) verdict.Finding {
	switch q.Kind {
	case plan.Experiment:
		return j.experiment(q, f)
	case plan.History:
		return j.history(q, f, "the policy does not run the base")
	case plan.Condition:
		return j.condition(q, f, head)
	case plan.Uncompared:
		f.Reason = j.noBase()
		return f
	}
	if !f.Head.Known() {
		f.Reason = f.Head.Missing()
		return f
	}
	if q.Kind == plan.TimeLimit {
		f.Status, f.Reason = timeLimit(q.Rule, head)
		return f
	}
	return j.exact(q, f)
}

func (j *judge) noBase() string {
	return "there is no base: " + orElse(j.plan.Options.NoBase, "nobody named one")
}

// head is the figure of a question's metric on the head's side, with the record
// it comes from.
func (j *judge) head(q *plan.Question) (evidence.Value, *evidence.Record) {
	if q.Rule.Metric.Time() {
		return j.headTime(q)
	}
	return j.value(q, q.Needs[0])
}

// value is the figure of a question's metric in one record.
func (j *judge) value(q *plan.Question, n *evidence.Need) (evidence.Value, *evidence.Record) {
	r := j.ledger.Find(n).Record
	if r == nil {
		return evidence.Absent(j.missing(q, n), q.Rule.Metric.Unit), nil
	}
	return figure(r, q), r
}

// figure refuses a figure in another unit than the metric's: a record comes
// from a file. A raw counter has the unit that the profiler gave it.
func figure(r *evidence.Record, q *plan.Question) evidence.Value {
	m := q.Rule.Metric
	if r.Failure != nil {
		return evidence.Absent(r.Failure.Message, m.Unit)
	}
	v := r.Metrics.Get(m.Name)
	if q.Entry != "" {
		v = r.Entries[q.Entry].Get(m.Name)
	}
	if !v.Known() || v.Unit() == m.Unit || strings.HasPrefix(m.Name, "ncu.raw.") {
		return v
	}
	return evidence.Absent(fmt.Sprintf("it is recorded in %s, and %s is in %s", metric.UnitName(v.Unit()), m.Name, metric.UnitName(m.Unit)), m.Unit)
}

// missing says why a question has no record.
func (j *judge) missing(q *plan.Question, n *evidence.Need) string {
	switch {
	case q.Stopped != "":
		return q.Stopped
	case n.Never != "":
		return n.Never
	}
	e := j.ledger.Find(n)
	return strings.Join(slices.Concat([]string{orElse(e.Unusable, notRecorded(q, n))}, e.Why), "; ")
}

func notRecorded(q *plan.Question, n *evidence.Need) string {
	switch {
	case n.Tier == evidence.Static:
		return "the compiler's report on this code was not read"
	case n.At.Machine == "":
		return "no evidence of this code is recorded"
	case q.Kind == plan.Ratio && n.Compares():
		return fmt.Sprintf("it was never timed beside %s on %s", q.Reference, n.At.Machine)
	case n.Compares():
		return "head and base were never timed against each other on " + n.At.Machine
	}
	return fmt.Sprintf("no %s evidence of this code is recorded on %s", n.Name(), n.At.Machine)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func blame(fault bool) verdict.Status {
	if fault {
		return verdict.Fail
	}
	return verdict.Inconclusive
}
