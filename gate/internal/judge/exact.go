package judge

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// exact answers a question by figures that are compared as they are.
func (j *judge) exact(q *plan.Question, f verdict.Finding) verdict.Finding {
	switch q.Kind {
	case plan.Unchanged:
		base := *f.Head
		f.Base, f.Status, f.Reason = &base, verdict.Pass, "unchanged code"
	case plan.Fresh:
		f.Status, f.Reason = verdict.NotCompared, "the "+isNew(q)+" is new: there is nothing to compare with"
	case plan.Limit:
		f.Status, f.Reason = limit(q.Rule, f.Head.Number)
	case plan.Regression:
		f = j.regression(q, f)
	}
	return f
}

// accepts says what the rule of a question lets pass.
func (j *judge) accepts(q *plan.Question) string {
	if q.Kind == plan.Ratio {
		return "limit " + q.Rule.Limit.Text + " of " + strings.TrimPrefix(q.Reference, path.Dir(q.Subject.Name)+"/")
	}
	text, known := j.bounds[q.Form]
	if !known {
		text = j.bound(q)
		j.bounds[q.Form] = text
	}
	return text
}

func (j *judge) bound(q *plan.Question) string {
	r := q.Rule
	switch {
	case q.Kind == plan.Condition && r.MinImprovement.Set:
		return "min_improvement " + r.MinImprovement.Text
	case q.Kind == plan.Limit || q.Kind == plan.TimeLimit || q.Kind == plan.Condition:
		return "limit " + r.Limit.Text
	}
	text := "max_regression " + r.MaxRegression.Text
	if !r.MaxRegression.Set {
		text = fmt.Sprintf("detect %g%%", policy.Amount{Number: j.plan.Policy.Limits.Detect, Unit: "%"}.InPercent())
	}
	if r.Floor.Set {
		text += ", floor " + r.Floor.Text
	}
	return text
}

func isNew(q *plan.Question) string {
	if q.Entry != "" && q.Subject.State != verdict.New {
		return "function"
	}
	return "kernel"
}

// limit judges a bound on the head's own figure.
func limit(r *policy.Rule, head float64) (verdict.Status, string) {
	most := r.Limit.InPercent()
	broken, word := head > most, "above"
	if r.Metric.Better == metric.Higher {
		broken, word = head < most, "below"
	}
	if broken {
		return verdict.Fail, fmt.Sprintf("%s is %s the limit of %s", metric.Show(head, r.Metric.Unit), word, metric.Show(most, r.Metric.Unit))
	}
	return verdict.Pass, "within the limit"
}

// regression compares an exact or a counted quantity with the base's.
func (j *judge) regression(q *plan.Question, f verdict.Finding) verdict.Finding {
	base, record := j.value(q, q.Needs[1])
	f.Base = &base
	if record != nil && record.Failure != nil {
		f.Tool, f.Hint = !record.Failure.Blames(), record.Failure.Hint
	}
	if !base.Known() {
		f.Reason = "the base has no figure: " + base.Missing()
		return f
	}
	f.Status, f.Reason = worsening(q.Rule, base.Number, f.Head.Number)
	if by := gain(q.Rule, base.Number, f.Head.Number); f.Status == verdict.Pass && by > q.Rule.Gain.Number && q.Rule.Gain.Set {
		f = tooGood(q, f)
	}
	return f
}

// tooGood asks why a figure got so much better: a measurement of nothing looks
// like that as well.
func tooGood(q *plan.Question, f verdict.Finding) verdict.Finding {
	f.Status, f.Gain = verdict.Inconclusive, true
	f.Reason += fmt.Sprintf("; a gain of more than %s needs an explanation: a waiver of this rule says that it is meant", q.Rule.Gain.Text)
	return f
}

// gain is how much better the head is, in the unit of the rule's unexplained_gain.
// A share of a base of 0 is not defined, and nothing is better by it.
func gain(r *policy.Rule, base, head float64) float64 {
	by := base - head
	if r.Metric.Better == metric.Higher {
		by = -by
	}
	if r.Gain.Unit != "%" {
		return by
	}
	if base <= 0 {
		return 0
	}
	return by / base
}

// worsening decides how much worse is too much. A relative bound says nothing
// about a base of 0, so there any worsening above the floor is a failure.
func worsening(r *policy.Rule, base, head float64) (verdict.Status, string) {
	amount := head - base
	switch r.Metric.Better {
	case metric.Higher:
		amount = -amount
	case metric.Neither:
		amount = math.Abs(amount)
	}
	if !(math.Abs(amount) <= math.MaxFloat64) {
		return verdict.Inconclusive, "the two sides cannot be compared: their difference is not finite"
	}
	below := base < 0 && r.Floor.Set
	if head == base && !below { // most figures, which need no text of their own
		return verdict.Pass, "equal"
	}
	unit := r.Metric.Unit
	moved := fmt.Sprintf("%s → %s", metric.Show(base, unit), metric.Show(head, unit))
	switch {
	case below:
		return verdict.Inconclusive, moved + ": a base below 0 was not measured, and a floor says nothing about it"
	case amount <= 0:
		return verdict.Pass, "better: " + moved
	case r.Floor.Set && amount <= r.Floor.Number:
		return verdict.Pass, "worse by less than the floor: " + moved
	}
	accepted := r.MaxRegression.Number
	if r.MaxRegression.Unit == "%" {
		if base <= 0 {
			return verdict.Fail, moved + ": worse, and a share of a base of " + metric.Show(base, unit) + " is not defined"
		}
		accepted *= base
	}
	if amount <= accepted {
		return verdict.Pass, "within what is accepted: " + moved
	}
	return verdict.Fail, fmt.Sprintf("%s (%s worse, %s accepted)", moved, howMuch(r, base, amount), r.MaxRegression.Text)
}

func howMuch(r *policy.Rule, base, amount float64) string {
	switch {
	case r.MaxRegression.Unit == "%":
		return fmt.Sprintf("%.3g %%", 100*amount/base)
	case r.Metric.Unit == "%":
		return fmt.Sprintf("%.3g pp", amount)
	}
	return metric.Show(amount, r.Metric.Unit)
}
