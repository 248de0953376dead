package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A calibration is the result while it is made.
type calibration struct {
	*verdict.Calibration
	limits compare.Limits // of the policy's profile
}

// newCalibration fills in what all records share.
func newCalibration(p *policy.Policy, records []*evidence.Record) calibration {
	c := calibration{limits: p.Limits, Calibration: &verdict.Calibration{Schema: verdict.CalibrationSchema, Policy: p.File, BudgetSeconds: p.Budget.Seconds()}}
	for _, r := range records {
		if r != nil && r.Failure == nil {
			c.Recorded, c.Rounds, c.Discarded, c.ProcessSeconds = r.Provenance.Recorded, r.AA.Rounds, len(r.AA.Discarded), r.AA.ProcessSeconds
		}
	}
	c.BudgetPairs = compare.SequentialPlan().LastPairs()
	if c.ProcessSeconds > 0 { // two processes a pair
		c.BudgetPairs = int(min(float64(c.BudgetPairs), c.BudgetSeconds/(2*c.ProcessSeconds)))
	}
	return c
}

// rows are those of one record, nil where there is none: one for each state of the
// caches and limits that rules put on it. Without any rule the profile's limits are shown.
func (c calibration) rows(asked plan.Plan, t plan.Task, r *evidence.Record) ([]verdict.Calibrated, error) {
	row := verdict.Calibrated{Kernel: t.Subject.Name, Arch: t.Subject.Arch, Case: t.At.Case}
	if row.Reason = unusable(r); row.Reason != "" {
		return []verdict.Calibrated{row}, nil
	}
	row.TimedSeconds = r.AA.TimedSeconds
	var rows []verdict.Calibrated
	for i := range asked.Questions {
		q := &asked.Questions[i]
		// An A/A run says nothing of a ratio, and advice decides nothing.
		if q.Subject != t.Subject || q.Case != t.At.Case || q.Kind != plan.Experiment || !q.Gated() {
			continue
		}
		limits, err := limitsOf(r, q.Test)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(rows, func(x verdict.Calibrated) bool {
			return x.CacheState == q.Test.CacheState && alike(x.Limits, limits)
		})
		if at < 0 {
			at, row.CacheState, row.Limits = len(rows), q.Test.CacheState, limits
			rows = append(rows, row)
		}
		rows[at].Rules = append(rows[at].Rules, q.Rule.ID)
	}
	if len(rows) == 0 {
		row.CacheState, row.Limits = evidence.Warm, c.limits
		rows = append(rows, row)
	}
	for i := range rows {
		var err error
		if rows[i], err = c.evaluate(rows[i], r); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// unusable says why there are no figures of a record, "" where there are.
func unusable(r *evidence.Record) string {
	switch {
	case r == nil:
		return "not calibrated: the run ended before"
	case r.Failure != nil:
		return r.Failure.Message
	case r.AA.Rounds < compare.FewestCalibrationRounds:
		return fmt.Sprintf("not calibrated: %d rounds were measured when the run ended, and it takes %d", r.AA.Rounds, compare.FewestCalibrationRounds)
	}
	return ""
}

// limitsOf are those of a test, of which a floor is a share of the record's time; zero
// where it has no such time.
func limitsOf(r *evidence.Record, t *compare.Test) (compare.Limits, error) {
	if !r.Timed(t.CacheState) {
		return compare.Limits{}, nil
	}
	base, err := compare.BaseTime(r.Samples, t.CacheState, t.Summary)
	if err != nil {
		return compare.Limits{}, err
	}
	return t.Bound.At(base)
}

// alike reports whether limits are one to a reader. A floor in ns is a slightly
// different share of each summary's time.
func alike(a, b compare.Limits) bool {
	const shown = 1e-4 // 0.01 %
	return math.Abs(a.Tolerance-b.Tolerance) < shown && math.Abs(a.Detect-b.Detect) < shown
}

func (c calibration) evaluate(row verdict.Calibrated, r *evidence.Record) (verdict.Calibrated, error) {
	if !r.Timed(row.CacheState) {
		row.Reason = fmt.Sprintf("not calibrated: it has no %s time", row.CacheState)
		return row, nil
	}
	rounds, err := compare.AARounds(r.Samples, row.CacheState)
	if err != nil {
		return row, err
	}
	figures, err := compare.SpreadOf(rounds, row.Limits, compare.SequentialPlan(), c.BudgetPairs, c.Tests)
	if err != nil {
		return row, err
	}
	row.Figures, row.Gateable, row.Reason = &figures, figures.Gateable, figures.Detail
	if !row.Gateable {
		row.Remedies = c.remedies(row, rounds)
	}
	return row, nil
}
