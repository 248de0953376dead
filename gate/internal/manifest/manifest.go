// Package manifest reads what there is to gate: kernels/**/kernel.yaml, one
// kernel a folder, and the op.yaml files of the computations they implement.
package manifest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Set is everything that the patterns found in one tree.
type Set struct {
	Root    string
	Kernels []*Kernel         // by name
	Ops     []*Op             // by name
	Notes   []string          // what was not followed
	Retired map[string]string // why kernels were retired, by name
	base    string            // the folder that names are relative to
}

// Load reads every kernel.yaml under root that the patterns name; a pattern
// after "!" takes kernels away again.
func Load(root string, patterns []string) (*Set, error) {
	w, err := newWalker(root)
	if err != nil {
		return nil, err
	}
	files, base, err := match(w, patterns)
	if err != nil {
		return nil, err
	}
	set, err := load(w, base, files)
	if err != nil {
		return nil, err
	}
	// A library is compared with, and not judged.
	set.Kernels = slices.DeleteFunc(set.Kernels, func(k *Kernel) bool { return k.Library.Declared() })
	return set, nil
}

// LoadAll reads every kernel.yaml of the folder that the patterns name, those
// that they leave out and libraries included.
func LoadAll(root string, patterns []string) (*Set, error) {
	w, err := newWalker(root)
	if err != nil {
		return nil, err
	}
	files, base, err := match(w, slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return strings.HasPrefix(p, "!") }))
	if err != nil {
		return nil, err
	}
	all, err := called(w, base, kernelName)
	if err != nil {
		return nil, err
	}
	return load(w, base, slices.Compact(slices.Sorted(slices.Values(slices.Concat(files, all)))))
}

// kernelName is what a kernel's file is called: patterns select no other, so
// that a folder holds one kernel.
const kernelName = "kernel.yaml"

func load(w *walker, base string, files []string) (*Set, error) {
	set := &Set{Root: w.root, base: base, Retired: map[string]string{}}
	var err error
	if set.Ops, err = loadOps(w, base); err != nil {
		return nil, err
	}
	for _, file := range files {
		k, err := loadKernel(w.root, base, file, set.Ops)
		var gone *retiredError
		if errors.As(err, &gone) {
			set.Retired[gone.name] = gone.reason
			continue
		}
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(set.Kernels, func(o *Kernel) bool { return o.Name == k.Name }); i >= 0 {
			return nil, &yamlfile.Error{File: file, Line: 1, Msg: fmt.Sprintf("kernel %q is already defined in %s", k.Name, set.Kernels[i].File),
				Advice: "a kernel is called by its folder below " + base + "/"}
		}
		set.Kernels = append(set.Kernels, k)
	}
	slices.SortFunc(set.Kernels, func(a, b *Kernel) int { return strings.Compare(a.Name, b.Name) })
	set.Notes = w.notes
	return set, nil
}

// called lists the files of a name below a folder.
func called(w *walker, base, name string) ([]string, error) {
	files, err := w.below(base)
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", name, err)
	}
	return matching(files, func(f string) bool { return path.Base(f) == name })
}

// A NoKernelError is a name of which there is no kernel.yaml.
type NoKernelError struct{ Name, Hint string }

func (e *NoKernelError) Error() string { return fmt.Sprintf("unknown kernel %q", e.Name) }

// Named is the kernel of a name, one that the patterns leave out included.
func (s *Set) Named(name string) (*Kernel, error) {
	var names []string
	for _, k := range s.Kernels {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	missing := &NoKernelError{Name: name, Hint: yamlfile.DidYouMean(name, names, "")}
	file := path.Join(s.base, name, kernelName)
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return nil, missing
	}
	if info, err := os.Stat(filepath.Join(s.Root, filepath.FromSlash(file))); err != nil || !info.Mode().IsRegular() {
		return nil, missing
	}
	k, err := loadKernel(s.Root, s.base, file, s.Ops)
	if errors.As(err, new(*retiredError)) {
		return nil, missing
	}
	return k, err
}

// A retiredError is a kernel.yaml that says why there is no kernel any more.
type retiredError struct{ name, reason string }

func (e *retiredError) Error() string { return fmt.Sprintf("%s is retired: %s", e.name, e.reason) }

// match returns the manifest files, slash-separated, and the folder that the
// kernels' names are relative to.
func match(w *walker, patterns []string) (files []string, base string, err error) {
	found := map[string]bool{}
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if !doublestar.ValidatePattern(pattern) || !filepath.IsLocal(filepath.FromSlash(pattern)) {
			return nil, "", fmt.Errorf("%q is not a pattern for files below the root", p)
		}
		means := func(f string) bool {
			return path.Base(f) == kernelName && (f == pattern || doublestar.MatchUnvalidated(pattern, f))
		}
		if negated {
			maps.DeleteFunc(found, func(f string, _ bool) bool { return means(f) })
			continue
		}
		folder, _ := doublestar.SplitPattern(pattern)
		names, err := w.below(folder)
		if err == nil {
			names, err = matching(names, means)
		}
		if err != nil {
			return nil, "", fmt.Errorf("looking for %s: %w", p, err)
		}
		for _, n := range names {
			found[n] = true
		}
		if base == "" {
			base, _, _ = strings.Cut(folder, "/")
		}
	}
	return slices.Sorted(maps.Keys(found)), base, nil
}

// NameOf is the name of the kernel that a file describes, which need not be
// there; false where no pattern names it.
func NameOf(file string, patterns []string) (name string, ok bool) {
	base := ""
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if folder, _ := doublestar.SplitPattern(pattern); base == "" && !negated {
			base, _, _ = strings.Cut(folder, "/")
		}
		if file == pattern || doublestar.MatchUnvalidated(pattern, file) {
			ok = !negated
		}
	}
	if path.Clean(file) != file || !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", false
	}
	return strings.TrimPrefix(path.Dir(file), base+"/"), ok
}

func didYouMean(word string, known []string) string {
	return yamlfile.DidYouMean(word, known, "known: "+strings.Join(known, ", "))
}
