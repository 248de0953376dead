// Package toolchain finds the CUDA compiler and the tools around it, and
// installs a pinned one where there is none.
//
// A compiler is looked for in a fixed order: the one named by a flag, the one
// in $CUDA_HOME, the first on PATH, and last the one that gate installed in
// its own cache. One that is named but does not work is an error: falling
// back would build with a compiler that nobody asked for.
//
// The environment is always passed in as a function, so that a caller decides
// what is read.
package toolchain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// A Source says which rule found a program.
type Source string

// The places where programs are looked for, in their order.
const (
	sourceFlag     Source = "flag"
	sourceCUDAHome Source = "CUDA_HOME"
	sourcePath     Source = "PATH"
	sourceCache    Source = "cache"   // installed by gate
	sourceDefault  Source = "default" // NVIDIA's usual folder
)

// A Toolchain is a CUDA compiler that answered, with the files around it.
type Toolchain struct {
	Root       string   // folder that holds bin, include and nvvm
	NVCC       string   // symbolic links resolved
	Ptxas      string   // beside nvcc
	Cicc       string   // "" where nvcc keeps it elsewhere
	Include    []string // the toolkit's own include folders, symbolic links resolved
	CuObjDump  string   // "" when absent
	Version    string   // of nvcc: "13.0.88"
	Build      string   // of nvcc: "cuda_13.0.r13.0/compiler.36424714_0"
	PtxasBuild string   // the same for ptxas, which can be replaced alone
	CiccSHA256 string   // cicc has no version banner, so its content stands for it
	Source     Source

	// HostCompiler is the C++ compiler that builds pass to nvcc as -ccbin;
	// without that nvcc takes the gcc that PATH holds at that moment.
	HostCompiler string
	HostVersion  string // first line of its --version

	// Around the host compiler: folders that it searches for headers, and the
	// programs that it runs.
	HostInclude  []string
	HostPrograms []string
}

// Fingerprint identifies everything that turns sources into code: nvcc, cicc,
// ptxas and the host compiler. It holds no paths, so that one compiler
// installed twice has one fingerprint.
func (t *Toolchain) Fingerprint() string {
	return fmt.Sprintf("nvcc %s %s\nptxas %s\ncicc %s\nhost %s", t.Version, t.Build, t.PtxasBuild,
		cmp.Or(t.CiccSHA256, "absent"), cmp.Or(t.HostVersion, "absent"))
}

// A NotFoundError says that no program of that kind is on this machine.
type NotFoundError struct {
	What     string   // "CUDA compiler", "host C++ compiler", "ncu"
	Searched []string // where it was looked for, in order
	Advice   string   // the command that gets it
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no %s found (looked in %s)", e.What, strings.Join(e.Searched, ", "))
}

// ExitCode is that of a tool that failed.
func (e *NotFoundError) ExitCode() int { return exit.Tool }

// Hint says how to get it.
func (e *NotFoundError) Hint() string { return e.Advice }

// An UnusableError says that a program was named or found but does not work.
type UnusableError struct {
	What   string // the program: "nvcc"
	Source Source // who named it
	Path   string
	Err    error
	Advice string
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s from %s is not usable: %s: %v", e.What, e.Source, e.Path, e.Err)
}

// ExitCode is that of a tool that failed.
func (e *UnusableError) ExitCode() int { return exit.Tool }

// Hint says how to get it.
func (e *UnusableError) Hint() string { return e.Advice }

func (e *UnusableError) Unwrap() error { return e.Err }
