package collect

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Alone and together are as what records are begun.
func (c *Bench) alone(states []evidence.CacheState) evidence.Open {
	return evidence.Open{Plan: fmt.Sprintf("%d processes%s", singleProcesses, c.again()), States: states}
}

func (c *Bench) together(p compare.Plan, states []evidence.CacheState) evidence.Open {
	return evidence.Open{Plan: fmt.Sprintf("rounds of %d + %d, looks after %v pairs, alpha %g, beta %g%s", p.PerArm, p.PerArm, p.Looks, p.Alpha, p.Beta, c.again()), States: states}
}

// again tells apart what is measured because somebody asks for it again: it goes on
// with nothing that was there before he asked.
func (c *Bench) again() string {
	if c.force {
		return ", measured anew"
	}
	return ""
}

// unfinished is what a run before this one measured under a key and did not
// finish, with its raw inputs; nil where there is nothing to go on with. What is
// damaged, or was begun otherwise, is named in the notes and measured anew.
func (c *Bench) unfinished(k evidence.Key, as evidence.Open, continues string) (*evidence.Record, map[string][]byte) {
	if c.open == nil {
		return nil, nil
	}
	r, raw, err := c.open.Find(k)
	if err != nil {
		c.Notes = append(c.Notes, "what a run before this one had measured is refused: "+err.Error())
		return nil, nil
	}
	if r == nil {
		return nil, nil
	}
	if why := c.strange(r, as, continues); why != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("the unfinished %s of %s on %s is not continued: %s", r.Tier, r.Provenance.Kernel, r.Address.Case, why))
		return nil, nil
	}
	return r, raw
}

// strange says why a record that is not finished cannot be gone on with here.
func (c *Bench) strange(r *evidence.Record, as evidence.Open, continues string) string {
	switch {
	case r.Open == nil:
		return "it does not say as what it was begun"
	case r.Provenance.Card != evidence.CardOf(c.device.UUID):
		return "it was measured on another card"
	case r.Open.Plan != as.Plan:
		return fmt.Sprintf("it was begun by another plan (%s)", r.Open.Plan)
	case !slices.Equal(r.Open.States, as.States):
		return fmt.Sprintf("it holds the states %q of the caches, and %q are asked for", r.Open.States, as.States)
	case r.Continues != continues:
		return "it goes on with another record than the one that is there"
	}
	return ""
}

// save keeps what is measured so far. A run without a place for it goes without.
func (c *Bench) save(r *evidence.Record, as evidence.Open, raw map[string][]byte) error {
	if c.open == nil {
		return nil
	}
	r.Open = &as
	setAbsent(r, raw)
	return c.open.Save(r, raw)
}

// finish keeps a record that is whole, and forgets what was kept of it before.
func (c *Bench) finish(r *evidence.Record, against string, raw map[string][]byte) error {
	setAbsent(r, raw)
	if err := c.keep(r, against, raw); err != nil || c.open == nil {
		return err
	}
	return c.open.Remove(r.Key())
}

// Continues reports whether an experiment that is stored can be gone on with
// here: on its card, in its states of the caches, those aside that its case cannot have.
func (c *Bench) Continues(r *evidence.Record, states []evidence.CacheState) bool {
	if r.Experiment == nil || len(r.Experiment.Rounds) == 0 || r.Provenance.Card != evidence.CardOf(c.device.UUID) || r.Address.Machine != c.Machine.Key() {
		return false
	}
	more := func(s evidence.Sample) bool { return !slices.Contains(states, s.CacheState) }
	lacks := func(s evidence.CacheState) bool { return !r.Timed(s) && r.Untimed(s) == "" }
	return !slices.ContainsFunc(r.Experiment.Rounds[0].Head, more) && !slices.ContainsFunc(states, lacks)
}
