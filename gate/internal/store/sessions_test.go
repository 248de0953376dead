package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func session(recorded string, launches int) evidence.Session {
	return evidence.Session{Recorded: recorded, Processes: make([]evidence.SessionProcess, launches)}
}

func TestExtendTellsSessionsApart(t *testing.T) {
	var history []evidence.Session
	for _, c := range []struct {
		at       string
		sessions int
		last     string
		launches int
	}{
		{"2026-11-20T10:00:00Z", 1, "2026-11-20T10:00:00Z", 16},
		{"2026-11-20T10:59:59Z", 1, "2026-11-20T10:59:59Z", 32}, // the same session
		{"2026-11-20T11:30:00Z", 1, "2026-11-20T11:30:00Z", 48}, // and again, counted from its last run
		{"2026-11-20T09:00:00Z", 1, "2026-11-20T11:30:00Z", 64}, // a clock that was set back makes no session
		{"2026-11-20T12:30:00Z", 2, "2026-11-20T12:30:00Z", 16},
		{"2026-11-20T12:30:00Z on another card", 3, "2026-11-20T12:30:00Z", 16},
		{"2026-11-20T12:40:00Z", 3, "2026-11-20T12:40:00Z", 32}, // the session before the last, of its own card
	} {
		at, card, _ := strings.Cut(c.at, " ")
		one := session(at, 16)
		one.Card = card
		history = extend(history, one)
		last := history[len(history)-1]
		if len(history) != c.sessions || last.Recorded != c.last || len(last.Processes) != c.launches {
			t.Errorf("%s: %d sessions, the last of %s with %d launches; want %+v", c.at, len(history), last.Recorded, len(last.Processes), c)
		}
	}
}

func TestExtendIsBounded(t *testing.T) {
	var history []evidence.Session
	for day := range 100 {
		history = extend(history, session(fmt.Sprintf("2026-%02d-%02dT10:00:00Z", 1+day/28, 1+day%28), 1000))
	}
	if len(history) != maxSessions || history[0].Recorded != "2026-02-09T10:00:00Z" || len(history[0].Processes) != maxSessionProcesses {
		t.Errorf("%d sessions from %s, %d launches", len(history), history[0].Recorded, len(history[0].Processes))
	}
}

// timedAt is a record of a code's times on some day.
func timedAt(code string, day int, samples int) *evidence.Record {
	r := of(evidence.Latency, code, "c0ffee")
	r.Provenance.Kernel, r.Metrics = "toy/"+code, nil
	r.Provenance.Recorded = time.Date(2026, 11, day, 10, 0, 0, 0, time.UTC).Format(time.RFC3339)
	for i := range samples {
		r.Samples = append(r.Samples, evidence.Sample{CacheState: "warm", BatchesNS: []float64{100 + float64(i), 101}})
	}
	return r
}

// TestKeepLeavesSessions: alone or as an arm of an experiment, a run's times
// are a session of the code that took them.
func TestKeepLeavesSessions(t *testing.T) {
	s := newShelf(t)
	for day := 1; day <= 2; day++ {
		if err := s.Keep(timedAt("c1", day, 10), "toy/base", nil); err != nil {
			t.Fatal(err)
		}
	}
	beside := timedAt("c1", 3, 0)
	ref := at("c2")
	beside.Base = &ref
	beside.Experiment = &evidence.Experiment{Stopped: "resolved", Rounds: []evidence.Round{{Base: timedAt("", 3, 4).Samples, Head: timedAt("", 3, 4).Samples}}}
	if err := s.Keep(beside, "toy/ref", nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code, kernel string
		launches     []int
	}{{"c1", "toy/c1", []int{10, 10, 4}}, {"c2", "toy/ref", []int{4}}} {
		r, err := s.Write.Get(key(evidence.Sessions, at(c.code), nil))
		if err != nil {
			t.Fatal(err)
		}
		var launches []int
		for _, one := range r.Sessions {
			launches = append(launches, len(one.Processes))
		}
		if fmt.Sprint(launches) != fmt.Sprint(c.launches) || r.Provenance.Kernel != c.kernel || len(r.Raw) != 0 || r.Sessions[0].Processes[0].Mean <= r.Sessions[0].Processes[0].Typical-1e-9 {
			t.Errorf("%s: %v launches of %s: %+v", c.code, launches, r.Provenance.Kernel, r.Sessions[0])
		}
	}
}

// selfTimed is a calibration of so many blocks.
func selfTimed(blocks int) *evidence.Record {
	r := of(evidence.Calibration, "c1", "")
	r.AA = &evidence.AA{Rounds: blocks}
	return r
}

// TestKeepPrefersTheLongerCalibration: one that was cut short never takes the
// place of a whole one.
func TestKeepPrefersTheLongerCalibration(t *testing.T) {
	s := newShelf(t)
	for _, c := range []struct{ blocks, want int }{{3, 3}, {2, 3}, {5, 5}, {12, 12}, {4, 12}, {10, 10}} {
		if err := s.Keep(selfTimed(c.blocks), "", nil); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Write.Get(key(evidence.Calibration, at("c1"), nil)); err != nil || r.AA.Rounds != c.want {
			t.Errorf("after %d blocks: %+v, %v, want %d", c.blocks, r.AA, err, c.want)
		}
	}
}

