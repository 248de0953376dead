package collect

import (
	"context"
	"fmt"
	"math"

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
