package check

import (
	"context"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// unit names the architecture where a kernel is built for several: their units
// may share a launch.
func (s *kase) unit(a *build.Artifact, at evidence.Address) collect.Unit {
	u := collect.Unit{Kernel: s.kernel.name, Op: s.kernel.manifest.Op, Case: s.of, Artifact: a, Address: at}
	if len(s.kernel.manifest.Arch) > 1 {
		u.Role = s.kernel.arch
	}
	return u
}

// referenceUnit is a reference in the place of the case's base.
func (s *kase) referenceUnit(ref *reference) collect.Unit {
	return collect.Unit{Kernel: ref.manifest.Name, Role: "reference:" + ref.artifact.Arch, Op: s.kernel.manifest.Op,
		Case: s.of, Artifact: ref.artifact, Address: ref.at}
}

func (s *kase) headUnit() collect.Unit { return s.unit(s.kernel.head, s.head) }
func (s *kase) baseUnit() collect.Unit { return s.unit(s.kernel.base, s.base) }

func measured(r *evidence.Record) policy.Arm { return policy.Arm{Record: r, Source: policy.Measured} }

// check runs the correctness suite, one process a kernel, and takes kernels
// that fail out of what follows.
func (j *job) check(ctx context.Context, c *collect.Collector, mine []*kase) error {
	for _, group := range byKernel(mine) {
		var units []collect.Unit
		var cases []*kase
		for _, s := range group {
			if s.facts.Correctness.Record == nil {
				units = append(units, s.headUnit())
				cases = append(cases, s)
			}
		}
		if len(units) > 0 {
			records, err := c.Check(ctx, units)
			for i, r := range records {
				cases[i].facts.Correctness = measured(r)
			}
			if err != nil {
				return err
			}
		}
	}
	j.skipIncorrect(mine)
	return j.checkReferences(ctx, c, mine)
}

// checkReferences runs the suite of the references that lack it, each once. A
// reference that is a kernel of the check itself has had it.
func (j *job) checkReferences(ctx context.Context, c *collect.Collector, mine []*kase) error {
	done := map[evidence.Address]policy.Arm{}
	for _, s := range mine {
		if s.facts.Correctness.Record != nil {
			done[s.head] = s.facts.Correctness
		}
	}
	for _, s := range mine {
		for i, ref := range s.references {
			f := &s.facts.Latency.References[i]
			if s.skipped || ref.artifact == nil || f.Correctness.Record != nil {
				continue
			}
			if _, ok := done[ref.at]; !ok {
				records, err := c.Check(ctx, []collect.Unit{s.referenceUnit(ref)})
				if len(records) > 0 {
					done[ref.at] = measured(records[0])
				}
				if err != nil {
					f.Correctness = done[ref.at]
					return err
				}
			}
			f.Correctness = done[ref.at]
		}
	}
	return nil
}

func (j *job) skipIncorrect(mine []*kase) {
	if j.tree.policy.AfterFailure != policy.Stop {
		return
	}
	for _, s := range mine {
		facts := s.kernel.facts
		facts.Cases = []policy.CaseFacts{s.facts}
		if !s.skipped && policy.Fails(j.tree.policy, facts, evidence.Correctness) {
			s.skip("not measured: the correctness tier failed")
		}
	}
}

func byKernel(cases []*kase) [][]*kase {
	index := map[*kernel]int{}
	var groups [][]*kase
	for _, s := range cases {
		i, ok := index[s.kernel]
		if !ok {
			i = len(groups)
			index[s.kernel] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	return groups
}

func (j *job) profile(ctx context.Context, c *collect.Collector, mine []*kase) error {
	for _, s := range mine {
		m := s.missing()
		if m.profile && !s.skipped {
			r, err := c.Profile(ctx, s.headUnit())
			if r != nil {
				s.facts.Profile.Head = measured(r)
			}
			if err != nil {
				return err
			}
		}
		if m.baseProfile && !s.skipped {
			r, err := c.Profile(ctx, s.baseUnit())
			if r != nil {
				s.facts.Profile.Base = measured(r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// time measures what is compared with nothing.
func (j *job) time(ctx context.Context, c *collect.Collector, mine []*kase) error {
	var units []collect.Unit
	var cases []*kase
	for _, s := range mine {
		if !s.skipped && s.missing().latency {
			units = append(units, s.headUnit())
			cases = append(cases, s)
		}
	}
	if len(units) == 0 {
		return nil
	}
	records, err := c.Time(ctx, units)
	for i, r := range records {
		cases[i].facts.Latency.Head = measured(r)
	}
	return err
}

// A comparison is a pair to be timed, with the place of its record and the
// policy's questions about it.
type comparison struct {
	of        *kase
	pair      collect.Pair
	arm       *policy.Arm
	reference string
}

// comparisons are what is still to be timed against a base or a reference.
func comparisons(mine []*kase) []comparison {
	var out []comparison
	for _, s := range mine {
		if s.skipped {
			continue
		}
		l := &s.facts.Latency
		if s.missing().experiment {
			out = append(out, comparison{s, collect.Pair{Base: s.baseUnit(), Head: s.headUnit()}, &l.Experiment, ""})
		}
		for i, ref := range s.references {
			f := &l.References[i]
			if ok, _ := policy.Correct(f.Correctness); ok && ref.artifact != nil && f.Experiment.Record == nil {
				out = append(out, comparison{s, collect.Pair{Base: s.referenceUnit(ref), Head: s.headUnit(), Reference: true}, &f.Experiment, f.Name})
			}
		}
	}
	return out
}

// experiment times kernels against their bases and references, interleaved.
func (j *job) experiment(ctx context.Context, c *collect.Collector, mine []*kase) error {
	all := comparisons(mine)
	if len(all) == 0 {
		return nil
	}
	var pairs []collect.Pair
	for _, x := range all {
		pairs = append(pairs, x.pair)
	}
	budget := compare.Budget{WallSeconds: j.tree.policy.Budget.Seconds(), GPUSeconds: j.tree.policy.GPUBudget.Seconds()}
	records, err := c.Experiment(ctx, pairs, j.trials(all), budget, policy.Answered(j.tree.policy, j.facts()))
	for i, r := range records {
		*all[i].arm = measured(r)
	}
	if err == nil {
		err = j.standIn(ctx, c, all)
	}
	for _, x := range all {
		if l := &x.of.facts.Latency; l.Head.Record == nil {
			l.Head = headOf(*l)
		}
	}
	return err
}

// trials are the policy's questions about the comparisons.
func (j *job) trials(all []comparison) []collect.Trial {
	var out []collect.Trial
	for i, x := range all {
		k := x.of.kernel.facts
		k.Forced = j.Force
		for _, t := range j.tree.policy.Trials(&k, &x.of.facts) {
			if t.Reference == x.reference && !t.Advice {
				out = append(out, collect.Trial{Name: t.Name, Pair: i, Regime: t.Regime, Metric: t.Metric, Limits: t.Limits})
			}
		}
	}
	return out
}
