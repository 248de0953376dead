package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/toolchain"
	"github.com/kernelgate/gate/kernels/harness"
)

// Settings of the profiler that belong to what a figure means.
const profilerSettings = "clock-control=none,cache-control=none,replay=kernel"

// A Harness is the measuring program: its sources, unpacked where kernels find
// gate.h, and its binaries, built when they are first needed.
type Harness struct {
	Include string // folder with gate.h
	cache   string
	shared  string // the cache that holds this one and the temporary files
	tokens  string // hash over the sources, comments left out
}

// OpenHarness unpacks the sources of a harness below the cache folder.
func OpenHarness(cache string, from fs.FS) (*Harness, error) {
	var names []string
	for _, pattern := range []string{"*.h", "*.cu"} {
		found, err := fs.Glob(from, pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("the harness is missing: %d files of the form %s, %v", len(found), pattern, err)
		}
		names = append(names, found...)
	}
	sort.Strings(names)
	content, tokens := sha256.New(), sha256.New()
	files := map[string][]byte{}
	for _, n := range names {
		data, err := fs.ReadFile(from, n)
		if err != nil {
			return nil, err
		}
		files[n] = data
		fmt.Fprintf(content, "%s %d\n%s", n, len(data), data)
		sum, err := identity.SourceHash(strings.NewReader(string(data)), n)
		if err != nil {
			return nil, fmt.Errorf("hashing the harness: %w", err)
		}
		fmt.Fprintf(tokens, "%s %s\n", n, sum)
	}
	h := &Harness{cache: filepath.Join(cache, "harness"), shared: cache, tokens: hex.EncodeToString(tokens.Sum(nil))}
	h.Include = filepath.Join(h.cache, hex.EncodeToString(content.Sum(nil))[:16])
	return h, h.unpack(files)
}

func (h *Harness) unpack(files map[string][]byte) error {
	if complete(h.Include, files) {
		return nil
	}
	if err := os.MkdirAll(h.cache, 0o755); err != nil {
		return fmt.Errorf("unpacking the harness: %w", err)
	}
	tmp, err := disk.TempDir(h.shared, "harness")
	if err != nil {
		return fmt.Errorf("unpacking the harness: %w", err)
	}
	defer disk.RemoveTemp(tmp)
	for n, data := range files {
		if err := os.WriteFile(filepath.Join(tmp, n), data, 0o644); err != nil {
			return fmt.Errorf("unpacking the harness: %w", err)
		}
	}
	if err := disk.PublishFolder(tmp, h.Include, func() bool { return complete(h.Include, files) }); err != nil {
		return fmt.Errorf("unpacking the harness: %w", err)
	}
	return nil
}

func complete(dir string, files map[string][]byte) bool {
	for n, data := range files {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil || info.Size() != int64(len(data)) {
			return false
		}
	}
	return true
}

// ID identifies what decides how a case is measured and judged: the harness,
// the op's code and tolerances, and the case's parameters.
func (h *Harness) ID(op *manifest.Op, c manifest.Case) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "gate/harness/v1\n%s\n%s\n%s\n", harness.Protocol, h.tokens, profilerSettings)
	files, err := OpFiles(op)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		tokens, err := hashTokens(filepath.Join(op.Dir, f))
		if err != nil {
			return "", fmt.Errorf("op %s: %w", op.Name, err)
		}
		fmt.Fprintf(sum, "op %s %s\n", f, tokens)
	}
	var names []string
	for n := range op.Tolerance {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(sum, "tolerance %s %g\n", n, op.Tolerance[n])
	}
	fmt.Fprintf(sum, "tensors %q %q %d %d %t\n", op.Exact, op.InOut, op.Alignment, op.Workspace, op.Varies)
	fmt.Fprintf(sum, "case %s\nrows %d\n", c, c.Rows)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func hashTokens(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return identity.SourceHash(f, filepath.Base(path))
}

