package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// dated is a record of a time, with a raw input that says the same.
func dated(tier evidence.Tier, a evidence.Address, recorded string) *evidence.Record {
	r := record(tier, a, nil)
	r.Provenance.Recorded, r.Provenance.Commit = recorded, recorded
	return r
}

func experimentOf(recorded, stopped string) *evidence.Record {
	base := address(func(a *evidence.Address) { a.Code = strings.Repeat("0d", 32) })
	r := record(evidence.Latency, address(nil), &base)
	r.Provenance.Recorded, r.Experiment = recorded, &evidence.Experiment{Stopped: stopped}
	return r
}

func calibrationOf(recorded string, blocks int) *evidence.Record {
	r := dated(evidence.Calibration, address(nil), recorded)
	r.AA = &evidence.AA{Rounds: blocks}
	return r
}

// TestWhatReplacesARecord: a record that stands gives way to one that is as
// complete and not older. Raw inputs are left to prune.
func TestWhatReplacesARecord(t *testing.T) {
	const early, late = "2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"
	plain := func(at string) *evidence.Record { return dated(evidence.Correctness, address(nil), at) }
	for _, c := range []struct {
		name     string
		old, new *evidence.Record
		replaces bool
	}{
		{"a newer one", plain(early), plain(late), true},
		{"one of the same second", plain(early), plain(early), true},
		{"an older one", plain(late), plain(early), false},
		{"an end after an interrupt", experimentOf(late, ""), experimentOf(early, "resolved"), true},
		{"an interrupt after an end", experimentOf(early, "resolved"), experimentOf(late, "the device would not hold still"), false},
		{"another interrupt", experimentOf(early, ""), experimentOf(late, ""), true},
		{"a calibration of more rounds", calibrationOf(late, 3), calibrationOf(early, 5), true},
		{"a short calibration after a longer one", calibrationOf(early, 5), calibrationOf(late, 3), false},
		{"a short calibration after a whole one", calibrationOf(early, 10), calibrationOf(late, 3), false},
		{"a whole calibration", calibrationOf(early, 20), calibrationOf(late, 10), true},
	} {
		s := Open(t.TempDir())
		put(t, s, c.old, map[string][]byte{"a.log": []byte("old")})
		err := s.Put(c.new, map[string][]byte{"a.log": []byte("new")})
		want := c.new
		if !c.replaces {
			want = c.old
		}
		if got, e := s.Get(c.old.Key()); (err == nil) != c.replaces || !c.replaces && !errors.Is(err, errStands) || e != nil || got.Raw[0] != want.Raw[0] {
			t.Errorf("%s: put %v, get %v, %v", c.name, err, got, e)
		}
		if c.replaces && len(files(t, s.dir)) != 3 {
			t.Errorf("%s: an old raw input was removed", c.name)
		}
	}
}

// TestADamagedRecordGivesWay: what cannot be read stands in nobody's way.
func TestADamagedRecordGivesWay(t *testing.T) {
	s := Open(t.TempDir())
	put(t, s, record(evidence.Correctness, address(nil), nil), nil)
	if err := os.Truncate(plainPath(t, s), 10); err != nil {
		t.Fatal(err)
	}
	put(t, s, dated(evidence.Correctness, address(nil), "2026-01-01T00:00:00Z"), nil)
	if _, err := s.Get(key(evidence.Correctness, address(nil), nil)); err != nil {
		t.Error(err)
	}
}

func TestNoLinkIsFollowedWhenWriting(t *testing.T) {
	s, outside := Open(t.TempDir()), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(s.dir, machine.Key())); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(record(evidence.Correctness, address(nil), nil), nil); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("put: %v", err)
	}
	if got := files(t, outside); len(got) != 0 {
		t.Errorf("written outside: %v", got)
	}
}

func sessionOf(recorded, card string, processes int) evidence.Session {
	s := evidence.Session{Recorded: recorded, Card: card}
	for range processes {
		s.Processes = append(s.Processes, evidence.SessionProcess{CacheState: evidence.Warm, Typical: 1, Mean: 1})
	}
	return s
}

