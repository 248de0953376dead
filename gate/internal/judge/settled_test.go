package judge

import (
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestSettled is what no evidence can change: one subject each, of which a rule
// of gate's own is found.
func TestSettled(t *testing.T) {
	built := func(change func(*plan.Subject)) *plan.Subject {
		s := (&kernel{name: "op/k", state: verdict.Changed, cases: []*kase{{name: "small"}}}).subject()
		change(s)
		return s
	}
	lost := func(l plan.Loss) *plan.Subject { return built(func(s *plan.Subject) { s.Lost = []plan.Loss{l} }) }
	broken := func(side plan.Side) *plan.Subject { return built(func(s *plan.Subject) { s.Head = side }) }
	state := func(state verdict.State) *plan.Subject { return built(func(s *plan.Subject) { s.State = state }) }
	for _, c := range []struct {
		name     string
		subject  *plan.Subject
		policy   string
		rule     string
		status   verdict.Status
		severity verdict.Severity
		tool     bool
		reason   string
	}{
		{"gone", state(verdict.Gone), "", "present", verdict.Fail, verdict.Red, false, "the base has this kernel and the head does not: a kernel that is gone is red until it is declared"},
		{"retired", built(func(s *plan.Subject) { s.State, s.Retired = verdict.Gone, plan.Retired{Reason: "superseded"} }), "", "present", verdict.Fail, verdict.Warns, false, "declared: retired: superseded"},
		{"an architecture, retired", built(func(s *plan.Subject) {
			s.State, s.Retired = verdict.Gone, plan.Retired{File: "kernel.yaml", Arch: "sm_80", Reason: "old"}
		}), "", "present", verdict.Fail, verdict.Warns, false, "declared: kernel.yaml retires sm_80: old"},
		{"a case", lost(plan.Loss{Cause: plan.GoneCase, Case: "large"}), "", "present", verdict.Fail, verdict.Red, false, "the base measures this case and the head does not: a case that is gone is red until it is declared"},
		{"a case, declared", lost(plan.Loss{Cause: plan.GoneCase, Case: "large", Declared: plan.Retired{File: "kernel.yaml", Reason: "slow"}}), "", "present", verdict.Fail, verdict.Warns, false, "declared: kernel.yaml retires it: slow"},
		{"a function", lost(plan.Loss{Cause: plan.GoneEntry, Entry: "scan()"}), "", "present", verdict.Fail, verdict.Red, false, "the base judges scan() and the head does not have it: a function that is gone is red until it is declared"},
		{"a function left out", lost(plan.Loss{Cause: plan.LeftOut, Entry: "scan()"}), "", "present", verdict.Fail, verdict.Red, false, "entries: leaves out scan(), which the base judges and the sources still hold"},
		{"another op", lost(plan.Loss{Cause: plan.OtherOp, Op: "sum"}), "", "present", verdict.Fail, verdict.Red, false, "the base computes sum, and the head op: it is not the kernel that it was"},
		{"a loss of no known cause", lost(plan.Loss{Cause: "odd"}), "", "present", verdict.Fail, verdict.Red, false, "odd"},
		{"it does not build", broken(plan.Side{Why: "k.cu does not compile", Blame: true}), "", "builds", verdict.Fail, verdict.Red, false, "k.cu does not compile"},
		{"the compiler failed", broken(plan.Side{Why: "nvcc was killed"}), "", "builds", verdict.Inconclusive, verdict.Red, true, "nvcc was killed"},
		{"an input is not here", broken(plan.Side{Why: "a pointer of git-lfs", Absent: true}), "", "builds", verdict.Inconclusive, verdict.Red, false, "a pointer of git-lfs"},
		{"no base", state(verdict.NoBase), "", "present", verdict.Inconclusive, verdict.Red, false, "there is no base: it is shallow"},
		{"no case", built(func(s *plan.Subject) { s.Cases = nil }), "", "correctness", verdict.Inconclusive, verdict.Red, false, "no case was judged"},
		{"an op of its own", built(func(s *plan.Subject) { s.NewOp = &plan.NewPart{Op: "sum"} }), "", "op", verdict.Inconclusive, verdict.Red, false,
			"the base has no op sum: what a kernel of it computes is compared with a reference that the change brings along"},
		{"an op of its own, allowed", built(func(s *plan.Subject) { s.NewOp = &plan.NewPart{Op: "sum", Case: "large"} }), "new_ops: warn\n", "op", verdict.Inconclusive, verdict.Warns, false,
			`the base's op sum has no case "large": it is judged once the op is merged`},
	} {
		asked, err := plan.Bound(languageOf(t, "{id: a, metric: ptxas.spill_bytes, limit: 0}", c.policy), []*plan.Subject{c.subject},
			plan.Options{NoBase: "it is shallow"}, nil, func(*evidence.Need) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		v, err := Judge(asked, &evidence.Ledger{})
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(t, v, c.rule)
		if f.Status != c.status || f.Severity != c.severity || f.Tool != c.tool || f.Reason != c.reason || f.Kind != string(plan.Settled) {
			t.Errorf("%s: %+v", c.name, f)
		}
		if v.ExitCode() == 0 && c.severity == verdict.Red {
			t.Errorf("%s passes", c.name)
		}
	}
}
