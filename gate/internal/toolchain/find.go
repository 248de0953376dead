package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// Options says where to look. The zero value finds nothing.
type Options struct {
	NVCC     string              // the user's flag: a path, or a name to be looked up on PATH; "" when not given
	Env      func(string) string // the environment; nil is an empty one
	CacheDir string              // gate's cache, see CacheDir; "" means none
}

const installHint = "gate toolchain install"

// Find returns the CUDA compiler and the host compiler that builds use. Both
// are needed: nvcc preprocesses every file with the host compiler. A warm call
// reads one small file and starts no process.
func Find(ctx context.Context, o Options) (*Toolchain, error) {
	cache := o.answers()
	defer cache.Save()
	t, err := o.findCompiler(ctx, cache)
	if err != nil {
		return nil, err
	}
	host, err := o.findHostCompiler(ctx, cache)
	if err != nil {
		return nil, err
	}
	t.HostCompiler, t.HostVersion = host.Path, host.Version
	t.HostInclude, t.HostPrograms = o.aroundHostCompiler(ctx, cache, host.Path)
	return t, nil
}

// FindCompiler is Find without the host compiler.
func FindCompiler(ctx context.Context, o Options) (*Toolchain, error) {
	cache := o.answers()
	defer cache.Save()
	return o.findCompiler(ctx, cache)
}

// List is the compiler that Find takes, and after it the installed one where
// that is another. Where there is none, the list is empty.
func List(ctx context.Context, o Options) ([]*Toolchain, error) {
	var found []*Toolchain
	for _, o := range []Options{o, {CacheDir: o.CacheDir}} {
		t, err := FindCompiler(ctx, o)
		var none *NotFoundError
		switch {
		case errors.As(err, &none):
		case err != nil:
			return nil, err
		case len(found) == 0 || found[0].NVCC != t.NVCC:
			found = append(found, t)
		}
	}
	return found, nil
}

// answers remembers what programs said of themselves, so that a warm Find
// starts none.
func (o Options) answers() *disk.Answers {
	if o.CacheDir == "" {
		return disk.OpenAnswers("")
	}
	return disk.OpenAnswers(filepath.Join(o.CacheDir, "versions.json"))
}

func (o Options) env(name string) string {
	if o.Env == nil {
		return ""
	}
	return o.Env(name)
}

// findCompiler goes through the places in order. The first that names a
// compiler decides, whether that compiler works or not.
func (o Options) findCompiler(ctx context.Context, cache *disk.Answers) (*Toolchain, error) {
	if o.NVCC != "" {
		path := o.lookNamed(o.NVCC)
		if path == "" {
			return nil, &UnusableError{What: "nvcc", Source: sourceFlag, Path: o.NVCC, Err: errNotOnPath}
		}
		return o.examine(ctx, cache, sourceFlag, path)
	}
	if home := o.env("CUDA_HOME"); home != "" {
		return o.examine(ctx, cache, sourceCUDAHome, filepath.Join(home, "bin", "nvcc"))
	}
	if path := lookPath("nvcc", o.env("PATH")); path != "" {
		return o.examine(ctx, cache, sourcePath, path)
	}
	searched := []string{"--nvcc", "$CUDA_HOME", "PATH"}
	if o.CacheDir != "" {
		root, ok, err := installedRoot(o.CacheDir)
		if err != nil {
			return nil, &UnusableError{What: "nvcc", Source: sourceCache, Path: root, Err: err, Advice: installHint}
		}
		if ok {
			return o.examine(ctx, cache, sourceCache, filepath.Join(root, "bin", "nvcc"))
		}
		searched = append(searched, o.CacheDir)
	}
	return nil, &NotFoundError{What: "CUDA compiler", Searched: searched, Advice: o.compilerHint()}
}

var errNotOnPath = errors.New("no such program on PATH")

// lookNamed is the absolute path of a program that the user named, by a path
// or by a name that is looked up on PATH; "" when it is not there.
func (o Options) lookNamed(name string) string {
	if !strings.Contains(name, "/") {
		return lookPath(name, o.env("PATH"))
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "" // there is no current folder
	}
	return path
}

// compilerHint prefers a toolkit that is installed but not announced over a
// download.
func (o Options) compilerHint() string {
	if executable("/usr/local/cuda/bin/nvcc") == nil {
		return "export CUDA_HOME=/usr/local/cuda"
	}
	return installHint
}

// examine asks the compiler at path who it is and looks at what lies around it.
func (o Options) examine(ctx context.Context, cache *disk.Answers, from Source, path string) (*Toolchain, error) {
	hint := map[Source]string{sourceCache: installHint}[from]
	unusable := func(what, path string, err error) error {
		return &UnusableError{What: what, Source: from, Path: path, Err: err, Advice: hint}
	}
	nvcc, b, err := identify(ctx, cache, path, parseBanner)
	if err != nil {
		return nil, unusable("nvcc", path, err)
	}
	bin := filepath.Dir(nvcc)
	ptxas, pb, err := identify(ctx, cache, filepath.Join(bin, "ptxas"), parseBanner)
	if err != nil {
		return nil, unusable("ptxas", filepath.Join(bin, "ptxas"), err)
	}
	t := &Toolchain{
		Root: filepath.Dir(bin), NVCC: nvcc, Ptxas: ptxas,
		Version: b.Version, Build: b.Build, PtxasBuild: pb.Build, Source: from,
	}
	t.Include = headers(t.Root)
	t.CuObjDump = lookPath("cuobjdump", bin+string(filepath.ListSeparator)+o.env("PATH"))
	if cicc := filepath.Join(t.Root, "nvvm", "bin", "cicc"); executable(cicc) == nil {
		t.Cicc = cicc
		if t.CiccSHA256, err = cache.SHA256(cicc); err != nil {
			return nil, unusable("cicc", cicc, err)
		}
	}
	return t, nil
}

// identify resolves a program and reads its banner.
func identify(ctx context.Context, cache *disk.Answers, path string, parse func(string) (banner, error)) (string, banner, error) {
	if err := executable(path); err != nil {
		return "", banner{}, err
	}
	resolved, err := resolve(path)
	if err != nil {
		return "", banner{}, err
	}
	var b banner
	_, err = cache.Ask("version", resolved, func() (string, error) { return askVersion(ctx, resolved) }, func(text string) (err error) {
		b, err = parse(text)
		return err
	})
	return resolved, b, err
}

// headers lists the toolkit's include folders, in the layouts of the runfile,
// of PyPI's wheels and of conda.
func headers(root string) []string {
	var list []string
	for _, base := range []string{root, filepath.Join(root, "targets", targetName())} {
		for _, sub := range []string{"include", "include/cccl"} {
			dir, err := resolve(filepath.Join(base, sub))
			if err == nil && isDir(dir) && !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	return list
}

// targetName is the name of the machine's folder under targets/.
func targetName() string {
	if runtime.GOARCH == "arm64" {
		return "sbsa-linux"
	}
	return "x86_64-linux"
}

// lookPath finds a program in a PATH-like list. Relative entries are skipped:
// what they find depends on the folder one happens to be in.
func lookPath(name, list string) string {
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path
		}
	}
	return ""
}

// executable says why a file cannot be run, nil when it can.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unwrapPath(err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a program file")
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return fmt.Errorf("it cannot be executed: %w", err)
	}
	return nil
}

// unwrapPath drops the operation and path of an error whose path the caller
// prints anyway.
func unwrapPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
