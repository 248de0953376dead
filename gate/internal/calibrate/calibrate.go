// Package calibrate times kernels against themselves and says what a comparison
// on this machine can see within a policy's limits and budget.
package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Run times the head's kernels against themselves in so many rounds and keeps
// what it measured beside the cache. An error means that this machine has no
// GPU for it, that a file of the user's is invalid or that a tool failed. Where
// it came after something was kept, that is returned with it.
func Run(ctx context.Context, o check.Options, rounds int) (*verdict.Calibration, error) {
	o.Base = project.NoBase
	if err := o.Prepare(); err != nil {
		return nil, err
	}
	if _, err := gpu.List(ctx); err != nil { // before a build that would be for nothing
		return nil, noGPU(err)
	}
	p, err := project.Open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	subjects, _, err := p.Build(ctx)
	if err != nil {
		return nil, err
	}
	asked := plan.Make(p.Policy, asChanged(subjects), plan.Options{Now: o.Now()})
	if !slices.ContainsFunc(subjects, func(s *plan.Subject) bool { return s.Head.Why == "" }) {
		return nil, errors.New("no kernel could be built: " + subjects[0].Head.Why)
	}
	shelf := &store.Shelf{Write: store.Open(filepath.Join(o.Cache, "evidence")).Audited(check.Audit(p, nil, o.Now))}
	bench, err := collect.Open(ctx, o.Bench(p, shelf), func(m evidence.Machine) bool { return len(asked.Calibrations(m)) > 0 })
	if err != nil {
		return nil, noGPU(err)
	}
	defer bench.Close()
	tasks := asked.Calibrations(bench.Machine)
	records, err := bench.Calibrate(ctx, tasks, rounds)
	n := kept(records)
	if err != nil {
		err = fmt.Errorf("%d of %d records were kept before the calibration ended: %w", n, len(tasks), err)
		if n == 0 {
			return nil, err
		}
	}
	found, wrong := report(p, asked, bench, tasks, records)
	return found, errors.Join(err, wrong)
}

// kept is how many of the records were measured and kept.
func kept(records []*evidence.Record) int {
	n := 0
	for _, r := range records {
		if r != nil && r.Failure == nil {
			n++
		}
	}
	return n
}

func noGPU(err error) error {
	var none *collect.NoGPUError
	if errors.As(err, &none) {
		return fmt.Errorf("there is no GPU here to calibrate on: %w", err)
	}
	for _, why := range []error{gpu.ErrNoDriver, gpu.ErrNoDevice} {
		if errors.Is(err, why) {
			return fmt.Errorf("there is no GPU here to calibrate on: %w", why)
		}
	}
	return err
}

// asChanged are the subjects as if each had changed, so that the plan holds the
// questions of a change to all of them.
func asChanged(subjects []*plan.Subject) []*plan.Subject {
	var out []*plan.Subject
	for _, s := range subjects {
		changed := *s
		changed.State, changed.Base = verdict.Changed, s.Head
		out = append(out, &changed)
	}
	return out
}

// report evaluates the records of tasks, which stand in one order. Of the last ones
// there may be none.
func report(p *project.Project, asked plan.Plan, bench *collect.Bench, tasks []plan.Task, records []*evidence.Record) (*verdict.Calibration, error) {
	out := newCalibration(p.Policy, records)
	out.Machine, out.Description = bench.Machine.Key(), bench.Machine.String()
	out.Notes, out.Tests = slices.Concat(p.Notes, bench.Notes, command.Openings()), max(1, asked.Family())
	records = append(slices.Clone(records), make([]*evidence.Record, len(tasks)-len(records))...)
	for i, t := range tasks {
		rows, err := out.rows(asked, t, records[i])
		if err != nil {
			return nil, fmt.Errorf("%s on %s: %w", t.Subject.Name, t.At.Case, err)
		}
		out.Kernels = append(out.Kernels, rows...)
	}
	for _, s := range asked.Subjects {
		if !slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Subject == s }) {
			why := "this machine does not run it, or the policy does not ask for this machine"
			if s.Head.Why != "" {
				why = s.Head.Why
			}
			out.Kernels = append(out.Kernels, verdict.Calibrated{Kernel: s.Name, Arch: s.Arch, Reason: "not calibrated: " + why})
		}
	}
	slices.SortStableFunc(out.Kernels, func(a, b verdict.Calibrated) int {
		return cmp.Or(strings.Compare(a.Kernel, b.Kernel), strings.Compare(a.Arch, b.Arch), strings.Compare(a.Case, b.Case), cmp.Compare(a.CacheState, b.CacheState))
	})
	return out.Calibration, nil
}
