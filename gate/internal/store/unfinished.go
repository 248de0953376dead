package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// unfinishedAge is how long what was not finished is kept.
const unfinishedAge = 30 * 24 * time.Hour

// Unfinished is where records lie while they are being measured, one under each
// key, so that a run that is cut short can be continued. Nothing in it is an
// answer.
type Unfinished struct{ store *Store }

// OpenUnfinished names a folder. What lies in it is audited when it is read.
func OpenUnfinished(dir string, a Audit) *Unfinished { return &Unfinished{Open(dir).Audited(a)} }

// Save writes a record as far as it was measured, in the place of what was there
// under its key.
func (u *Unfinished) Save(r *evidence.Record, raw map[string][]byte) error {
	packed, err := pack(r, raw)
	if err == nil {
		err = u.save(r, packed)
	}
	if err != nil {
		return fmt.Errorf("keeping what is measured: %w", err)
	}
	return nil
}

func (u *Unfinished) save(r *evidence.Record, packed map[string][]byte) error {
	rel, err := place(r.Key())
	if err != nil {
		return err
	}
	data, err := evidence.Encode(r)
	if err != nil {
		return err
	}
	return u.store.locked(filepath.Dir(rel), func(dir string) error {
		// Every kernel is saved after every process, and what a power cut takes away is
		// measured again: nobody waits for the disk.
		if err := writeRecord(filepath.Join(u.store.dir, rel), data, packed, disk.ReplaceFile); err != nil {
			return err
		}
		return removeLoose(dir)
	})
}

// Find returns what was measured under a key, with its raw inputs by name, and
// nothing where there is nothing. What cannot be read or contradicts itself is
// an error that names its file.
func (u *Unfinished) Find(k evidence.Key) (*evidence.Record, map[string][]byte, error) {
	r, err := u.store.Get(k)
	if errors.Is(err, errNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	raw, err := u.store.inputs(r)
	return r, raw, err
}

// Remove takes away what lies under a key.
func (u *Unfinished) Remove(k evidence.Key) error {
	rel, err := place(k)
	if err != nil {
		return err
	}
	path := filepath.Join(u.store.dir, rel)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = u.store.locked(filepath.Dir(rel), func(dir string) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(removeLoose(dir), removeEmpty(leaf{dir: dir}))
	})
	if err != nil {
		return fmt.Errorf("removing what is finished: %w", err)
	}
	return nil
}

// Forget removes what lies under the key of a record that is stored: a run that was
// killed after it had stored the record left it there. What goes on with the record, or
// is newer because times were asked for anew, stays.
func (u *Unfinished) Forget(stored *evidence.Record) error {
	left, err := u.store.Get(stored.Key())
	if err != nil {
		return nil // nothing lies there that a run would continue
	}
	digest, err := evidence.Digest(stored)
	if err != nil || left.Continues == digest || dateOf(left).After(dateOf(stored)) {
		return err
	}
	return u.Remove(stored.Key())
}

// Sweep removes what nobody went on with for long.
func (u *Unfinished) Sweep(now time.Time) error {
	leaves, err := u.store.leaves()
	for _, l := range leaves {
		old := slices.DeleteFunc(slices.Clone(l.files), func(name string) bool {
			info, err := os.Lstat(filepath.Join(l.dir, name))
			return err != nil || now.Sub(info.ModTime()) < unfinishedAge
		})
		for _, name := range old {
			err = errors.Join(err, os.Remove(filepath.Join(l.dir, name)))
		}
		err = errors.Join(err, removeEmpty(l))
	}
	return err
}

// removeLoose removes the raw inputs that no record of a folder names. The
// caller holds the folder's lock. A record that cannot be read keeps all.
func removeLoose(dir string) error {
	list, err := entries(dir)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, e := range list {
		if filepath.Ext(e.Name()) != ".json" {
			continue
		}
		r, err := decode(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil
		}
		for _, raw := range r.Raw {
			named[raw.Name] = true
		}
	}
	for _, e := range list {
		if rawName.MatchString(e.Name()) && !named[e.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// inputs are the raw inputs of a record that lies here, by name and unpacked.
func (s *Store) inputs(r *evidence.Record) (map[string][]byte, error) {
	rel, err := place(r.Key())
	if err != nil {
		return nil, err
	}
	packed, err := readRaw(filepath.Join(s.dir, filepath.Dir(rel)), r)
	if err != nil {
		return nil, err
	}
	return unpackAll(packed, maxRaw)
}
