package check

import (
	"context"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
)

func (s *kase) unit(a *build.Artifact, at evidence.Address) collect.Unit {
	return collect.Unit{Kernel: s.kernel.name, Op: s.kernel.manifest.Op, Case: s.of, Artifact: a, Address: at}
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

// experiment times changed kernels against the base's, interleaved.
func (j *job) experiment(ctx context.Context, c *collect.Collector, mine []*kase) error {
	var pairs []collect.Pair
	var cases []*kase
	for _, s := range mine {
		if !s.skipped && s.missing().experiment {
			pairs = append(pairs, collect.Pair{Base: s.baseUnit(), Head: s.headUnit()})
			cases = append(cases, s)
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	records, err := c.Experiment(ctx, pairs, j.trials(cases), j.tree.policy.Budget)
	for i, r := range records {
		f := &cases[i].facts.Latency
		f.Experiment = measured(r)
		if f.Head.Record == nil {
			f.Head = headOf(*f)
		}
	}
	return err
}

// trials are the policy's questions about the cases, which stand in the order
// of the pairs.
func (j *job) trials(cases []*kase) []collect.Trial {
	var out []collect.Trial
	for i, s := range cases {
		k := s.kernel.facts
		k.Forced = j.Force
		for _, t := range j.tree.policy.Trials(&k, &s.facts) {
			out = append(out, collect.Trial{Name: t.Name, Pair: i, Regime: t.Regime, Metric: t.Metric, Limits: t.Limits})
		}
	}
	return out
}
