package store

import (
	"fmt"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A Found is a record with the place of its file. One that is refused may be
// damaged so much that nothing of it is known; its Record is then nil.
type Found struct {
	Place   string
	Record  *evidence.Record
	Refused error
}

// Find reads and audits the records that fit. A file that cannot be read is
// found as well: it may have been one of them.
func (s *Store) Find(fits func(*evidence.Record) bool) ([]Found, error) {
	leaves, err := s.leaves()
	if err != nil {
		return nil, err
	}
	var out []Found
	for _, l := range leaves {
		for _, name := range l.files {
			if !recordName.MatchString(name) {
				continue
			}
			path := filepath.Join(l.dir, name)
			r, err := decode(path)
			switch {
			case err != nil:
				out = append(out, Found{Place: path, Refused: err})
			case fits(r):
				out = append(out, s.stands(path, r))
			}
		}
	}
	return out, nil
}

// Find is what the stores of a shelf have that fits, under each key the record
// that answers.
func (s *Shelf) Find(fits func(*evidence.Record) bool) ([]Found, error) {
	var out []Found
	at := map[evidence.Key]int{}
	for _, from := range s.Read {
		found, err := from.Find(fits)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f.Record == nil || f.Refused != nil {
				out = append(out, f)
				continue
			}
			i, twice := at[f.Record.Key()]
			switch {
			case !twice:
				at[f.Record.Key()] = len(out)
				out = append(out, f)
			case s.choose(out[i].Record, f.Record) == f.Record:
				out[i] = f
			}
		}
	}
	return out, nil
}

// stands is a record of the store as a reader of its key finds it.
func (s *Store) stands(path string, r *evidence.Record) Found {
	rel, err := place(r.Key())
	if err == nil && filepath.Join(s.dir, rel) != path {
		err = fmt.Errorf("its address belongs at %s", rel)
	}
	if err == nil {
		_, err = s.Get(r.Key())
	}
	return Found{Place: path, Record: r, Refused: err}
}

// File reads and audits one record by the path of its file, wherever it lies.
func (a Audit) File(path string) (Found, error) {
	data, err := disk.ReadFile(path, evidence.MaxRecord)
	if err != nil {
		return Found{}, fmt.Errorf("reading evidence: %w", err)
	}
	r, err := evidence.Decode(data)
	if err != nil {
		return Found{Place: path, Refused: err}, nil
	}
	if _, err = place(r.Key()); err == nil {
		_, err = Open("").Audited(a).read(path, data, r.Key())
	}
	return Found{Place: path, Record: r, Refused: err}, nil
}
