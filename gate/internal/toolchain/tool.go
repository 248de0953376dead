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

// A Tool is a program that gate runs beside the compiler.
type Tool struct {
	Path    string // as found: programs find their files, and ccache its compiler, by the name they are called by
	Version string // "2025.3.1.0", or the first line that says it
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
	return Tool{Path: path, Version: b.Version}, nil
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
		return Tool{}, &UnusableError{What: name, Source: sourcePath, Path: path, Err: err}
	}
	return Tool{Path: path, Version: printable.First(text)}, nil
}

func (o Options) lookTool(name string) (string, Source) {
	usual, _ := filepath.Glob("/opt/nvidia/nsight-compute/[0-9]*") // the pattern is well formed: no error
	slices.SortFunc(usual, func(a, b string) int { return compareVersions(filepath.Base(b), filepath.Base(a)) })
	usual = append([]string{"/usr/local/cuda/bin"}, usual...)
	for _, place := range []struct {
		source Source
		list   string
	}{
		{sourceCUDAHome, filepath.Join(o.env("CUDA_HOME"), "bin")}, // not absolute, and skipped, where there is none
		{sourcePath, o.env("PATH")},
		{sourceDefault, strings.Join(usual, string(filepath.ListSeparator))},
	} {
		if path := lookPath(name, place.list); path != "" {
			return path, place.source
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
