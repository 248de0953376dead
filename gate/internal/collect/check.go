package collect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

func init() {
	tiers[evidence.Correctness] = tier{measure: func(c *Bench, ctx context.Context, s plan.Step, l *evidence.Ledger) error {
		return c.eachContender(ctx, s, l, c.checkUnits)
	}, audit: Auditor.correctness, raw: []string{"harness.jsonl"}, sections: []string{"checks"}}
}

// checkUnits runs the correctness suite of one kernel on all its cases, in one
// process. It returns a record for every unit; an error means that the device
// or the harness can no longer be used.
func (c *Bench) checkUnits(ctx context.Context, units []unit) ([]*evidence.Record, error) {
	c.say("checking %s", units[0].kernel)
	s, end, err := c.harness(ctx, "check", units)
	if err != nil {
		return nil, fmt.Errorf("checking %s: %w", units[0].kernel, err)
	}
	broke := failure(s, end, s.during())
	var records []*evidence.Record
	unsettled := broke != nil && unsettles(broke)
	for _, u := range units {
		r := c.checkRecord(s, u, broke)
		unsettled = unsettled || r.Failure != nil && unsettles(r.Failure)
		if r.Failure == nil {
			if err := c.keep(r, "", map[string][]byte{"harness.jsonl": s.raw(u.name(), u.on.Name)}); err != nil {
				return append(records, r), err
			}
		}
		records = append(records, r)
	}
	if unsettled {
		return records, c.probe(ctx)
	}
	return records, nil
}

// checkRecord gathers the checks of one unit. A unit that the process never
// came to shares the fate of the one that broke it.
func (c *Bench) checkRecord(s *stream, u unit, broke *evidence.Failure) *evidence.Record {
	for _, m := range s.errors {
		if m.Kernel == u.name() && m.Case == u.on.Name || m.Kernel == "" {
			return c.failed(evidence.Correctness, u, m.fault())
		}
	}
	r := c.record(evidence.Correctness, u)
	for _, m := range s.checks {
		if m.Kernel == u.name() && m.Case == u.on.Name {
			r.Checks = append(r.Checks, m.Check)
		}
	}
	switch {
	case len(r.Checks) == 0 && len(s.errors) > 0:
		f := s.errors[0].fault()
		f.Message = fmt.Sprintf("not reached: case %s ended the process: %s", s.errors[0].Case, f.Message)
		return c.failed(evidence.Correctness, u, f)
	case broke != nil && (s.last == nil || s.last.Case == u.on.Name || len(r.Checks) == 0):
		return c.failed(evidence.Correctness, u, broke)
	case len(r.Checks) == 0:
		return c.failed(evidence.Correctness, u, &evidence.Failure{Kind: evidence.Tool, Message: "the harness sent no check for this case"})
	}
	r.Provenance.Protocol = s.config.Protocol // a check comes after the config
	r.Metrics = checkMetrics(r.Checks)
	return r
}

func checkMetrics(checks []evidence.Check) evidence.Metrics {
	relative, absolute := 0.0, 0.0
	failed := 0
	for _, k := range checks {
		relative = worst(relative, k.RelativeError)
		absolute = worst(absolute, k.MaxAbsError)
		if k.Status != "pass" {
			failed++
		}
	}
	return evidence.Metrics{
		"check.relative_error": evidence.Of(relative, ""),
		"check.max_abs_error":  evidence.Of(absolute, ""),
		"check.failed_classes": evidence.Of(float64(failed), ""),
	}
}

// worst keeps an error that is not finite.
func worst(so float64, x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return math.Max(so, *x)
}

