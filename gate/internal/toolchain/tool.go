package toolchain

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// A Tool is an NVIDIA program that gate runs beside the compiler.
type Tool struct {
	Name    string
	Path    string // as found: the tools of Nsight Compute are scripts that find their files by it
	Version string // "2025.3.1.0"
	Build   string // "" for tools that print none
	Source  Source
}

// FindTool finds a program such as ncu or compute-sanitizer in $CUDA_HOME/bin,
// on PATH, then in the folders where NVIDIA's packages put it.
func FindTool(ctx context.Context, name string, o Options) (Tool, error) {
	cache := o.answers()
	defer cache.Save()
	path, from := o.lookTool(name)
	if path == "" {
		return Tool{}, &NotFoundError{What: name, Searched: []string{"$CUDA_HOME/bin", "PATH", "/usr/local/cuda/bin", "/opt/nvidia/nsight-compute"}}
	}
	_, b, err := identify(ctx, cache, path, parseToolBanner)
	if err != nil {
		return Tool{}, &UnusableError{What: name, Source: from, Path: path, Err: err}
	}
	return Tool{Name: name, Path: path, Version: b.Version, Build: b.Build, Source: from}, nil
}

// FindProgram finds any program on PATH and asks it with args for its version,
// which is the first line of the answer.
func FindProgram(ctx context.Context, o Options, name string, args ...string) (Tool, error) {
	path := lookPath(name, o.env("PATH"))
	if path == "" {
		return Tool{}, &NotFoundError{What: name, Searched: []string{"PATH"}}
	}
	text, err := ask(ctx, command.Command{Path: path, Args: args})
	if err != nil {
		return Tool{}, &UnusableError{What: name, Source: SourcePath, Path: path, Err: err}
	}
	return Tool{Name: name, Path: path, Version: printable.First(text), Source: SourcePath}, nil
}

func (o Options) lookTool(name string) (string, Source) {
	if home := o.env("CUDA_HOME"); home != "" {
		if path := filepath.Join(home, "bin", name); executable(path) == nil {
			return path, SourceCUDAHome
		}
	}
	if path := lookPath(name, o.env("PATH")); path != "" {
		return path, SourcePath
	}
	usual := []string{"/usr/local/cuda/bin"}
	versions, _ := filepath.Glob("/opt/nvidia/nsight-compute/[0-9]*") // the pattern is well formed: no error
	slices.SortFunc(versions, func(a, b string) int { return compareVersions(filepath.Base(b), filepath.Base(a)) })
	for _, dir := range append(usual, versions...) {
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, SourceDefault
		}
	}
	return "", ""
}

// compareVersions orders dotted versions by their numbers: 2025.3.1 before
// 2025.10.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, xerr := strconv.Atoi(as[i])
		y, yerr := strconv.Atoi(bs[i])
		if xerr != nil || yerr != nil {
			return cmp.Compare(a, b)
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(as), len(bs))
}
