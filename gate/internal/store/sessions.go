package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// sessionGap is the time that has to lie between two sessions. Runs that follow
// closely meet one state of the device, and would pass for less variance
// between sessions than there is.
const sessionGap = time.Hour

// Bounds of a history: the oldest sessions are dropped, and what a long session
// measures beyond its bound lies with its records alone.
const (
	maxSessions         = 64
	maxSessionProcesses = 256
)

// Keep writes a record, and the times that it holds into the history of their
// code. Against is the kernel in the base's place of an experiment.
func (s *Shelf) Keep(r *evidence.Record, against string, raw map[string][]byte) error {
	known := s.continued(r)
	err := s.Write.Put(r, raw)
	if errors.Is(err, errStands) {
		s.note(fmt.Sprintf("the %s of %s on %s was not stored: %v", r.Tier, r.Provenance.Kernel, r.Address.Case, err))
		err = nil
	}
	if err != nil || r.Tier != evidence.Latency || r.Failure != nil {
		return err
	}
	if r.Experiment == nil {
		return s.addSession(r.Provenance, r.Address, r.Samples)
	}
	var base, head []evidence.Sample
	for _, b := range r.Experiment.Rounds[known:] {
		base, head = append(base, b.Base...), append(head, b.Head...)
	}
	other := r.Provenance
	other.Kernel = against
	return errors.Join(s.addSession(r.Provenance, r.Address, head), s.addSession(other, *r.Base, base))
}

// continued is the number of a record's rounds that the record which it
// continues has, and that the history counts already.
func (s *Shelf) continued(r *evidence.Record) int {
	if r.Continues == "" || r.Experiment == nil {
		return 0
	}
	for _, from := range s.Read {
		old, err := from.Get(r.Key())
		if err != nil || old.Experiment == nil {
			continue
		}
		if digest, err := evidence.Digest(old); err == nil && digest == r.Continues {
			return min(len(old.Experiment.Rounds), len(r.Experiment.Rounds))
		}
	}
	return 0
}

// addSession adds samples of a run to the history at an address. A history that
// cannot be read is left as it is: it is not a reason to stop measuring.
func (s *Shelf) addSession(run evidence.Provenance, at evidence.Address, samples []evidence.Sample) error {
	processes, err := compare.SessionProcesses(samples)
	if err != nil {
		return fmt.Errorf("adding to the sessions: %w", err)
	}
	if len(processes) == 0 {
		return nil
	}
	k := evidence.Key{Tier: evidence.Sessions, At: at}
	err = s.Write.write(k, func(history *evidence.Record) (*evidence.Record, map[string][]byte, error) {
		if history == nil {
			if _, err := s.Write.Get(k); !errors.Is(err, errNotFound) {
				s.note("times were not added to a history: " + fmt.Sprint(err))
				return nil, nil, nil
			}
			history = &evidence.Record{Schema: evidence.Schema, Tier: evidence.Sessions, Address: at}
		}
		history.Provenance = run
		history.Sessions = extend(history.Sessions, evidence.Session{Recorded: run.Recorded, Commit: run.Commit, Card: run.Card, Processes: processes})
		return history, nil, nil
	})
	if err != nil {
		return fmt.Errorf("storing evidence: %w", err)
	}
	return nil
}

// joinSessions is a history with the sessions of two. Where two of one card lie
// within sessionGap, one is the other before it went on: the longer one stays.
func joinSessions(a, b *evidence.Record) *evidence.Record {
	all := slices.Concat(a.Sessions, b.Sessions)
	slices.SortStableFunc(all, func(x, y evidence.Session) int { return strings.Compare(x.Recorded, y.Recorded) })
	var kept []evidence.Session
	for _, s := range all {
		i := slices.IndexFunc(kept, func(k evidence.Session) bool { return k.Card == s.Card && !apart(k.Recorded, s.Recorded) })
		switch {
		case i < 0:
			kept = append(kept, s)
		case len(s.Processes) > len(kept[i].Processes):
			kept[i] = s
		}
	}
	joined := *better(b, a)
	joined.Sessions = kept[max(0, len(kept)-maxSessions):]
	return &joined
}

// extend adds a session to a history, or its processes to the card's last one
// where that was less than sessionGap ago.
func extend(history []evidence.Session, s evidence.Session) []evidence.Session {
	for i := len(history) - 1; i >= 0; i-- {
		last := history[i]
		if last.Card != s.Card {
			continue
		}
		if !apart(last.Recorded, s.Recorded) {
			s.Processes = append(last.Processes, s.Processes...)
			s.Recorded = max(last.Recorded, s.Recorded)
			history = slices.Delete(history, i, i+1)
		}
		break
	}
	s.Processes = s.Processes[:min(len(s.Processes), maxSessionProcesses)]
	history = append(history, s)
	return history[max(0, len(history)-maxSessions):]
}

// Together says which session of a history belongs to the one before it on its
// card, "" for none: they lie within one hour, and count as one where gate writes
// them.
func Together(history []evidence.Session) string {
	last := map[string]string{}
	for _, s := range slices.SortedFunc(slices.Values(history), func(x, y evidence.Session) int { return strings.Compare(x.Recorded, y.Recorded) }) {
		if before, ok := last[s.Card]; ok && !apart(before, s.Recorded) {
			return s.Recorded
		}
		last[s.Card] = s.Recorded
	}
	return ""
}

// apart reports whether two times, of which the second is a run's, belong to
// two sessions.
func apart(last, now string) bool {
	a, err := time.Parse(time.RFC3339, last)
	b, err2 := time.Parse(time.RFC3339, now)
	return err == nil && err2 == nil && b.Sub(a) >= sessionGap
}