// TestTheBetterOfTwoStoresIsRead: newest, complete, and of histories all.
func TestTheBetterOfTwoStoresIsRead(t *testing.T) {
	const early, late = "2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z"
	for _, c := range []struct {
		name           string
		shared, own    *evidence.Record
		second, absent bool
	}{
		{"the newer", dated(evidence.Profile, address(nil), early), dated(evidence.Profile, address(nil), late), true, false},
		{"of equals the shared", dated(evidence.Profile, address(nil), early), dated(evidence.Profile, address(nil), early), false, false},
		{"the complete", experimentOf(early, "resolved"), experimentOf(late, ""), false, false},
		{"the complete, though older", experimentOf(late, ""), experimentOf(early, "wall"), true, false},
	} {
		s := &Shelf{Read: []*Store{Open(t.TempDir()), Open(t.TempDir())}}
		put(t, s.Read[0], c.shared, map[string][]byte{"a.log": []byte("shared")})
		put(t, s.Read[1], c.own, map[string][]byte{"a.log": []byte("own")})
		want := c.shared
		if c.second {
			want = c.own
		}
		if got, err := s.get(c.shared.Key()); err != nil || got.Raw[0] != want.Raw[0] {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	shared, own := record(evidence.Sessions, address(nil), nil), record(evidence.Sessions, address(nil), nil)
	shared.Sessions = []evidence.Session{sessionOf("2026-11-01T10:00:00Z", "a", 3), sessionOf("2026-11-02T10:00:00Z", "a", 3)}
	own.Sessions = []evidence.Session{sessionOf("2026-11-02T10:20:00Z", "a", 6), sessionOf("2026-11-02T10:00:00Z", "b", 3), sessionOf("2026-11-03T10:00:00Z", "a", 3)}
	var got []string
	for _, s := range joinSessions(shared, own).Sessions {
		got = append(got, fmt.Sprint(s.Recorded[8:16], s.Card, len(s.Processes)))
	}
	if want := []string{"01T10:00a3", "02T10:20a6", "02T10:00b3", "03T10:00a3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("sessions %v", got)
	}
}

// TestShareCopiesWhatIsLacking: with raw inputs, verified, and nothing that a
// record stands for already.
func TestShareCopiesWhatIsLacking(t *testing.T) {
	shared, own := Open(t.TempDir()), Open(t.TempDir())
	s := &Shelf{Read: []*Store{shared, own}, Write: shared}
	other := address(func(a *evidence.Address) { a.Case = "other" })
	damaged := address(func(a *evidence.Address) { a.Case = "damaged" })
	raw := map[string][]byte{"run.log": []byte("another log")}
	put(t, own, dated(evidence.Correctness, address(nil), "2026-11-20T10:00:00Z"), map[string][]byte{"run.log": []byte("log")})
	put(t, shared, dated(evidence.Correctness, other, "2026-11-20T10:00:00Z"), raw)
	put(t, own, dated(evidence.Correctness, other, "2026-11-20T11:00:00Z"), raw)
	put(t, own, record(evidence.Correctness, damaged, nil), raw)
	put(t, own, experimentOf("2026-11-20T10:00:00Z", ""), raw)
	found, _ := filepath.Glob(filepath.Join(own.dir, "*/*/sum-damaged-*/*.gz"))
	if err := os.WriteFile(found[0], []byte("garbage"), 0o644); err != nil {
		t.Fatal(err)
	}
	history := record(evidence.Sessions, address(nil), nil)
	history.Sessions = []evidence.Session{sessionOf("2026-11-02T10:00:00Z", "a", 3)}
	put(t, own, history, nil)
	var needs []*evidence.Need
	for _, k := range []evidence.Key{key(evidence.Correctness, address(nil), nil), key(evidence.Correctness, other, nil), key(evidence.Correctness, damaged, nil), history.Key(), experimentOf("", "").Key()} {
		needs = append(needs, evidence.NeedOf(k))
	}
	for round, want := range []int{2, 0} {
		if n, err := s.Share(needs); err != nil || n != want {
			t.Errorf("round %d: %d, %v", round, n, err)
		}
	}
	if r, err := shared.Get(*needs[0].Key); err != nil || unpack(t, shared, r) != "log" {
		t.Error(err)
	}
	if r, err := shared.Get(*needs[1].Key); err != nil || r.Provenance.Recorded != "2026-11-20T10:00:00Z" {
		t.Errorf("a record that stood was replaced: %v", err)
	}
	if _, err := shared.Get(*needs[2].Key); !errors.Is(err, errNotFound) {
		t.Errorf("the damaged record: %v", err)
	}
}

// TestPruneRemovesWhatNobodyNeeds and nothing that the store did not write.
func TestPruneRemovesWhatNobodyNeeds(t *testing.T) {
	s := Open(t.TempDir())
	gone := address(func(a *evidence.Address) { a.Code = strings.Repeat("0d", 32) })
	caseGone := address(func(a *evidence.Address) { a.Case = "gone" })
	raw := func(text string) map[string][]byte { return map[string][]byte{"run.log": []byte(text)} }
	put(t, s, record(evidence.Correctness, address(nil), nil), raw("old"))
	put(t, s, record(evidence.Correctness, address(nil), nil), raw("new"))
	put(t, s, record(evidence.Latency, address(nil), nil), nil)
	put(t, s, record(evidence.Latency, address(nil), &gone), raw("pair"))
	put(t, s, record(evidence.Profile, gone, nil), raw("gone"))
	put(t, s, record(evidence.Profile, caseGone, nil), raw("gone"))
	leaf := filepath.Dir(plainPath(t, s))
	mine := []string{"README.md", machine.Key() + "/notes.json", "profile.json", "correctness.log"}
	for _, name := range mine[:2] {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"correctness.log", "notes.json", ".tmp-123", "x.tmp-1"} {
		if err := os.WriteFile(filepath.Join(leaf, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, s.dir)
	needed := address(func(a *evidence.Address) { a.Machine = "" })
	dry, err := s.Prune(t.Context(), []evidence.Address{needed}, true)
	if err != nil || len(dry.Records) != 3 || len(dry.Raw) != 5 || dry.Bytes == 0 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if !reflect.DeepEqual(files(t, s.dir), before) {
		t.Fatal("a dry run removed something")
	}
	done, err := s.Prune(t.Context(), []evidence.Address{needed}, false)
	if err != nil || !reflect.DeepEqual(done, dry) {
		t.Errorf("%+v, %v", done, err)
	}
	after := files(t, s.dir)
	for _, name := range append(done.Records, done.Raw...) {
		delete(before, name)
	}
	if !reflect.DeepEqual(after, before) {
		t.Errorf("left are %v", after)
	}
	for _, tier := range []evidence.Tier{evidence.Correctness, evidence.Latency} {
		if _, err := s.Get(key(tier, address(nil), nil)); err != nil {
			t.Error(err)
		}
	}
	if dirs, _ := filepath.Glob(filepath.Join(s.dir, "*", "0d0d*")); len(dirs) != 0 {
		t.Errorf("empty folders stay: %v", dirs)
	}
	// Raw inputs stay where it is not known which of them a record names.
	if err := os.Truncate(plainPath(t, s), 10); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Prune(t.Context(), []evidence.Address{needed}, false); err != nil || len(again.Records)+len(again.Raw) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// A writer process of TestKilledWriters says what it has written.
const (
	writerStore = "STORE_OF_A_WRITER"
	writerCopy  = "COPY_OF_A_WRITER" // where the store is a bucket
)

func TestMain(m *testing.M) {
	if copy := os.Getenv(writerCopy); copy != "" {
		sendForEver(os.Getenv(writerStore), copy)
	}
	if dir := os.Getenv(writerStore); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

const killCases = 24

func killCase(i int) evidence.Address {
	return address(func(a *evidence.Address) { a.Case = fmt.Sprint("c", i) })
}

// writeForEver writes records, sessions and prunes, until it is killed.
func writeForEver(dir string) {
	s := &Shelf{Write: Open(dir)}
	var needed []evidence.Address
	for i := range killCases {
		needed = append(needed, killCase(i))
	}
	for {
		i := rand.IntN(killCases)
		now := time.Now().UTC()
		// A record is dated to the second, and these are written within milliseconds.
		r := dated(evidence.Latency, killCase(i), time.Unix(now.UnixMilli()%1e9, 0).UTC().Format(time.RFC3339))
		r.Provenance.Card = fmt.Sprint(os.Getpid(), "-", rand.Uint32())
		for range 3 {
			r.Samples = append(r.Samples, evidence.Sample{CacheState: evidence.Warm, Calls: 1, KernelNodes: 1, BatchesNS: []float64{1, 2}})
		}
		if err := s.Keep(r, "", map[string][]byte{"run.log": []byte(now.String())}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("wrote", i, r.Provenance.Recorded, r.Provenance.Card)
		if rand.IntN(4) == 0 {
			if _, err := s.Write.Prune(context.Background(), needed, false); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
		}
	}
}

// TestKilledWriters: many processes write, prune and are killed at any moment.
// What one of them said it had written is there, and nothing is unreadable at
// any time.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	newest, sessions, writes := map[string]string{}, map[string]bool{}, 0
	reader := Open(dir)
	read := func() {
		for i := range killCases {
			for _, tier := range []evidence.Tier{evidence.Latency, evidence.Sessions} {
				if _, err := reader.Get(key(tier, killCase(i), nil)); err != nil && !errors.Is(err, errNotFound) {
					t.Error(err)
				}
			}
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 15 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), writerStore+"="+dir)
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				var kill *time.Timer
				lines := bufio.NewScanner(out)
				for lines.Scan() {
					if kill == nil { // it has begun, however busy the machine is
						kill = time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { cmd.Process.Kill() })
					}
					var i, at, card string
					if n, _ := fmt.Sscanf(lines.Text(), "wrote %s %s %s", &i, &at, &card); n != 3 {
						if strings.HasPrefix(lines.Text(), "error") {
							t.Error(lines.Text())
						}
						continue // cut by the kill
					}
					mu.Lock()
					newest[i], sessions[card], writes = max(newest[i], at), true, writes+1
					mu.Unlock()
				}
				cmd.Wait()
				if kill != nil {
					kill.Stop()
				}
				read()
			}
		})
	}
	wg.Wait()
	if writes < 100 {
		t.Errorf("only %d writes", writes)
	}
	t.Logf("%d writes", writes)
	kept := map[string]bool{}
	for i := range killCases {
		r, err := reader.Get(key(evidence.Latency, killCase(i), nil))
		if at := newest[fmt.Sprint(i)]; at != "" && (err != nil || r.Provenance.Recorded < at) {
			t.Errorf("case %d: %v, %v, want %s or later", i, r, err, at)
		}
		if history, err := reader.Get(key(evidence.Sessions, killCase(i), nil)); err == nil {
			for _, s := range history.Sessions {
				kept[s.Card] = true
			}
			if len(history.Sessions) == maxSessions {
				t.Fatal("a history was full: nothing can be said about what was lost")
			}
		}
	}
	for card := range sessions {
		if !kept[card] {
			t.Errorf("session %s was lost", card)
		}
	}
	// The next write and a prune leave nothing of the killed ones behind.
	var needed []evidence.Address
	for i := range killCases {
		needed = append(needed, killCase(i))
		put(t, reader, dated(evidence.Profile, killCase(i), "2026-11-20T10:00:00Z"), nil)
	}
	if _, err := reader.Prune(t.Context(), needed, false); err != nil {
		t.Error(err)
	}
	for name := range files(t, dir) {
		if strings.Contains(name, ".tmp-") {
			t.Errorf("%s was left behind", name)
		}
	}
}
