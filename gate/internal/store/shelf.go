package store

import (
	"errors"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A Shelf is where a run looks for evidence, the repository's store before the
// user's, and where it keeps what it measures.
type Shelf struct {
	Read  []*Store
	Write *Store
	Aside func(evidence.Key) string // why a stored record is set aside, or ""
	Notes []string                  // what went wrong and stops nothing

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
	return all, nil
}

// get reads a record from the first store that has it whole.
func (s *Shelf) get(k evidence.Key) (*evidence.Record, error) {
	if r := s.got[k]; r != nil {
		return r, nil
	}
	first := error(ErrNotFound)
	for _, from := range s.Read {
		r, err := from.Get(k)
		if err == nil {
			if s.got == nil {
				s.got = map[evidence.Key]*evidence.Record{}
			}
			s.got[k] = r
			return r, nil
		}
		if errors.Is(first, ErrNotFound) {
			first = err
		}
	}
	return nil, first
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
	if s.aside(n.Key) != "" {
		return false
	}
	r, err := s.get(n.Key)
	if err != nil {
		return false
	}
	var one evidence.Ledger
	one.Put(r, evidence.Reused)
	return one.Find(n).Record != nil
}

// Load enters what the stores hold into a ledger. It never replaces a record
// that is there already.
func (s *Shelf) Load(needs []*evidence.Need, into *evidence.Ledger) {
	for _, n := range needs {
		if n.Tier == evidence.Static || n.Never != "" || n.At.Machine == "" {
			continue
		}
		if e := into.Find(n); e.Record != nil || e.Tried {
			continue
		}
		if why := s.aside(n.Key); why != "" {
			into.Refuse(n.Key, why)
			continue
		}
		r, err := s.get(n.Key)
		delete(s.got, n.Key) // the next reading asks the stores again
		switch {
		case err == nil:
			into.Put(r, evidence.Reused)
		case !errors.Is(err, ErrNotFound):
			into.Refuse(n.Key, err.Error())
		}
	}
}
