package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Pruned is what a prune removed, or would remove, by paths below the store.
type Pruned struct {
	Records []string
	Raw     []string // raw inputs that no record names, and what killed writers left
	Bytes   int64
}

// Prune removes the records of code that is not needed, on whatever machine it
// was measured, and the files that no record names. It touches nothing that
// this package did not write. Dry only says what it would do.
func (s *Store) Prune(ctx context.Context, needed []evidence.Address, dry bool) (Pruned, error) {
	p := pruner{dry: dry, cases: map[string]bool{}, codes: map[string]bool{}}
	for _, a := range needed {
		a.Machine = "any"
		rel, err := place(evidence.Key{Tier: evidence.Correctness, At: a})
		if err != nil {
			return Pruned{}, err
		}
		p.codes[a.Identity.Short()] = true
		p.cases[filepath.Join(a.Identity.Short(), filepath.Base(filepath.Dir(rel)))] = true
	}
	leaves, err := s.leaves()
	for _, l := range leaves {
		err = errors.Join(err, p.leaf(l))
	}
	if s.bucket != nil && !dry && err == nil {
		err = s.forget(ctx, p.done.Records)
	}
	return p.done, err
}

// A pruner goes through a store. What is needed it knows by the names of
// folders, so that a record which cannot be read is judged like any other.
type pruner struct {
	dry          bool
	cases, codes map[string]bool
	done         Pruned
}

// leaf prunes one folder while nobody writes into it.
func (p *pruner) leaf(l leaf) error {
	if !p.dry {
		f, err := lockFolder(l.dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody else pruned it
		}
		if err != nil {
			return err
		}
		defer f.Close()
	}
	list, err := entries(l.dir)
	if err != nil {
		return err
	}
	named, unknown := map[string]bool{}, false
	for _, e := range list {
		m := recordName.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		needed := p.cases[filepath.Join(l.code, l.kase)] || e.Name() == "static.json" && p.codes[l.code]
		if !needed || m[1] != "" && !p.codes[m[1]] {
			err = errors.Join(err, p.remove(l, e.Name(), &p.done.Records))
			continue
		}
		r, bad := decode(filepath.Join(l.dir, e.Name()))
		if bad != nil {
			unknown = true // which files it names is not known: all of them stay
			continue
		}
		for _, raw := range r.Raw {
			named[raw.Name] = true
		}
	}
	for _, e := range list {
		loose := rawName.MatchString(e.Name()) && !named[e.Name()] && !unknown
		if e.Type().IsRegular() && (loose || tempName.MatchString(e.Name())) {
			err = errors.Join(err, p.remove(l, e.Name(), &p.done.Raw))
		}
	}
	if p.dry {
		return err
	}
	return errors.Join(err, removeEmpty(l))
}

func (p *pruner) remove(l leaf, name string, list *[]string) error {
	path := filepath.Join(l.dir, name)
	info, err := os.Lstat(path)
	if err == nil && !p.dry {
		err = os.Remove(path)
	}
	if err == nil {
		*list = append(*list, filepath.Join(l.machine, l.code, l.kase, name))
		p.done.Bytes += info.Size()
	}
	return err
}

// removeEmpty removes the folders of a leaf that hold nothing any more.
func removeEmpty(l leaf) error {
	for dir, up := l.dir, 0; up < 3; dir, up = filepath.Dir(dir), up+1 {
		err := unix.Rmdir(dir)
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
