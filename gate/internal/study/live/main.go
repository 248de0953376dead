// Command live asks the gate on a real GPU how often it is wrong, and whether
// an epoch inside a process is as good as a process.
//
//	live aa      -gate bin/gate -kernels kernels -out aa.jsonl
//	live planted -gate bin/gate -kernels kernels -out planted.jsonl
//	live mix     -gate bin/gate -kernels kernels -out mix.jsonl
//	live epochs  -program epochs -out epochs.jsonl -- time --op op.so …
//	live table   aa.jsonl planted.jsonl epochs.jsonl
//
// aa checks unchanged code again and again. planted checks copies of the
// fixture r02_extra_work that were made slower by known amounts, and mix some of
// both with kernels that are slow in a quarter of the processes. They end
// within -budget, with what they have: a JSON line a check in -out, and a table.
// table writes the tables of such files in Markdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// A usageError is a command line that cannot be meant: exit 2.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 2 for misuse, 3 where a tool failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"aa": runUnchanged, "mix": runMixture, "planted": runPlanted, "epochs": runEpochs, "table": runTable,
	}
	err := error(&usageError{"want aa, mix, planted, epochs or table"})
	if len(args) > 0 && commands[args[0]] != nil {
		err = commands[args[0]](ctx, args[1:], stdout, stderr)
	}
	var misuse *usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &misuse):
		fmt.Fprintln(stderr, "live:", err)
		return 2
	}
	fmt.Fprintln(stderr, "live:", err)
	return 3
}
