package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A child is a program that is run for its output: in its own process group,
// within time limits, with bounded output, without the caller's credentials.
type child struct {
	path  string
	args  []string
	dir   string
	total time.Duration // from start to end
	idle  time.Duration // between two writes to standard output; 0: no limit
	most  int           // bytes of standard output
	env   []string      // beside the caller's environment
}

// An ending is how a child ended.
type ending struct {
	stdout   []byte
	stderr   string // its last lines
	code     int    // exit status, -1 after a signal
	signal   string // "segmentation fault", "" without one
	timedOut string // which limit it passed, "" when it ended by itself
	over     bool   // it printed more than it may
	garbled  string // what is wrong with its output as a stream of records
	took     time.Duration
	cpu      time.Duration
}

const stderrTail = 16 << 10

// run starts the child and waits. The error is that of starting it, or of the
// caller's context; how the child itself fared is in the ending.
func (c child) run(ctx context.Context) (*ending, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(childEnv(os.Environ()), c.env...)
	// A child that outlived a killed gate would go on using a GPU whose lock is
	// free again.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second

	w := &watched{most: c.most, alive: make(chan struct{}, 1)}
	tail := &lastBytes{most: stderrTail}
	cmd.Stdout, cmd.Stderr = w, tail
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.path, err)
	}
	done := make(chan struct{})
	go c.watch(ctx, cancel, w.alive, done)
	err := cmd.Wait()
	close(done)
	// What a child left running shares its group and must not outlive it.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)

	e := &ending{stdout: w.buf.Bytes(), stderr: tail.String(), over: w.over, took: time.Since(start)}
	var limit *limitError
	if cause := context.Cause(ctx); errors.As(cause, &limit) {
		e.timedOut = limit.Error()
	} else if cause != nil {
		return nil, cause
	}
	e.fill(cmd.ProcessState, err)
	return e, nil
}

func (e *ending) fill(state *os.ProcessState, err error) {
	e.code = -1
	if state == nil {
		return
	}
	e.cpu = state.UserTime() + state.SystemTime()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal().String()
		return
	}
	e.code = state.ExitCode()
	if err != nil && e.code == 0 {
		e.code = -1 // output pipes that never closed
	}
}

type limitError struct{ what string }

func (e *limitError) Error() string { return e.what }

func (c child) watch(ctx context.Context, cancel context.CancelCauseFunc, alive, done chan struct{}) {
	total := time.NewTimer(c.total)
	defer total.Stop()
	idle := time.NewTimer(c.total + time.Hour)
	if c.idle > 0 {
		idle.Reset(c.idle)
	}
	defer idle.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-alive:
			if c.idle > 0 {
				idle.Reset(c.idle)
			}
		case <-idle.C:
			cancel(&limitError{fmt.Sprintf("it gave no sign of life for %s", c.idle)})
			return
		case <-total.C:
			cancel(&limitError{fmt.Sprintf("it ran for more than %s", c.total)})
			return
		}
	}
}

// watched is standard output: bounded, and a sign of life on every write.
type watched struct {
	buf   bytes.Buffer
	most  int
	over  bool
	alive chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	select {
	case w.alive <- struct{}{}:
	default:
	}
	if w.buf.Len()+len(p) > w.most {
		w.over = true
		return 0, io.ErrShortWrite // the child gets SIGPIPE
	}
	return w.buf.Write(p)
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	mu   sync.Mutex
	buf  []byte
	most int
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if len(l.buf) > l.most {
		l.buf = append([]byte(nil), l.buf[len(l.buf)-l.most:]...)
	}
	return len(p), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(string(l.buf), "�")
}

// childEnv keeps credentials away from code under test.
func childEnv(env []string) []string {
	var kept []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if secret(name) {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

func secret(name string) bool {
	for _, prefix := range []string{"ACTIONS_", "AWS_", "AZURE_", "GOOGLE_", "GCP_", "SSH_", "GITHUB_TOKEN", "GH_TOKEN", "RUNNER_TOKEN", "LD_PRELOAD"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range []string{"_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// lastLine is the end of a text, for a message of one sentence.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
