package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// recipe changes whenever gate would build or identify differently.
const recipe = "gate/build/v5"

// memory changes whenever gate would remember more of what a build read.
const memory = "every stage"

// maxDepSets bounds how many header states are remembered for one request.
const maxDepSets = 16

// requestKey addresses what was asked for: folder, sources, folders of headers,
// what is linked, flags, compiler and architecture. The folder belongs to it,
// because one source in two of them includes two headers of one name.
func (b *Builder) requestKey(p places, k *manifest.Kernel, arch string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s, %s\n%s\n%s\n%q\n%q\n%s\n", recipe, memory, b.programs, arch, k.Flags, k.Include, p.name(k.Dir))
	for _, files := range [][]string{k.Sources, k.Objects, k.Libraries} {
		for _, s := range files {
			sum, err := b.hashes.file(filepath.Join(k.Dir, filepath.FromSlash(s)), false)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%q %s\n", s, sum)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashPrograms is the hash of all that compiles: what the programs say of
// themselves, and their files.
func (b *Builder) hashPrograms() (string, error) {
	t := b.Toolchain
	bin := filepath.Dir(t.NVCC)
	h := sha256.New()
	fmt.Fprintln(h, t.Fingerprint())
	names := []string{t.NVCC, t.Ptxas, t.Cicc, filepath.Join(t.Root, "nvvm/libdevice/libdevice.10.bc")}
	for _, name := range []string{"cudafe++", "fatbinary", "nvlink", "nvcc.profile", "crt/link.stub"} {
		names = append(names, filepath.Join(bin, name))
	}
	for _, path := range append(names, t.HostPrograms...) {
		sum, err := b.hashes.file(path, true)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		fmt.Fprintf(h, "%s %s\n", filepath.Base(path), sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// deps is what one request turned out to read, and the object it made.
type deps struct {
	Files  map[string]string `json:"files"`  // named file → SHA-256
	Looks  []string          `json:"looks"`  // what those files look for
	Found  map[string]string `json:"found"`  // named folder → hash of what lies there of all that is looked for
	System string            `json:"system"` // the systemSet
	Object string            `json:"object"`
}

// findings are all that has to be the same for an object to be used again.
func (b *Builder) findings(p places, k *manifest.Kernel, in *inputs) (deps, error) {
	d := deps{Files: in.sums(), Looks: slices.Compact(slices.Sorted(slices.Values(in.looks))), Found: map[string]string{}}
	set, err := b.systemSet(p, in)
	if err != nil {
		return d, err
	}
	if d.System, err = b.keep(set); err != nil {
		return d, err
	}
	folders := map[string]bool{}
	for name := range d.Files {
		folders[filepath.Dir(p.path(name))] = true
	}
	for _, dir := range k.Include {
		folders[filepath.Join(k.Dir, filepath.FromSlash(dir))] = true
	}
	// A header can be found below any of them, and be looked for from another.
	for name := range d.Files {
		for dir := range folders {
			if rel, err := filepath.Rel(dir, p.path(name)); err == nil && filepath.IsLocal(rel) {
				d.Looks = append(d.Looks, filepath.ToSlash(rel))
			}
		}
	}
	slices.Sort(d.Looks)
	d.Looks = slices.Compact(d.Looks)
	for dir := range folders {
		d.Found[p.name(dir)] = b.hashes.found(dir, set, d.Looks)
	}
	d.Found["system"] = b.hashes.foundIn(set.folders(p), d.Looks)
	return d, nil
}

func (b *Builder) depsFile(request string) string {
	return filepath.Join(b.Cache, "deps", request+".json")
}

func (b *Builder) readDeps(request string) []deps {
	data, err := os.ReadFile(b.depsFile(request))
	if err != nil {
		return nil
	}
	var sets []deps
	if json.Unmarshal(unsealed(data), &sets) != nil {
		return nil // a damaged memory is a cache miss
	}
	return sets
}

// lookup finds the object that the request made last time every file it read
// had the content it has now.
func (b *Builder) lookup(p places, request string) *object {
	for _, set := range b.readDeps(request) {
		if !b.matches(p, set) {
			continue
		}
		if o := b.openObject(set.Object); o != nil {
			o.cached = true
			return o
		}
	}
	return nil
}

func (b *Builder) matches(p places, d deps) bool {
	for name, want := range d.Files {
		got, err := b.hashes.file(p.path(name), false)
		if err != nil || got != want {
			return false
		}
	}
	if len(d.Files) == 0 || len(d.Found) == 0 {
		return false
	}
	set := b.hashes.same(d.System, func() *systemSet { return b.unchangedSet(p, d.System) })
	if set == nil {
		return false
	}
	for name, want := range d.Found {
		if name == "system" {
			if b.hashes.foundIn(set.folders(p), d.Looks) != want {
				return false
			}
		} else if b.hashes.found(p.path(name), set, d.Looks) != want {
			return false
		}
	}
	return true
}

// remember adds a set; two runs that remember at once lose at most a memory,
// never an object.
func (b *Builder) remember(request string, set deps) error {
	sets := append([]deps{set}, b.readDeps(request)...)
	if len(sets) > maxDepSets {
		sets = sets[:maxDepSets]
	}
	data, err := json.Marshal(sets)
	if err != nil {
		return err
	}
	return disk.WriteFile(b.depsFile(request), sealed(data))
}

// objectKey addresses the object by everything that went into it.
func objectKey(request string, d deps) string {
	h := sha256.New()
	fmt.Fprintln(h, request, d.System)
	for _, n := range slices.Sorted(maps.Keys(d.Files)) {
		fmt.Fprintf(h, "%s %s\n", n, d.Files[n])
	}
	return hex.EncodeToString(h.Sum(nil))
}
