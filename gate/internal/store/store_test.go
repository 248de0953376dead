package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

var machine = evidence.Machine{GPU: "NVIDIA H200", Driver: "580", Runtime: "13.0", PowerLimitW: "700", MIG: "Disabled", CC: "9.0", Clocks: "unlocked"}

func address(change func(*evidence.Address)) evidence.Address {
	a := evidence.Address{Identity: evidence.Identity{Code: strings.Repeat("a1", 32), Host: strings.Repeat("b2", 32)},
		Op: "sum", Case: "small", Harness: strings.Repeat("c3", 32), Machine: machine.Key()}
	if change != nil {
		change(&a)
	}
	return a
}

func record(tier evidence.Tier, a evidence.Address, base *evidence.Address) *evidence.Record {
	return &evidence.Record{Tier: tier, Address: a, Base: base,
		Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z", Kernel: "sum/one", Compiler: "13.0.88", Machine: machine},
		Metrics:    evidence.Metrics{"check.relative_error": evidence.Of(0, ""), "check.max_abs_error": evidence.Absent("no", "")}}
}

func key(tier evidence.Tier, a evidence.Address, base *evidence.Address) evidence.Key {
	return record(tier, a, base).Key()
}

func put(t *testing.T, s *Store, r *evidence.Record, raw map[string][]byte) {
	t.Helper()
	if err := s.Put(r, raw); err != nil {
		t.Fatal(err)
	}
}

// files lists a folder's files by their paths, with their content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "not", "yet"))
	a, base := address(nil), address(func(a *evidence.Address) { a.Code = strings.Repeat("0d", 32) })
	if _, err := s.Get(evidence.Key{Tier: evidence.Correctness, At: a}); !errors.Is(err, errNotFound) {
		t.Fatalf("an empty store: %v", err)
	}
	log := []byte(strings.Repeat("a line\n", 1000))
	alone, against := record(evidence.Latency, a, nil), record(evidence.Latency, a, &base)
	put(t, s, record(evidence.Correctness, a, nil), map[string][]byte{"run.log": log, "a.csv": nil})
	put(t, s, alone, nil)
	put(t, s, against, nil)
	for _, c := range []struct {
		tier evidence.Tier
		base *evidence.Address
		want int
	}{{evidence.Correctness, nil, 2}, {evidence.Latency, nil, 0}, {evidence.Latency, &base, 0}} {
		got, err := s.Get(key(c.tier, a, c.base))
		if err != nil {
			t.Fatal(err)
		}
		if got.Tier != c.tier || got.Address != a || !reflect.DeepEqual(got.Base, c.base) || len(got.Raw) != c.want || got.Schema != evidence.Schema {
			t.Errorf("got %+v", got)
		}
		if v := got.Metrics["check.relative_error"]; !v.Known() || v.Number != 0 || got.Metrics["check.max_abs_error"].Known() {
			t.Errorf("metrics %+v", got.Metrics)
		}
	}
	if _, err := s.Get(key(evidence.Profile, a, nil)); !errors.Is(err, errNotFound) {
		t.Errorf("another tier: %v", err)
	}
	got, _ := s.Get(evidence.Key{Tier: evidence.Correctness, At: a})
	if text := unpack(t, s, got); text != string(log) {
		t.Errorf("the raw log comes back with %d bytes, want %d", len(text), len(log))
	}
	records, err := s.Records()
	if err != nil || len(records) != 3 {
		t.Errorf("%d records, %v", len(records), err)
	}
	machines, err := s.Machines()
	if err != nil || len(machines) != 1 || machines[0] != machine {
		t.Errorf("machines %v, %v", machines, err)
	}
}

