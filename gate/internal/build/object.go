package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// library is the name of the shared object in the folder of an object.
const library = "lib.so"

// An object is a folder of the cache: library, cubins, log and meta.
type object struct {
	dir    string
	meta   meta
	cached bool
}

// meta is what is remembered of an object beside its files.
type meta struct {
	Arch     string              `json:"arch"`
	CodeID   string              `json:"code_id"`
	HostID   string              `json:"host_id"`
	Units    []Unit              `json:"units"`
	Linked   []identity.Function `json:"linked,omitempty"`
	Inputs   map[string]string   `json:"inputs"`
	Command  []string            `json:"command"`
	Compiler string              `json:"compiler"`
	Sums     map[string]string   `json:"sums"` // SHA-256 of the files of the object

	Stamps map[string]disk.Stamp `json:"stamps"` // of the same files, before they were read for their sums
}

func (b *Builder) objectDir(key string) string { return filepath.Join(b.Cache, "objects", key) }

// publish keeps the files worth keeping and renames the folder into place.
func (b *Builder) publish(tmp, key string, m *meta, cubins []string) error {
	m.Sums, m.Stamps = map[string]string{}, map[string]disk.Stamp{}
	for _, name := range append([]string{library, "ptxas.log"}, cubins...) {
		stamp, err := disk.StampOf(filepath.Join(tmp, name))
		if err != nil {
			return err
		}
		sum, err := disk.SHA256(filepath.Join(tmp, name))
		if err != nil {
			return err
		}
		m.Sums[name], m.Stamps[name] = sum, stamp
	}
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if m.Sums[e.Name()] == "" {
			if err := os.RemoveAll(filepath.Join(tmp, e.Name())); err != nil {
				return err
			}
		}
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "meta.json"), sealed(data), 0o644); err != nil {
		return err
	}
	return disk.PublishFolder(tmp, b.objectDir(key), func() bool { return b.openObject(key) != nil })
}

// sealed puts the hash of a text before it, so that damage is seen.
func sealed(data []byte) []byte {
	return fmt.Appendf(nil, "%x\n%s", sha256.Sum256(data), data)
}

func unsealed(data []byte) []byte {
	sum, text, ok := bytes.Cut(data, []byte("\n"))
	if !ok || fmt.Sprintf("%x", sha256.Sum256(text)) != string(sum) {
		return nil
	}
	return text
}

// openObject reads an object whose files are what they were when it was made;
// nil for any other, which is then made again.
func (b *Builder) openObject(key string) *object {
	o := &object{dir: b.objectDir(key)}
	data, err := os.ReadFile(filepath.Join(o.dir, "meta.json"))
	if err != nil || json.Unmarshal(unsealed(data), &o.meta) != nil || !identity.Current(o.meta.CodeID) || !identity.Current(o.meta.HostID) || len(o.meta.Sums) < 3 {
		return nil
	}
	for name, want := range o.meta.Sums {
		path := filepath.Join(o.dir, name)
		if now, err := disk.StampOf(path); err == nil && now == o.meta.Stamps[name] {
			continue // nobody touched it; what is loaded is read before, see Complete
		}
		if sum, err := disk.SHA256(path); err != nil || sum != want {
			return nil
		}
	}
	return o
}

// artifact says which functions of an object are those of one kernel: two
// kernels can share a source and report different ones of it.
func (o *object) artifact(k *manifest.Kernel) (*Artifact, error) {
	m := &o.meta
	all := m.entries()
	selected, err := pick(k, all)
	if err != nil {
		return nil, err
	}
	return &Artifact{
		Arch: m.Arch, Identity: evidence.Identity{Code: m.CodeID, Host: m.HostID}, Entries: selected,
		Rest:  slices.DeleteFunc(slices.Clone(all), func(e string) bool { return slices.Contains(selected, e) }),
		Units: m.Units, Linked: m.Linked, Inputs: m.Inputs,
		Library: filepath.Join(o.dir, library), sum: m.Sums[library], Log: filepath.Join(o.dir, "ptxas.log"),
		Command: m.Command, Compiler: m.Compiler, Cached: o.cached,
	}, nil
}

// entries are the names of all kernels in what runs. Two units can hold one of
// the same name.
func (m *meta) entries() []string {
	functions := m.Linked
	if functions == nil {
		for _, u := range m.Units {
			functions = append(functions, u.Functions...)
		}
	}
	var names []string
	for _, f := range functions {
		if f.Entry {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pick returns the entries that the kernel's patterns name; every pattern must
// match one, because a pattern that matches nothing gates nothing.
func pick(k *manifest.Kernel, entries []string) ([]string, error) {
	if len(entries) == 0 {
		return nil, &InputError{k.File, "the sources hold no __global__ function"}
	}
	if len(k.Entries) == 0 {
		return entries, nil
	}
	var chosen []string
	for i, pattern := range k.Entries {
		matches := slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return !matchEntry(pattern, e) })
		if len(matches) == 0 {
			return nil, &InputError{fmt.Sprintf("%s:%d", k.File, k.Lines[fmt.Sprintf("entries[%d]", i)]),
				fmt.Sprintf("entries: %q matches no __global__ function; there are %s", pattern, strings.Join(baseNames(entries), ", "))}
		}
		chosen = append(chosen, matches...)
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

func matchEntry(pattern, mangled string) bool {
	for _, name := range []string{mangled, Name(mangled), Demangle(mangled)} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// Demangle shows a mangled name as written in the source, or as it is.
func Demangle(mangled string) string { return demangle.Filter(mangled) }

// Name is the function's name without parameters, templates and namespaces.
func Name(mangled string) string {
	name := demangle.Filter(mangled, demangle.NoParams, demangle.NoTemplateParams, demangle.NoEnclosingParams)
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	return name
}

func baseNames(entries []string) []string {
	var names []string
	for _, e := range entries {
		names = append(names, Name(e))
	}
	slices.Sort(names)
	return names
}
