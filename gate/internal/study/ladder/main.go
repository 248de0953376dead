// Command ladder writes the tables of the documents of the kernels, between markers,
// from what gate judged: the ladder in kernels/README.md, what was measured of a rung
// in the README of each, the figures of the fixtures, and what a launch takes by itself.
//
//	go run ./gate/internal/study/ladder [-check] VERDICT...
//
// It runs in the root of the repository. With -check it writes nothing and names the
// documents that are not what it would write. One command judges recorded evidence by
// all policies that it needs, and runs it on their verdicts:
//
//	CUDA_HOME="$(cat bin/cuda-home)" go test ./gate -run TestKernelTables -update
//
// The tables are a function of the verdicts, as every report is. A figure comes from
// the first verdict that knows it: each policy asks for metrics of its own.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kernelgate/gate/gate/internal/verdict"
)

var (
	errUsage = errors.New("needs one verdict.json or more")
	errStale = errors.New("not what the verdicts say")
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run returns the exit status: 0, 1 where -check finds a difference, 2 for misuse, 3
// where a file cannot be used.
func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("ladder", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "name the documents that differ, and write nothing")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	err := errUsage
	if flags.NArg() > 0 {
		err = write(flags.Args(), *check)
	}
	if err != nil {
		fmt.Fprintln(stderr, "ladder:", err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errStale):
		return 1
	case errors.Is(err, errUsage):
		return 2
	}
	return 3
}

func write(from []string, check bool) error {
	var verdicts []*verdict.Verdict
	for _, name := range from {
		v, err := verdict.Read(name)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, v)
	}
	shapes, err := shapesOf(".")
	if err != nil {
		return err
	}
	parts, err := gather(verdicts).parts(shapes)
	if err != nil {
		return err
	}
	var stale []error
	for _, p := range parts {
		if err := p.write(check); errors.Is(err, errStale) {
			stale = append(stale, err)
		} else if err != nil {
			return err
		}
	}
	return errors.Join(stale...)
}
