package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// CalibrationSchema names the layout of a Calibration.
const CalibrationSchema = "gate/calibration/v1"

// A Calibration says what a comparison on this machine can see within a
// policy's limits and budget.
type Calibration struct {
	Schema        string       `json:"schema"`
	Policy        string       `json:"policy"`
	Machine       string       `json:"machine"` // key
	Description   string       `json:"description"`
	Recorded      string       `json:"recorded"` // RFC 3339, UTC
	Blocks        int          `json:"blocks"`
	Discarded     int          `json:"discarded"`
	Tests         int          `json:"tests"`          // questions of a change to every kernel shown
	LaunchSeconds float64      `json:"launch_seconds"` // wall time of one process that times them all
	BudgetSeconds float64      `json:"budget_seconds"`
	BudgetPairs   int          `json:"budget_pairs"` // what the budget pays for, at most the plan's last look
	Kernels       []Calibrated `json:"kernels"`
	Notes         []string     `json:"notes,omitempty"`
}

// A Calibrated is one kernel and case in one state of the caches, at the
// limits of the rules that ask for it.
type Calibrated struct {
	Kernel       string               `json:"kernel"`
	Arch         string               `json:"arch"`
	Case         string               `json:"case,omitempty"`
	Regime       string               `json:"regime,omitempty"`
	Rules        []string             `json:"rules,omitempty"` // none: the profile's limits are shown
	Limits       compare.Limits       `json:"limits"`
	Figures      *compare.Calibration `json:"figures,omitempty"`
	TimedSeconds float64              `json:"timed_seconds"` // on the GPU, in one launch
	Gateable     bool                 `json:"gateable"`
	Reason       string               `json:"reason"`
	Remedies     []string             `json:"remedies,omitempty"`
}

// Gateable reports whether every kernel is; none at all is not.
func (c *Calibration) Gateable() bool {
	return len(c.Kernels) > 0 && !slices.ContainsFunc(c.Kernels, func(k Calibrated) bool { return !k.Gateable })
}

// Calibrate times the head's kernels against themselves in so many blocks and
// keeps what it measured beside the cache. An error means that this machine
// has no GPU for it, that a file of the user's is invalid or that a tool failed.
func Calibrate(ctx context.Context, o Options, blocks int) (*Calibration, error) {
	o.Base = "none"
	j := &job{Options: o}
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	defer j.tree.close()
	if _, err := gpu.List(ctx); err != nil {
		return nil, noGPU(err) // before a build that would be for nothing
	}
	if err := j.build(ctx); err != nil {
		return nil, err
	}
	if err := j.find(nil); err != nil {
		return nil, err
	}
	open := j.open()
	if len(open) == 0 {
		return nil, errors.New("no kernel could be built: " + j.notCalibrated(nil)[0].Reason)
	}
	device, err := j.device(ctx, open)
	if err != nil {
		return nil, noGPU(err)
	}
	lock, err := gpu.Acquire(ctx, device.UUID, j.Wait)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	c, err := j.collector(ctx, *device)
	if err != nil {
		return nil, err
	}
	j.foreign(ctx, *device)
	return j.calibrate(ctx, c, blocks)
}

func noGPU(err error) error {
	for _, why := range []error{gpu.ErrNoDriver, gpu.ErrNoDevice} {
		if errors.Is(err, why) {
			return fmt.Errorf("there is no GPU here to calibrate on: %w", why)
		}
	}
	return err
}

func (j *job) calibrate(ctx context.Context, c *collect.Collector, blocks int) (*Calibration, error) {
	mine := here(j.open(), c.Machine)
	if err := j.move(mine, c.Machine); err != nil {
		return nil, err
	}
	var units []collect.Unit
	for _, s := range mine {
		units = append(units, s.headUnit())
	}
	records, err := c.Calibrate(ctx, units, blocks)
	if err != nil {
		return nil, err
	}
	out := &Calibration{Schema: CalibrationSchema, Policy: j.tree.policy.File, Machine: c.Machine.Key(), Description: c.Machine.String(),
		BudgetSeconds: j.tree.policy.Budget.Seconds(), Notes: j.notes}
	out.run(records)
	if out.Kernels, err = j.calibrated(mine, records, out); err != nil {
		return nil, err
	}
	out.Kernels = append(out.Kernels, j.notCalibrated(mine)...)
	slices.SortStableFunc(out.Kernels, func(a, b Calibrated) int {
		return strings.Compare(strings.Join([]string{a.Kernel, a.Arch, a.Case, a.Regime}, "\x00"), strings.Join([]string{b.Kernel, b.Arch, b.Case, b.Regime}, "\x00"))
	})
	return out, nil
}

// run fills in what all records share.
func (c *Calibration) run(records []*evidence.Record) {
	for _, r := range records {
		if r.Failure != nil {
			continue
		}
		c.Recorded, c.Blocks, c.Discarded, c.LaunchSeconds = r.Provenance.Recorded, r.AA.Blocks, len(r.AA.Discarded), r.AA.LaunchSeconds
	}
	looks := compare.SequentialPlan().Looks
	c.BudgetPairs = looks[len(looks)-1].Pairs
	if c.LaunchSeconds > 0 { // two launches a pair
		c.BudgetPairs = int(min(float64(c.BudgetPairs), c.BudgetSeconds/(2*c.LaunchSeconds)))
	}
}

