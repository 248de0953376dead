package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// at is where a code's records lie.
func at(code string) evidence.Address {
	return address(func(a *evidence.Address) { a.Code = code })
}

func of(tier evidence.Tier, code, commit string) *evidence.Record {
	r := record(tier, at(code), nil)
	r.Provenance.Commit = commit
	return r
}

// newShelf reads a repository's store before the user's, and writes the user's.
func newShelf(t *testing.T) *Shelf {
	dir := t.TempDir()
	shared, own := Open(filepath.Join(dir, "shared")), Open(filepath.Join(dir, "own"))
	return &Shelf{Read: []*Store{shared, own}, Write: own}
}

// load reads one record into a new ledger.
func load(s *Shelf, n *evidence.Need) evidence.Entry {
	var l evidence.Ledger
	s.Load([]*evidence.Need{n}, &l)
	return l.Find(n)
}

func need(tier evidence.Tier, code string) *evidence.Need {
	n := evidence.NeedOf(key(tier, at(code), nil))
	n.Use = evidence.Answers
	return n
}

// damage cuts the only record of a store short.
func damage(t *testing.T, s *Store) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(s.dir, "*", "*", "*", "*.json"))
	if len(found) != 1 {
		t.Fatalf("%d records", len(found))
	}
	if err := os.Truncate(found[0], 5); err != nil {
		t.Fatal(err)
	}
}

func TestRepositoryComesBeforeTheCache(t *testing.T) {
	s := newShelf(t)
	shared, own := s.Read[0], s.Read[1]
	n := need(evidence.Correctness, "c1")
	holds := func(want bool) {
		t.Helper()
		if s.Holds(n) != want {
			t.Errorf("it holds the record: %v", !want)
		}
		s.got = nil // as if another run read it
	}
	if e := load(s, n); e.Record != nil || e.Unusable != "" || e.Tried {
		t.Errorf("nothing: %+v", e)
	}
	holds(false)
	put(t, own, of(evidence.Correctness, "c1", "own"), nil)
	if e := load(s, n); e.Record == nil || e.Record.Provenance.Commit != "own" || e.Source != evidence.Reused || e.Tried {
		t.Errorf("the user's alone: %+v", e)
	}
	holds(true)
	put(t, shared, of(evidence.Correctness, "c1", "shared"), nil)
	if e := load(s, n); e.Record == nil || e.Record.Provenance.Commit != "shared" {
		t.Errorf("both: %+v", e)
	}
	damage(t, shared)
	if e := load(s, n); e.Record == nil || e.Record.Provenance.Commit != "own" {
		t.Errorf("the shared one is damaged: %+v", e)
	}
	holds(true)
	damage(t, own)
	if e := load(s, n); e.Record != nil || !strings.HasPrefix(e.Unusable, shared.dir) || !strings.HasSuffix(e.Unusable, "the JSON is cut short") {
		t.Errorf("both are damaged: %+v", e)
	}
	holds(false)
}

func TestDamagedEvidenceIsMissingWithItsReason(t *testing.T) {
	s := newShelf(t)
	own, n := s.Read[1], need(evidence.Correctness, "c1")
	put(t, own, of(evidence.Correctness, "c1", ""), nil)
	damage(t, own)
	if e := load(s, n); e.Record != nil || !strings.HasSuffix(e.Unusable, "the JSON is cut short") || e.Tried {
		t.Errorf("damaged: %+v", e)
	}
	n.At.Machine = ""
	if e := load(s, n); e.Record != nil || e.Unusable != "" {
		t.Errorf("no machine is known: %+v", e)
	}
	hostile := need(evidence.Correctness, "../../x")
	if e := load(s, hostile); e.Record != nil || e.Unusable == "" || s.Holds(hostile) {
		t.Errorf("a hostile address: %+v", e)
	}
}

// TestWhatIsSetAsideIsNotRead, and says so; what is exact is not set aside.
func TestWhatIsSetAsideIsNotRead(t *testing.T) {
	s := newShelf(t)
	s.Aside = func(k evidence.Key) string {
		if k.Tier == evidence.Latency {
			return "set aside, as asked"
		}
		return ""
	}
	for _, tier := range []evidence.Tier{evidence.Correctness, evidence.Latency} {
		put(t, s.Read[0], of(tier, "c1", ""), nil)
	}
	if e := load(s, need(evidence.Latency, "c1")); e.Record != nil || e.Unusable != "set aside, as asked" || s.Holds(need(evidence.Latency, "c1")) {
		t.Errorf("%+v", e)
	}
	if e := load(s, need(evidence.Correctness, "c1")); e.Record == nil || !s.Holds(need(evidence.Correctness, "c1")) {
		t.Errorf("%+v", e)
	}
}

// TestLoadReplacesNothing that this run measured, or tried in vain to measure.
func TestLoadReplacesNothing(t *testing.T) {
	s := newShelf(t)
	for _, code := range []string{"c1", "c2", "c3"} {
		put(t, s.Read[0], of(evidence.Correctness, code, "stored"), nil)
	}
	var l evidence.Ledger
	measured := of(evidence.Correctness, "c1", "measured")
	l.Put(measured, evidence.Measured)
	l.Try(key(evidence.Correctness, at("c2"), nil))
	l.Because("the harness died", key(evidence.Correctness, at("c2"), nil))
	needs := []*evidence.Need{need(evidence.Correctness, "c1"), need(evidence.Correctness, "c2"), need(evidence.Correctness, "c3")}
	s.Load(needs, &l)
	if e := l.Find(needs[0]); e.Record != measured || e.Source != evidence.Measured {
		t.Errorf("measured: %+v", e)
	}
	if e := l.Find(needs[1]); e.Record != nil || !e.Tried || len(e.Why) != 1 {
		t.Errorf("tried: %+v", e)
	}
	if e := l.Find(needs[2]); e.Record == nil || e.Source != evidence.Reused {
		t.Errorf("stored: %+v", e)
	}
	// What another run measures meanwhile is found by the next reading.
	late := need(evidence.Correctness, "c4")
	s.Load([]*evidence.Need{late}, &l)
	put(t, s.Read[1], of(evidence.Correctness, "c4", ""), nil)
	if s.Load([]*evidence.Need{late}, &l); l.Find(late).Record == nil {
		t.Error("what was measured meanwhile is not found")
	}
}

