package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
)

// InstallOptions says where the compiler goes and who fetches it.
type InstallOptions struct {
	Options                    // CacheDir is required
	Python   string            // the python3 whose pip is used; "" is python3 on PATH
	Progress func(line string) // told what happens, one line each, without line end; may be nil
}

const installTimeout = 30 * time.Minute // 110 MB at 0.5 Mbit/s

// Install puts the pinned compiler into the cache and returns it. When it is
// there already, nothing is started but its --version. Any number of processes
// may call it at once, and one killed on the way leaves nothing that is ever
// used: the folder gets its name by a rename, after everything in it has been
// looked at.
func Install(ctx context.Context, o InstallOptions) (*Toolchain, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	command.EndLeftovers(o.CacheDir)
	if t, err := o.installed(ctx); err == nil {
		return t, nil
	}
	unlock, err := o.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if t, err := o.installed(ctx); err == nil {
		return t, nil // another process installed it while this one waited
	}
	if err := o.fetch(ctx); err != nil {
		return nil, err
	}
	return o.installed(ctx)
}

func (o InstallOptions) check() error {
	if o.CacheDir == "" || !filepath.IsAbs(o.CacheDir) {
		return fmt.Errorf("the folder of the cache is %q, which is not an absolute path", o.CacheDir)
	}
	if runtime.GOOS != "linux" || (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64") {
		return fmt.Errorf("no CUDA compiler is published for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// toolchains is the folder of all installed compilers.
func (o InstallOptions) toolchains() string { return filepath.Join(o.CacheDir, "toolchains") }

func (o InstallOptions) lockPath() string { return filepath.Join(o.toolchains(), ".lock") }

func (o InstallOptions) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// installed is the compiler in the cache, if it is whole and is the pinned one.
func (o InstallOptions) installed(ctx context.Context) (*Toolchain, error) {
	root, ok, err := installedRoot(o.CacheDir)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fs.ErrNotExist
	}
	return o.pinnedAt(ctx, root)
}

// pinnedAt asks the compiler below root and holds its answer against the pin.
func (o InstallOptions) pinnedAt(ctx context.Context, root string) (*Toolchain, error) {
	cache := o.answers()
	defer cache.Save()
	t, err := o.examine(ctx, cache, sourceCache, filepath.Join(root, "bin", "nvcc"))
	if err != nil {
		return nil, err
	}
	if t.Version != Version || t.Build != pinnedBuild || t.PtxasBuild != pinnedBuild {
		return nil, fmt.Errorf("%s says it is %s %s with ptxas %s, want %s %s", t.NVCC, t.Version, t.Build, t.PtxasBuild, Version, pinnedBuild)
	}
	return t, nil
}

// lock makes this process the only one that installs into the cache. The
// kernel drops the lock when the process dies.
func (o InstallOptions) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(o.toolchains(), 0o755); err != nil {
		return nil, err
	}
	f, err := disk.OpenLock(o.lockPath(), 0o644)
	if err != nil {
		return nil, err
	}
	ok, err := disk.TryLock(f, false)
	if err == nil && !ok {
		o.say("waiting for another gate that is installing the compiler")
		err = disk.Lock(ctx, f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", o.lockPath(), err)
	}
	return func() { f.Close() }, nil
}

// fetch fills a temporary folder and moves it to its place.
func (o InstallOptions) fetch(ctx context.Context) error {
	temp, err := disk.TempDir(o.CacheDir, "toolchain")
	if err != nil {
		return err
	}
	defer disk.RemoveTemp(temp)
	target := filepath.Join(temp, "toolchain")
	if err := o.pip(ctx, temp, target); err != nil {
		return err
	}
	// nvcc looks for its libraries in lib64, the wheels have them in lib.
	if err := os.Symlink("lib", filepath.Join(rootIn(target), "lib64")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := o.tryOut(ctx, target); err != nil {
		return fmt.Errorf("what pip installed does not work: %w", err)
	}
	// A power cut after the rename must not leave a named folder of empty files.
	if err := syncFileSystem(o.toolchains()); err != nil {
		return err
	}
	final := installDir(o.CacheDir)
	if err := disk.PublishFolder(target, final, func() bool { return false }); err != nil {
		return err
	}
	o.say("installed CUDA %s in %s", Version, final)
	return nil
}

// tryOut runs the compiler where it was unpacked and marks the folder as whole.
func (o InstallOptions) tryOut(ctx context.Context, target string) error {
	o.CacheDir = "" // answers of a folder about to be renamed are not worth keeping
	if _, err := o.pinnedAt(ctx, rootIn(target)); err != nil {
		return err
	}
	return writeMarker(target)
}

func syncFileSystem(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