// plan is what the budget leaves of the sequential plan. Its looks keep their
// weights, because an experiment that runs out of time keeps them too. False
// where not even the first look is reached, whose figures are shown then.
func (c *Calibration) plan() (compare.Plan, bool) {
	p := compare.SequentialPlan()
	n := 0
	for n < len(p.Looks) && p.Looks[n].Pairs <= c.BudgetPairs {
		n++
	}
	p.Looks = p.Looks[:max(1, n)]
	return p, n > 0
}

// calibrationAge is how long an A/A run speaks for its machine. Drivers, rooms
// and neighbours change.
const calibrationAge = 30 * 24 * time.Hour

// calibration is a recent A/A run of the head's code on the machine of a case,
// else of the base's; nil where there is none.
func (j *job) calibration(s *kase) *evidence.Record {
	for _, a := range []evidence.Address{s.head, s.base} {
		if !a.Known() {
			continue
		}
		r, err := j.stores.get(evidence.Calibration, a, nil)
		if err != nil || r.AA == nil || r.Failure != nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, r.Provenance.Recorded)
		if age := j.Now().Sub(at); err == nil && age >= 0 && age <= calibrationAge {
			return r
		}
	}
	return nil
}

// A question is one state of the caches with the limits that rules put on it.
type question struct {
	regime string
	limits compare.Limits
	rules  []string
}

// questions are those of the policy about one record; without any, those of
// its profile about warm caches. Rules with equal limits are one question.
func (j *job) questions(s *kase, r *evidence.Record) (list []question, tests int, err error) {
	k := s.kernel.facts
	k.State = policy.Changed // what would be asked of a change
	for _, t := range j.tree.policy.Trials(&k, &s.facts) {
		if t.Reference != "" || t.Advice {
			continue // an A/A run says nothing of a ratio, and advice decides nothing
		}
		base, err := compare.BaseTime(r.Samples, t.Regime, t.Metric)
		if err != nil {
			return nil, 0, err
		}
		limits, err := t.Limits(base)
		if err != nil {
			return nil, 0, err
		}
		tests++
		i := slices.IndexFunc(list, func(q question) bool { return q.regime == t.Regime && alike(q.limits, limits) })
		if i < 0 {
			i = len(list)
			list = append(list, question{regime: t.Regime, limits: limits})
		}
		list[i].rules = append(list[i].rules, t.Rule)
	}
	if len(list) == 0 {
		list = append(list, question{regime: "warm", limits: j.tree.policy.Limits})
	}
	return list, tests, nil
}

// alike reports whether limits are one to a reader. A floor in ns is a slightly
// different share of each metric's time.
func alike(a, b compare.Limits) bool {
	const shown = 1e-4 // 0.01 %
	return math.Abs(a.Tolerance-b.Tolerance) < shown && math.Abs(a.Detect-b.Detect) < shown
}

// calibrated evaluates the records of cases, which stand in one order. The
// number of tests is that of a change to all of them.
func (j *job) calibrated(mine []*kase, records []*evidence.Record, of *Calibration) ([]Calibrated, error) {
	var rows []Calibrated
	var measured []*evidence.Record
	for i, s := range mine {
		row := Calibrated{Kernel: s.kernel.name, Arch: s.kernel.arch, Case: s.of.Name}
		if f := records[i].Failure; f != nil {
			row.Reason = f.Message
			rows, measured = append(rows, row), append(measured, nil)
			continue
		}
		list, tests, err := j.questions(s, records[i])
		if err != nil {
			return nil, fmt.Errorf("%s on %s: %w", row.Kernel, row.Case, err)
		}
		of.Tests += tests
		for _, q := range list {
			row.Regime, row.Limits, row.Rules, row.TimedSeconds = q.regime, q.limits, q.rules, records[i].AA.TimedSeconds
			rows, measured = append(rows, row), append(measured, records[i])
		}
	}
	of.Tests = max(1, of.Tests)
	for i := range rows {
		if measured[i] == nil {
			continue
		}
		if err := of.evaluate(&rows[i], measured[i], j.tree.policy.Limits); err != nil {
			return nil, fmt.Errorf("%s on %s: %w", rows[i].Kernel, rows[i].Case, err)
		}
	}
	return rows, nil
}

func (c *Calibration) evaluate(row *Calibrated, r *evidence.Record, profile compare.Limits) error {
	blocks, err := compare.AABlocks(r.Samples, row.Regime)
	if err != nil {
		return err
	}
	plan, reached := c.plan()
	figures, err := compare.Calibrate(blocks, row.Limits, plan, c.Tests)
	if err != nil {
		return err
	}
	row.Figures, row.Gateable, row.Reason = &figures, figures.Gateable && reached, figures.Detail
	if !reached {
		row.Reason = fmt.Sprintf("not gateable: the budget pays for %d pairs, and the first look is at %d", c.BudgetPairs, plan.Looks[0].Pairs)
		figures.MDE90, figures.Gateable, figures.Detail = nil, false, row.Reason
	}
	if !row.Gateable {
		row.Remedies = c.remedies(row, profile)
	}
	return nil
}

// notCalibrated are the kernels of which nothing was timed.
func (j *job) notCalibrated(mine []*kase) []Calibrated {
	var rows []Calibrated
	for _, k := range j.kernels {
		row := Calibrated{Kernel: k.name, Arch: k.arch}
		switch {
		case k.head == nil:
			row.Reason = "not calibrated: it does not build"
			if k.facts.Broken != nil {
				row.Reason = "not calibrated: " + k.facts.Broken.Message
			}
		case !slices.ContainsFunc(mine, func(s *kase) bool { return s.kernel == k }):
			row.Reason = "not calibrated: this machine does not run it, or the policy does not want this machine"
		default:
			continue
		}
		rows = append(rows, row)
	}
	return rows
}
