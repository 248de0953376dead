package policy

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// correctness is the rule that no policy leaves out: a kernel that was never
// found correct has not earned anything.
func (j *judge) correctness(c CaseFacts) {
	f := Finding{Rule: "correctness", Case: c.Name, Machine: c.Machine, Tier: evidence.Correctness, Severity: Red}
	f.Status, f.Reason = correctness(c.Correctness)
	f.Tool = c.Correctness.failure() != nil && !c.Correctness.failure().Blames()
	j.add(f)
}

func correctness(a Arm) (Status, string) {
	r := a.Record
	switch {
	case r == nil:
		return Inconclusive, orElse(a.Missing, "not measured")
	case r.Failure != nil:
		return blame(r.Failure.Blames()), orElse(r.Failure.Message, "not measured")
	case len(r.Checks) == 0:
		return Inconclusive, "the record holds no check"
	}
	return checks(r.Checks)
}

// Correct reports whether a record shows that a kernel is correct, and what it
// shows.
func Correct(a Arm) (bool, string) {
	status, why := correctness(a)
	return status == Pass, why
}

func checks(all []evidence.Check) (Status, string) {
	failed, why := 0, ""
	for _, c := range all {
		if c.Status == "pass" && c.Elements > 0 && c.RelativeError != nil && c.NonFinite == 0 && c.Unwritten == 0 && c.Guard == "ok" && !c.InputsChanged && c.Repeatable {
			continue
		}
		if failed++; failed == 1 {
			why = fmt.Sprintf("inputs %q: %s", c.Class, wrongness(c))
		}
	}
	if failed == 0 {
		return Pass, fmt.Sprintf("correct on %d input classes", len(all))
	}
	return Fail, fmt.Sprintf("wrong on %d of %d input classes; %s", failed, len(all), why)
}

func wrongness(c evidence.Check) string {
	if len(c.Reasons) > 0 {
		return c.Reasons[0]
	}
	if c.Elements <= 0 {
		return "no element was compared"
	}
	if c.NonFinite > 0 {
		return fmt.Sprintf("%d elements are not finite", c.NonFinite)
	}
	return "the check failed"
}
