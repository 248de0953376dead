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
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// A Source says which rule found a program.
type Source string

// The places where programs are looked for, in their order.
const (
	SourceFlag     Source = "flag"
	SourceCUDAHome Source = "CUDA_HOME"
	SourcePath     Source = "PATH"
	SourceCache    Source = "cache"   // installed by gate
	SourceDefault  Source = "default" // NVIDIA's usual folder
)

// A Toolchain is a CUDA compiler that answered, with the files around it.
type Toolchain struct {
	Root       string   `json:"root"`                  // folder that holds bin, include and nvvm
	NVCC       string   `json:"nvcc"`                  // symbolic links resolved
	Ptxas      string   `json:"ptxas"`                 // beside nvcc
	Cicc       string   `json:"cicc,omitempty"`        // "" where nvcc keeps it elsewhere
	Include    []string `json:"include"`               // the toolkit's own include folders, symbolic links resolved
	Lib        string   `json:"lib,omitempty"`         // folder of libcudart_static.a; "" when there is none
	CuObjDump  string   `json:"cuobjdump,omitempty"`   // "" when absent
	NvDisasm   string   `json:"nvdisasm,omitempty"`    // "" when absent
	Version    string   `json:"version"`               // of nvcc: "13.0.88"
	Build      string   `json:"build"`                 // of nvcc: "cuda_13.0.r13.0/compiler.36424714_0"
	PtxasBuild string   `json:"ptxas_build"`           // the same for ptxas, which can be replaced alone
	CiccSHA256 string   `json:"cicc_sha256,omitempty"` // cicc has no version banner, so its content stands for it
	Source     Source   `json:"source"`

	// HostCompiler is the C++ compiler that builds pass to nvcc as -ccbin;
	// without that nvcc takes the gcc that PATH holds at that moment.
	HostCompiler string `json:"host_compiler,omitempty"`
	HostVersion  string `json:"host_version,omitempty"` // first line of its --version
}

// Fingerprint identifies everything that turns sources into code: nvcc, cicc,
// ptxas and the host compiler. It holds no paths, so that one compiler
// installed twice has one fingerprint.
func (t *Toolchain) Fingerprint() string {
	cicc, host := t.CiccSHA256, t.HostVersion
	if cicc == "" {
		cicc = "absent"
	}
	if host == "" {
		host = "absent"
	}
	return strings.Join([]string{
		"nvcc " + t.Version + " " + t.Build,
		"ptxas " + t.PtxasBuild,
		"cicc " + cicc,
		"host " + host,
	}, "\n")
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
