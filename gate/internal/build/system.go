package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/identity"
)

// A systemSet is what a build read of the toolkit's and the system's files, and
// what these look for. Hundreds of files belong to every kernel, and most
// kernels share one set, so that it is kept once and checked once a run.
type systemSet struct {
	Files map[string]string `json:"files"` // named file → SHA-256
	Dirs  []string          `json:"dirs"`  // named folders that the compiler searches
	Looks []string          `json:"looks"` // names that the files look for, or are found by
	Found string            `json:"found"` // hash of what lies there of them

	firsts map[string][]string // Looks, by the first part of a name
}

func (b *Builder) systemSet(p places, in *inputs) (*systemSet, error) {
	set := &systemSet{Files: map[string]string{}}
	for _, dir := range slices.Concat([]string{b.Include}, b.Toolchain.Include, b.Toolchain.HostInclude) {
		set.Dirs = append(set.Dirs, p.name(dir))
	}
	looks := map[string]bool{}
	for path := range in.system {
		sum, err := b.hashes.file(path, true)
		if err != nil {
			return nil, err
		}
		set.Files[p.name(path)] = sum
		for _, dir := range set.folders(p) {
			if within(dir, path) {
				looks[strings.TrimPrefix(path, dir+"/")] = true
			}
		}
		names, err := b.hashes.looks(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			looks[name] = true
		}
	}
	for name := range looks {
		set.Looks = append(set.Looks, name)
	}
	slices.Sort(set.Looks)
	set.Found = b.hashes.foundIn(set.folders(p), set.Looks)
	set.index()
	return set, nil
}

func (s *systemSet) folders(p places) []string {
	var dirs []string
	for _, name := range s.Dirs {
		dirs = append(dirs, p.path(name))
	}
	return dirs
}

func (s *systemSet) index() {
	s.firsts = map[string][]string{}
	for _, name := range s.Looks {
		first, _, _ := strings.Cut(name, "/")
		s.firsts[first] = append(s.firsts[first], name)
	}
}

// keep stores the set under the hash of its text.
func (b *Builder) keep(set *systemSet) (string, error) {
	data, err := json.Marshal(set)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	key := hex.EncodeToString(sum[:])
	path := filepath.Join(b.Cache, "systems", key+".json")
	if old, err := os.ReadFile(path); err == nil && sha256.Sum256(old) == sum {
		return key, nil
	}
	return key, disk.WriteFile(path, data)
}

// unchangedSet is a stored set of which every file is what it was, nil for any other.
func (b *Builder) unchangedSet(p places, key string) *systemSet {
	data, err := os.ReadFile(filepath.Join(b.Cache, "systems", key+".json"))
	set := &systemSet{}
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(data)) != key || json.Unmarshal(data, set) != nil {
		return nil
	}
	for name, want := range set.Files {
		if got, err := b.hashes.file(p.path(name), true); err != nil || got != want {
			return nil
		}
	}
	if b.hashes.foundIn(set.folders(p), set.Looks) != set.Found {
		return nil
	}
	set.index()
	return set
}

// looks are the names that a file of the system looks for.
func (h *hasher) looks(path string) ([]string, error) {
	h.mu.Lock()
	names, ok := h.names[path]
	h.mu.Unlock()
	if ok {
		return names, nil
	}
	if ext := filepath.Ext(path); ext == ".a" || ext == ".o" || strings.HasPrefix(ext, ".so") || strings.Contains(path, ".so.") {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if s, err := identity.ReadSource(data, path); err == nil { // what is not C++ looks for nothing
		names = s.Looks
	}
	h.mu.Lock()
	h.names[path] = names
	h.mu.Unlock()
	return names, nil
}

// found hashes what lies in a folder of the tree of all that is looked for: of
// the names of the system's headers, which a folder of the tree can shadow, and
// of the tree's own.
func (h *hasher) found(dir string, set *systemSet, own []string) string {
	var names []string
	for _, first := range h.list(dir) {
		names = append(names, set.firsts[first]...)
	}
	return h.foundIn([]string{dir}, slices.Concat(names, own, h.precompiledIn(dir)))
}

// foundIn hashes which of the names lie in which of the folders.
func (h *hasher) foundIn(dirs, names []string) string {
	sum := sha256.New()
	for i, dir := range dirs {
		for _, name := range names {
			path := dir + "/" + name
			if filepath.IsAbs(name) {
				path = name
			}
			if h.exists(path) {
				fmt.Fprintf(sum, "%d %q\n", i, name)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
