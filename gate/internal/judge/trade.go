package judge

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// condition judges what a trade needs. A head without a figure was sorted out
// before, but for an experiment, which has its own.
func (j *judge) condition(q *plan.Question, f verdict.Finding, head *evidence.Record) verdict.Finding {
	r := q.Rule
	if q.Test != nil {
		return j.experiment(q, f)
	}
	if !f.Head.Known() {
		f.Reason = f.Head.Missing()
		return f
	}
	if r.Limit.Set {
		if f.Status, f.Reason = limit(r, f.Head.Number); r.Metric.Time() {
			f.Status, f.Reason = timeLimit(r, head)
		}
		return f
	}
	base, _ := j.value(q, q.Needs[1])
	f.Base = &base
	if !base.Known() {
		f.Reason = "the base has no figure: " + base.Missing()
		return f
	}
	f.Status, f.Reason = improvement(r, base.Number, f.Head.Number)
	return f
}

func improvement(r *policy.Rule, base, head float64) (verdict.Status, string) {
	by := base - head
	if r.Metric.Better == metric.Higher {
		by = -by
	}
	needed := r.MinImprovement.Number
	if r.MinImprovement.Unit == "%" {
		needed *= base
	}
	moved := fmt.Sprintf("%s → %s", metric.Show(base, r.Metric.Unit), metric.Show(head, r.Metric.Unit))
	if by > 0 && by >= needed {
		return verdict.Pass, "better: " + moved
	}
	return verdict.Fail, fmt.Sprintf("%s is not an improvement of %s", moved, r.MinImprovement.Text)
}

// traded lets a trade take the place of a rule that is broken: where the figure
// is within the trade's own bound, and either its condition holds or the figure
// is no worse than the base's, for which the trade was made before.
func (j *judge) traded(q *plan.Question, f verdict.Finding) verdict.Finding {
	if f.Status != verdict.Fail || f.Head == nil || !f.Head.Known() {
		return f
	}
	for _, t := range q.Trades {
		base := j.base(q)
		status, why := within(t, base, f.Head.Number)
		if status == verdict.Pass {
			status, why = j.paid(q, t, base, f)
		}
		switch status {
		case verdict.Pass:
			f.Status, f.Trade, f.Reason = verdict.Pass, t.ID, fmt.Sprintf("%s; traded by %s: %s", f.Reason, t.ID, why)
			return f
		case verdict.Inconclusive:
			f.Status = verdict.Inconclusive
		}
		f.Reason += fmt.Sprintf("; not traded by %s: %s", t.ID, why)
	}
	return f
}

// base is the base's figure where the question knows it.
func (j *judge) base(q *plan.Question) evidence.Value {
	if len(q.Needs) > 1 {
		v, _ := j.value(q, q.Needs[1])
		return v
	}
	return evidence.Absent("there is no base", q.Rule.Metric.Unit)
}

// within holds a figure to the bounds of a trade.
func within(t *policy.Rule, base evidence.Value, head float64) (verdict.Status, string) {
	if t.Limit.Set {
		if status, why := limit(t, head); status != verdict.Pass {
			return status, why
		}
	}
	if !t.MaxRegression.Set {
		return verdict.Pass, ""
	}
	if !base.Known() {
		return verdict.Inconclusive, "the base has no figure: " + base.Missing()
	}
	return worsening(t, base.Number, head)
}

// paid says whether what a trade asks for was given.
func (j *judge) paid(q *plan.Question, t *policy.Rule, base evidence.Value, f verdict.Finding) (verdict.Status, string) {
	if base.Known() && noWorse(t.Metric, base.Number, f.Head.Number) {
		return verdict.Pass, "the base has as much"
	}
	status, why := verdict.Fail, "the trade has no base to compare with"
	asked := j.of[q.Subject]
	for i := range asked {
		c := &asked[i]
		if c.Kind != plan.Condition || c.Name != t.ID {
			continue
		}
		g := j.found(c)
		switch {
		case g.Status == verdict.Fail:
			return verdict.Fail, fmt.Sprintf("%s %s: %s", g.Metric, g.Accepts, g.Reason)
		case g.Status != verdict.Pass:
			status, why = verdict.Inconclusive, fmt.Sprintf("%s %s: %s", g.Metric, g.Accepts, g.Reason)
		case status == verdict.Fail:
			status, why = verdict.Pass, fmt.Sprintf("%s %s: %s", g.Metric, g.Accepts, g.Reason)
		}
	}
	return status, why
}

func noWorse(m metric.Metric, base, head float64) bool {
	switch m.Better {
	case metric.Lower:
		return head <= base
	case metric.Higher:
		return head >= base
	}
	return head == base
}

// unneeded reports whether nothing waits for a condition: every question of the
// rule that its trade replaces is answered, and none is broken, or is within the
// trade's bounds.
func (j *judge) unneeded(q *plan.Question) bool {
	asked := j.of[q.Subject]
	for i := range asked {
		old := &asked[i]
		for _, t := range old.Trades {
			if t.ID != q.Name {
				continue
			}
			f := j.found(old)
			if f.Status == verdict.Pass || f.Status == verdict.NotCompared {
				continue
			}
			if f.Status != verdict.Fail || f.Head == nil || !f.Head.Known() {
				return false
			}
			base := j.base(old)
			if status, _ := within(t, base, f.Head.Number); status != verdict.Fail && !(base.Known() && noWorse(t.Metric, base.Number, f.Head.Number)) {
				return false
			}
		}
	}
	return true
}
