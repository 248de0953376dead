package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// reference is the artifact of a library's result. It is identified by its
// sources and the declared versions, and built where it is measured: a machine
// without the library can still judge by what was measured elsewhere.
func (b *Builder) reference(p places, k *manifest.Kernel, arch string) (*Artifact, error) {
	a := &Artifact{Arch: arch, Inputs: map[string]string{}, Of: k}
	var sources []string
	for _, name := range append(slices.Clone(k.Sources), k.Library.Find) {
		path := filepath.Join(k.Dir, filepath.FromSlash(name))
		sum, err := b.hashes.file(path, false)
		if err != nil {
			return nil, err
		}
		a.Inputs[p.name(path)] = sum
		sources = append(sources, name, sum)
	}
	var versions []string
	for _, name := range slices.Sorted(maps.Keys(k.Library.Versions)) {
		versions = append(versions, name, k.Library.Versions[name])
	}
	a.Compiler = strings.Join(versions, " ")
	a.Identity = evidence.Identity{
		Code: identity.Combine("code", append([]string{"library", arch}, versions...)...),
		Host: identity.Combine("host", append([]string{recipe, "library", fmt.Sprintf("%q", k.Flags)}, sources...)...),
	}
	return a, nil
}

// An UnavailableError is a reference that cannot be had here: its library is not
// installed, or in another version than the one that is declared, or the reference
// does not compile with it. What needs no reference is measured all the same.
type UnavailableError struct{ Why string }

func (e *UnavailableError) Error() string { return e.Why }

// installed is what the program that finds a library prints.
type installed struct {
	Versions map[string]string `json:"versions"`
	Compile  []string          `json:"compile"`
	Link     []string          `json:"link"`
	Read     []string          `json:"read"` // folders that the library is loaded from
}

const findLimit = 2 * time.Minute

// Complete makes an artifact ready to be loaded: it builds the library of one
// whose library is built where it is measured, and reads that of any other, which
// is built again where the cache did not keep it as it was. An *UnavailableError
// says that this cannot be done here.
func (b *Builder) Complete(ctx context.Context, a *Artifact) error {
	if a.Of == nil {
		return b.whole(ctx, a)
	}
	if a.Library != "" {
		return nil
	}
	tmp, err := disk.TempDir(b.shared, "reference")
	if err != nil {
		return err
	}
	defer disk.RemoveTemp(tmp)
	have, err := b.find(ctx, a.Of, tmp)
	if err != nil {
		return err
	}
	name := "reference-" + keyOf(a.Identity.Code, a.Identity.Host, filepath.Base(b.Include), b.programs, fmt.Sprintf("%q", have)) + ".so"
	path := filepath.Join(b.Cache, "references", name, name)
	if !made(path) {
		if err := b.link(ctx, a.Of, have, tmp, filepath.Join(tmp, name)); err != nil {
			return err
		}
		if err := publishMade(filepath.Join(tmp, name), path); err != nil {
			return fmt.Errorf("building %s: %w", a.Of.Name, err)
		}
	}
	a.Library, a.Loads = path, have.Read
	return nil
}

// whole reads the library of an artifact, once a run, and builds it again where it
// is not what was built.
func (b *Builder) whole(ctx context.Context, a *Artifact) error {
	b.loading.Lock()
	defer b.loading.Unlock()
	if b.loaded[a] || a.again == nil {
		return nil
	}
	if sum, err := disk.SHA256(a.Library); err != nil || sum != a.sum {
		if err := os.RemoveAll(filepath.Dir(a.Library)); err != nil {
			return fmt.Errorf("removing a damaged library from the cache: %w", err)
		}
		fresh, err := a.again(ctx)
		if err != nil {
			return err
		}
		if fresh.Identity != a.Identity {
			return fmt.Errorf("%s was damaged in the cache, and its sources changed since it was built: run gate again", a.Library)
		}
		*a = *fresh
	}
	if b.loaded == nil {
		b.loaded = map[*Artifact]bool{}
	}
	b.loaded[a] = true
	return nil
}

// find asks where a library is, and holds it to the declared versions.
func (b *Builder) find(ctx context.Context, k *manifest.Kernel, tmp string) (*installed, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, &UnavailableError{"there is no python3 that could find the library of " + k.Name}
	}
	program := filepath.Join(k.Dir, filepath.FromSlash(k.Library.Find))
	r, err := command.Command{Path: python, Args: []string{program}, Dir: tmp, Limit: findLimit, Most: 1 << 20,
		Confine: &command.Confinement{Temp: tmp, Read: []string{filepath.Dir(python), filepath.Dir(program)}}}.Run(ctx)
	if err != nil {
		return nil, err
	}
	if r.Err() != nil {
		return nil, &UnavailableError{fmt.Sprintf("the library of %s is not installed here: %s", k.Name, printable.Last(r.Stderr))}
	}
	var have installed
	if err := strictjson.Decode(r.Stdout, 1<<20, &have); err != nil {
		return nil, fmt.Errorf("%s: %w", k.Library.Find, err)
	}
	for _, name := range slices.Sorted(maps.Keys(k.Library.Versions)) {
		if want := k.Library.Versions[name]; have.Versions[name] != want {
			return nil, &UnavailableError{fmt.Sprintf("%s needs %s %s, and %q is installed here", k.Name, name, want, have.Versions[name])}
		}
	}
	return &have, nil
}

// link compiles the sources of a reference with the library.
func (b *Builder) link(ctx context.Context, k *manifest.Kernel, have *installed, tmp, out string) error {
	args := slices.Concat([]string{"-O2", "-std=c++17", "-shared", "-fPIC", "-I", b.Include}, k.Flags, have.Compile)
	for _, s := range k.Sources {
		args = append(args, here(s))
	}
	args = append(append(args, have.Link...), "-o", out)
	confine := b.confine(k, tmp)
	confine.Read = append(confine.Read, have.Read...)
	r, err := command.Command{Path: b.Toolchain.HostCompiler, Args: args, Dir: k.Dir, Limit: compileLimit, Most: maxOutput, Merge: true, Confine: confine}.Run(ctx)
	switch {
	case err == nil && r.Code > 0: // the compiler's own verdict, not that it was killed
		return &UnavailableError{fmt.Sprintf("the reference %s does not compile: %s", k.Name, firstError(string(r.Stdout)))}
	case err == nil && r.Err() != nil:
		err = fmt.Errorf("%w: %s", r.Err(), printable.Last(string(r.Stdout)))
	}
	if err != nil {
		return fmt.Errorf("building %s: %w", k.Name, err)
	}
	if why := checkLibrary(out); why != "" {
		return &UnavailableError{k.Name + " " + why}
	}
	return nil
}
