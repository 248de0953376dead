package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

func run(recorded string, launches int) evidence.Session {
	return evidence.Session{Recorded: recorded, Launches: make([]evidence.SessionLaunch, launches)}
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
		one := run(at, 16)
		one.Card = card
		history = extend(history, one)
		last := history[len(history)-1]
		if len(history) != c.sessions || last.Recorded != c.last || len(last.Launches) != c.launches {
			t.Errorf("%s: %d sessions, the last of %s with %d launches; want %+v", c.at, len(history), last.Recorded, len(last.Launches), c)
		}
	}
}

func TestExtendIsBounded(t *testing.T) {
	var history []evidence.Session
	for day := range 100 {
		history = extend(history, run(fmt.Sprintf("2026-%02d-%02dT10:00:00Z", 1+day/28, 1+day%28), 1000))
	}
	if len(history) != maxSessions || history[0].Recorded != "2026-02-09T10:00:00Z" || len(history[0].Launches) != maxSessionLaunches {
		t.Errorf("%d sessions from %s, %d launches", len(history), history[0].Recorded, len(history[0].Launches))
	}
}

// timedAt is a record of a code's times on some day.
func timedAt(code string, day int, samples int) *evidence.Record {
	r := recordAt(code, "c0ffee")
	r.Tier, r.Provenance.Kernel = evidence.Latency, "toy/"+code
	r.Provenance.Recorded = time.Date(2026, 11, day, 10, 0, 0, 0, time.UTC).Format(time.RFC3339)
	for i := range samples {
		r.Samples = append(r.Samples, evidence.Sample{Regime: "warm", BatchesNS: []float64{100 + float64(i), 101}})
	}
	return r
}

// TestKeepLeavesSessions: alone or as an arm of an experiment, a run's times
// are a session of the code that took them.
func TestKeepLeavesSessions(t *testing.T) {
	j := &job{stores: newStores(t)}
	j.stores.write = j.stores.local
	for day := 1; day <= 2; day++ {
		if err := j.keep(timedAt("c1", day, 10), nil); err != nil {
			t.Fatal(err)
		}
	}
	beside := timedAt("c1", 3, 0)
	ref := at("c2")
	beside.Base = &ref
	beside.Experiment = &evidence.Experiment{Stopped: "resolved", Blocks: []evidence.Block{{Base: timedAt("", 3, 4).Samples, Head: timedAt("", 3, 4).Samples}}}
	j.kernels = []*kernel{{cases: []*kase{{references: []*reference{{manifest: &manifest.Kernel{Name: "toy/ref"}, at: ref}}}}}}
	if err := j.keep(beside, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code, kernel string
		launches     []int
	}{{"c1", "toy/c1", []int{10, 10, 4}}, {"c2", "toy/ref", []int{4}}} {
		r, err := j.stores.local.Get(evidence.Sessions, at(c.code), nil)
		if err != nil {
			t.Fatal(err)
		}
		var launches []int
		for _, s := range r.Sessions {
			launches = append(launches, len(s.Launches))
		}
		if fmt.Sprint(launches) != fmt.Sprint(c.launches) || r.Provenance.Kernel != c.kernel || len(r.Raw) != 0 || r.Sessions[0].Launches[0].Mean <= r.Sessions[0].Launches[0].Typical-1e-9 {
			t.Errorf("%s: %v launches of %s: %+v", c.code, launches, r.Provenance.Kernel, r.Sessions[0])
		}
	}
}

// TestKeepPrefersTheLongerCalibration: one that was cut short never takes the
// place of a whole one.
func TestKeepPrefersTheLongerCalibration(t *testing.T) {
	j := &job{stores: newStores(t)}
	j.stores.write = j.stores.local
	for _, c := range []struct{ blocks, want int }{{3, 3}, {2, 3}, {5, 5}, {12, 12}, {4, 12}, {10, 10}} {
		if err := j.keep(selfTimed("c1", 0.01, c.blocks), nil); err != nil {
			t.Fatal(err)
		}
		if r, err := j.stores.local.Get(evidence.Calibration, at("c1"), nil); err != nil || r.AA.Blocks != c.want {
			t.Errorf("after %d blocks: %+v, %v, want %d", c.blocks, r.AA, err, c.want)
		}
	}
}

// TestAHistoryThatCannotBeReadIsLeft and is no reason to stop measuring.
func TestAHistoryThatCannotBeReadIsLeft(t *testing.T) {
	j := &job{stores: newStores(t)}
	j.stores.write = j.stores.local
	if err := j.keep(timedAt("c1", 1, 10), nil); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(j.stores.local.Dir(), "*", "*", "*", "sessions.json"))
	if len(files) != 1 {
		t.Fatalf("%d histories", len(files))
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.keep(timedAt("c1", 2, 10), nil); err != nil || len(j.notes) != 1 {
		t.Errorf("%v, %v", err, j.notes)
	}
	if _, err := j.stores.local.Get(evidence.Latency, at("c1"), nil); err != nil {
		t.Errorf("the times themselves: %v", err)
	}
}
