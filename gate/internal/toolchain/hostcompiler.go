package toolchain

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// A HostCompiler is the C++ compiler that nvcc works with.
type HostCompiler struct {
	Path    string // as found: nvcc goes by the name, and ccache and the like are links
	Version string // first line of its --version: "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"
}

const hostHint = "apt-get install g++"

// FindHostCompiler returns the compiler of $NVCC_CCBIN, a program or a folder
// that holds g++, else the g++ on PATH.
func FindHostCompiler(ctx context.Context, o Options) (HostCompiler, error) {
	cache := o.answers()
	defer cache.Save()
	return o.findHostCompiler(ctx, cache)
}

func (o Options) findHostCompiler(ctx context.Context, cache *disk.Answers) (HostCompiler, error) {
	if named := o.env("NVCC_CCBIN"); named != "" {
		return o.namedHostCompiler(ctx, cache, named)
	}
	path := lookPath("g++", o.env("PATH"))
	if path == "" {
		return HostCompiler{}, &NotFoundError{What: "host C++ compiler", Searched: []string{"$NVCC_CCBIN", "g++ on PATH"}, Advice: hostHint}
	}
	return askHostCompiler(ctx, cache, SourcePath, path)
}

func (o Options) namedHostCompiler(ctx context.Context, cache *disk.Answers, named string) (HostCompiler, error) {
	const source Source = "NVCC_CCBIN"
	path := named
	switch {
	case isDir(named):
		path = filepath.Join(named, "g++")
	case !strings.Contains(named, "/"):
		if path = lookPath(named, o.env("PATH")); path == "" {
			return HostCompiler{}, &UnusableError{What: "host compiler", Source: source, Path: named, Err: errors.New("no such program on PATH")}
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return HostCompiler{}, &UnusableError{What: "host compiler", Source: source, Path: path, Err: err}
	}
	return askHostCompiler(ctx, cache, source, abs)
}

// askHostCompiler keeps the path as found but keys the version by the file
// behind it.
func askHostCompiler(ctx context.Context, cache *disk.Answers, from Source, path string) (HostCompiler, error) {
	unusable := func(err error) error {
		return &UnusableError{What: "host compiler", Source: from, Path: path, Err: err, Advice: hostHint}
	}
	if err := executable(path); err != nil {
		return HostCompiler{}, unusable(err)
	}
	resolved, err := resolve(path)
	if err != nil {
		return HostCompiler{}, unusable(err)
	}
	text, err := cache.Ask("version as "+filepath.Base(path), resolved, func() (string, error) { return askVersion(ctx, path) }, hasVersion)
	if err != nil {
		return HostCompiler{}, unusable(err)
	}
	return HostCompiler{Path: path, Version: printable.First(text)}, nil
}

// hasVersion wants a digit in the first line, which gcc, clang and the rest
// all print.
func hasVersion(text string) error {
	if !strings.ContainsAny(printable.First(text), "0123456789") {
		return errors.New("its --version names no version")
	}
	return nil
}
