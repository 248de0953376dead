// Command house prints the shape of a checkout of gate: lines, functions,
// exported names, and how often each mechanism is written out.
//
//	go run ./gate/internal/study/house [DIR]
//
// It reads non-test Go files below gate/, without the experiments (study, and
// compare/live and compare/peers where they lay before). DIR may hold another
// commit (git worktree add), so that two can be compared.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

var errUsage = errors.New("want at most one argument, the root of a checkout")

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0, 2 for misuse, 3 where the checkout cannot be read.
func run(args []string, stdout, stderr io.Writer) int {
	err := errUsage
	switch len(args) {
	case 0:
		err = describe(stdout, ".")
	case 1:
		err = describe(stdout, args[0])
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "house:", err)
		return 2
	}
	fmt.Fprintln(stderr, "house:", err)
	return 3
}

// describe writes all sections.
func describe(w io.Writer, dir string) error {
	h, err := load(dir)
	if err != nil {
		return err
	}
	writeLines(w, h)
	writeFunctions(w, h)
	writeMechanisms(w, h)
	return writeExported(w, h)
}
