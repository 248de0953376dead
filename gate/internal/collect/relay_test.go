package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
)

// runners is a harness that logs what happens to its processes, each by its number:
// "start" before its first word, "on" after it, "gone" last of all. It answers for
// op/k. The shell's first piece runs before the first word, the second after the last
// result, the third after the end record.
func runners(before, after, last string) string {
	return `n=$(($(grep -c start events 2>/dev/null) + 1))
echo start $n >>events
echo $$ >>pids
` + before + `
echo '` + configLine + `'
echo on $n >>events
echo '` + timedLine + `'
echo '` + timeLine + `'
` + after + `
echo '` + endLine(timedLine, timeLine) + `'
` + last + `
echo gone $n >>events
`
}

// company waits until the next process has started, and gives one that is not held
// the time to go on.
const company = `
i=0
until grep -q "start $((n + 1))" events; do i=$((i + 1)); [ $i -gt 200 ] && break; sleep 0.02; done
sleep 0.1
`

func readLines(t *testing.T, c *Bench, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// wantOrder holds the log of processes to the order in which each one goes on only
// when the one before it is gone, and starts before that where it can.
func wantOrder(t *testing.T, events []string, processes int, early func(n int) bool) {
	t.Helper()
	at := func(what string, n int) int { return slices.Index(events, fmt.Sprint(what, " ", n)) }
	if len(events) != 3*processes {
		t.Fatalf("%d processes logged %q", processes, events)
	}
	for n := 2; n <= processes; n++ {
		if at("on", n) < at("gone", n-1) {
			t.Errorf("process %d went on before the one before it was gone: %q", n, events)
		}
		if (at("start", n) < at("gone", n-1)) != early(n) {
			t.Errorf("process %d, early: %v, in %q", n, early(n), events)
		}
	}
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func wantNoneLeft(t *testing.T, c *Bench) {
	t.Helper()
	for _, text := range readLines(t, c, "pids") {
		if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
			t.Errorf("process %q is left", text)
		}
	}
}

var warm = []evidence.CacheState{evidence.Warm}

// TestTheNextProcessStartsWhileTheOneBeforeGoesAway: all results are there, the
// process is not, and the next one is on its way as far as its first word.
func TestTheNextProcessStartsWhileTheOneBeforeGoesAway(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		c, kept := fake(t, runners("", fmt.Sprintf("if [ $n -lt %d ]; then %s fi", singleProcesses, company), ""))
		records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, warm)
		if err != nil || len(*kept) != 1 || len(records[0].Samples) != singleProcesses || len(c.Notes) != 0 {
			t.Fatalf("%v, %d kept, noted %q", err, len(*kept), c.Notes)
		}
		wantOrder(t, readLines(t, c, "events"), singleProcesses, func(int) bool { return true })
		wantNoneLeft(t, c)
	})
	t.Run("in rounds", func(t *testing.T) {
		// The pilot and the last process of a round are followed by what is not known yet.
		first := func(n int) bool { return n%8 == 2 }
		b := newCutter(t, "")
		b.budget.Pairs = 8
		text := strings.Replace(runners("", "case $n in 1|9|17) ;; *) "+company+";; esac", ""), "op/k", `'"$k"'`, -1)
		k := `case "$*" in *op/k-base@*) k=op/k-base;; *) k=op/k;; esac` + "\n"
		c, _ := fake(t, k+text)
		b.program = c.program
		// Others are asked for only when nothing of gate's own is on the device, where
		// its own processes would be strangers: a container does not know their numbers.
		asked := 0
		b.processes = func(context.Context) (own []gpu.Process, err error) {
			asked++
			for _, text := range readLines(t, b.Bench, "pids") {
				if pid, err := strconv.Atoi(text); err != nil || alive(pid) {
					own = append(own, gpu.Process{UUID: b.device.UUID, PID: 1000 + asked, Name: "own"})
				}
			}
			return own, nil
		}
		got, err := b.fill(0, against(measured("op/k", "small"), "op/k-base"))
		if err != nil || !got[0].Measured() || len(got[0].Record.Experiment.Rounds) != 2 || len(got[0].Record.Experiment.Discarded) != 0 {
			t.Fatalf("%v, %+v", err, got)
		}
		if asked != 3 {
			t.Errorf("others were asked for %d times", asked)
		}
		wantOrder(t, readLines(t, b.Bench, "events"), 1+16, func(n int) bool { return !first(n) })
		wantNoneLeft(t, b.Bench)
	})
}

