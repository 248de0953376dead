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
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// recipe changes whenever gate would build or identify differently.
const recipe = "gate/build/v4"

// maxDepSets bounds how many header states are remembered for one request.
const maxDepSets = 16

// requestKey addresses what was asked for: folder, sources, folders of headers,
// flags, compiler and architecture. The folder belongs to it, because one source in two of
// them includes two headers of one name.
func (b *Builder) requestKey(p places, k *manifest.Kernel, arch string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%q\n%q\n%s\n", recipe, b.Toolchain.Fingerprint(), arch, k.Flags, k.Include, p.name(k.Dir))
	for _, s := range k.Sources {
		sum, err := b.hashes.file(filepath.Join(k.Dir, filepath.FromSlash(s)), false)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "source %s %s\n", s, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// deps is what one request turned out to read, and the object it made.
type deps struct {
	Files  map[string]string `json:"files"` // named file → SHA-256
	Names  map[string]string `json:"names"` // named folder → hash of the headers' names in it
	Object string            `json:"object"`
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
	if json.Unmarshal(data, &sets) != nil {
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

func (b *Builder) matches(p places, set deps) bool {
	for name, want := range set.Files {
		got, err := b.hashes.file(p.path(name), !project(name))
		if err != nil || got != want {
			return false
		}
	}
	for name, want := range set.Names {
		if got, err := b.hashes.names(p.path(name)); err != nil || got != want {
			return false
		}
	}
	return len(set.Files) > 0 && len(set.Names) > 0
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
	return disk.WriteFile(b.depsFile(request), data)
}

// objectKey addresses the object by everything that went into it.
func objectKey(request string, files map[string]string) string {
	h := sha256.New()
	fmt.Fprintln(h, request)
	for _, n := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %s\n", n, files[n])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// parseDeps reads the make rule that nvcc -MD writes.
func parseDeps(rule string) []string {
	_, list, ok := strings.Cut(rule, ": ")
	if !ok {
		return nil
	}
	var files []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			files = append(files, word.String())
			word.Reset()
		}
	}
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && i+1 < len(list) && (list[i+1] == '\n' || list[i+1] == '\r'):
			flush()
		case c == '\\' && i+1 < len(list) && (list[i+1] == ' ' || list[i+1] == '#' || list[i+1] == '\\'):
			word.WriteByte(list[i+1])
			i++
		case c == '$' && i+1 < len(list) && list[i+1] == '$':
			word.WriteByte('$')
			i++
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			flush()
		default:
			word.WriteByte(c)
		}
	}
	flush()
	return files
}
