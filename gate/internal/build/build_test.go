package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

const (
	cudaText = `#include "size.h"
#ifdef STRANGE
#error the environment reaches the compiler
#endif
__global__ void add(int* x) { x[threadIdx.x] += SIZE; }
extern "C" int gate_run(int* x) { add<<<1, 32>>>(x); return 0; }
`
	headerText = "#define SIZE 1\n"
)

// cache is shared by the tests of this package, which build what others have
// built already wherever that is not the point.
var cache string

func TestMain(m *testing.M) {
	if dir := os.Getenv("BUILD_TEST_VICTIM"); dir != "" {
		victim(dir)
		return
	}
	dir, err := os.MkdirTemp("", "gate-build-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var findTools = sync.OnceValues(func() (*toolchain.Toolchain, error) {
	dir, err := toolchain.CacheDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	return toolchain.Find(context.Background(), toolchain.Options{Env: os.Getenv, CacheDir: dir})
})

// tools is the real compiler; where there is none, only what needs none is
// tested.
func tools(t testing.TB) *toolchain.Toolchain {
	t.Helper()
	tc, err := findTools()
	if err != nil {
		if os.Getenv("GATE_REQUIRE_NVCC") == "1" {
			t.Fatal(err)
		}
		t.Skip("no CUDA compiler: ", err)
	}
	return tc
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newKernel writes one kernel into a tree of its own. Its header lies in a
// folder that include names.
func newKernel(t testing.TB, change func(*manifest.Kernel)) (root string, k *manifest.Kernel) {
	t.Helper()
	root = t.TempDir()
	k = &manifest.Kernel{Name: "op/k", Dir: filepath.Join(root, "kernels/op/k"), File: "kernels/op/k/kernel.yaml",
		Sources: []string{"k.cu"}, Arch: []string{"sm_90"}, Include: []string{"first", "include"}, Flags: []string{"-O1"}}
	write(t, filepath.Join(k.Dir, "k.cu"), cudaText)
	write(t, filepath.Join(k.Dir, "include/size.h"), headerText)
	if change != nil {
		change(k)
	}
	return root, k
}

func newBuilder(t testing.TB, cache string) *Builder {
	t.Helper()
	b, err := New(tools(t), cache, harnessDir(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// harnessDir is a folder that stands for the harness header's.
func harnessDir(t testing.TB) string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "gate.h"), "")
	return dir
}

// mustBuild builds one kernel with a builder of its own, as one run does.
func mustBuild(t testing.TB, cache, root string, k *manifest.Kernel) *Artifact {
	t.Helper()
	r := newBuilder(t, cache).Build(context.Background(), root, []*manifest.Kernel{k})
	if len(r) != 1 || r[0].Err != nil {
		t.Fatalf("%+v", r)
	}
	return r[0].Artifact
}

// compilesMuch leaves a test out of make race: it runs the compiler again and
// again, and what it would show of gate's own threads others show.
func compilesMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler many times")
	}
}

func TestBuildMakesAnArtifact(t *testing.T) {
	t.Setenv("NVCC_APPEND_FLAGS", "-DSTRANGE")
	t.Setenv("NVCC_PREPEND_FLAGS", "-DSTRANGE")
	root, k := newKernel(t, nil)
	b := newBuilder(t, t.TempDir())
	var done []Result
	b.OnDone = func(r Result) { done = append(done, r) }
	results := b.Build(context.Background(), root, []*manifest.Kernel{k})
	if len(results) != 1 || results[0].Err != nil || len(done) != 1 {
		t.Fatalf("%+v, %d done", results, len(done))
	}
	a := results[0].Artifact
	if a.Cached || a.Arch != "sm_90" || !a.Identity.Known() || a.Compiler != b.Toolchain.Version || len(a.Entries) != 1 || a.Entries[0] != "_Z3addPi" {
		t.Errorf("%+v", a)
	}
	log, err := os.ReadFile(a.Log)
	if err != nil || !strings.Contains(string(log), "Compiling entry function '_Z3addPi' for 'sm_90'") {
		t.Errorf("the log: %v\n%s", err, log)
	}
	if data, err := os.ReadFile(a.Library); err != nil || !strings.HasPrefix(string(data), "\x7fELF") {
		t.Errorf("the library: %v", err)
	}
	command := strings.Join(a.Command, " ")
	for _, local := range []string{root, b.Include, b.Cache, b.Toolchain.HostCompiler} {
		if strings.Contains(command, local) {
			t.Errorf("the command names %s: %s", local, command)
		}
	}
	wantClean(t, b.Cache)
}