// unpack checks each raw file against its entry and returns run.log.
func unpack(t *testing.T, s *Store, r *evidence.Record) string {
	t.Helper()
	text := ""
	for _, raw := range r.Raw {
		found, _ := filepath.Glob(filepath.Join(s.dir, "*", "*", "*", raw.Name))
		if len(found) != 1 {
			t.Fatalf("%s: %v", raw.Name, found)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if hex.EncodeToString(sum[:]) != raw.SHA256 || int64(len(data)) != raw.Bytes {
			t.Errorf("%s is not the file that the record lists", raw.Name)
		}
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(raw.Name, "run.log.gz") {
			text = string(plain)
		}
	}
	return text
}

func TestEveryPartOfTheAddressCounts(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	for name, change := range map[string]func(*evidence.Address){
		"code":    func(a *evidence.Address) { a.Code = strings.Repeat("0d", 32) },
		"host":    func(a *evidence.Address) { a.Host = strings.Repeat("0d", 32) },
		"op":      func(a *evidence.Address) { a.Op = "mus" },
		"case":    func(a *evidence.Address) { a.Case = "large" },
		"harness": func(a *evidence.Address) { a.Harness = strings.Repeat("0d", 32) },
		"machine": func(a *evidence.Address) { a.Machine = "h100-01020304" },
	} {
		if _, err := s.Get(key(evidence.Correctness, address(change), nil)); !errors.Is(err, errNotFound) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	// Behind the abbreviation in the path, the whole identity is compared.
	for name, change := range map[string]func(*evidence.Address){
		"code":    func(a *evidence.Address) { a.Code = a.Code[:40] + strings.Repeat("0d", 12) },
		"host":    func(a *evidence.Address) { a.Host = a.Host[:40] + strings.Repeat("0d", 12) },
		"harness": func(a *evidence.Address) { a.Harness = a.Harness[:40] + strings.Repeat("0d", 12) },
	} {
		_, err := s.Get(key(evidence.Correctness, address(change), nil))
		if err == nil || errors.Is(err, errNotFound) || !strings.HasSuffix(err.Error(), "the record is of another code, case, machine or harness than its place says") {
			t.Errorf("another %s of the same abbreviation: %v", name, err)
		}
	}
}

func TestHostileAddresses(t *testing.T) {
	dir := t.TempDir()
	s := Open(filepath.Join(dir, "store"))
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	before := files(t, dir)
	for name, change := range map[string]func(*evidence.Address){
		"no code":         func(a *evidence.Address) { a.Code = "" },
		"no host":         func(a *evidence.Address) { a.Host = "" },
		"no harness":      func(a *evidence.Address) { a.Harness = "" },
		"short harness":   func(a *evidence.Address) { a.Harness = "c3c3" },
		"no machine":      func(a *evidence.Address) { a.Machine = "" },
		"no op":           func(a *evidence.Address) { a.Op = "" },
		"no case":         func(a *evidence.Address) { a.Case = "" },
		"machine above":   func(a *evidence.Address) { a.Machine = ".." },
		"machine path":    func(a *evidence.Address) { a.Machine = "../../x" },
		"machine root":    func(a *evidence.Address) { a.Machine = "/tmp" },
		"code path":       func(a *evidence.Address) { a.Code = "../../../../x" },
		"code above":      func(a *evidence.Address) { a.Code = ".." },
		"host path":       func(a *evidence.Address) { a.Host = "x/../../y" },
		"op path":         func(a *evidence.Address) { a.Op = "../../x" },
		"case path":       func(a *evidence.Address) { a.Case = "x/../../../y" },
		"harness path":    func(a *evidence.Address) { a.Harness = "../../../x" },
		"case with a NUL": func(a *evidence.Address) { a.Case = "x\x00y" },
		"case of 2 lines": func(a *evidence.Address) { a.Case = "x\ny" },
		"long case":       func(a *evidence.Address) { a.Case = strings.Repeat("x", 200) },
		"long machine":    func(a *evidence.Address) { a.Machine = strings.Repeat("x", 129) },
		"backslash":       func(a *evidence.Address) { a.Case = `x\..\y` },
	} {
		a := address(change)
		if _, err := s.Get(evidence.Key{Tier: evidence.Correctness, At: a}); err == nil || errors.Is(err, errNotFound) {
			t.Errorf("%s: get gives %v", name, err)
		}
		if err := s.Put(record(evidence.Correctness, a, nil), nil); err == nil {
			t.Errorf("%s: put is accepted", name)
		}
	}
	a, base := address(nil), address(func(a *evidence.Address) { a.Code = "../../../x" })
	if err := s.Put(record(evidence.Latency, a, &base), nil); err == nil {
		t.Error("a hostile base is accepted")
	}
	if err := s.Put(record("../latency", a, nil), nil); err == nil {
		t.Error("a hostile tier is accepted")
	}
	for _, name := range []string{"../x", "x/y", "x\ny", strings.Repeat("x", 200)} {
		if err := s.Put(record(evidence.Profile, a, nil), map[string][]byte{name: []byte("x")}); err == nil {
			t.Errorf("raw file %q is accepted", name)
		}
	}
	after := files(t, dir)
	for name := range after {
		if _, ok := before[name]; !ok && !strings.HasPrefix(name, "store/"+machine.Key()+"/") {
			t.Errorf("%s was written", name)
		}
	}
}

// place of the plain record in a store.
func plainPath(t *testing.T, s *Store) string {
	t.Helper()
	rel, err := place(key(evidence.Correctness, address(nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.dir, rel)
}

func TestDamageIsAnErrorAndNotAbsence(t *testing.T) {
	encoded := func(change func(*evidence.Record)) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			r := record(evidence.Correctness, address(nil), nil)
			r.Schema = evidence.Schema
			change(r)
			data, err := evidence.Encode(r)
			if err == nil {
				err = os.WriteFile(path, data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, path string)
		want   string
	}{
		{"truncated", func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) }, "the JSON is cut short"},
		{"empty", func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, "the JSON is cut short"},
		{"oversize", func(t *testing.T, path string) { must(t, os.Truncate(path, evidence.MaxRecord+1)) }, "is not a file of at most 8388608 bytes"},
		{"folder", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Mkdir(path, 0o755)) }, "is not a file of at most 8388608 bytes"},
		{"pipe", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, syscall.Mkfifo(path, 0o644)) }, "is not a file of at most 8388608 bytes"},
		{"symbolic link", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".real"))
			must(t, os.Symlink(path+".real", path))
		}, "is not a file of at most 8388608 bytes"},
		{"link to nothing", func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, os.Symlink("none", path)) }, "is not a file of at most 8388608 bytes"},
		{"another tier", encoded(func(r *evidence.Record) { r.Tier = evidence.Profile }), "the record is of another code, case, machine or harness than its place says"},
		{"another code", encoded(func(r *evidence.Record) { r.Address.Code = "feed" }), "the record is of another code, case, machine or harness than its place says"},
		{"another case", encoded(func(r *evidence.Record) { r.Address.Case = "large" }), "the record is of another code, case, machine or harness than its place says"},
		{"a base", encoded(func(r *evidence.Record) { r.Base = &r.Address }), "the record is of another code, case, machine or harness than its place says"},
		{"another machine", encoded(func(r *evidence.Record) { r.Provenance.Machine.Driver = "999" }), "its place says " + machine.Key()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Open(t.TempDir())
			put(t, s, record(evidence.Correctness, address(nil), nil), nil)
			c.damage(t, plainPath(t, s))
			r, err := s.Get(key(evidence.Correctness, address(nil), nil))
			if err == nil || errors.Is(err, errNotFound) || r != nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("get gives %v, want an error that ends in %q", err, c.want)
			}
		})
	}
}

