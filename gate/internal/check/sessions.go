package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/store"
)

// sessionGap is the time that has to lie between two sessions. Runs that follow
// closely meet one state of the device, and would pass for less variance
// between sessions than there is.
const sessionGap = time.Hour

// Bounds of a history: the oldest sessions are dropped, and what a long session
// measures beyond its bound lies with its records alone.
const (
	maxSessions        = 64
	maxSessionLaunches = 256
)

// keep writes a record, and the times that it holds into the history of their
// code.
func (j *job) keep(r *evidence.Record, raw map[string][]byte) error {
	if r.AA != nil && r.AA.Blocks < compare.FewestCalibrationBlocks {
		// A run that was cut short says less than any that stands there.
		if old, err := j.stores.write.Get(evidence.Calibration, r.Address, nil); err == nil && old.AA != nil && old.AA.Blocks > r.AA.Blocks {
			return nil
		}
	}
	if err := j.stores.write.Put(r, raw); err != nil {
		return err
	}
	if r.Tier != evidence.Latency || r.Failure != nil {
		return nil
	}
	if r.Experiment == nil {
		return j.addSession(r.Provenance, r.Address, r.Samples)
	}
	var base, head []evidence.Sample
	for _, b := range r.Experiment.Blocks {
		base, head = append(base, b.Base...), append(head, b.Head...)
	}
	other := r.Provenance
	other.Kernel = j.nameOf(*r.Base, other.Kernel)
	return errors.Join(j.addSession(r.Provenance, r.Address, head), j.addSession(other, *r.Base, base))
}

// nameOf is the kernel in the base's place of an experiment: a reference, or
// the kernel of that name at the base.
func (j *job) nameOf(at evidence.Address, base string) string {
	for _, k := range j.kernels {
		for _, s := range k.cases {
			for _, ref := range s.references {
				if ref.at == at {
					return ref.manifest.Name
				}
			}
		}
	}
	return base
}

// addSession adds samples of a run to the history at an address. A history that
// cannot be read is left as it is: it is no reason to stop measuring.
func (j *job) addSession(run evidence.Provenance, at evidence.Address, samples []evidence.Sample) error {
	launches, err := compare.NewSession(samples)
	if err != nil {
		return fmt.Errorf("adding to the sessions: %w", err)
	}
	history, err := j.stores.write.Get(evidence.Sessions, at, nil)
	switch {
	case errors.Is(err, store.ErrNotFound):
		history = &evidence.Record{Tier: evidence.Sessions, Address: at}
	case err != nil:
		j.notes = append(j.notes, "times were not added to a history: "+err.Error())
		return nil
	}
	history.Provenance = run
	history.Sessions = extend(history.Sessions, evidence.Session{Recorded: run.Recorded, Commit: run.Commit, Card: run.Card, Launches: launches})
	return j.stores.write.Put(history, nil)
}

// extend adds a session to a history, or its launches to the card's last one
// where that was less than sessionGap ago.
func extend(history []evidence.Session, s evidence.Session) []evidence.Session {
	for i := len(history) - 1; i >= 0; i-- {
		last := history[i]
		if last.Card != s.Card {
			continue
		}
		if !apart(last.Recorded, s.Recorded) {
			s.Launches = append(last.Launches, s.Launches...)
			s.Recorded = max(last.Recorded, s.Recorded)
			history = slices.Delete(history, i, i+1)
		}
		break
	}
	s.Launches = s.Launches[:min(len(s.Launches), maxSessionLaunches)]
	history = append(history, s)
	return history[max(0, len(history)-maxSessions):]
}

// apart reports whether two times, of which the second is a run's, belong to
// two sessions.
func apart(last, now string) bool {
	a, err := time.Parse(time.RFC3339, last)
	b, err2 := time.Parse(time.RFC3339, now)
	return err == nil && err2 == nil && b.Sub(a) >= sessionGap
}

// standIn brings sessions where the base was run and failed: those of its code
// that are stored, and the head's times by itself.
func (j *job) standIn(ctx context.Context, c *collect.Collector, all []comparison) error {
	var units []collect.Unit
	var cases []*kase
	for _, x := range all {
		f := x.arm.Record.Failure
		if x.reference != "" || f == nil || !f.OtherArm {
			continue
		}
		l := &x.of.facts.Latency
		l.Sessions = j.arm(evidence.Sessions, x.of.base, nil)
		if l.Sessions.Record == nil {
			continue
		}
		if l.Head.Record == nil || l.Head.Record.Samples == nil {
			l.Head = j.arm(evidence.Latency, x.of.head, nil)
		}
		if l.Head.Record == nil {
			units, cases = append(units, x.of.headUnit()), append(cases, x.of)
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
