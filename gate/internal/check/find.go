package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/store"
)

// stores are where evidence is looked for: what the repository records, then
// what earlier runs of this user left.
type stores struct{ shared, local, write *store.Store }

func (s stores) get(tier evidence.Tier, a evidence.Address, base *evidence.Address) (*evidence.Record, error) {
	r, err := s.shared.Get(tier, a, base)
	if err == nil {
		return r, nil
	}
	if l, localErr := s.local.Get(tier, a, base); localErr == nil {
		return l, nil
	} else if errors.Is(err, store.ErrNotFound) {
		err = localErr
	}
	return nil, err
}

// machines are those that have evidence in either store, the shared first.
func (j *job) machines() ([]evidence.Machine, error) {
	var all []evidence.Machine
	seen := map[string]bool{}
	for _, s := range []*store.Store{j.stores.shared, j.stores.local} {
		list, err := s.Machines()
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if !seen[m.Key()] {
				seen[m.Key()] = true
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// wanted are the policy's machine names; without any, every machine will do.
func (j *job) wanted() []string {
	if len(j.tree.policy.Machines) == 0 {
		return []string{""}
	}
	return j.tree.policy.Machines
}

// find looks for the evidence of every kernel and case on every machine that
// the policy wants, and leaves a reason where there is none.
func (j *job) find(machines []evidence.Machine) error {
	for _, m := range machines {
		if err := j.namedOnce(m); err != nil {
			return err
		}
	}
	for _, k := range j.kernels {
		if k.head == nil {
			continue
		}
		for _, name := range j.wanted() {
			if err := j.findOn(k, name, machines); err != nil {
				return err
			}
		}
	}
	return nil
}

// namedOnce refuses a policy that asks for one machine under two names: its
// evidence would be judged twice.
func (j *job) namedOnce(m evidence.Machine) error {
	var names []string
	for _, name := range j.tree.policy.Machines {
		if m.Is(name) {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		return &UsageError{Msg: fmt.Sprintf("%s: machines: %q and %q are one machine, %s", j.tree.policy.File, names[0], names[1], m.GPU)}
	}
	return nil
}

// findOn chooses the machine with the most evidence for the kernel: all its
// figures come from one.
func (j *job) findOn(k *kernel, name string, machines []evidence.Machine) error {
	var best []*kase
	bestFound := -1
	for _, m := range machines {
		if name != "" && !m.Is(name) || !runs(k.arch, m.CC) {
			continue
		}
		cases, found, err := j.look(k, name, m.Key())
		if err != nil {
			return err
		}
		if found > bestFound {
			best, bestFound = cases, found
		}
	}
	if best == nil {
		cases, _, err := j.look(k, name, "")
		if err != nil {
			return err
		}
		best = cases
	}
	k.cases = append(k.cases, best...)
	return nil
}

// runs reports whether code for an architecture runs on a compute capability:
// the same major version, and a minor version that is not newer. Code for
// "sm_90a" runs on 9.0 alone.
func runs(arch, cc string) bool {
	major, minor, ok := strings.Cut(cc, ".")
	if !ok {
		return false
	}
	number := strings.TrimPrefix(arch, "sm_")
	if exact := strings.TrimRight(number, "af"); exact != number {
		return exact == major+minor
	}
	return strings.HasPrefix(number, major) && len(number) == len(major)+1 && number[len(major):] <= minor
}

func (j *job) look(k *kernel, name, key string) (cases []*kase, found int, err error) {
	for _, c := range k.manifest.Cases {
		s := &kase{kernel: k, of: c, machine: name, key: key, needs: j.needed(k), references: j.referencesOf(k)}
		s.facts = policy.CaseFacts{Name: c.Name, Machine: key}
		if key == "" {
			s.facts.Machine = name
		}
		if err := j.addresses(s); err != nil {
			return nil, 0, err
		}
		found += j.recall(s)
		cases = append(cases, s)
	}
	return cases, found, nil
}

func (j *job) addresses(s *kase) (err error) {
	if s.head, err = j.address(s.kernel.head, s.kernel, s.of, s.key); err != nil {
		return err
	}
	if s.kernel.base != nil {
		if s.base, err = j.address(s.kernel.base, s.kernel, s.of, s.key); err != nil {
			return err
		}
	}
	for _, ref := range s.references {
		if ref.artifact == nil {
			continue
		}
		if ref.at, err = j.address(ref.artifact, s.kernel, s.of, s.key); err != nil {
			return err
		}
	}
	return nil
}

// recall fills in what the stores hold, and returns how many records that is.
func (j *job) recall(s *kase) int {
	found := 0
	arm := func(wanted bool, tier evidence.Tier, a evidence.Address, base *evidence.Address) policy.Arm {
		if !wanted {
			return policy.Arm{}
		}
		got := j.arm(tier, a, base)
		if got.Record != nil {
			found++
		}
		return got
	}
	f := &s.facts
	f.Correctness = arm(true, evidence.Correctness, s.head, nil)
	f.Profile.Head = arm(s.needs.profile, evidence.Profile, s.head, nil)
	f.Profile.Base = arm(s.needs.baseProfile, evidence.Profile, s.base, nil)
	f.Latency.Experiment = arm(s.needs.experiment, evidence.Latency, s.head, &s.base)
	f.Latency.Head = arm(s.needs.latency, evidence.Latency, s.head, nil)
	f.Latency.Sessions = arm(s.needs.sessions, evidence.Sessions, s.base, nil)
	found += j.recallReferences(s)
	if f.Latency.Head.Record == nil && (s.needs.experiment || s.needs.references) && !s.needs.latency {
		f.Latency.Head = headOf(f.Latency)
		if alone := j.arm(evidence.Latency, s.head, nil); f.Latency.Head.Record == nil && alone.Record != nil {
			f.Latency.Head = alone // a figure to show, not a comparison
		}
	}
	if s.needs.calibration && s.key != "" {
		f.Calibration = j.calibration(s)
	}
	return found
}

// headOf takes the head's time from an experiment when it was not timed by
// itself.
func headOf(l policy.LatencyFacts) policy.Arm {
	all := []policy.Arm{l.Experiment}
	for _, ref := range l.References {
		all = append(all, ref.Experiment)
	}
	for _, a := range all {
		if a.Record != nil && a.Record.Failure == nil {
			return policy.Arm{Record: a.Record}
		}
	}
	if l.Experiment.Record != nil {
		return policy.Arm{Record: l.Experiment.Record}
	}
	return l.Head
}

// arm is the record at an address, or the reason why there is none.
func (j *job) arm(tier evidence.Tier, a evidence.Address, base *evidence.Address) policy.Arm {
	return j.armOr(tier, a, base, "head and base were never timed against each other")
}

// armOr says in the caller's words that two arms never met.
func (j *job) armOr(tier evidence.Tier, a evidence.Address, base *evidence.Address, apart string) policy.Arm {
	if a.Machine == "" {
		return policy.Arm{Missing: "no evidence of this code is recorded"}
	}
	if j.Force && !j.NoGPU && tier == evidence.Latency {
		return policy.Arm{Missing: "recorded times are set aside, as asked"}
	}
	r, err := j.stores.get(tier, a, base)
	switch {
	case errors.Is(err, store.ErrNotFound) && base != nil:
		return policy.Arm{Missing: fmt.Sprintf("%s on %s", apart, a.Machine)}
	case errors.Is(err, store.ErrNotFound):
		return policy.Arm{Missing: fmt.Sprintf("no %s evidence of this code is recorded on %s", tier, a.Machine)}
	case err != nil:
		return policy.Arm{Missing: err.Error()}
	case r.Experiment != nil && !r.Experiment.Ended():
		return policy.Arm{Missing: fmt.Sprintf("the experiment recorded on %s was %s", a.Machine, cutShort(r.Experiment))}
	case tier == evidence.Profile && j.lacks(r) != "":
		return policy.Arm{Missing: fmt.Sprintf("the recorded profile does not hold %s", j.lacks(r))}
	}
	return policy.Arm{Record: r, Source: policy.Reused}
}

func cutShort(e *evidence.Experiment) string {
	if e.Stopped == "" {
		return "interrupted"
	}
	return "cut short: " + e.Stopped
}

// lacks names a metric that the policy asks for and the record never held.
func (j *job) lacks(r *evidence.Record) string {
	for _, rule := range j.tree.policy.Rules {
		if rule.Metric.Tier != evidence.Profile {
			continue
		}
		if _, ok := r.Metrics[rule.Metric.Name]; !ok {
			return rule.Metric.Name
		}
	}
	return ""
}

// missing are the tiers of a case that still lack evidence.
func (s *kase) missing() needs {
	f := s.facts
	return needs{
		profile:     s.needs.profile && f.Profile.Head.Record == nil,
		baseProfile: s.needs.baseProfile && s.kernel.base != nil && f.Profile.Base.Record == nil,
		latency:     s.needs.latency && f.Latency.Head.Record == nil,
		experiment:  s.needs.experiment && s.kernel.base != nil && f.Latency.Experiment.Record == nil,
		references:  s.lacksReference(),
	}
}

func (s *kase) complete() bool {
	return s.facts.Correctness.Record != nil && s.missing() == needs{}
}
