package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// TestMain lets the test binary be a gate that runs a child: the script in
// COMMAND_TEST_SCRIPT, whose lines it passes on.
func TestMain(m *testing.M) {
	script := os.Getenv("COMMAND_TEST_SCRIPT")
	if script == "" {
		os.Exit(m.Run())
	}
	shell(script, func(c *Command) {
		c.Lines = func(s string) { fmt.Println(s) }
		if temp := os.Getenv("COMMAND_TEST_CONFINED"); temp != "" {
			c.Confine = &Confinement{Temp: temp}
		}
	}).Run(context.Background())
}

// shell is a script with limits that no test reaches.
func shell(script string, change func(*Command)) Command {
	c := Command{Path: "/bin/sh", Args: []string{"-c", script}, Limit: 2 * time.Minute, Most: 1 << 20}
	if change != nil {
		change(&c)
	}
	return c
}

func run(t *testing.T, c Command) Result {
	t.Helper()
	r, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name, script, stdout, stderr, signal, err string
		code                                      int
	}{
		{"well", "echo out; echo err >&2", "out\n", "err\n", "", "", 0},
		{"with a status", "echo out; exit 3", "out\n", "", "", "exit status 3", 3},
		{"segmentation fault", "echo out; kill -SEGV $$", "out\n", "", "segmentation fault", "signal: segmentation fault", -1},
		{"abort", "kill -ABRT $$", "", "", "aborted", "signal: aborted", -1},
		{"killed", "kill -KILL $$", "", "", "killed", "signal: killed", -1},
		{"status like a signal's", "exit 139", "", "", "", "exit status 139", 139},
		{"silent", "", "", "", "", "", 0},
		{"reads standard input", "cat", "", "", "", "", 0},
		{"closes its output and goes on", "exec >&- 2>&-; sleep 0.3; exit 5", "", "", "", "exit status 5", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, shell(c.script, nil))
			err := ""
			if e := r.Err(); e != nil {
				err = e.Error()
			}
			if string(r.Stdout) != c.stdout || r.Stderr != c.stderr || r.Signal != c.signal || r.Code != c.code || r.Stopped != "" || r.Over || err != c.err {
				t.Errorf("%+v, %q", r, err)
			}
		})
	}
}

// gone reports whether a process is dead; one that nobody waits for may stay
// in the table.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func wantGone(t *testing.T, text string) {
	t.Helper()
	pids := strings.Fields(text)
	if len(pids) == 0 {
		t.Fatal("the script named no process")
	}
	for _, word := range pids {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); !gone(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("process %d outlives its group", pid)
			}
		}
	}
}

// brood is a child and its grandchild, which both name themselves, ignore
// SIGTERM and do not end.
const brood = "trap '' TERM; echo $$; (trap '' TERM; sh -c 'echo $$; exec sleep 600') & wait"

func TestLimitsKillTheWholeGroup(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		change             func(*Command)
	}{
		{"total", brood, "it ran for more than 300ms", func(c *Command) { c.Limit = 300 * time.Millisecond }},
		{"idle", brood, "it gave no sign of life for 300ms", func(c *Command) { c.Idle = 300 * time.Millisecond }},
		{"busy, so the total counts", "echo $$; while :; do :; done", "it ran for more than 300ms", func(c *Command) { c.Limit = 300 * time.Millisecond }},
		{"idle in spite of its stderr", "echo $$; while :; do echo x >&2; sleep 0.05; done", "it gave no sign of life for 300ms", func(c *Command) { c.Idle = 300 * time.Millisecond }},
		{"idle with its output closed", "echo $$; exec >&- 2>&-; sleep 600", "it gave no sign of life for 300ms", func(c *Command) { c.Idle = 300 * time.Millisecond }},
		{"no limit given", brood, "it ran for more than 0s", func(c *Command) { c.Limit = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, shell(c.script, c.change))
			if r.Stopped != c.want || r.Over || r.Err() == nil {
				t.Errorf("%+v, want %q", r, c.want)
			}
			if c.want != "it ran for more than 0s" {
				wantGone(t, string(r.Stdout))
			}
		})
	}
}

func TestSignsOfLifeHoldTheIdleLimitOff(t *testing.T) {
	r := run(t, shell("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.2; done", func(c *Command) { c.Idle = 1500 * time.Millisecond }))
	if r.Err() != nil {
		t.Errorf("%+v", r)
	}
}

