package selftest

import (
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// answers reports whether evidence can change the answer of a question of a
// rule.
func answers(q *plan.Question) bool {
	switch q.Kind {
	case plan.Settled, plan.Unchanged, plan.Uncompared, plan.Fresh, plan.Condition:
		return false
	}
	return q.Rule != nil && len(q.Needs) > 0 && q.Needs[0].Never == ""
}

// ruleKinds are the kinds of question that a rule asks of the kernel.
func (b *bench) ruleKinds(r *policy.Rule) []*plan.Question {
	var out []*plan.Question
	seen := map[plan.Kind]bool{}
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Rule == r && answers(q) && !seen[q.Kind] {
			seen[q.Kind] = true
			out = append(out, q)
		}
	}
	return out
}

// violate plants a violation of one question into a ledger.
func (b *bench) violate(q *plan.Question, l *evidence.Ledger) {
	r := q.Rule
	switch q.Kind {
	case plan.Experiment, plan.Ratio:
		for _, n := range q.Needs {
			if n.Compares() {
				edit(l, n, func(x *evidence.Record) { x.Experiment = b.experiment(b.slower(r)) })
			}
		}
	case plan.History, plan.TimeLimit:
		for _, n := range q.Needs {
			if n.Tier == evidence.Latency && !n.Compares() {
				edit(l, n, func(x *evidence.Record) {
					x.Samples = b.samples(16, b.slower(r)*b.time)
					x.Metrics[r.Metric.Name] = evidence.Of(b.slower(r)*b.time, r.Metric.Unit)
				})
			}
		}
	default:
		edit(l, q.Needs[0], func(x *evidence.Record) { setFigure(x, q, b.worse(q, l)) })
	}
}

// slower is a share of the base's time, or of the reference's, that the rule
// does not accept.
func (b *bench) slower(r *policy.Rule) float64 {
	switch {
	case r.Beside():
		return 2 * r.Limit.Number
	case r.Limit.Set && !r.MaxRegression.Set:
		return 2 * r.Limit.Number / b.time
	}
	return 1.5 + 4*r.MaxRegression.Number + 4*r.Floor.Number/b.time
}

// worse is a figure that the rule does not accept.
func (b *bench) worse(q *plan.Question, l *evidence.Ledger) float64 {
	r, base := q.Rule, 0.0
	if v := figureOf(l.Find(q.Needs[len(q.Needs)-1]).Record, q); v.Known() {
		base = v.Number
	}
	if q.Kind == plan.Limit {
		if r.Metric.Better == metric.Higher {
			return r.Limit.InPercent() / 2
		}
		return 2*r.Limit.InPercent() + 1
	}
	step := 1 + 2*r.Floor.Number + 2*r.MaxRegression.Number
	if r.MaxRegression.Unit == "%" {
		step += 2 * r.MaxRegression.Number * base
	}
	if r.Metric.Better == metric.Higher {
		return base - step
	}
	return base + step
}

func figureOf(r *evidence.Record, q *plan.Question) evidence.Value {
	switch {
	case r == nil:
		return evidence.Absent("", "")
	case q.Entry != "":
		return r.Entries[q.Entry].Get(q.Rule.Metric.Name)
	}
	return r.Metrics.Get(q.Rule.Metric.Name)
}

func setFigure(r *evidence.Record, q *plan.Question, x float64) {
	v := evidence.Of(x, q.Rule.Metric.Unit)
	if q.Entry != "" {
		r.Entries[q.Entry][q.Rule.Metric.Name] = v
		return
	}
	r.Metrics[q.Rule.Metric.Name] = v
}

// edit replaces a record by a changed copy.
func edit(l *evidence.Ledger, n *evidence.Need, change func(*evidence.Record)) {
	e := l.Find(n)
	if e.Record == nil {
		return
	}
	r := clone(e.Record)
	change(r)
	l.Put(r, evidence.Reused)
}

// of is the worst status of a rule's findings.
func of(v *verdict.Verdict, rule string) (worst verdict.Finding) {
	worst.Status = verdict.Pass
	rank := map[verdict.Status]int{verdict.Inconclusive: 1, verdict.Warn: 2, verdict.Fail: 3}
	for _, k := range v.Kernels {
		for _, f := range k.Findings {
			if f.Rule == rule && rank[f.Status] > rank[worst.Status] {
				worst = f
			}
		}
	}
	return worst
}
