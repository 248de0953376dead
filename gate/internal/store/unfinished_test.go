package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// rounds is an experiment of so many rounds, recorded on a day.
func rounds(n, day int) *evidence.Record {
	r := timedAt("11", day, 0)
	base := at("22")
	r.Base = &base
	r.Experiment = &evidence.Experiment{Stopped: "wall"}
	for i := range n {
		r.Experiment.Rounds = append(r.Experiment.Rounds, evidence.Round{Number: i, Base: timedAt("", day, 4).Samples, Head: timedAt("", day, 4).Samples})
	}
	return r
}

// A continuation replaces the record that it names and no other, and the
// processes of its first rounds are counted in the history once.
func TestContinuation(t *testing.T) {
	s := newShelf(t)
	s.Read = []*Store{s.Write}
	old := rounds(2, 1)
	if err := s.Keep(old, "other", nil); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Write.Get(old.Key())
	if err != nil {
		t.Fatal(err)
	}
	digest, err := evidence.Digest(stored)
	if err != nil {
		t.Fatal(err)
	}
	next := rounds(3, 2)
	next.Continues = digest
	if err := s.Keep(next, "other", nil); err != nil || len(s.Notes) != 0 {
		t.Fatalf("%v, %q", err, s.Notes)
	}
	history, err := s.Write.Get(evidence.Key{Tier: evidence.Sessions, At: old.Address})
	if err != nil || len(history.Sessions) != 2 || len(history.Sessions[0].Processes) != 8 || len(history.Sessions[1].Processes) != 4 {
		t.Errorf("%v, %+v", err, history)
	}
	late := rounds(3, 3)
	late.Continues = digest // which another run went on with meanwhile
	if err := s.Write.Put(late, nil); !errors.Is(err, errStands) {
		t.Errorf("a second continuation of one record: %v", err)
	}
}

// What is saved replaces what was saved before, with its raw inputs, and leaves
// nothing when it is removed or old.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	u := OpenUnfinished(dir, Audit{})
	k := rounds(1, 1).Key()
	for n := range 3 {
		r := rounds(n, 1)
		r.Open = &evidence.Open{Plan: "plan"}
		if err := u.Save(r, map[string][]byte{"head.jsonl": []byte{byte(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	r, raw, err := u.Find(k)
	if err != nil || len(r.Experiment.Rounds) != 2 || string(raw["head.jsonl"]) != "\x02" || len(files(t, dir)) != 2 {
		t.Errorf("%v, %+v, %q, %d files", err, r, raw, len(files(t, dir)))
	}
	if err := u.Sweep(time.Now()); err != nil || len(files(t, dir)) != 2 {
		t.Errorf("%v: new files were removed", err)
	}
	if err := u.Sweep(time.Now().Add(2 * unfinishedAge)); err != nil {
		t.Error(err)
	}
	if r, _, err := u.Find(k); r != nil || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	again := rounds(1, 1)
	again.Open = &evidence.Open{Plan: "plan"}
	if err := errors.Join(u.Save(again, map[string][]byte{"head.jsonl": nil}), u.Remove(k), u.Remove(k)); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// What a killed run left of a record that it had stored goes. What goes on with the
// record, or is newer, stays.
func TestForget(t *testing.T) {
	stored := rounds(2, 2)
	digest, err := evidence.Digest(stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		day       int
		continues string
		stays     bool
	}{
		{"of the record itself", 2, "", false},
		{"older", 1, "", false},
		{"of one that was replaced", 2, strings.Repeat("0", 64), false},
		{"newer", 3, "", true},
		{"that goes on", 1, digest, true},
	} {
		dir := t.TempDir()
		u := OpenUnfinished(dir, Audit{})
		left := rounds(1, c.day)
		left.Open, left.Continues = &evidence.Open{Plan: "plan"}, c.continues
		if err := errors.Join(u.Forget(stored), u.Save(left, nil), u.Forget(stored)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if r, _, err := u.Find(stored.Key()); err != nil || (r != nil) != c.stays {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}