// What a child leaves running has ended when Run returns, wherever it went to.
func TestWhatAChildLeavesRunning(t *testing.T) {
	const named = "; while ! test -s $OUT; do sleep 0.01; done"
	for name, script := range map[string]string{
		"in its group":                  "sleep 600 >/dev/null 2>&1 & echo $! >$OUT",
		"in its group, with its output": "sleep 600 & echo $! >$OUT",
		"in a session of its own":       "setsid sh -c 'echo $$ >$OUT; exec sleep 600' &" + named[1:],
		"with children":                 "setsid sh -c 'sleep 600 & echo $$ $! >$OUT; wait' &" + named[1:],
		"without its environment":       "setsid env -i OUT=$OUT sh -c 'echo $$ >$OUT; exec env -i sleep 600' &" + named[1:],
		"as a daemon":                   "(setsid sh -c 'sleep 600 & echo $! >$OUT')" + named,
		"after it crashed":              "setsid sh -c 'echo $$ >$OUT; exec sleep 600' &" + named[1:] + "; kill -SEGV $$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			r := run(t, shell(script, func(c *Command) { c.Env = []string{"OUT=" + out} }))
			text, err := os.ReadFile(out)
			if err != nil || r.Stopped != "" {
				t.Fatalf("%v, %+v", err, r)
			}
			for _, word := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(word); err != nil || !gone(pid) {
					t.Errorf("%q runs on, %v", word, err)
				}
			}
		})
	}
}

// A child that ends takes nothing of another child with it, whatever has left
// which group.
func TestStraysOfOthersStay(t *testing.T) {
	var ends sync.WaitGroup
	stop := make(chan struct{})
	ends.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				run(t, shell("true", nil))
			}
		}
	})
	for _, way := range []string{"", "setsid "} {
		script := way + "sh -c '(sleep 0.5; echo done >>$OUT) &'; while ! grep -q done $OUT; do sleep 0.05; done"
		out := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(out, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r := run(t, shell(script, func(c *Command) { c.Env, c.Limit = []string{"OUT=" + out}, 20*time.Second }))
		if r.Err() != nil {
			t.Errorf("%q: %+v", way, r)
		}
	}
	close(stop)
	ends.Wait()
}

// A number that is another child's by the time its last owner is forgotten
// stays noted.
func TestANumberThatIsUsedAgain(t *testing.T) {
	f := family{running: map[int]string{4711: "second"}}
	if f.forget(4711, "first"); f.running[4711] != "second" {
		t.Error("the second child would be taken for a stray")
	}
	if f.forget(4711, "second"); len(f.running) > 0 {
		t.Errorf("%v is kept", f.running)
	}
}

// What a killed gate leaves is ended by the next one, and what a gate that
// lives has started is not.
func TestLeftoversOfAKilledGate(t *testing.T) {
	own := exec.Command("sleep", "600")
	own.Env = []string{runID + "=" + disk.Owner() + ".1"}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer own.Wait()
	defer own.Process.Kill()
	gate := exec.Command(os.Args[0])
	gate.Env = append(os.Environ(), "COMMAND_TEST_SCRIPT=setsid sh -c 'sleep 600 & echo $$ $!; wait' & wait")
	out, err := gate.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Start(); err != nil {
		t.Fatal(err)
	}
	left, err := bufio.NewReader(out).ReadString('\n')
	gate.Process.Kill()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(left) {
		if pid, err := strconv.Atoi(word); err != nil || gone(pid) {
			t.Fatalf("%q ended by itself: this test shows nothing", left)
		}
	}
	wantGone(t, strconv.Itoa(gate.Process.Pid)) // although nobody has waited for it yet
	EndLeftovers(t.TempDir())
	gate.Wait()
	wantGone(t, left)
	if gone(own.Process.Pid) {
		t.Error("a child of a gate that lives was ended")
	}
}

// Who waits for more than a moment is told for what.
func TestTheUserIsToldWhatGateWaitsFor(t *testing.T) {
	before, told := notice, make(chan string, 1)
	notice, Waiting = 20*time.Millisecond, func(what string) { told <- what }
	defer func() { notice, Waiting = before, func(string) {} }()
	p := &process{name: "/opt/stuck", cmd: exec.Command("/opt/stuck"), reaped: true, ended: make(chan struct{})}
	p.cmd.Process = &os.Process{Pid: 4711}
	done := make(chan struct{})
	go func() { p.stop(); close(done) }()
	if what := <-told; what != "/opt/stuck (process 4711)" {
		t.Errorf("%q", what)
	}
	close(p.ended)
	<-done
}

func TestStreams(t *testing.T) {
	var out strings.Builder
	r := run(t, shell("cat; echo err >&2", func(c *Command) { c.In, c.Out, c.Most = strings.NewReader("in\n"), &out, 0 }))
	if out.String() != "in\n" || r.Stderr != "err\n" || r.Err() != nil || len(r.Stdout) > 0 {
		t.Errorf("%q, %+v", out.String(), r)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	_, err = shell("echo out", func(c *Command) { c.Out = io.MultiWriter(full) }).Run(context.Background())
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("what took the output failed: %v", err)
	}
}

