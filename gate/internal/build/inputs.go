package build

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// inputs are what one build read.
type inputs struct {
	files    map[string]input // outside the system's folders
	looks    []string         // names that those look for
	system   map[string]bool  // paths of the other files
	computed bool             // a macro makes a name that is looked for
}

type input struct {
	sum    string // SHA-256
	counts string // what of it the host id holds beside the tokens
}

func (in *inputs) sums() map[string]string {
	sums := map[string]string{}
	for name, f := range in.files {
		sums[name] = f.sum
	}
	return sums
}

// defaultSystem are where a Unix system keeps what no project owns.
var defaultSystem = []string{"/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/lib", "/lib32", "/lib64"}

// system says of a file whether it is the toolkit's, the host compiler's or the
// system's. These differ from machine to machine, so no identity holds them;
// nothing in the tree is one of them, wherever it lies.
func (b *Builder) system(p places) func(file string) bool {
	dirs := systemFolders(b.Toolchain)
	return func(file string) bool {
		if !filepath.IsAbs(file) {
			return strings.HasPrefix(file, "<")
		}
		file = filepath.Clean(file)
		return !project(p.name(file)) && slices.ContainsFunc(dirs, func(dir string) bool { return within(dir, file) })
	}
}

func systemFolders(t *toolchain.Toolchain) []string {
	dirs := slices.Concat(defaultSystem, t.Include, []string{filepath.Dir(t.NVCC)})
	for _, dir := range []string{"include", "nvvm", "lib", "lib64", "targets"} {
		dirs = append(dirs, filepath.Join(t.Root, dir))
	}
	for _, dir := range t.HostInclude {
		if dir != "/usr/local/include" { // what people install by hand
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func within(dir, file string) bool {
	rest, ok := strings.CutPrefix(file, dir)
	return ok && strings.HasPrefix(rest, "/")
}

// inputs finds what a compilation read: what its preprocessed sources name, what
// the host compiler lists of every stage, and what the linker printed.
func (b *Builder) inputs(p places, k *manifest.Kernel, tmp string, output []byte) (*inputs, error) {
	in := &inputs{files: map[string]input{}, system: map[string]bool{}}
	isSystem := b.system(p)
	paths := map[string]string{} // with the name that the compiler used
	for _, s := range k.Sources {
		paths[filepath.Join(k.Dir, filepath.FromSlash(s))] = s
		found, err := filepath.Glob(escapeGlob(filepath.Join(tmp, stem(s))) + ".*ii")
		if err != nil || len(found) < 2 {
			return nil, errors.New("nvcc did not leave what it preprocessed")
		}
		for _, file := range found {
			text, err := readWhole(file)
			if err != nil {
				return nil, err
			}
			for _, name := range entered(text) {
				full := name
				if !filepath.IsAbs(full) {
					full = filepath.Join(k.Dir, full)
				}
				paths[filepath.Clean(full)] = name
			}
		}
	}
	late := map[string]bool{} // read by what compiles nvcc's own files
	list, err := readings(tmp, k)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		for _, name := range r.files {
			full := name
			if !filepath.IsAbs(full) {
				full = filepath.Join(k.Dir, full)
			}
			if full = filepath.Clean(full); !within(tmp, full) {
				paths[full] = cmp.Or(paths[full], name)
				late[full] = late[full] || !r.source
			}
		}
	}
	for _, path := range linkerFiles(output) {
		if !within(tmp, path) {
			in.system[path] = true
		}
	}
	for path, name := range paths {
		if isSystem(path) {
			in.system[path] = true
		} else if err := b.readInput(in, p, k, path, name, isSystem, late[path]); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// readInput reads a file of a build. Of one that was read late no token is in the
// unit's intermediate, so that its content counts.
func (b *Builder) readInput(in *inputs, p places, k *manifest.Kernel, path, name string, isSystem func(string) bool, late bool) error {
	data, err := readWhole(path)
	if err != nil {
		return err
	}
	if err := p.noPointer(path, data); err != nil {
		return err
	}
	if err := identity.CheckLines(data, name, isSystem); err != nil {
		return err
	}
	s, err := identity.ReadSource(data, name)
	if err != nil {
		return err
	}
	sum, err := b.hashes.file(path, false)
	if err != nil {
		return err
	}
	f := input{sum: sum, counts: "content " + sum}
	// C++03 has no raw strings, so its directives may be others than ReadSource's.
	if !late && project(p.name(path)) && !slices.ContainsFunc(k.Flags, func(f string) bool { return strings.Contains(f, "c++03") }) {
		f.counts = "directives " + s.Directives
	}
	in.files[p.name(path)] = f
	in.looks = append(in.looks, s.Looks...)
	in.computed = in.computed || s.Computed
	return nil
}

// mostWhole bounds a file that is read whole, as the code of an array of a
// gigabyte would be.
const mostWhole = 256 << 20

// readWhole reads a file of a build.
func readWhole(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > mostWhole {
		return nil, &InputError{filepath.Base(path), fmt.Sprintf("has %d MiB, and gate reads files of a build of at most %d MiB", info.Size()>>20, mostWhole>>20)}
	}
	return os.ReadFile(path)
}

// entered are the files that preprocessed text says were entered: those of a
// line marker with the flag 1. A #line in a source makes markers without it.
func entered(text []byte) []string {
	var names []string
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if !bytes.HasPrefix(line, []byte("# ")) {
			continue
		}
		open, end := bytes.IndexByte(line, '"'), bytes.LastIndexByte(line, '"')
		if open < 0 || end <= open || !slices.Contains(strings.Fields(string(line[end+1:])), "1") {
			continue
		}
		name := string(line[open : end+1])
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		} else {
			name = strings.Trim(name, `"`)
		}
		if !strings.HasPrefix(name, "<") {
			names = append(names, name)
		}
	}
	return names
}

// linkerFiles are the absolute paths among what ld -t printed, one a line, some
// in parentheses after the option that named them.
func linkerFiles(output []byte) []string {
	var files []string
	for _, line := range strings.Split(string(output), "\n") {
		if at := strings.Index(line, " (/"); strings.HasPrefix(line, "-l") && at > 0 {
			line = strings.TrimSuffix(line[at+2:], ")")
		}
		if !filepath.IsAbs(line) {
			continue
		}
		if info, err := os.Stat(line); err == nil && info.Mode().IsRegular() {
			files = append(files, filepath.Clean(line))
		}
	}
	return files
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// linkInputs checks and hashes the objects and libraries that kernel.yaml names.
func (b *Builder) linkInputs(p places, k *manifest.Kernel) (map[string]string, error) {
	sums := map[string]string{}
	for i, name := range slices.Concat(k.Objects, k.Libraries) {
		path := filepath.Join(k.Dir, filepath.FromSlash(name))
		data, err := readWhole(path)
		if err != nil {
			return nil, err
		}
		if err := p.noPointer(path, data); err != nil {
			return nil, err
		}
		check := checkObject
		if i >= len(k.Objects) {
			check = checkArchive
		}
		if why := check(data); why != "" {
			return nil, &CompileError{Kernel: k.Name, Why: fmt.Sprintf("does not link: %s %s", name, why)}
		}
		if sums[p.name(path)], err = disk.SHA256(path); err != nil {
			return nil, err
		}
	}
	return sums, nil
}
