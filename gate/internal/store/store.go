// Package store keeps evidence by address in a directory: one JSON record a
// tier, its raw inputs beside it, compressed. Records are written whole or not
// at all. One that contradicts its place, its raw inputs or itself is refused.
package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
)

// errNotFound is returned where there is no record at an address.
var errNotFound = errors.New("no evidence is recorded")

// A Store is a directory of records.
type Store struct {
	dir    string
	audit  Audit
	bucket *bucket // that the folder is a copy of; nil for most
}

// Open names a directory; it need not exist until something is put into it.
func Open(dir string) *Store { return (&Store{dir: dir}).Audited(Audit{}) }

// Audited is the store with an audit of every record that is read or written.
func (s *Store) Audited(a Audit) *Store {
	return &Store{dir: s.dir, audit: a.complete(), bucket: s.bucket}
}

var safe = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// place is the record's path below the directory. Every part is checked,
// because addresses come from files that others wrote.
func place(k evidence.Key) (string, error) {
	a := k.At
	if k.Tier == evidence.Static {
		return joined(a.Machine, a.Identity.Short(), a.Case, "static.json")
	}
	if len(a.Harness) < 8 || !a.Known() || a.Op == "" || a.Case == "" {
		return "", errors.New("the address is not complete")
	}
	name := k.Name()
	if k.Compares() {
		name += "-vs-" + k.Base.Identity.Short()
	}
	return joined(a.Machine, a.Identity.Short(), a.Op+"-"+a.Case+"-"+a.Harness[:8], name+".json")
}

func joined(parts ...string) (string, error) {
	for _, p := range parts {
		if !safe.MatchString(p) || p[0] == '.' {
			return "", fmt.Errorf("%q cannot be part of an address", p)
		}
	}
	return filepath.Join(parts...), nil
}

// Get returns the record under a key. A record that is there but cannot be
// read, belongs elsewhere or contradicts itself is an error, never "not found".
func (s *Store) Get(k evidence.Key) (*evidence.Record, error) {
	rel, err := place(k)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, rel)
	var last []byte
	for {
		data, err := disk.ReadFile(path, evidence.MaxRecord)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errNotFound
		}
		if err != nil {
			return nil, fmt.Errorf("reading evidence: %w", err)
		}
		r, err := s.read(path, data, k)
		if err == nil {
			return r, nil
		}
		if bytes.Equal(data, last) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		last = data // a newer record may have replaced this one, and its raw inputs be gone
	}
}

// read makes a record of the content of its file.
func (s *Store) read(path string, data []byte, k evidence.Key) (*evidence.Record, error) {
	r, err := evidence.Decode(data)
	if err != nil {
		return nil, err
	}
	if err := belongs(r, k); err != nil {
		return nil, err
	}
	return r, s.audit.record(path, data, r)
}

// belongs says why a record is not the one under a key.
func belongs(r *evidence.Record, k evidence.Key) error {
	if r.Key() != k {
		return errors.New("the record is of another code, case, machine or harness than its place says")
	}
	key := r.Provenance.Machine.Key()
	if r.Tier == evidence.Static {
		key = evidence.ToolchainKey(r.Provenance.Compiler)
	}
	if key != k.At.Machine {
		return fmt.Errorf("the record was taken on %s, its place says %s", key, k.At.Machine)
	}
	return nil
}

