package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A Shelf is where a run looks for evidence, the repository's store before the
// user's, and where it keeps what it measures.
type Shelf struct {
	Read  []*Store
	Write *Store
	Aside func(evidence.Key) string // why a stored record is set aside, or ""
	Notes []string                  // what went wrong and stops nothing

	// Beside is asked for what no store has, and returns nil for nothing. It
	// comes from somebody who is not trusted: it replaces nothing that a store
	// has. Elsewhere are the machines that its records name.
	Beside    func(k evidence.Key) (*evidence.Record, error)
	Elsewhere []evidence.Machine

	// Near says how many commits lie between a commit and the base that it is an
	// ancestor of; false where it is none. Nil where there is no base.
	Near func(commit string) (int, bool)

	got map[evidence.Key]*evidence.Record
}

// Machines are those that have evidence, in the order in which stores are read.
func (s *Shelf) Machines() ([]evidence.Machine, error) {
	var all []evidence.Machine
	seen := map[string]bool{}
	for _, from := range s.Read {
		list, err := from.Machines()
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
	for _, m := range s.Elsewhere {
		if !seen[m.Key()] {
			seen[m.Key()] = true
			all = append(all, m)
		}
	}
	return all, nil
}

// get reads the record that answers most among those of all stores. One that is
// refused is named in the notes, whatever another store holds.
func (s *Shelf) get(k evidence.Key) (*evidence.Record, error) {
	if r := s.got[k]; r != nil {
		return r, nil
	}
	first := error(errNotFound)
	var found *evidence.Record
	for _, from := range s.Read {
		r, err := from.Get(k)
		switch {
		case err == nil && found == nil:
			found = r
		case err == nil:
			found = s.choose(found, r)
		case !errors.Is(err, errNotFound):
			s.note("a recorded piece of evidence is refused: " + err.Error())
			if errors.Is(first, errNotFound) {
				first = err
			}
		}
	}
	if found == nil && s.Beside != nil && errors.Is(first, errNotFound) {
		r, err := s.Beside(k)
		if err != nil {
			return nil, err
		}
		found = r
	}
	if found == nil {
		return nil, first
	}
	if s.got == nil {
		s.got = map[evidence.Key]*evidence.Record{}
	}
	s.got[k] = found
	return found, nil
}

// Inputs are the raw inputs of a record that some store holds, by name.
func (s *Shelf) Inputs(r *evidence.Record) (map[string][]byte, error) {
	want, err := evidence.Digest(r)
	if err != nil {
		return nil, err
	}
	for _, from := range s.Read {
		there, err := from.Get(r.Key())
		if err != nil {
			continue
		}
		if digest, err := evidence.Digest(there); err == nil && digest == want {
			return from.inputs(there)
		}
	}
	return nil, errNotFound
}

// Absent reports whether an error says that a store has no such record.
func Absent(err error) bool { return errors.Is(err, errNotFound) }

// join makes one record of two stores' under one key: the better one, and of
// histories one that holds all sessions. Between equals, it is the first.
func join(first, second *evidence.Record) *evidence.Record {
	if first.Tier == evidence.Sessions {
		return joinSessions(first, second)
	}
	return better(second, first)
}

// choose makes one record of two stores' under one key: that of the nearest
// ancestor of the base, where both are complete and only the commit tells them
// apart, and else what join makes.
func (s *Shelf) choose(first, second *evidence.Record) *evidence.Record {
	at, other := first.Provenance.Commit, second.Provenance.Commit
	if s.Near == nil || at == other || first.Tier == evidence.Sessions || complete(first) != complete(second) {
		return join(first, second)
	}
	near, is := s.Near(at)
	nearer, also := s.Near(other)
	switch {
	case is && (!also || near < nearer):
		return first
	case also && (!is || nearer < near):
		return second
	case !is && !also:
		s.note("of some code several records are kept, and none was made at an ancestor of the base: the newest of each is used")
	}
	return join(first, second)
}

func (s *Shelf) note(text string) {
	if !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// aside says why a record is not read although it may be stored.
func (s *Shelf) aside(k evidence.Key) string {
	if s.Aside == nil {
		return ""
	}
	return s.Aside(k)
}

// Holds reports whether a store has a record that answers a need.
func (s *Shelf) Holds(n *evidence.Need) bool {
	if s.aside(*n.Key) != "" {
		return false
	}
	r, err := s.get(*n.Key)
	if err != nil {
		return false
	}
	var one evidence.Ledger
	one.Put(r, evidence.Reused)
	return one.Find(n).Record != nil
}

// Load enters what the stores hold into a ledger. It never replaces a record
// that is there already. All correctness records of one op and case have to
// hold the same input classes: what one of them lacks was left out of it.
func (s *Shelf) Load(needs []*evidence.Need, into *evidence.Ledger) {
	for _, n := range needs {
		if n.Tier == evidence.Static || n.Never != "" || n.At.Machine == "" {
			continue
		}
		if e := into.Find(n); e.Record != nil || e.Earlier != nil || e.Tried {
			continue
		}
		if why := s.aside(*n.Key); why != "" {
			into.Refuse(*n.Key, why)
			continue
		}
		r, err := s.get(*n.Key)
		delete(s.got, *n.Key) // the next reading asks the stores again
		switch {
		case err == nil:
			into.Put(r, evidence.Reused)
		case !errors.Is(err, errNotFound):
			into.Refuse(*n.Key, err.Error())
		}
	}
	refuseLacking(needs, into)
}

// refuseLacking refuses recorded checks that lack an input class on which
// another kernel was checked by the same harness, op and case.
func refuseLacking(needs []*evidence.Need, l *evidence.Ledger) {
	classes := map[string][]string{} // by harness id, which covers op and case
	for _, n := range needs {
		if r := l.Find(n).Record; r != nil && r.Tier == evidence.Correctness && r.Failure == nil {
			for _, c := range r.Checks {
				if !slices.Contains(classes[n.At.Harness], c.Class) {
					classes[n.At.Harness] = append(classes[n.At.Harness], c.Class)
				}
			}
		}
	}
	for _, n := range needs {
		e := l.Find(n)
		if n.Tier != evidence.Correctness || !e.Measured() || e.Source != evidence.Reused {
			continue
		}
		for _, class := range classes[n.At.Harness] {
			if !slices.ContainsFunc(e.Record.Checks, func(c evidence.Check) bool { return c.Class == class }) {
				l.Refuse(*n.Key, fmt.Sprintf("the correctness recorded on %s lacks the input class %q, on which other kernels of this op were checked", n.At.Machine, class))
				break
			}
		}
	}
}

// Share copies into the store that is written what the other stores hold of
// what is needed, with the raw inputs. It returns the number of records.
func (s *Shelf) Share(needs []*evidence.Need) (copied int, err error) {
	for _, k := range s.shared(needs) {
		for _, from := range s.Read {
			if from == s.Write {
				continue
			}
			done, err := s.Write.adopt(from, k)
			if err != nil {
				return copied, err
			}
			if done {
				copied++
			}
		}
	}
	return copied, nil
}

// shared are the keys of what is needed, and of the histories of its times.
func (s *Shelf) shared(needs []*evidence.Need) []evidence.Key {
	var out []evidence.Key
	add := func(k evidence.Key) {
		if s.aside(k) == "" && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, n := range needs {
		if n.Tier == evidence.Static || n.Never != "" || n.At.Machine == "" {
			continue
		}
		if add(*n.Key); n.Tier == evidence.Latency {
			add(evidence.Key{Tier: evidence.Sessions, At: n.At})
		}
	}
	return out
}

// adopt copies a record from another store where this one has none that is as
// good. A record that stands is not replaced by a newer one: what was measured
// elsewhere says nothing against it.
func (s *Store) adopt(from *Store, k evidence.Key) (done bool, err error) {
	theirs, err := from.Get(k)
	if err != nil || !complete(theirs) {
		return false, nil // nothing to copy; a reader names what is refused
	}
	rel, err := place(k)
	if err != nil {
		return false, err
	}
	packed, err := readRaw(filepath.Join(from.dir, filepath.Dir(rel)), theirs)
	if err != nil {
		return false, nil
	}
	err = s.write(k, func(old *evidence.Record) (*evidence.Record, map[string][]byte, error) {
		if old != nil && old.Tier == evidence.Sessions {
			joined := joinSessions(old, theirs)
			if len(joined.Sessions) == len(old.Sessions) {
				return nil, nil, nil
			}
			theirs = joined
		} else if old != nil && complete(old) {
			return nil, nil, nil
		}
		done = true
		return theirs, packed, nil
	})
	if err != nil {
		return false, fmt.Errorf("storing evidence: %w", err)
	}
	return done, nil
}
