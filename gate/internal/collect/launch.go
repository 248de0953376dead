package collect

import (
	"context"
	"errors"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
)

// A started is a process of the measuring program that was started. Every one is
// brought to its end by finish or by stop.
type started struct {
	c      *Bench
	units  []unit
	tmp    string
	cancel context.CancelFunc
	cause  func() error // why it was cancelled; nil while it was not
	began  time.Time
	end    time.Time
	ended  chan struct{} // closed when it is gone, and all that it started
	result command.Result
	err    error
}

// launch starts a process over these units. Where hold is not nil, it waits at its
// first word until hold is closed. Lines is told what it says; it may be nil.
func (c *Bench) launch(ctx context.Context, mode string, units []unit, hold <-chan struct{}, lines func(string), extra ...string) (*started, error) {
	args, reads, err := c.ask(ctx, mode, units)
	if err != nil {
		return nil, err
	}
	tmp, err := disk.TempDir(c.cache, "harness")
	if err != nil {
		return nil, err
	}
	program := c.asked(append(args, extra...), harnessLimit)
	program.Idle, program.Lines, program.Hold = c.idle(), lines, hold
	program = c.confined(tmp, program, reads...)
	ctx, cancel := context.WithCancel(ctx)
	p := &started{c: c, units: units, tmp: tmp, cancel: cancel, cause: func() error { return context.Cause(ctx) }, began: time.Now(), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.result, p.err = program.Run(ctx)
		p.end = time.Now()
	}()
	return p, nil
}

// finish waits until the process is gone, and reads what it said.
func (p *started) finish() (*stream, command.Result, error) {
	p.clear()
	if p.err == nil && p.result.Over {
		p.err = errors.New("the harness printed more than 64 MiB")
	}
	if p.err != nil {
		return nil, p.result, p.err
	}
	s := parseStream(p.result.Stdout)
	p.c.timed(s)
	return s, p.result, nil
}

// stop ends a process that nobody needs any more. An error is that it does not end.
func (p *started) stop() error {
	p.cancel()
	<-p.ended
	cause := p.cause()
	p.clear()
	if errors.Is(p.err, cause) {
		return nil
	}
	return p.err
}

func (p *started) clear() {
	<-p.ended
	p.cancel()
	p.c.ran(p.began, p.end)
	disk.RemoveTemp(p.tmp)
}
