package judge

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// settled answers a question that no evidence can change.
func (j *judge) settled(q *plan.Question) verdict.Finding {
	f := verdict.Finding{Rule: q.Name, Case: q.Case, Severity: q.Weight}
	if q.Loss != nil {
		return lost(q, f)
	}
	switch head := q.Subject.Head; q.Cause {
	case plan.NotBuilt:
		f.Status, f.Reason, f.Tool = blame(head.Blame), head.Why, !head.Blame && !head.Absent
	case plan.NotJudged:
		f.Reason = "it builds, and nothing that was asked for judges it"
	case plan.NoCase:
		f.Reason = "no case was judged"
	case plan.NoBase:
		f.Reason = j.noBase()
	case plan.NewOp:
		f.Reason = newPart(*q.Subject.NewOp)
		if j.plan.Policy.NewOps == policy.OnlyWarns {
			f.Severity = verdict.Warns
		}
	default:
		f.Reason = string(q.Cause)
	}
	return f
}

// lost judges what the base has and the head does not: it is red, and a warning
// where the change declares it.
func lost(q *plan.Question, f verdict.Finding) verdict.Finding {
	const declare = " is red until it is declared"
	f.Status = verdict.Fail
	switch q.Loss.Cause {
	case plan.GoneKernel:
		f.Reason = "the base has this kernel and the head does not: a kernel that is gone" + declare
	case plan.GoneCase:
		f.Reason = "the base measures this case and the head does not: a case that is gone" + declare
	case plan.GoneEntry:
		f.Reason = fmt.Sprintf("the base judges %s and the head does not have it: a function that is gone%s", q.Entry, declare)
	case plan.LeftOut:
		f.Reason = fmt.Sprintf("entries: leaves out %s, which the base judges and the sources still hold", q.Entry)
	case plan.OtherOp:
		f.Reason = fmt.Sprintf("the base computes %s, and the head %s: it is not the kernel that it was", q.Loss.Op, q.Subject.Op)
	default:
		f.Reason = string(q.Loss.Cause)
	}
	if q.Loss.Declared != (plan.Retired{}) {
		f.Severity, f.Reason = verdict.Warns, "declared: "+retired(q.Loss.Declared)
	}
	return f
}

func retired(r plan.Retired) string {
	switch {
	case r.File == "":
		return "retired: " + r.Reason
	case r.Arch != "":
		return fmt.Sprintf("%s retires %s: %s", r.File, r.Arch, r.Reason)
	}
	return fmt.Sprintf("%s retires it: %s", r.File, r.Reason)
}

func newPart(n plan.NewPart) string {
	if n.Case != "" {
		return fmt.Sprintf("the base's op %s has no case %q: it is judged once the op is merged", n.Op, n.Case)
	}
	return fmt.Sprintf("the base has no op %s: what a kernel of it computes is compared with a reference that the change brings along", n.Op)
}
