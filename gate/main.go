// Command gate decides whether a change to CUDA kernels may be merged: it
// builds every kernel, reads what the compiler says and what the hardware did,
// checks the results, measures latency against the base, judges all of it by
// policies.yaml, and says why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/exit"
)

func main() { os.Exit(gate()) }

// gate is the whole program: it reads the process's arguments, writes to its
// streams and returns its exit status.
func gate() int {
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	endBySignal(end)
	command.Waiting = func(process string) {
		fmt.Fprintf(os.Stderr, "gate: waiting for %s, which was killed and has not ended\n", process)
	}
	stdout, stderr := stream{os.Stdout, end, new(atomic.Pointer[error])}, stream{os.Stderr, end, nil}
	code := run(ctx, os.Args, stdout, stderr)
	if lost := stdout.lost.Load(); code == exit.Pass && lost != nil { // a page of help does not say so
		return exitCode(*lost, stderr)
	}
	return code
}

// endBySignal lets the first signal end the context, with the signal as the
// cause, and the second one end the process at once. A signal that whoever
// started gate ignores, as nohup does, stays ignored.
func endBySignal(end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		s := <-signals
		signal.Stop(signals)
		end(exit.Signal(s.(syscall.Signal)))
	}()
	// A write to a pipe that nobody reads returns an error instead of ending the
	// process, which has more to clean up than the runtime knows.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// A stream is standard output or standard error. It ends the context when
// nobody reads it any more, and keeps why it could not be written.
type stream struct {
	file *os.File
	end  context.CancelCauseFunc
	lost *atomic.Pointer[error] // nil where nobody asks
}

func (s stream) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		s.end(exit.Quiet(exit.Unread))
	}
	if err != nil && s.lost != nil {
		s.lost.Store(&err)
	}
	return n, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, append(args[:1:1], flagsFirst(app.Commands, args[1:])...))
	cause, reported := context.Cause(ctx), errors.As(err, new(exit.Quiet))
	if unread := errors.As(cause, new(exit.Quiet)); unread || cause != nil && err != nil && !reported {
		err = cause // what a tool said of its end is a consequence
	}
	return exitCode(err, stderr)
}
