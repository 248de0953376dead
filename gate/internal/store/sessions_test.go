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

// TestAHistoryThatCannotBeReadIsLeft and is no reason to stop measuring.
func TestAHistoryThatCannotBeReadIsLeft(t *testing.T) {
	s := newShelf(t)
	if err := s.Keep(timedAt("c1", 1, 10), "toy/base", nil); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(s.Write.dir, "*", "*", "*", "sessions.json"))
	if len(files) != 1 {
		t.Fatalf("%d histories", len(files))
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(timedAt("c1", 2, 10), "toy/base", nil); err != nil || len(s.Notes) != 1 {
		t.Errorf("%v, %v", err, s.Notes)
	}
	if _, err := s.Write.Get(key(evidence.Latency, at("c1"), nil)); err != nil {
		t.Errorf("the times themselves: %v", err)
	}
}
