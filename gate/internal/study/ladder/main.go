// Command ladder writes the table of the attention kernels between the markers of
// kernels/README.md.
//
//	gate check --no-gpu --base none --out OUT
//	gate check --no-gpu --base none --policy kernels/attention/policies.yaml --out CRITERIA
//	go run ./gate/internal/study/ladder OUT/verdict.json CRITERIA/verdict.json kernels/README.md
//
// The table is a function of the verdicts, as every report is. A figure comes from
// the first verdict that knows it: each policy asks for metrics of its own.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

const (
	begin = "<!-- ladder: written by gate/internal/study/ladder -->\n"
	end   = "<!-- end of ladder -->\n"
)

var errUsage = errors.New("needs one verdict.json or more, and a file with the markers")

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run returns the exit status: 0, 2 for misuse, 3 where a file cannot be used.
func run(args []string, stderr io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(stderr, "ladder:", errUsage)
		return 2
	}
	last := len(args) - 1
	if err := write(args[:last], args[last]); err != nil {
		fmt.Fprintln(stderr, "ladder:", err)
		return 3
	}
	return 0
}

func write(from []string, to string) error {
	var verdicts []*verdict.Verdict
	for _, name := range from {
		v, err := verdict.Read(name)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, v)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	next, err := between(text, table(verdicts...))
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	return disk.WriteFile(to, next)
}

// between puts a text in the place of what stands between the markers.
func between(text, middle []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("the markers %q and %q are missing", begin, end)
	}
	return bytes.Join([][]byte{head, []byte(begin), middle, []byte(end), tail}, nil), nil
}
