// Package build turns kernels into artifacts: for each kernel and architecture
// a shared object to launch, the cubin it holds, the compiler's full log, and
// the identities of machine code and host code. Artifacts live in a cache
// addressed by content; a kernel whose inputs are unchanged starts no process.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// An Artifact is one kernel built for one architecture.
type Artifact struct {
	Arch     string
	Identity evidence.Identity
	Entries  []string            // mangled names of the selected __global__ functions
	Rest     []string            // those of the others in the same sources
	Units    []Unit              // in the order in which they were compiled
	Linked   []identity.Function // what the device linker made of all units; nil where it made nothing
	Inputs   map[string]string   // SHA-256 of every file outside the system's folders that was read, by name
	Library  string              // path of the shared object
	Loads    []string            // folders that the library loads others from
	Of       *manifest.Kernel    // of a library's result, which Complete builds; nil for a kernel
	Log      string              // path of everything that the compiler printed
	Command  []string            // as run, with placeholders for folders
	Compiler string
	Cached   bool

	sum   string // SHA-256 of Library as it was built
	again func(context.Context) (*Artifact, error)
}

// A Unit is one source with the functions that the compiler made of it.
type Unit struct {
	Source    string              `json:"source"`
	Functions []identity.Function `json:"functions"`
}

// A Result is what building one kernel for one architecture came to: an
// artifact or an error, never both. A *CompileError is the kernel's fault.
type Result struct {
	Kernel   *manifest.Kernel
	Arch     string
	Artifact *Artifact
	Err      error
}

// A CompileError is a kernel of which no library can be made.
type CompileError struct {
	Kernel string
	Why    string // "does not compile" when ""
	Output string // the compiler's own lines, bounded
}

func (e *CompileError) Error() string { return e.Kernel + " " + cmp.Or(e.Why, "does not compile") }

// An InputError is a file of the user's that gate refuses: a kernel.yaml whose
// patterns do not fit the code, or code that no identity could hold.
type InputError struct{ File, Msg string }

func (e *InputError) Error() string { return fmt.Sprintf("%s: %s", printable.Line(e.File), e.Msg) }

// ExitCode is that of a file of the user's that is invalid.
func (e *InputError) ExitCode() int { return exit.Usage }

// Hint says nothing: the message says it all.
func (e *InputError) Hint() string { return "" }

// A Builder builds kernels of one or more trees into one cache.
type Builder struct {
	Toolchain *toolchain.Toolchain
	Cache     string // folder
	Include   string // folder of the harness header
	Jobs      int    // 0: one for each core
	OnDone    func(Result)

	shared   string // the cache that holds this one and the temporary files
	hashes   *hasher
	programs string           // what the toolchain's files are, hashed
	left     func(tmp string) // is shown what a compilation left; nil but in tests
	loading  sync.Mutex
	loaded   map[*Artifact]bool // whose libraries were read in this run, and are what was built
}

// New opens the cache, which is made when it is not there.
func New(tc *toolchain.Toolchain, cache, include string) (*Builder, error) {
	b := &Builder{Toolchain: tc, Cache: filepath.Join(cache, "build"), Include: include, shared: cache}
	for _, dir := range []string{"objects", "deps", "systems", "references"} {
		if err := os.MkdirAll(filepath.Join(b.Cache, dir), 0o755); err != nil {
			return nil, fmt.Errorf("making the build cache: %w", err)
		}
	}
	b.hashes = openHasher(filepath.Join(b.Cache, "files.json"))
	var err error
	b.programs, err = b.hashPrograms()
	return b, err
}

// Build builds every kernel of a set for every architecture it names, in
// parallel; results come in the order of kernels and architectures.
func (b *Builder) Build(ctx context.Context, root string, kernels []*manifest.Kernel) []Result {
	var results []Result
	for _, k := range kernels {
		for _, arch := range k.Arch {
			results = append(results, Result{Kernel: k, Arch: arch})
		}
	}
	jobs := b.Jobs
	if jobs <= 0 {
		jobs = runtime.NumCPU()
	}
	slots := make(chan struct{}, jobs)
	var wg sync.WaitGroup
	for i := range results {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			r := &results[i]
			r.Artifact, r.Err = b.one(ctx, root, r.Kernel, r.Arch)
			if err := r.Err; err != nil && !blames(err) {
				r.Err = fmt.Errorf("building %s: %w", r.Kernel.Name, err)
			}
			if b.OnDone != nil {
				b.OnDone(*r)
			}
		}()
	}
	wg.Wait()
	b.hashes.system.Save()
	return results
}

func (b *Builder) one(ctx context.Context, root string, k *manifest.Kernel, arch string) (*Artifact, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	places := b.places(root)
	if k.Library.Declared() {
		return b.reference(places, k, arch)
	}
	request, err := b.requestKey(places, k, arch)
	if err != nil {
		return nil, err
	}
	o := b.lookup(places, request)
	if o == nil {
		o, err = b.compile(ctx, places, request, k, arch)
	}
	if err != nil {
		return nil, err
	}
	a, err := o.artifact(k)
	if err != nil {
		return nil, err
	}
	a.again = func(ctx context.Context) (*Artifact, error) { return b.one(ctx, root, k, arch) }
	return a, nil
}

// blames reports whether an error is the fault of what is built, not of a tool.
func blames(err error) bool {
	var compile *CompileError
	var entry *InputError
	var pointer *PointerError
	return errors.As(err, &compile) || errors.As(err, &entry) || errors.As(err, &pointer)
}

// places are the folders that differ between trees and machines although
// their content does not; keys and records name them by a letter.
type places []struct{ letter, dir string }

func (b *Builder) places(root string) places {
	return places{{"R", root}, {"H", b.Include}, {"T", b.Toolchain.Root}}
}

func (p places) name(file string) string {
	for _, pl := range p {
		if rel, err := filepath.Rel(pl.dir, file); err == nil && filepath.IsLocal(rel) {
			return pl.letter + ":" + filepath.ToSlash(rel)
		}
	}
	return "/:" + filepath.ToSlash(file)
}

func (p places) path(name string) string {
	letter, rel, _ := strings.Cut(name, ":")
	for _, pl := range p {
		if pl.letter == letter {
			return filepath.Join(pl.dir, filepath.FromSlash(rel))
		}
	}
	return filepath.FromSlash(rel)
}

// InTree is the path, from the root, of an input of the tree that was built. One
// of gate's own headers, which come with gate, has none; any other lies
// elsewhere.
func InTree(name string) (file string, ok bool) {
	letter, rel, _ := strings.Cut(name, ":")
	switch letter {
	case "R":
		return rel, true
	case "H":
		return "", true
	}
	return rel, false
}

// project reports whether a named file belongs to the tree under test.
func project(name string) bool { return strings.HasPrefix(name, "R:") || strings.HasPrefix(name, "H:") }
