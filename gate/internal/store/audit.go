package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// clockSkew is how far the clocks of two machines may be apart.
const clockSkew = 10 * time.Minute

// maxRaw bounds one raw input, unpacked.
const maxRaw = 256 << 20

// An Audit is how a store finds a record that contradicts itself.
type Audit struct {
	// Check makes the record again from its raw inputs, by their names. Nil
	// leaves that out: what is recorded can then be counted, not believed.
	Check   func(r *evidence.Record, raw map[string][]byte) error
	Knows   string        // what Check depends on beside them
	Answers *disk.Answers // of earlier runs; nil remembers nothing
	Now     func() time.Time
	// Added is when the commit was made that brought the file of a record with
	// this content; zero for content that no commit has. Nil leaves that out.
	Added func(path string, data []byte) (time.Time, error)
}

func (a Audit) complete() Audit {
	if a.Answers == nil {
		a.Answers = disk.OpenAnswers("")
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	return a
}

// record says what is inconsistent in a record that lies at a path. Its raw
// inputs are unpacked and read again only when the record, one of them, the
// program or what it knows is another than before.
func (a Audit) record(path string, data []byte, r *evidence.Record) error {
	if err := a.dated(r); err != nil {
		return err
	}
	if err := named(r); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	now, err := a.fingerprint(dir, data, r)
	if err != nil {
		return err
	}
	changed := errors.New("it was changed while it was read")
	_, err = a.Answers.Ask("consistent", path,
		func() (string, error) {
			if err := a.added(path, data, r); err != nil {
				return "", err
			}
			packed, err := readRaw(dir, r)
			if err != nil {
				return "", err
			}
			return now, a.contents(r, packed, maxRaw)
		},
		func(remembered string) error {
			if remembered != now {
				return changed
			}
			return nil
		})
	return err
}

// dated refuses a record of the future.
func (a Audit) dated(r *evidence.Record) error {
	return notAfter(r, a.Now(), "which lies in the future")
}

// added refuses a record that is dated after the commit that brought it.
func (a Audit) added(path string, data []byte, r *evidence.Record) error {
	if a.Added == nil {
		return nil
	}
	at, err := a.Added(path, data)
	if err != nil || at.IsZero() {
		return err
	}
	return notAfter(r, at, "after the commit that added it, of "+at.UTC().Format(time.RFC3339))
}

// notAfter refuses a record with a date after a moment.
func notAfter(r *evidence.Record, moment time.Time, why string) error {
	dates := []string{r.Provenance.Recorded}
	for _, s := range r.Sessions {
		dates = append(dates, s.Recorded)
	}
	for _, d := range dates {
		at, err := time.Parse(time.RFC3339, d)
		if err != nil || at.UTC().Format(time.RFC3339) != d { // dates are compared as they are written
			return fmt.Errorf("it is dated %q, which is not a date in UTC to the second", d)
		}
		if at.After(moment.Add(clockSkew)) {
			return fmt.Errorf("it is dated %s, %s", d, why)
		}
	}
	return nil
}

// named requires raw inputs to be called by tier and content.
func named(r *evidence.Record) error {
	seen := map[string]bool{}
	for _, raw := range r.Raw {
		m := rawName.FindStringSubmatch(raw.Name)
		if m == nil || m[1] != string(r.Tier) {
			return fmt.Errorf("%q is not the name of a raw input of its tier", raw.Name)
		}
		if len(raw.SHA256) != 64 || raw.SHA256[:8] != m[2] {
			return fmt.Errorf("the raw input %s is not called by its digest %s", raw.Name, raw.SHA256)
		}
		if seen[m[3]] {
			return fmt.Errorf("it has two raw inputs %s", m[3])
		}
		seen[m[3]] = true
	}
	return nil
}

// fingerprint stands for everything that the answer of an audit depends on.
func (a Audit) fingerprint(dir string, data []byte, r *evidence.Record) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%d\n", thisProgram(), a.Knows, len(data))
	sum.Write(data)
	for _, raw := range r.Raw {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, raw.Name), &st); err != nil {
			return "", fmt.Errorf("its raw input %s cannot be read: %w", raw.Name, err)
		}
		fmt.Fprintln(sum, raw.Name, st.Dev, st.Ino, st.Size, st.Mode, st.Mtim, st.Ctim)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// thisProgram changes whenever another gate may judge records otherwise.
func thisProgram() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
}

// readRaw reads a record's raw inputs as they are stored, by file name, and
// holds them against the digests.
func readRaw(dir string, r *evidence.Record) (map[string][]byte, error) {
	packed := map[string][]byte{}
	for _, raw := range r.Raw {
		data, err := disk.ReadFile(filepath.Join(dir, raw.Name), maxRaw)
		if err != nil {
			return nil, fmt.Errorf("its raw input %s cannot be read: %w", raw.Name, err)
		}
		if int64(len(data)) != raw.Bytes {
			return nil, fmt.Errorf("its raw input %s has %d bytes, and the record says %d", raw.Name, len(data), raw.Bytes)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != raw.SHA256 {
			return nil, fmt.Errorf("its raw input %s has another digest than the record says", raw.Name)
		}
		packed[raw.Name] = data
	}
	return packed, nil
}

// contents checks a record against its raw inputs, given as they are stored. Each
// may be of so many bytes when it is unpacked.
func (a Audit) contents(r *evidence.Record, packed map[string][]byte, most int64) error {
	plain, err := unpackAll(packed, most)
	if err != nil || a.Check == nil {
		return err
	}
	return a.Check(r, plain)
}

// unpackAll turns raw inputs as they are stored, by file name, into those of a
// record, by name.
func unpackAll(packed map[string][]byte, most int64) (map[string][]byte, error) {
	plain := map[string][]byte{}
	for file, data := range packed {
		text, err := gunzip(data, most)
		if err != nil {
			return nil, fmt.Errorf("its raw input %s cannot be unpacked: %w", file, err)
		}
		plain[rawName.FindStringSubmatch(file)[3]] = text
	}
	return plain, nil
}

func gunzip(data []byte, most int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it holds more than %d bytes", most)
	}
	return text, err
}
