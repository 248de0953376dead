// Command peers judges recorded processes by the decision rules of other tools
// and by this project's, and prints two Markdown tables: what every rule finds,
// and what the gate says of each contender.
//
//	go run ./gate/internal/study/peers gate/internal/compare/testdata/h200-aa.jsonl.gz
//
// The rules are re-implemented from their public descriptions, outside the
// setting that their authors had in mind: one pull request, wall time on a GPU.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

var errUsage = errors.New("want one argument, the file of recorded processes")

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0, 2 for misuse, 3 where the file cannot be used.
func run(args []string, stdout, stderr io.Writer) int {
	err := errUsage
	if len(args) == 1 {
		err = tables(stdout, args[0])
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "peers:", err)
		return 2
	}
	fmt.Fprintln(stderr, "peers:", err)
	return 3
}

// tables reads the processes and writes both tables.
func tables(w io.Writer, path string) error {
	r, err := readRecording(path)
	if err != nil {
		return err
	}
	rows, err := judgeAll(r)
	if err != nil {
		return err
	}
	if err := writeRules(w, rows); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return writeEstimates(w, r)
}
