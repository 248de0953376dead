package project

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// source is the file and the line where a reader looks for a kernel: the first
// __global__ function that is reported, by its name, else any. Where none is
// found, the line is 0.
func (p *Project) source(k *manifest.Kernel, a *build.Artifact) (file string, line int) {
	var name *regexp.Regexp
	if a != nil && len(a.Entries) > 0 {
		name = regexp.MustCompile(`\b` + regexp.QuoteMeta(build.Name(a.Entries[0])) + `\b`)
	}
	dir, err := filepath.Rel(p.Root, k.Dir)
	if err != nil {
		return "", 0
	}
	for _, s := range k.Sources {
		named, any := globals(filepath.Join(k.Dir, filepath.FromSlash(s)), name)
		at := path.Join(filepath.ToSlash(dir), s)
		if named > 0 {
			return at, named
		}
		if any > 0 && line == 0 {
			file, line = at, any
		}
	}
	return file, line
}

var global = regexp.MustCompile(`\b__global__\b`)

// globals is the line of the __global__ function of a name, which may stand some
// lines below the word, and of the first one.
func globals(file string, name *regexp.Regexp) (named, any int) {
	f, err := os.Open(file)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	began := 0
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if global.Match(lines.Bytes()) {
			began = n
			if any == 0 {
				any = n
			}
		}
		if began > 0 && n-began < 6 && name != nil && name.Match(lines.Bytes()) {
			return n, any
		}
	}
	return 0, any
}