func (a Auditor) correctness(r *evidence.Record, raw map[string][]byte) error {
	rec, err := readRecording(r, raw["harness.jsonl"], "check", false)
	if err != nil {
		return err
	}
	var classes []string
	for _, c := range r.Checks {
		if slices.Contains(classes, c.Class) {
			return fmt.Errorf("it holds the input class %q twice", c.Class)
		}
		classes = append(classes, c.Class)
	}
	if !slices.Equal(rec.begun, classes) {
		return fmt.Errorf("it holds checks of %q, and by its raw input %q were checked", classes, rec.begun)
	}
	if len(rec.configs) != 1 || len(rec.ends) > 1 || len(rec.checks) != len(r.Checks) { // it may have crashed on a later case
		return errors.New("its raw input is not of one process")
	}
	if r.Provenance.Protocol != rec.configs[0].Protocol {
		return fmt.Errorf("it says protocol %q, and its raw input %q", r.Provenance.Protocol, rec.configs[0].Protocol)
	}
	// All cases and kernels of a process go through the op's input classes.
	for _, end := range rec.ends {
		if end.Error == 0 && (end.Check%len(classes) != 0 || end.Check == 0) {
			return fmt.Errorf("its process sent %d checks, which is not a multiple of %d input classes: some were left out", end.Check, len(classes))
		}
	}
	for i, c := range r.Checks {
		if !sameCheck(c, rec.checks[i]) {
			return fmt.Errorf("its check of %q is not the one in its raw input", c.Class)
		}
		if err := a.check(r.Address.Op, c); err != nil {
			return fmt.Errorf("its check of %q %w", c.Class, err)
		}
		if err := a.rows(r.Address, c); err != nil {
			return fmt.Errorf("its check of %q %w", c.Class, err)
		}
	}
	return sameFigures(r.Metrics, checkMetrics(r.Checks))
}

// rows holds how many rows were compared against what an op that is known says of the
// case. Fewer than it asks for are enough only where the result has no more.
func (a Auditor) rows(at evidence.Address, c evidence.Check) error {
	if c.Rows < 0 || c.Rows > c.AllRows || (c.Rows == 0) != (c.AllRows == 0) || c.AllRows > c.Elements || c.AllRows > 0 && c.Elements%c.AllRows != 0 {
		return fmt.Errorf("compares %d of %d rows, and there are %d elements", c.Rows, c.AllRows, c.Elements)
	}
	var wanted []int64
	for _, op := range a.Ops {
		for _, known := range op.Cases {
			if op.Name == at.Op && known.Name == at.Case {
				wanted = append(wanted, known.Rows)
			}
		}
	}
	agrees := func(rows int64) bool { return (rows > 0) == (c.Rows > 0) && (c.Rows >= rows || c.Rows == c.AllRows) }
	if len(wanted) > 0 && !slices.ContainsFunc(wanted, agrees) {
		return fmt.Errorf("compares %d of %d rows, and its op says %d (0 for all)", c.Rows, c.AllRows, wanted[0])
	}
	return nil
}

func sameCheck(a, b evidence.Check) bool {
	if len(a.Reasons) == 0 && len(b.Reasons) == 0 { // an empty list is not written
		a.Reasons, b.Reasons = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// check says what is impossible in a check. Its status follows from its errors
// and the op's tolerance, where that is known.
func (a Auditor) check(op string, c evidence.Check) error {
	negative := func(x *float64) bool { return x != nil && !(*x >= 0) }
	switch {
	case c.Class == "":
		return errors.New("names no input class")
	case c.Elements < 1 || c.NonFinite < 0 || c.NonFinite > c.Elements || c.Mismatched < 0 || c.Mismatched > c.Elements || c.Unwritten < 0 || c.Unwritten > c.Elements || c.MaxAbsIndex < 0 || c.MaxAbsIndex >= c.Elements:
		return fmt.Errorf("counts elements that %d elements cannot hold", c.Elements)
	case negative(c.RelativeError) || negative(c.MaxAbsError):
		return errors.New("has an error below 0")
	case c.NonFinite > 0 && (c.RelativeError != nil || c.MaxAbsError != nil):
		return errors.New("has a finite error although elements are not finite")
	case c.Status != "pass" && c.Status != "fail":
		return fmt.Errorf("has the status %q", c.Status)
	case (c.Status == "pass") != (len(c.Reasons) == 0):
		return fmt.Errorf("has the status %q with %d reasons", c.Status, len(c.Reasons))
	}
	sound := c
	sound.Status = "pass"
	fine := sound.Passed()
	for _, known := range a.Ops {
		if known.Name != op || !fine {
			continue
		}
		for name, error := range map[string]*float64{"relative_error": c.RelativeError, "max_abs_error": c.MaxAbsError} {
			if most, ok := known.Tolerance[name]; ok && (error == nil || !(*error <= most)) {
				fine = false
			}
		}
		if fine != (c.Status == "pass") {
			return fmt.Errorf("has the status %q with a relative error of %g and a tolerance of %g", c.Status, *c.RelativeError, known.Tolerance["relative_error"])
		}
		return nil
	}
	if c.Status == "pass" && !fine {
		return errors.New("has the status pass, and something about it is wrong")
	}
	return nil
}
