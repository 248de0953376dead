package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// An object is a folder of the cache: library, cubins, log and meta.
type object struct {
	dir    string
	meta   meta
	cached bool
}

func (b *Builder) objectDir(key string) string { return filepath.Join(b.Cache, "objects", key) }

func (b *Builder) openObject(key string) *object {
	dir := b.objectDir(key)
	data, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	if err != nil {
		return nil
	}
	o := &object{dir: dir}
	if json.Unmarshal(data, &o.meta) != nil || o.meta.HostID == "" || len(o.meta.Cubins) == 0 {
		return nil
	}
	for _, name := range append([]string{"lib.so", "ptxas.log"}, o.meta.Cubins...) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return nil
		}
	}
	return o
}

// artifact narrows an object to the entries of one kernel: two kernels can
// share a source and differ only in which of its functions are theirs.
func (o *object) artifact(k *manifest.Kernel) (*Artifact, error) {
	selected, err := pick(k, o.meta.Entries)
	if err != nil {
		return nil, err
	}
	id, ok := o.meta.Code[strings.Join(selected, "\n")]
	if !ok {
		cubins, err := readCubins(o.dir, o.meta.Cubins)
		if err != nil {
			return nil, err
		}
		if id, err = codeID(cubins, selected); err != nil {
			return nil, err
		}
	}
	return &Artifact{
		Arch: o.meta.Arch, Identity: evidence.Identity{Code: id, Host: o.meta.HostID}, Entries: selected,
		Rest:    slices.DeleteFunc(slices.Clone(o.meta.Entries), func(e string) bool { return slices.Contains(selected, e) }),
		Library: filepath.Join(o.dir, "lib.so"), Log: filepath.Join(o.dir, "ptxas.log"),
		Command: o.meta.Command, Compiler: o.meta.Compiler, Cached: o.cached,
	}, nil
}

// pick returns the entries that the kernel's patterns name; every pattern must
// match one, because a pattern that matches nothing gates nothing.
func pick(k *manifest.Kernel, entries []string) ([]string, error) {
	if len(entries) == 0 {
		return nil, &EntryError{k.File, "the sources hold no __global__ function"}
	}
	if len(k.Entries) == 0 {
		return entries, nil
	}
	var chosen []string
	for i, pattern := range k.Entries {
		matches := slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return !matchEntry(pattern, e) })
		if len(matches) == 0 {
			return nil, &EntryError{fmt.Sprintf("%s:%d", k.File, k.Lines[fmt.Sprintf("entries[%d]", i)]),
				fmt.Sprintf("entries: %q matches no __global__ function; there are %s", pattern, strings.Join(baseNames(entries), ", "))}
		}
		chosen = append(chosen, matches...)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

func matchEntry(pattern, mangled string) bool {
	for _, name := range []string{mangled, baseName(mangled), Demangle(mangled)} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// Demangle shows a mangled name as written in the source, or as it is.
func Demangle(mangled string) string { return demangle.Filter(mangled) }

// baseName is the function's name without parameters, templates and namespaces.
func baseName(mangled string) string {
	name := demangle.Filter(mangled, demangle.NoParams, demangle.NoTemplateParams, demangle.NoEnclosingParams)
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return name
}

func baseNames(entries []string) []string {
	var names []string
	for _, e := range entries {
		names = append(names, baseName(e))
	}
	slices.Sort(names)
	return names
}

func readCubins(dir string, names []string) ([]*identity.Cubin, error) {
	var cubins []*identity.Cubin
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		c, err := identity.ReadCubin(data, name)
		if err != nil {
			return nil, err
		}
		cubins = append(cubins, c)
	}
	return cubins, nil
}

// codeID identifies the selected entries over all cubins of a kernel.
func codeID(cubins []*identity.Cubin, selected []string) (string, error) {
	var ids []string
	for _, c := range cubins {
		var mine []string
		for _, e := range c.Entries {
			if slices.Contains(selected, e) {
				mine = append(mine, e)
			}
		}
		if len(mine) == 0 {
			continue
		}
		id, err := c.CodeID(mine)
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return "", errors.New("no cubin holds the selected entries")
	}
	return identity.Combine(ids...), nil
}
