package toolchain

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/printable"
)

const hostHint = "apt-get install g++"

// FindHostCompiler returns the C++ compiler that nvcc works with: that of
// $NVCC_CCBIN, a program or a folder that holds g++, else the g++ on PATH.
func FindHostCompiler(ctx context.Context, o Options) (Tool, error) {
	cache := o.answers()
	defer cache.Save()
	return o.findHostCompiler(ctx, cache)
}

func (o Options) findHostCompiler(ctx context.Context, cache *disk.Answers) (Tool, error) {
	path, source := lookPath("g++", o.env("PATH")), sourcePath
	named := o.env("NVCC_CCBIN")
	if named != "" {
		source = "NVCC_CCBIN"
		if isDir(named) {
			named = filepath.Join(named, "g++")
		}
		path = o.lookNamed(named)
	}
	if path == "" && named == "" {
		return Tool{}, &NotFoundError{What: "host C++ compiler", Searched: []string{"$NVCC_CCBIN", "g++ on PATH"}, Advice: hostHint}
	}
	if path == "" {
		return Tool{}, &UnusableError{What: "host compiler", Source: source, Path: named, Err: errNotOnPath}
	}
	version, err := askHostCompiler(ctx, cache, path)
	if err != nil {
		return Tool{}, &UnusableError{What: "host compiler", Source: source, Path: path, Err: err, Advice: hostHint}
	}
	return Tool{Path: path, Version: version}, nil
}

// askHostCompiler asks the program by the name it was found by, but remembers
// the answer for the file that the name leads to.
func askHostCompiler(ctx context.Context, cache *disk.Answers, path string) (string, error) {
	if err := executable(path); err != nil {
		return "", err
	}
	resolved, err := resolve(path)
	if err != nil {
		return "", err
	}
	text, err := cache.Ask("version as "+filepath.Base(path), resolved, func() (string, error) { return askVersion(ctx, path) }, hasVersion)
	return printable.First(text), err
}

// hasVersion looks for a digit in the first line, which gcc, clang and the
// rest all print.
func hasVersion(text string) error {
	if !strings.ContainsAny(printable.First(text), "0123456789") {
		return errors.New("its --version names no version")
	}
	return nil
}

// aroundHostCompiler asks the compiler where it looks for headers and which
// programs it runs. One that does not say has none: what it then reads counts
// as the project's.
func (o Options) aroundHostCompiler(ctx context.Context, cache *disk.Answers, path string) (include, programs []string) {
	resolved, err := resolve(path)
	if err != nil {
		return nil, nil
	}
	about := func(args ...string) string {
		text, _ := cache.Ask(strings.Join(args, " ")+" as "+filepath.Base(path), resolved, func() (string, error) {
			return ask(ctx, command.Command{Path: path, Args: args})
		}, func(string) error { return nil })
		return text
	}
	programs = []string{resolved}
	inside := false
	for _, line := range strings.Split(about("-E", "-v", "-x", "c++", "/dev/null"), "\n") {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "#include <"):
			inside = true
		case strings.HasPrefix(line, "End of search list"):
			inside = false
		case inside:
			include = append(include, filepath.Clean(word))
		}
	}
	for _, name := range []string{"cc1plus", "as", "ld"} {
		program := strings.TrimSpace(about("-print-prog-name=" + name))
		if program != "" && !filepath.IsAbs(program) {
			program = lookPath(program, o.env("PATH"))
		}
		if program != "" {
			programs = append(programs, program)
		}
	}
	return include, programs
}
