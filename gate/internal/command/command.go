// Package command runs every child program of gate: in a session of its own of
// which nothing outlives it, within time limits, with bounded output, and with
// the variables of one closed list.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// A Command is a program that is run for what it prints. A limit of 0 allows
// nothing: who runs a program says how long and how much.
type Command struct {
	Path  string
	Args  []string
	Dir   string
	Env   []string      // NAME=value, beside the variables that pass to every child
	Pass  []string      // names of gate's own variables that pass to this child only; NAME* is every name that begins so
	In    io.Reader     // standard input; nil is empty
	Out   io.Writer     // takes standard output, without a bound, in the place of the result
	Limit time.Duration // from start to end
	Most  int           // bytes of standard output
	Idle  time.Duration // longest silence of standard output; 0 is not a limit
	Merge bool          // standard error goes where standard output goes
	Lines func(string)  // is told each line of standard output when it is complete; may be nil
	// Hold keeps the child at its first word to standard output until the channel is
	// closed. Limit and Idle count from then: who holds a child ends it. May be nil.
	Hold <-chan struct{}

	Confine *Confinement // for a program that runs what a change brings along
}

// A Result is how a child ended.
type Result struct {
	Code    int    // exit status, -1 after a signal
	Signal  string // "segmentation fault", "" without one
	Stopped string // why gate killed it: "it ran for more than 5m0s", "" when it ended by itself
	Over    bool   // it was killed because it printed too much, not for its time
	Stdout  []byte
	Stderr  string // the end of it, which is where programs say why they fail
}

// Err is nil for a child that ended by itself with status 0.
func (r Result) Err() error {
	switch {
	case r.Stopped != "":
		return errors.New(r.Stopped)
	case r.Signal != "":
		return errors.New("signal: " + r.Signal)
	case r.Code != 0:
		return fmt.Errorf("exit status %d", r.Code)
	}
	return nil
}

// Run starts the child and waits for its end and that of all it started. When
// the context ends, they are killed, and the error is the context's cause.
// Otherwise an error is that of starting the child, or of a process that cannot
// be killed; how the child fared is in the result.
func (c Command) Run(ctx context.Context) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	out := &capture{most: c.Most, wrote: make(chan struct{}, 1)}
	tail := &capture{most: stderrTail, last: true}
	lines := &lineWriter{emit: c.Lines}
	cmd, said, err := c.program()
	if err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	defer said.Close()
	p, held, err := c.start(cmd, out, tail, lines)
	if err != nil {
		return Result{}, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	c.held(ctx, p)
	stopped, cancelled := c.watch(ctx, p, out.wrote)
	held.drain()
	if !p.gone() {
		return Result{}, fmt.Errorf("%v was killed and does not end", p)
	}
	err = refusal(said)
	switch {
	case p.left != nil:
		return Result{}, p.left
	case err != nil:
		return Result{}, fmt.Errorf("%s: %w", c.Path, err)
	case c.Out != nil && p.broke != nil && cancelled == nil && stopped == "":
		return Result{}, fmt.Errorf("the output of %s: %w", c.Path, p.broke)
	}
	lines.flush()
	r := Result{Stopped: stopped, Over: out.cut, Stdout: out.kept, Stderr: tail.text(), Code: p.cmd.ProcessState.ExitCode()}
	if out.cut {
		r.Stopped = fmt.Sprintf("it printed more than %d bytes", c.Most)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = status.Signal().String()
	}
	return r, cancelled
}

func (c Command) start(cmd *exec.Cmd, out, tail *capture, lines *lineWriter) (p *process, held *valve, err error) {
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close() // the child has its own
		}
	}()
	id := children.id()
	cmd.Dir, cmd.Env = c.Dir, append(c.environ(), runID+"="+id)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, out, tail
	switch {
	case c.Out != nil:
		cmd.Stdout = c.Out
	case c.Lines != nil:
		cmd.Stdout = io.MultiWriter(out, lines)
	}
	to := cmd.Stdout
	if c.Hold != nil {
		if held, err = newValve(); err != nil {
			return nil, nil, err
		}
		cmd.Stdout = held.in
	}
	if c.Merge {
		cmd.Stderr = cmd.Stdout // one pipe, so that the order of what is written stays
	}
	p, err = start(cmd, c.Path, id)
	if held != nil {
		held.in.Close()
		go held.pour(c.Hold, to)
	}
	if err != nil {
		held.drain()
	}
	return p, held, err
}

// held waits until a child is let go, has ended, or is not needed any more.
func (c Command) held(ctx context.Context, p *process) {
	if c.Hold == nil {
		return
	}
	select {
	case <-c.Hold:
	case <-p.ended:
	case <-ctx.Done():
	}
}

// watch returns when the child has ended, or was killed and had its grace:
// with the limit that it passed, or with the cause why the context ended.
func (c Command) watch(ctx context.Context, p *process, wrote chan struct{}) (stopped string, cancelled error) {
	total := time.NewTimer(c.Limit)
	defer total.Stop()
	idle := time.NewTimer(c.Idle)
	defer idle.Stop()
	if c.Idle == 0 {
		idle.Stop()
	}
	for {
		select {
		case <-p.ended:
			return "", nil
		case _, open := <-wrote:
			switch {
			case !open:
				p.stop()
				return "", nil
			case c.Idle > 0:
				idle.Reset(c.Idle)
			}
			continue
		case <-ctx.Done():
			cancelled = context.Cause(ctx)
		case <-idle.C:
			stopped = fmt.Sprintf("it gave no sign of life for %s", c.Idle)
		case <-total.C:
			stopped = fmt.Sprintf("it ran for more than %s", c.Limit)
		}
		p.stop()
		return stopped, cancelled
	}
}
