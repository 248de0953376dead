// Command gate decides whether a change to CUDA kernels may be merged: it
// builds every kernel, reads what the compiler says and what the hardware did,
// checks the results, measures latency against the base, judges all of it by
// policies.yaml, and says why.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(gate()) }

// gate is the whole program: it reads the process's arguments, writes to its
// streams and returns its exit status.
func gate() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args, os.Stdout, os.Stderr)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return exitCode(newApp(stdout, stderr).RunContext(ctx, args), stderr)
}
