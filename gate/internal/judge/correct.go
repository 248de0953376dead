package judge

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// correct answers the rule that no policy leaves out: a kernel that was never
// found correct has not earned anything.
func (j *judge) correct(q *plan.Question, f verdict.Finding) verdict.Finding {
	r := j.ledger.Find(q.Needs[0]).Record
	if f.Status, f.Reason = correctness(r); r == nil {
		f.Reason = j.missing(q, q.Needs[0])
	}
	f.Tool = r != nil && r.Failure != nil && !r.Failure.Blames()
	return f
}

func correctness(r *evidence.Record) (verdict.Status, string) {
	switch {
	case r == nil:
		return verdict.Inconclusive, "not measured"
	case r.Failure != nil:
		return blame(r.Failure.Blames()), orElse(r.Failure.Message, "not measured")
	case len(r.Checks) == 0:
		return verdict.Inconclusive, "the record holds no check"
	}
	failed, why := 0, ""
	for _, c := range r.Checks {
		if c.Passed() {
			continue
		}
		if failed++; failed == 1 {
			why = fmt.Sprintf("inputs %q: %s", c.Class, wrongness(c))
		}
	}
	if failed == 0 {
		return verdict.Pass, fmt.Sprintf("correct on %d input classes%s", len(r.Checks), sampled(r.Checks))
	}
	return verdict.Fail, fmt.Sprintf("wrong on %d of %d input classes; %s", failed, len(r.Checks), why)
}

// sampled says that some rows stand for all, where they do.
func sampled(checks []evidence.Check) string {
	for _, c := range checks {
		if c.Rows < c.AllRows {
			return fmt.Sprintf(", by %d of %d rows that were drawn", c.Rows, c.AllRows)
		}
	}
	return ""
}

func wrongness(c evidence.Check) string {
	if len(c.Reasons) > 0 {
		return c.Reasons[0]
	}
	if c.Elements <= 0 {
		return "no element was compared"
	}
	if c.AllRows > 0 && c.Rows <= 0 {
		return "no row was compared"
	}
	if c.NonFinite > 0 {
		return fmt.Sprintf("%d elements are not finite", c.NonFinite)
	}
	return "the check failed"
}
