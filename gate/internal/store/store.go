// Package store keeps evidence by address in a directory: one JSON record a
// tier, its raw inputs beside it, compressed. Records are written whole or not
// at all, and a record found at an address it does not carry is refused.
package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// ErrNotFound is returned where there is no record at an address.
var ErrNotFound = errors.New("no evidence is recorded")

// A Store is a directory of records.
type Store struct{ dir string }

// Open names a directory; it need not exist until something is put into it.
func Open(dir string) *Store { return &Store{dir: dir} }

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

var safe = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// place is the record's path below the directory. Every part is checked,
// because addresses come from files that others wrote.
func place(k evidence.Key) (string, error) {
	a := k.At
	if len(a.Harness) < 8 || !a.Known() || a.Op == "" || a.Case == "" {
		return "", errors.New("the address is not complete")
	}
	name := string(k.Tier)
	if k.Compares() {
		name += "-vs-" + k.Base.Identity.Short()
	}
	parts := []string{a.Machine, a.Identity.Short(), a.Op + "-" + a.Case + "-" + a.Harness[:8], name + ".json"}
	for _, p := range parts {
		if !safe.MatchString(p) || p[0] == '.' {
			return "", fmt.Errorf("%q cannot be part of an address", p)
		}
	}
	return filepath.Join(parts...), nil
}

// Get returns the record under a key. A record that is there but cannot be
// read, or belongs elsewhere, is an error, never "not found".
func (s *Store) Get(k evidence.Key) (*evidence.Record, error) {
	rel, err := place(k)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, rel)
	data, err := disk.ReadFile(path, evidence.MaxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading evidence: %w", err)
	}
	r, err := evidence.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Key() != k {
		return nil, fmt.Errorf("%s: the record is of another code, case, machine or harness than its place says", path)
	}
	if key := r.Provenance.Machine.Key(); key != k.At.Machine {
		return nil, fmt.Errorf("%s: the record was taken on %s, its place says %s", path, key, k.At.Machine)
	}
	return r, nil
}

// Put writes the record with its raw inputs (name → content), which are
// compressed and listed in the record.
func (s *Store) Put(r *evidence.Record, raw map[string][]byte) error {
	r.Schema = evidence.Schema
	rel, err := place(r.Key())
	if err != nil {
		return fmt.Errorf("storing evidence: %w", err)
	}
	path := filepath.Join(s.dir, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("storing evidence: %w", err)
	}
	if err := s.putRaw(filepath.Dir(path), r, raw); err != nil {
		return fmt.Errorf("storing evidence: %w", err)
	}
	data, err := evidence.Encode(r)
	if err != nil {
		return err
	}
	if _, err := evidence.Decode(data); err != nil {
		return fmt.Errorf("storing evidence: the record would not be read back: %w", err)
	}
	if err := disk.WriteFile(path, data); err != nil {
		return fmt.Errorf("storing evidence: %w", err)
	}
	return nil
}

// putRaw names every raw file by its content, so that a record and the files
// it lists can never come from different runs.
func (s *Store) putRaw(dir string, r *evidence.Record, raw map[string][]byte) error {
	names := make([]string, 0, len(raw))
	for n := range raw {
		names = append(names, n)
	}
	sort.Strings(names)
	r.Raw = nil
	for _, n := range names {
		packed, err := compress(raw[n])
		if err != nil {
			return err
		}
		sum := sha256.Sum256(packed)
		digest := hex.EncodeToString(sum[:])
		file := fmt.Sprintf("%s.%s.%s.gz", r.Tier, digest[:8], n)
		if !safe.MatchString(file) {
			return fmt.Errorf("%q cannot be a file name", n)
		}
		if err := disk.WriteFile(filepath.Join(dir, file), packed); err != nil {
			return err
		}
		r.Raw = append(r.Raw, evidence.Raw{Name: file, SHA256: digest, Bytes: int64(len(packed))})
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
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing evidence: %w", err)
	}
	var machines []evidence.Machine
	for _, e := range entries {
		if m, ok := s.machine(e.Name()); e.IsDir() && ok {
			machines = append(machines, m)
		}
	}
	return machines, nil
}

func (s *Store) machine(key string) (evidence.Machine, bool) {
	files, _ := filepath.Glob(filepath.Join(s.dir, key, "*", "*", "*.json"))
	for _, f := range files {
		data, err := disk.ReadFile(f, evidence.MaxRecord)
		if err != nil {
			continue
		}
		if r, err := evidence.Decode(data); err == nil && r.Provenance.Machine.Key() == key {
			return r.Provenance.Machine, true
		}
	}
	return evidence.Machine{}, false
}

// Records reads every record, in the order of their places.
func (s *Store) Records() ([]*evidence.Record, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "*", "*", "*.json"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var records []*evidence.Record
	for _, f := range files {
		data, err := disk.ReadFile(f, evidence.MaxRecord)
		if err != nil {
			return nil, fmt.Errorf("reading evidence: %w", err)
		}
		r, err := evidence.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		records = append(records, r)
	}
	return records, nil
}
