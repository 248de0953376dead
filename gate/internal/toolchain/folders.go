package toolchain

import (
	"path/filepath"
	"slices"
)

// besides are the folders that a program's own files lie in, beside its bin. A
// prefix can be a user's ~/.local, which holds more.
var besides = []string{"bin", "lib*", "include", "nvvm", "targets", "*-linux-*", "nsight-compute*", "compute-sanitizer*"}

// Folders are what the compilers need to read of themselves.
func (t *Toolchain) Folders() []string {
	list := slices.Concat([]string{t.Root}, t.Include)
	for _, program := range []string{t.NVCC, t.Ptxas, t.Cicc, t.HostCompiler} {
		list = append(list, Folders(program)...)
	}
	return list
}

// Folders are a program and where it keeps its own files, by the name that it
// is called by and behind the links that lead to it.
func Folders(program string) []string {
	list := []string{program}
	real, err := filepath.EvalSymlinks(program)
	if program == "" || err != nil {
		return nil
	}
	for _, pattern := range besides {
		found, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(real)), pattern)) // the pattern is well formed: no error
		list = append(list, found...)
	}
	return append(list, real)
}