func TestOutputIsBounded(t *testing.T) {
	r := run(t, shell("echo $$; yes", func(c *Command) { c.Most = 10000 }))
	if !r.Over || len(r.Stdout) != 10000 || r.Stopped != "it printed more than 10000 bytes" {
		t.Errorf("over: %v, %d bytes, %q", r.Over, len(r.Stdout), r.Stopped)
	}
	pid, _, _ := strings.Cut(string(r.Stdout), "\n")
	wantGone(t, pid)
	r = run(t, shell("head -c 10001 /dev/zero", func(c *Command) { c.Most = 10000 }))
	if !r.Over || r.Err() == nil {
		t.Errorf("it ended after its last byte: %v, %v", r.Over, r.Err())
	}
	r = run(t, shell("head -c 10000 /dev/zero", func(c *Command) { c.Most = 10000 }))
	if r.Over || len(r.Stdout) != 10000 || r.Err() != nil {
		t.Errorf("exactly the bound: over: %v, %d bytes, %v", r.Over, len(r.Stdout), r.Err())
	}
	r = run(t, shell("head -c 100000 /dev/zero | tr '\\0' x >&2; printf 'the \\377 end' >&2", nil))
	if len(r.Stderr) > stderrTail+20 || !strings.HasPrefix(r.Stderr, "… (cut)\nxx") || !strings.HasSuffix(r.Stderr, "xthe \uFFFD end") {
		t.Errorf("%d bytes of stderr", len(r.Stderr))
	}
}

func TestMergedOutputKeepsItsOrder(t *testing.T) {
	r := run(t, shell("for i in 1 2 3; do echo out $i; echo err $i >&2; done", func(c *Command) { c.Merge = true }))
	if string(r.Stdout) != "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n" || r.Stderr != "" {
		t.Errorf("%q, %q", r.Stdout, r.Stderr)
	}
}

func TestLinesAreToldAndBounded(t *testing.T) {
	var got []string
	run(t, shell(`printf 'one\r\n\n'; head -c 40960 /dev/zero | tr '\0' x; printf '\nthree'`, func(c *Command) { c.Lines = func(s string) { got = append(got, s) } }))
	if len(got) != 3 || got[0] != "one" || got[1] != strings.Repeat("x", longLine) || got[2] != "three" {
		t.Errorf("%d lines: %.40q", len(got), got)
	}
}

func TestNothingToStart(t *testing.T) {
	r, err := Command{Path: "/none/harness", Limit: time.Minute}.Run(context.Background())
	if err == nil || r.Stdout != nil || !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "starting /none/harness: ") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCancelledByTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	c := shell(brood, func(c *Command) { c.Lines = func(string) { cancel(why) } })
	r, err := c.Run(ctx)
	if !errors.Is(err, why) || r.Signal != "killed" {
		t.Errorf("%+v, %v", r, err)
	}
	wantGone(t, string(r.Stdout))
	if r, err := c.Run(ctx); !errors.Is(err, why) || r.Stdout != nil {
		t.Errorf("started by a context that has ended: %+v, %v", r, err)
	}
}

// The kernel sends the death signal when the thread that forked ends. Threads
// end all the time here, and no child may end by it.
func TestChildrenOutliveOtherThreads(t *testing.T) {
	stop := make(chan struct{})
	var churn, children sync.WaitGroup
	for range 4 {
		churn.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ended := make(chan struct{})
				go func() {
					runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
					close(ended)
				}()
				<-ended
				runtime.Gosched()
			}
		})
	}
	for range 40 {
		children.Go(func() {
			if r, err := shell("sleep 0.3", nil).Run(context.Background()); err != nil || r.Err() != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	children.Wait()
	close(stop)
	churn.Wait()
}

func TestChildrenDieWithGate(t *testing.T) {
	for _, confined := range []string{"", t.TempDir()} {
		gate := exec.Command(os.Args[0])
		gate.Env = append(os.Environ(), "COMMAND_TEST_SCRIPT=echo $$; exec sleep 600", "COMMAND_TEST_CONFINED="+confined)
		out, err := gate.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := gate.Start(); err != nil {
			t.Fatal(err)
		}
		child, err := bufio.NewReader(out).ReadString('\n')
		gate.Process.Kill()
		gate.Wait()
		if err != nil {
			t.Fatal(err)
		}
		wantGone(t, child)
	}
}