// wantClean finds nothing half in a cache.
func wantClean(t *testing.T, dir string) {
	t.Helper()
	if left, _ := os.ReadDir(filepath.Join(filepath.Dir(dir), "tmp")); len(left) > 0 {
		t.Errorf("%d folders are left in tmp", len(left))
	}
	b := &Builder{Cache: dir}
	objects, err := os.ReadDir(filepath.Join(dir, "objects"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if b.openObject(o.Name()) == nil {
			t.Errorf("object %s is half", o.Name())
		}
	}
}

func TestCacheHoldsForContentOnly(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	root, k := newKernel(t, nil)
	first := mustBuild(t, cache, root, k)
	t.Run("another folder", func(t *testing.T) {
		elsewhere, same := newKernel(t, nil)
		a := mustBuild(t, cache, elsewhere, same)
		if !a.Cached || a.Identity != first.Identity {
			t.Errorf("cached: %v, %+v", a.Cached, a.Identity)
		}
	})
	t.Run("no compiler is started", func(t *testing.T) {
		b := newBuilder(t, cache)
		gone := *b.Toolchain
		gone.NVCC = filepath.Join(root, "no-nvcc")
		b.Toolchain = &gone
		if r := b.Build(context.Background(), root, []*manifest.Kernel{k}); r[0].Err != nil || !r[0].Artifact.Cached {
			t.Errorf("%+v", r[0])
		}
	})
	t.Run("header changes", func(t *testing.T) {
		header := filepath.Join(k.Dir, "include/size.h")
		write(t, header, "#define SIZE 2\n")
		a := mustBuild(t, cache, root, k)
		if a.Cached || a.Identity.Code == first.Identity.Code {
			t.Errorf("cached: %v, %+v", a.Cached, a.Identity)
		}
		write(t, header, headerText)
		if a := mustBuild(t, cache, root, k); !a.Cached || a.Identity != first.Identity {
			t.Errorf("changed back, cached: %v, %+v", a.Cached, a.Identity)
		}
	})
	t.Run("new header shadows", func(t *testing.T) {
		for i, place := range []string{"size.h", "first/size.h"} {
			shadow := filepath.Join(k.Dir, place)
			write(t, shadow, fmt.Sprintf("#define SIZE %d\n", 10+i))
			a := mustBuild(t, cache, root, k)
			if a.Cached || a.Identity.Code == first.Identity.Code {
				t.Errorf("%s, cached: %v, %+v", place, a.Cached, a.Identity)
			}
			os.Remove(shadow)
			if a := mustBuild(t, cache, root, k); !a.Cached || a.Identity != first.Identity {
				t.Errorf("%s is taken away again, cached: %v, %+v", place, a.Cached, a.Identity)
			}
		}
	})
	t.Run("a macro names the header", func(t *testing.T) {
		elsewhere, other := newKernel(t, nil)
		write(t, filepath.Join(other.Dir, "k.cu"), "#define WHICH \"size.h\"\n"+strings.Replace(cudaText, `"size.h"`, "WHICH", 1))
		for range 2 {
			if a := mustBuild(t, cache, elsewhere, other); a.Cached {
				t.Error("it is taken from the cache, although nothing says which names were looked for")
			}
		}
	})
	t.Run("header of another folder", func(t *testing.T) {
		// The same source and flags, beside another header of that name.
		other := *k
		other.Name, other.Dir = "op/j", filepath.Join(root, "kernels/op/j")
		write(t, filepath.Join(other.Dir, "k.cu"), cudaText)
		write(t, filepath.Join(other.Dir, "include/size.h"), "#define SIZE 4\n")
		a := mustBuild(t, cache, root, &other)
		if a.Cached || a.Identity.Code == first.Identity.Code {
			t.Errorf("cached: %v, %+v", a.Cached, a.Identity)
		}
	})
	t.Run("flag changes", func(t *testing.T) {
		_, other := newKernel(t, func(k *manifest.Kernel) { k.Flags = append(k.Flags, "-DUNUSED") })
		other.Dir = k.Dir
		if a := mustBuild(t, cache, root, other); a.Cached || a.Identity.Code != first.Identity.Code || a.Identity.Host == first.Identity.Host {
			t.Errorf("cached: %v, %+v, want a new build of the same code under another host id", a.Cached, a.Identity)
		}
	})
	t.Run("pattern matches nothing", func(t *testing.T) {
		other := *k
		other.Entries, other.Lines = []string{"sub*"}, map[string]int{"entries[0]": 5}
		r := newBuilder(t, cache).Build(context.Background(), root, []*manifest.Kernel{&other})
		var e *InputError
		if !errors.As(r[0].Err, &e) || e.Error() != `kernels/op/k/kernel.yaml:5: entries: "sub*" matches no __global__ function; there are add` {
			t.Errorf("%v", r[0].Err)
		}
	})
}

func TestHeadersOfEverySourceCount(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	root, k := newKernel(t, func(k *manifest.Kernel) { k.Sources = []string{"a.cu", "b.cu"} })
	for _, s := range []string{"a", "b"} {
		write(t, filepath.Join(k.Dir, s+".cu"), fmt.Sprintf("#include \"%s.h\"\n__global__ void %s(int* x) { *x = %s_; }\nextern \"C\" __attribute__((weak)) int gate_run(int* x) { %s<<<1, 1>>>(x); return 0; }\n", s, s, strings.ToUpper(s), s))
		write(t, filepath.Join(k.Dir, s+".h"), "#define "+strings.ToUpper(s)+"_ 1\n")
	}
	first := mustBuild(t, cache, root, k)
	if len(first.Entries) != 2 {
		t.Fatalf("entries %v", first.Entries)
	}
	write(t, filepath.Join(k.Dir, "a.h"), "#define A_ 2\n")
	if a := mustBuild(t, cache, root, k); a.Cached || a.Identity.Code == first.Identity.Code {
		t.Errorf("the first source's header changed, cached: %v, %+v", a.Cached, a.Identity)
	}
}

func TestCompileError(t *testing.T) {
	t.Parallel()
	root, k := newKernel(t, nil)
	write(t, filepath.Join(k.Dir, "k.cu"), "__global__ void add(int* x) { x[0] = undeclared; }\n")
	b := newBuilder(t, t.TempDir())
	fine := *k
	fine.Name = "op/second"
	results := b.Build(context.Background(), root, []*manifest.Kernel{k, &fine})
	for _, r := range results {
		var e *CompileError
		if !errors.As(r.Err, &e) || r.Artifact != nil {
			t.Fatalf("%+v", r)
		}
		if e.Error() != r.Kernel.Name+" does not compile" || !strings.Contains(e.Output, `k.cu(1): error: identifier "undeclared" is undefined`) || strings.Contains(e.Output, root) {
			t.Errorf("%v\n%s", e, e.Output)
		}
	}
	if objects, _ := os.ReadDir(filepath.Join(b.Cache, "objects")); len(objects) != 0 {
		t.Errorf("%d objects of code that does not compile", len(objects))
	}
	wantClean(t, b.Cache)
}

func TestMissingSourceIsNoCompileError(t *testing.T) {
	root, k := newKernel(t, func(k *manifest.Kernel) { k.Sources = []string{"none.cu"} })
	r := newBuilder(t, t.TempDir()).Build(context.Background(), root, []*manifest.Kernel{k})
	var compile *CompileError
	if r[0].Err == nil || errors.As(r[0].Err, &compile) || !errors.Is(r[0].Err, os.ErrNotExist) {
		t.Errorf("%v", r[0].Err)
	}
}

func TestDamagedCacheIsAMiss(t *testing.T) {
	t.Parallel()
	root, k := newKernel(t, nil)
	own := t.TempDir()
	first := mustBuild(t, own, root, k)
	one := func(pattern string) string {
		found, _ := filepath.Glob(filepath.Join(own, "build", pattern))
		if len(found) != 1 {
			t.Fatalf("%s: %v", pattern, found)
		}
		return found[0]
	}
	for _, c := range []struct {
		file, text string
		cached     bool
	}{
		{"files.json", `{"`, true}, {"files.json", `{"/x": 1}`, true}, {"deps/*.json", "[", false}, {"objects/*/meta.json", `{}`, false},
		{"systems/*.json", "{}", false}, {"objects/*/lib.so", "x", false}, {"objects/*/ptxas.log", "", false}, {"objects/*/*.cubin", "", false},
	} {
		write(t, one(c.file), c.text)
		if a := mustBuild(t, own, root, k); a.Cached != c.cached || a.Identity != first.Identity {
			t.Errorf("%s damaged: cached: %v, %+v", c.file, a.Cached, a.Identity)
		}
		wantClean(t, filepath.Join(own, "build"))
	}
	if a := mustBuild(t, own, root, k); !a.Cached {
		t.Error("what was repaired is not found")
	}
}

// TestLoadedLibraryIsRead: a file that changed without a trace, as on a disk that
// fails, is noticed before it is loaded, and built again; who loads nothing does
// not read it.
func TestLoadedLibraryIsRead(t *testing.T) {
	t.Parallel()
	root, k := newKernel(t, nil)
	own := t.TempDir()
	first := mustBuild(t, own, root, k)
	write(t, first.Library, "x")
	metaFile := filepath.Join(filepath.Dir(first.Library), "meta.json")
	data, err := os.ReadFile(metaFile)
	if err != nil {
		t.Fatal(err)
	}
	var m meta
	if err := json.Unmarshal(unsealed(data), &m); err != nil {
		t.Fatal(err)
	}
	if m.Stamps[library], err = disk.StampOf(first.Library); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	write(t, metaFile, string(sealed(data)))
	b := newBuilder(t, own)
	a := b.Build(context.Background(), root, []*manifest.Kernel{k})[0].Artifact
	if a == nil || !a.Cached {
		t.Fatalf("what nobody loads was built again: %+v", a)
	}
	for range 2 {
		if err := b.Complete(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		if sum, err := disk.SHA256(a.Library); err != nil || sum != a.sum || a.Identity != first.Identity {
			t.Fatalf("the library is %s, and was built as %s, %v", sum, a.sum, err)
		}
	}
	if why := checkLibrary(a.Library); why != "" {
		t.Error(why)
	}
}

func TestConcurrentBuilders(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	tools(t)
	artifacts := make([]*Artifact, 2)
	var wg sync.WaitGroup
	for i := range artifacts {
		root, k := newKernel(t, nil)
		b := newBuilder(t, own)
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := b.Build(context.Background(), root, []*manifest.Kernel{k})
			for _, one := range r {
				if one.Err != nil {
					t.Error(one.Err)
					return
				}
			}
			artifacts[i] = r[0].Artifact
		}()
	}
	wg.Wait()
	for _, a := range artifacts {
		if a == nil || a.Identity != artifacts[0].Identity {
			t.Fatalf("%+v", a)
		}
		if _, err := os.Stat(a.Library); err != nil {
			t.Error(err)
		}
	}
	wantClean(t, filepath.Join(own, "build"))
}

// victim builds until it is killed.
func victim(dir string) {
	tc, err := findTools()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	b, err := New(tc, filepath.Join(dir, "cache"), dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	b.Build(context.Background(), dir, []*manifest.Kernel{{Name: "op/k", Dir: dir, Sources: []string{"k.cu"}, Arch: []string{"sm_90"}}})
	time.Sleep(time.Minute) // it is killed before that
}

func TestKillWhileBuildingLeavesNothingHalf(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	tools(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "k.cu"), strings.Replace(cudaText, `#include "size.h"`, "#define SIZE 5", 1))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BUILD_TEST_VICTIM="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(filepath.Join(dir, "cache/tmp/*-nvcc-*/*")); len(found) > 0 {
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatal("the compiler wrote nothing in a minute")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if objects, _ := os.ReadDir(filepath.Join(dir, "cache/build/objects")); len(objects) != 0 {
		t.Errorf("%d objects of a build that was killed", len(objects))
	}
	left, _ := filepath.Glob(filepath.Join(dir, "cache/tmp/*-nvcc-*"))
	if len(left) != 1 {
		t.Fatalf("%d folders in tmp", len(left))
	}
	disk.SweepTemp(filepath.Join(dir, "cache"))
	if _, err := os.Stat(left[0]); err == nil {
		t.Errorf("%s is left behind", left[0])
	}
	b, err := New(tools(t), filepath.Join(dir, "cache"), dir)
	if err != nil {
		t.Fatal(err)
	}
	wantClean(t, b.Cache)
	r := b.Build(context.Background(), dir, []*manifest.Kernel{{Name: "op/k", Dir: dir, Sources: []string{"k.cu"}, Arch: []string{"sm_90"}}})
	if r[0].Err != nil || r[0].Artifact.Cached {
		t.Errorf("%+v", r[0])
	}
}

func TestCancelledBuildStopsTheCompiler(t *testing.T) {
	root, k := newKernel(t, nil)
	b := newBuilder(t, t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	r := b.Build(ctx, root, []*manifest.Kernel{k, k, k})
	for _, one := range r {
		var compile *CompileError
		if one.Err == nil || errors.As(one.Err, &compile) || !errors.Is(one.Err, context.DeadlineExceeded) {
			t.Errorf("%v", one.Err)
		}
	}
	wantClean(t, b.Cache)
}

func TestHeaderMemoryIsBounded(t *testing.T) {
	b := &Builder{Cache: t.TempDir()}
	if err := os.Mkdir(filepath.Join(b.Cache, "deps"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxDepSets {
		if err := b.remember("r", deps{Files: map[string]string{"f": fmt.Sprint(i)}, Object: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	sets := b.readDeps("r")
	if len(sets) != maxDepSets || sets[0].Object != fmt.Sprint(3*maxDepSets-1) {
		t.Errorf("%d sets, the first is %s", len(sets), sets[0].Object)
	}
	if b.matches(nil, deps{}) {
		t.Error("a set without files matches everything")
	}
}

// BenchmarkUnchanged is a run in which nothing changed, over 20 kernels whose
// cache is warm: every iteration opens the cache as a new process does.
func BenchmarkUnchanged(b *testing.B) {
	dir, root := b.TempDir(), b.TempDir()
	include := harnessDir(b)
	var kernels []*manifest.Kernel
	for i := range 20 {
		k := &manifest.Kernel{Name: fmt.Sprintf("op/k%02d", i), Dir: filepath.Join(root, fmt.Sprintf("k%02d", i)), Sources: []string{"k.cu"}, Arch: []string{"sm_90"}, Include: []string{"include"}}
		write(b, filepath.Join(k.Dir, "k.cu"), cudaText)
		write(b, filepath.Join(k.Dir, "include/size.h"), fmt.Sprintf("#define SIZE %d\n", i))
		kernels = append(kernels, k)
	}
	run := func(cached bool) {
		builder, err := New(tools(b), dir, include)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range builder.Build(context.Background(), root, kernels) {
			if r.Err != nil || cached && !r.Artifact.Cached {
				b.Fatalf("%+v", r)
			}
		}
	}
	run(false)
	runtime.GC()
	for b.Loop() {
		run(true)
	}
}