// TestOnlyWhatCanBeStoredIsRead: the compiler's report is built, and what can
// never be measured is not looked for.
func TestOnlyWhatCanBeStoredIsRead(t *testing.T) {
	s := newShelf(t)
	put(t, s.Read[0], of(evidence.Correctness, "c1", ""), nil)
	never := need(evidence.Correctness, "c1")
	never.Never = "the base does not build"
	if e := load(s, never); e.Record != nil {
		t.Errorf("%+v", e)
	}
	static := evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: evidence.Identity{Code: "c1", Host: "h"}}})
	if e := load(s, static); e.Unusable != "" {
		t.Errorf("%+v", e)
	}
}

// TestProfileWithoutThePolicysMetricIsTakenAgain: a record made before a rule
// was written does not hold what the rule asks for. For another rule it is whole.
func TestProfileWithoutThePolicysMetricIsTakenAgain(t *testing.T) {
	s := newShelf(t)
	r := of(evidence.Profile, "c1", "")
	r.Metrics = evidence.Metrics{"ncu.achieved_occupancy": evidence.Of(60, "%")}
	put(t, s.Read[0], r, nil)
	waves, occupancy := need(evidence.Profile, "c1"), need(evidence.Profile, "c1")
	waves.Holds, occupancy.Holds = "ncu.waves", "ncu.achieved_occupancy"
	if e := load(s, waves); e.Record != nil || e.Unusable != "the recorded profile does not hold ncu.waves" || s.Holds(waves) {
		t.Errorf("%+v", e)
	}
	if e := load(s, occupancy); e.Record == nil || !s.Holds(occupancy) {
		t.Errorf("another kernel's rule: %+v", e)
	}
	for _, order := range [][]*evidence.Need{{waves, occupancy}, {occupancy, waves}} {
		var l evidence.Ledger
		if s.Load(order, &l); l.Find(occupancy).Record == nil || l.Find(waves).Record != nil {
			t.Error("one need hides the record from another")
		}
	}
	s.got = nil
	r.Metrics["ncu.waves"] = evidence.Absent("this chip has no such counter", "")
	put(t, s.Read[0], r, nil)
	if e := load(s, waves); e.Record == nil || !s.Holds(waves) {
		t.Errorf("a figure that is missing by name is recorded: %+v", e)
	}
}

func TestMachinesOfBothStores(t *testing.T) {
	s := newShelf(t)
	other := of(evidence.Correctness, "c1", "")
	other.Provenance.Machine.Driver = "999"
	other.Address.Machine = other.Provenance.Machine.Key()
	put(t, s.Read[1], other, nil)
	put(t, s.Read[1], of(evidence.Correctness, "c1", ""), nil)
	put(t, s.Read[0], of(evidence.Correctness, "c2", ""), nil)
	got, err := s.Machines()
	if err != nil || len(got) != 2 || got[0] != machine || got[1] != other.Provenance.Machine {
		t.Errorf("%v, %v", got, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Read = append(s.Read, Open(file))
	if _, err := s.Machines(); err == nil || errors.Is(err, errNotFound) {
		t.Errorf("a store that cannot be listed: %v", err)
	}
}

// TestTheNearestAncestorAnswers: between two stores the record of the commit that
// lies nearest before the base is read, whatever is newer; without any, the newest,
// and the notes say so.
func TestTheNearestAncestorAnswers(t *testing.T) {
	behind := map[string]int{"base": 0, "near": 3, "far": 9}
	for _, c := range []struct {
		name, shared, own, want string
		torn                    bool // the first is not complete
		note                    bool
	}{
		{"an ancestor before a newer one", "near", "elsewhere", "near", false, false},
		{"an ancestor in the second store", "elsewhere", "far", "far", false, false},
		{"the nearer of two", "far", "near", "near", false, false},
		{"the nearer of two, first", "base", "far", "base", false, false},
		{"none", "elsewhere", "somewhere", "somewhere", false, true},
		{"one commit", "near", "near", "near", false, false},
		{"a complete one before an ancestor", "near", "elsewhere", "elsewhere", true, false},
	} {
		s := newShelf(t)
		s.Near = func(commit string) (int, bool) {
			n, is := behind[commit]
			return n, is
		}
		first, second := of(evidence.Latency, "c1", c.shared), of(evidence.Latency, "c1", c.own)
		first.Provenance.Recorded = "2026-08-23T12:00:00Z" // the second is newer
		if c.torn {
			first.Experiment = &evidence.Experiment{Stopped: "interrupted"}
		}
		put(t, s.Read[0], first, nil)
		put(t, s.Read[1], second, nil)
		e := load(s, need(evidence.Latency, "c1"))
		if e.Record == nil || e.Record.Provenance.Commit != c.want || (len(s.Notes) > 0) != c.note {
			t.Errorf("%s: %+v, notes %q", c.name, e, s.Notes)
		}
	}
}
