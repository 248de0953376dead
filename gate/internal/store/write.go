package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// errStands is returned where a record is not written because a better one has
// the same key.
var errStands = errors.New("a newer or more complete record stands there")

// lockWait is far above the time that writing one record takes.
const lockWait = time.Minute

// Put writes the record with its raw inputs (name → content), which are
// compressed and listed in the record. A record that has its key already is
// replaced by one that is as complete and not older, and by no other.
func (s *Store) Put(r *evidence.Record, raw map[string][]byte) error {
	packed, err := pack(r, raw)
	if err == nil {
		err = s.write(r.Key(), func(old *evidence.Record) (*evidence.Record, map[string][]byte, error) {
			if old != nil && better(old, r) == old {
				return nil, nil, errStands
			}
			return r, packed, extends(r, old)
		})
	}
	if err != nil && !errors.Is(err, errStands) {
		return fmt.Errorf("storing evidence: %w", err)
	}
	return err
}

// extends refuses a continuation of another record than the one that stands
// there: another run went on with it meanwhile. Where none stands, it lies in
// another store.
func extends(r, old *evidence.Record) error {
	if r.Continues == "" || old == nil || !complete(old) || old.Experiment == nil {
		return nil
	}
	digest, err := evidence.Digest(old)
	if err == nil && digest != r.Continues {
		err = errStands
	}
	return err
}

// pack compresses raw inputs and names each by its content, so that a record
// and the files that it lists can never come from different runs.
func pack(r *evidence.Record, raw map[string][]byte) (map[string][]byte, error) {
	r.Schema, r.Raw = evidence.Schema, nil
	packed := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		data, err := compress(raw[name])
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		digest := hex.EncodeToString(sum[:])
		file := fmt.Sprintf("%s.%s.%s.gz", r.Tier, digest[:8], name)
		if !safe.MatchString(file) {
			return nil, fmt.Errorf("%q cannot be a file name", name)
		}
		packed[file] = data
		r.Raw = append(r.Raw, evidence.Raw{Name: file, SHA256: digest, Bytes: int64(len(data))})
	}
	return packed, nil
}

// better is the record that answers more: a complete one rather than one that
// was cut short, then the newer one. Between equals, it is the second.
func better(a, b *evidence.Record) *evidence.Record {
	if x, y := complete(a), complete(b); x != y {
		if x {
			return a
		}
		return b
	}
	if a.AA != nil && b.AA != nil && !complete(a) && a.AA.Rounds != b.AA.Rounds {
		if a.AA.Rounds > b.AA.Rounds {
			return a
		}
		return b
	}
	if dateOf(a).After(dateOf(b)) {
		return a
	}
	return b
}

// complete reports whether a record was measured to its end.
func complete(r *evidence.Record) bool {
	return r.Failure == nil && r.Open == nil && (r.Experiment == nil || r.Experiment.Ended()) && (r.AA == nil || r.AA.Rounds >= compare.FewestCalibrationRounds)
}

func dateOf(r *evidence.Record) time.Time {
	at, _ := time.Parse(time.RFC3339, r.Provenance.Recorded) // one without a date is older than all
	return at
}

// write lets choose make the record under a key from the one that stands there,
// nil where there is none that can be used, while nobody else writes.
func (s *Store) write(k evidence.Key, choose func(old *evidence.Record) (*evidence.Record, map[string][]byte, error)) error {
	rel, err := place(k)
	if err != nil {
		return err
	}
	return s.locked(filepath.Dir(rel), func(string) error {
		old, err := s.Get(k)
		if err != nil {
			old = nil
		}
		r, packed, err := choose(old)
		if err != nil || r == nil {
			return err
		}
		path := filepath.Join(s.dir, rel)
		data, err := evidence.Encode(r)
		if err != nil {
			return err
		}
		if err := s.readable(data, k, packed); err != nil {
			return fmt.Errorf("the record would not be read back: %w", err)
		}
		return writeRecord(path, data, packed, disk.WriteFile)
	})
}

// writeRecord writes a record after the raw inputs that it names.
func writeRecord(path string, data []byte, packed map[string][]byte, write func(path string, data []byte) error) error {
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		if err := writeNew(filepath.Join(filepath.Dir(path), name), packed[name], write); err != nil {
			return err
		}
	}
	return write(path, data)
}

// readable goes the way of a reader before there is a file.
func (s *Store) readable(data []byte, k evidence.Key, packed map[string][]byte) error {
	r, err := evidence.Decode(data)
	if err != nil {
		return err
	}
	if err := errors.Join(s.audit.dated(r), named(r)); err != nil {
		return err
	}
	return s.audit.contents(r, packed, maxRaw)
}

// writeNew leaves a file alone that has the content already.
func writeNew(path string, data []byte, write func(path string, data []byte) error) error {
	if there, err := disk.ReadFile(path, int64(len(data))); err == nil && bytes.Equal(there, data) {
		return nil
	}
	return write(path, data)
}

// locked runs do while no other process writes into a folder of records, which
// is made when it is not there. What a killed writer left there is removed.
func (s *Store) locked(rel string, do func(dir string) error) error {
	if err := s.noLinks(rel); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, rel)
	for attempt := 0; ; attempt++ {
		err := os.MkdirAll(dir, 0o755)
		var f *os.File
		if err == nil {
			f, err = lockFolder(dir)
		}
		if errors.Is(err, fs.ErrNotExist) && attempt < 1000 {
			continue // a prune took it away between the two
		}
		if err != nil {
			return err
		}
		defer f.Close()
		list, err := entries(dir)
		if err != nil {
			return err
		}
		for _, e := range list {
			if e.Type().IsRegular() && tempName.MatchString(e.Name()) {
				os.Remove(filepath.Join(dir, e.Name())) // a file that stays is harmless
			}
		}
		return do(dir)
	}
}

// noLinks refuses a place that a link leads to: nothing is written outside the
// store.
func (s *Store) noLinks(rel string) error {
	at := s.dir
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return fmt.Errorf("%s is a link, and no link is followed when evidence is written", at)
		}
	}
	return nil
}

// lockFolder locks a folder itself, since a lock file would be committed with
// the evidence. A file system that cannot do that is used without a lock. The
// error is fs.ErrNotExist when the folder was removed meanwhile.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeoutCause(context.Background(), lockWait, fmt.Errorf("another process holds %s", dir))
	defer stop()
	err = disk.Lock(ctx, f)
	if err != nil && ctx.Err() == nil && (errors.Is(err, unix.EBADF) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK)) {
		err = nil
	}
	if err == nil {
		var held, now os.FileInfo
		if held, err = f.Stat(); err == nil {
			now, err = os.Stat(dir)
		}
		if err == nil && !os.SameFile(held, now) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
