package build

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/manifest"
)

// readsFile is where the host compiler adds, in each stage of a compilation,
// which files it read. nvcc compiles what it generated after the sources, and
// searches the kernel's folder for the headers of that too.
const readsFile = "reads.d"

// readsTo is the variable that asks gcc and clang for the list. They take what
// follows a space for something else.
func readsTo(tmp string) (string, error) {
	if strings.ContainsAny(tmp, " \t") {
		return "", fmt.Errorf("%s has a space in its path, with which the host compiler cannot say what it reads: set GATE_CACHE to another folder", tmp)
	}
	return "SUNPRO_DEPENDENCIES=" + filepath.Join(tmp, readsFile), nil
}

// A reading is one run of the host compiler.
type reading struct {
	files  []string // as the compiler names them
	source bool     // of a source, by its preprocessor
}

// readings are what the host compiler read in a compilation.
func readings(tmp string, k *manifest.Kernel) ([]reading, error) {
	data, err := readWhole(filepath.Join(tmp, readsFile))
	if err != nil {
		return nil, fmt.Errorf("the host compiler does not say what it read (gcc does, and clang since 14): %w", err)
	}
	stems := map[string]bool{}
	for _, s := range k.Sources {
		// Of these names nvcc's own files could have the same.
		stems[stem(s)] = stem(s) != "link" && !strings.Contains(stem(s), ".")
	}
	var list []reading
	seen := map[string]int{}
	for rule := range strings.SplitSeq(strings.ReplaceAll(string(data), "\\\n", " "), "\n") {
		target, _, ok := strings.Cut(rule, ".o: ")
		if !ok {
			continue
		}
		seen[target]++
		list = append(list, reading{files: prerequisites([]byte(rule)), source: stems[target]})
	}
	for s := range stems {
		if seen[s] == 0 || seen[s+".cudafe1"] == 0 {
			return nil, fmt.Errorf("the host compiler does not say what it read for %s", s)
		}
	}
	return list, nil
}

// precompiled is the end of the name of a header that gcc takes in the place of
// the one that is asked for, without a word.
const precompiled = ".gch"

// noPrecompiled refuses a kernel with such a header where headers are searched.
func noPrecompiled(k *manifest.Kernel) error {
	dirs := []string{k.Dir}
	for _, dir := range k.Include {
		dirs = append(dirs, filepath.Join(k.Dir, filepath.FromSlash(dir)))
	}
	for _, dir := range dirs {
		name, err := findPrecompiled(dir)
		if err != nil {
			return err
		}
		if name != "" {
			return precompiledError(k.File, name)
		}
	}
	return nil
}

func precompiledError(file, name string) error {
	return &InputError{file, name + " lies where headers are searched: gcc would take it for one, and no identity can hold what is in it (remove it)"}
}

// findPrecompiled is the first precompiled header below a folder, git's left out.
func findPrecompiled(dir string) (found string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case strings.HasSuffix(e.Name(), precompiled):
			found, err = filepath.Rel(dir, path)
			return cmp.Or(err, fs.SkipAll)
		}
		return nil
	})
	return found, err
}

// precompiledIn are such headers in a folder itself.
func (h *hasher) precompiledIn(dir string) []string {
	return slices.DeleteFunc(slices.Clone(h.list(dir)), func(name string) bool { return !strings.HasSuffix(name, precompiled) })
}
