package check

import (
	"fmt"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
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
	} {
		history = extend(history, run(c.at, 16))
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