// compress writes gzip without time stamp or name: same input, same bytes.
func compress(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Machines lists the machines that have evidence here, by key. A folder whose
// records cannot be read contributes nothing; Get reports the damage when the
// record itself is asked for.
func (s *Store) Machines() ([]evidence.Machine, error) {
	leaves, err := s.leaves()
	if err != nil {
		return nil, err
	}
	var machines []evidence.Machine
	for _, l := range leaves {
		if n := len(machines); n > 0 && machines[n-1].Key() == l.machine {
			continue
		}
		for _, name := range l.files {
			if !recordName.MatchString(name) {
				continue
			}
			if r, err := decode(filepath.Join(l.dir, name)); err == nil && r.Provenance.Machine.Key() == l.machine {
				machines = append(machines, r.Provenance.Machine)
				break
			}
		}
	}
	return machines, nil
}

// Outdated counts the records of code that an older gate identified, by other
// rules than this one's, so that nothing finds them.
func (s *Store) Outdated() int {
	machines, _ := folders(s.dir, machineName)
	n := 0
	for _, m := range machines {
		codes, _ := folders(filepath.Join(s.dir, m), codeName)
		for _, c := range codes {
			if identity.Named(c) {
				continue
			}
			records, _ := filepath.Glob(filepath.Join(escape(s.dir), m, c, "*", "*.json"))
			n += len(records)
		}
	}
	return n
}

// escape makes a path mean itself in a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Records reads every record, in the order of their places.
func (s *Store) Records() ([]*evidence.Record, error) {
	leaves, err := s.leaves()
	if err != nil {
		return nil, err
	}
	var records []*evidence.Record
	for _, l := range leaves {
		for _, name := range l.files {
			if !recordName.MatchString(name) {
				continue
			}
			r, err := decode(filepath.Join(l.dir, name))
			if err != nil {
				return nil, err
			}
			records = append(records, r)
		}
	}
	return records, nil
}

func decode(path string) (*evidence.Record, error) {
	data, err := disk.ReadFile(path, evidence.MaxRecord)
	if err != nil {
		return nil, fmt.Errorf("reading evidence: %w", err)
	}
	r, err := evidence.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// measured are the tiers of records with raw inputs.
var measured = evidence.Names(append(slices.Clone(evidence.Order[1:]), evidence.Calibration), "|")

// What Put and Keep write. Nothing else in a store is read or removed.
var (
	machineName = regexp.MustCompile(`^[a-z0-9-]+-[0-9a-f]{8}$`)
	codeName    = regexp.MustCompile(`^(?:v[0-9]+)?[0-9a-f]{1,12}-(?:v[0-9]+)?[0-9a-f]{1,12}$`)
	caseName    = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+-[0-9a-f]{8}|sm_[0-9]+[af]?)$`)
	recordName  = regexp.MustCompile(`^(?:` + measured + `|sanitizer-(?:` + strings.Join(evidence.Sanitizers, "|") + `)|static|sessions)(?:-vs-((?:v[0-9]+)?[0-9a-f]{1,12}-(?:v[0-9]+)?[0-9a-f]{1,12}))?\.json$`)
	rawName     = regexp.MustCompile(`^(` + measured + `)\.([0-9a-f]{8})\.([A-Za-z0-9_.-]+)\.gz$`)
	tempName    = regexp.MustCompile(`^\.tmp-[0-9]+$`)
)

// A leaf is a folder of records: one code on one case, measured on one machine.
type leaf struct {
	machine, code, kase string // names of the folders
	dir                 string
	files               []string // regular files, by name
}

// leaves lists the folders of records in the order of their places. Links are
// not followed, and names are taken as they are.
func (s *Store) leaves() ([]leaf, error) {
	machines, err := folders(s.dir, machineName)
	var out []leaf
	for _, m := range machines {
		codes, more := folders(filepath.Join(s.dir, m), codeName)
		err = errors.Join(err, more)
		for _, c := range codes {
			cases, more := folders(filepath.Join(s.dir, m, c), caseName)
			err = errors.Join(err, more)
			for _, k := range cases {
				l := leaf{machine: m, code: c, kase: k, dir: filepath.Join(s.dir, m, c, k)}
				entries, more := entries(l.dir)
				err = errors.Join(err, more)
				for _, e := range entries {
					if e.Type().IsRegular() {
						l.files = append(l.files, e.Name())
					}
				}
				out = append(out, l)
			}
		}
	}
	return out, err
}

func folders(dir string, named *regexp.Regexp) (names []string, err error) {
	list, err := entries(dir)
	for _, e := range list {
		if e.IsDir() && named.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// entries lists a folder. One that is not there, or was removed meanwhile, is
// empty.
func entries(dir string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing evidence: %w", err)
	}
	return list, nil
}