// TestHistoriesUnderAttack: what lies in the place of a history when a third run
// adds to it. One that cannot be believed is left as it is, named, and no reason to
// stop measuring: the times themselves are stored.
func TestHistoriesUnderAttack(t *testing.T) {
	day := func(n, hour, minute int) string {
		return time.Date(2026, 11, n, hour, minute, 0, 0, time.UTC).Format(time.RFC3339)
	}
	replace := func(old, new string) func(string) string {
		return func(text string) string {
			if !strings.Contains(text, old) {
				panic("no " + old)
			}
			return strings.ReplaceAll(text, old, new)
		}
	}
	for _, c := range []struct {
		name   string
		change func(text string) string // of the history; nil removes its file
		now    string
		want   string // the dates of its sessions
		note   string
	}{
		{"nothing", replace(day(1, 10, 0), day(1, 10, 0)), day(3, 10, 0), "1 2 3", ""},
		{"deleted", nil, day(3, 10, 0), "3", ""},
		{"truncated", func(text string) string { return text[:len(text)/2] }, day(3, 10, 0), "", "the JSON is cut short"},
		{"empty", func(string) string { return "" }, day(3, 10, 0), "", "the JSON is cut short"},
		{"two documents", func(text string) string { return text + text }, day(3, 10, 0), "", "data follows the JSON"},
		{"of another card", replace(`"launches"`, `"card": "ffffffffffff", "launches"`), day(3, 10, 0), "1 2 3", ""},
		{"of another driver", replace(`"driver": "`, `"driver": "9`), day(3, 10, 0), "", "its place says"},
		{"of another code", replace(`"code_id": "c1`, `"code_id": "c2`), day(3, 10, 0), "", "the record is of another code"},
		{"a session of tomorrow", replace(day(1, 10, 0), day(4, 10, 0)), day(3, 10, 0), "", "which lies in the future"},
		{"a session in another time zone", replace(day(1, 10, 0), "2026-11-01T10:00:00+14:00"), day(3, 10, 0), "", "not a date in UTC"},
		{"a session that is not a date", replace(day(1, 10, 0), "2026-11-31T10:00:00Z"), day(3, 10, 0), "", "is not a date"},
		{"a session of the year 1", replace(day(1, 10, 0), "0001-01-01T10:00:00Z"), day(3, 10, 0), "1 2 3", ""},
		{"the clock was set back for a minute", replace(day(1, 10, 0), day(1, 10, 0)), day(2, 9, 59), "1 2", ""},
		{"the clock was set back for a day", replace(day(1, 10, 0), day(1, 10, 0)), day(1, 11, 0), "", "which lies in the future"},
		{"the clock stood still", replace(day(1, 10, 0), day(1, 10, 0)), day(2, 10, 0), "1 2", ""},
	} {
		s := newShelf(t)
		now := day(2, 10, 0)
		s.Write = s.Write.Audited(Audit{Now: func() time.Time { at, _ := time.Parse(time.RFC3339, now); return at }})
		for d := 1; d <= 2; d++ {
			if err := s.Keep(timedAt("c1", d, 10), "toy/base", nil); err != nil {
				t.Fatal(err)
			}
		}
		path, err := place(key(evidence.Sessions, at("c1"), nil))
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(s.Write.dir, path)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.change == nil {
			err = os.Remove(path)
		} else {
			before = []byte(c.change(string(before)))
			err = os.WriteFile(path, before, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		now = c.now
		third := timedAt("c1", 3, 10)
		third.Provenance.Recorded = now
		if err := s.Keep(third, "toy/base", nil); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if notes := strings.Join(s.Notes, "\n"); c.note == "" && strings.Contains(notes, "history") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q", c.name, s.Notes)
		}
		if c.want == "" {
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("%s: it was changed, %v", c.name, err)
			}
			continue
		}
		r, err := s.Write.Get(key(evidence.Sessions, at("c1"), nil))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var days []string
		for _, one := range r.Sessions {
			days = append(days, strings.TrimLeft(one.Recorded[8:10], "0"))
		}
		if got := strings.Join(days, " "); got != c.want {
			t.Errorf("%s: sessions of the days %s, want %s", c.name, got, c.want)
		}
	}
}

// TestHistoriesAreNoReasonToStop: the times of a run whose history is damaged are
// stored all the same.
func TestHistoriesAreNoReasonToStop(t *testing.T) {
	s := newShelf(t)
	path, err := place(key(evidence.Sessions, at("c1"), nil))
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(s.Write.dir, path)
	if err := os.MkdirAll(path, 0o755); err != nil { // not even a file
		t.Fatal(err)
	}
	if err := s.Keep(timedAt("c1", 2, 10), "toy/base", nil); err != nil || len(s.Notes) != 1 {
		t.Errorf("%v, %v", err, s.Notes)
	}
	if _, err := s.Write.Get(key(evidence.Latency, at("c1"), nil)); err != nil {
		t.Errorf("the times themselves: %v", err)
	}
}