// Program builds the measuring program for a compute capability ("9.0"), its
// files side by side on every core.
func (h *Harness) Program(ctx context.Context, tc *toolchain.Toolchain, cc string) (string, error) {
	arch := strings.ReplaceAll(cc, ".", "")
	if cc == "9.0" {
		arch += "a" // its peak takes instructions that no other architecture has
	}
	sources, err := fs.Glob(os.DirFS(h.Include), "*.cu") // in order
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("the unpacked harness holds no source")
	}
	name := "gate-harness-" + keyOf("program", filepath.Base(h.Include), tc.Fingerprint(), arch)
	path, err := h.make(name, func(out string) error {
		base := []string{"-O2", "-std=c++17", "-ccbin", tc.HostCompiler,
			"-gencode", "arch=compute_" + arch + ",code=sm_" + arch, "-I", h.Include}
		objects := make([]string, len(sources))
		var g errgroup.Group
		g.SetLimit(runtime.NumCPU())
		for i, src := range sources {
			objects[i] = filepath.Join(filepath.Dir(out), src+".o")
			g.Go(func() error {
				return h.compile(ctx, tc, tc.NVCC, filepath.Dir(out), append(slices.Clone(base), "-c", filepath.Join(h.Include, src), "-o", objects[i]))
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		link := append(slices.Clone(base), objects...)
		return h.compile(ctx, tc, tc.NVCC, filepath.Dir(out), append(link, "-ldl", "-lpthread", "-o", out))
	})
	if err != nil {
		return "", fmt.Errorf("building the harness: %w", err)
	}
	return path, nil
}

func keyOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

// make lets build write a file into a folder of its own and publishes it with
// its hash; what is there already, and is what was made, is not built again. Of
// two processes that build at once the second keeps what the first published: a
// confined program may reach the very file that lay there when it was started.
func (h *Harness) make(name string, build func(out string) error) (string, error) {
	path := filepath.Join(h.cache, name, name)
	if made(path) {
		return path, nil
	}
	tmp, err := disk.TempDir(h.shared, "harness")
	if err != nil {
		return "", fmt.Errorf("building the harness: %w", err)
	}
	defer disk.RemoveTemp(tmp)
	out := filepath.Join(tmp, name)
	if err := build(out); err != nil {
		return "", err
	}
	if err := publishMade(out, path); err != nil {
		return "", fmt.Errorf("building the harness: %w", err)
	}
	return path, nil
}

// made reports whether a file is there as it was made.
func made(path string) bool {
	want, err := os.ReadFile(path + ".sha256")
	sum, hashErr := disk.SHA256(path)
	return err == nil && hashErr == nil && sum == string(want)
}

// publishMade publishes a file of a temporary folder under a path, in a folder
// of its own with its hash.
func publishMade(out, path string) error {
	sum, err := disk.SHA256(out)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(out), "made")
	file := filepath.Join(dir, filepath.Base(path))
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Rename(out, file), os.WriteFile(file+".sha256", []byte(sum), 0o644)); err != nil {
		return err
	}
	return disk.PublishFolder(dir, filepath.Dir(path), func() bool { return made(path) })
}

func (h *Harness) compile(ctx context.Context, tc *toolchain.Toolchain, compiler, tmp string, args []string, read ...string) error {
	r, err := h.compiler(ctx, tc, compiler, tmp, args, read...)
	if err != nil || r.Err() == nil {
		return err
	}
	if said := printable.Last(string(r.Stdout)); said != "" && r.Stopped == "" {
		return fmt.Errorf("%s: %s", filepath.Base(compiler), said)
	}
	return fmt.Errorf("%s: %w", filepath.Base(compiler), r.Err())
}

func (h *Harness) compiler(ctx context.Context, tc *toolchain.Toolchain, compiler, tmp string, args []string, read ...string) (command.Result, error) {
	confine := &command.Confinement{Temp: tmp, Read: slices.Concat(tc.Folders(), []string{h.Include}, read)}
	return command.Command{Path: compiler, Args: args, Dir: tmp, Limit: 10 * time.Minute, Most: 1 << 20, Merge: true, Confine: confine}.Run(ctx)
}