// TestABadEndVoidsAProcess whatever has started meanwhile: what comes of it is what
// comes of it where nothing starts early, and what had started measures nothing.
func TestABadEndVoidsAProcess(t *testing.T) {
	for name, how := range map[string][2]string{
		"crashes after its results":    {"kill -SEGV $$", ""},
		"crashes after its end record": {"", "kill -SEGV $$"},
		"a status after its end":       {"", "exit 7"},
		"a second result":              {"echo '" + timeLine + "'", ""},
		"no end record":                {"exit 0", ""},
		"words after the end":          {"", "echo '" + timeLine + "'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := map[bool]string{}
			for _, apart := range []bool{true, false} {
				wait := ""
				if !apart {
					wait = company
				}
				bad := func(how string) string { return "if [ $n -eq 3 ]; then :\n" + wait + how + "\nfi" }
				c, kept := fake(t, runners("", bad(how[0]), bad(how[1])))
				c.apart = apart
				records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, warm)
				if err == nil && records[0].Failure == nil || len(*kept) != 0 {
					t.Fatalf("apart: %v: it passed: %+v", apart, records)
				}
				if err == nil {
					err = errors.New(records[0].Failure.Message)
				}
				ended[apart] = err.Error()
				events := readLines(t, c, "events")
				if slices.Contains(events, "on 4") || slices.Contains(events, "start 4") == apart {
					t.Errorf("apart: %v: %q", apart, events)
				}
				wantNoneLeft(t, c)
			}
			if ended[true] != ended[false] {
				t.Errorf("%q, and where nothing starts early %q", ended[false], ended[true])
			}
		})
	}
}

// TestADeviceThatTakesOneProcess: what cannot start beside another one starts after
// it, which is said, and nothing is started early from then on.
func TestADeviceThatTakesOneProcess(t *testing.T) {
	busy := strings.NewReplacer(`"kernel":"op/k","case":"small","class":"normal"`, `"kernel":null,"case":null`).Replace(errorLine)
	for name, how := range map[string]string{
		"says so": say(configLine, busy, endLine(busy)) + "exit 1", "crashes": "kill -SEGV $$", "exits": "exit 3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beside := `if [ $n -gt 1 ] && ! grep -q "gone $((n - 1))" events; then echo gone $n >>events` + "\n" + how + "\nfi"
			c, kept := fake(t, runners(beside, "if [ $n -eq 1 ]; then "+company+" fi", ""))
			records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, warm)
			if err != nil || len(*kept) != 1 || len(records[0].Samples) != singleProcesses {
				t.Fatalf("%v, %+v", err, records)
			}
			if len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "only when the one before is gone") {
				t.Errorf("noted %q", c.Notes)
			}
			if n := len(readLines(t, c, "pids")); n != singleProcesses+1 {
				t.Errorf("%d processes", n)
			}
		})
	}
}

// TestAFaultIsNotTakenForCompany: a process that fails whether or not another one
// is there is started once more, and then its fault is told.
func TestAFaultIsNotTakenForCompany(t *testing.T) {
	c, kept := fake(t, runners("[ $n -gt 1 ] && exit 3", "if [ $n -eq 1 ]; then "+company+" fi", ""))
	_, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, warm)
	if err == nil || !strings.Contains(err.Error(), "status 3") || len(*kept) != 0 {
		t.Errorf("%v, %d kept", err, len(*kept))
	}
	if n := len(readLines(t, c, "pids")); n != 3 {
		t.Errorf("%d processes", n)
	}
}

// TestACancelledRelayLeavesNothing: neither of the two processes.
func TestACancelledRelayLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	c, kept := fake(t, runners("", "if [ $n -eq 2 ]; then "+company+" echo >waits; sleep 60; fi", ""))
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(filepath.Dir(c.program), "waits")); err == nil {
				cancel(why)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := c.timeAlone(ctx, []unit{of("op/k", "small")}, warm)
	if !errors.Is(err, why) || strings.Count(err.Error(), why.Error()) != 1 || len(*kept) != 0 {
		t.Errorf("%v, %d kept", err, len(*kept))
	}
	if events := readLines(t, c, "events"); !slices.Contains(events, "start 3") || slices.Contains(events, "on 3") {
		t.Errorf("%q", events)
	}
	wantNoneLeft(t, c)
}

// TestABusyDeviceIsCountedOnce where processes overlap on the time line.
func TestABusyDeviceIsCountedOnce(t *testing.T) {
	zero := time.Now()
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	c := &Bench{Spans: []Span{{What: "latency", Seconds: 10}}}
	for _, p := range [][2]float64{{3, 5}, {0, 2}, {1.5, 3.5}, {3.6, 3.8}, {7, 8}} {
		c.ran(at(p[0]), at(p[1]))
	}
	if got, want := c.Spans[0].String(), "  10.0 s  latency: 5 processes of 1.44 s, no process on the GPU for 40 % of the time, timed batches 0.000 s"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