func TestRecordsSaysWhichFileIsDamaged(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	path := plainPath(t, s)
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if records, err := s.Records(); err == nil || !strings.HasPrefix(err.Error(), path+": ") || records != nil {
		t.Errorf("records: %v", err)
	}
	// A machine without a readable record has none to offer.
	if machines, err := s.Machines(); err != nil || len(machines) != 0 {
		t.Errorf("machines: %v, %v", machines, err)
	}
}

func TestMachinesBelievesTheRecordAndNotTheFolder(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	if err := os.Rename(filepath.Join(s.dir, machine.Key()), filepath.Join(s.dir, "h100-01020304")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "README.md"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if machines, err := s.Machines(); err != nil || len(machines) != 0 {
		t.Errorf("machines: %v, %v", machines, err)
	}
}

func TestPutReplacesAsAWhole(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	before := files(t, s.dir)
	refused := record(evidence.Correctness, address(nil), nil)
	refused.Samples = []evidence.Sample{{CacheState: "warm", BatchesNS: []float64{-1}}}
	if err := s.Put(refused, nil); err == nil || err.Error() != "storing evidence: the record would not be read back: a batch time of -1 ns is not a time" {
		t.Errorf("a record that cannot be read back: %v", err)
	}
	if after := files(t, s.dir); !reflect.DeepEqual(after, before) {
		t.Errorf("a refused record changed the store: %v", after)
	}
	newer := record(evidence.Correctness, address(nil), nil)
	newer.Provenance.Recorded = "2026-11-21T10:00:00Z"
	put(t, s, newer, nil)
	after := files(t, s.dir)
	if got, err := s.Get(key(evidence.Correctness, address(nil), nil)); err != nil || got.Provenance.Recorded != newer.Provenance.Recorded || len(after) != len(before) {
		t.Errorf("%v, %v, %d files", got, err, len(after))
	}
}

func TestSameInputSameBytes(t *testing.T) {
	write := func() map[string]string {
		s := Open(t.TempDir())
		raw := map[string][]byte{}
		for i := range 8 {
			raw[fmt.Sprintf("log%d", i)] = bytes.Repeat([]byte{byte(i)}, 100)
		}
		put(t, s, record(evidence.Correctness, address(nil), nil), raw)
		return files(t, s.dir)
	}
	first := write()
	if len(first) != 9 {
		t.Fatalf("%d files", len(first))
	}
	for range 5 {
		if again := write(); !reflect.DeepEqual(first, again) {
			t.Fatal("the bytes differ")
		}
	}
}

func TestConcurrentPuts(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for n := range 10 {
				r := record(evidence.Correctness, address(nil), nil)
				r.Provenance.Commit = fmt.Sprintf("%d-%d", i, n)
				if err := s.Put(r, map[string][]byte{"run.log": []byte(r.Provenance.Commit)}); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer wg.Done()
			for range 20 {
				if _, err := s.Get(key(evidence.Correctness, address(nil), nil)); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	r, err := s.Get(key(evidence.Correctness, address(nil), nil))
	if err != nil {
		t.Fatal(err)
	}
	if text := unpack(t, s, r); text != r.Provenance.Commit {
		t.Errorf("the record is of %q, its log of %q", r.Provenance.Commit, text)
	}
	for name := range files(t, s.dir) {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestPutFailsWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := Open(filepath.Join(file, "store"))
	if err := s.Put(record(evidence.Correctness, address(nil), nil), nil); err == nil || !strings.HasPrefix(err.Error(), "storing evidence: ") {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Get(key(evidence.Correctness, address(nil), nil)); err == nil || errors.Is(err, errNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := Open(file).Machines(); err == nil {
		t.Error("a file is listed as a folder")
	}
}
