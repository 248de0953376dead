package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/manifest"
)

func TestPlacesHideFolders(t *testing.T) {
	p := places{{"R", "/home/me/repo"}, {"H", "/cache/harness"}, {"T", "/opt/cuda"}}
	for name, file := range map[string]string{
		"R:kernels/a.cu": "/home/me/repo/kernels/a.cu", "H:gate.h": "/cache/harness/gate.h", "T:include/cuda.h": "/opt/cuda/include/cuda.h",
		"/:/usr/include/stdio.h": "/usr/include/stdio.h", "/:/home/me/repository/a.cu": "/home/me/repository/a.cu", "R:.": "/home/me/repo",
	} {
		if got := p.name(file); got != name {
			t.Errorf("%s is called %s, want %s", file, got, name)
		}
		if got := p.path(name); got != file {
			t.Errorf("%s lies at %s, want %s", name, got, file)
		}
	}
}

func TestShortenTakesTheRootOutAndBoundsTheText(t *testing.T) {
	p := places{{"R", "/home/me/repo"}}
	if got := p.shorten([]byte("/home/me/repo/kernels/a.cu(3): error\n")); got != "kernels/a.cu(3): error\n" {
		t.Errorf("got %q", got)
	}
	long := p.shorten([]byte(strings.Repeat("x", 1<<20)))
	if len(long) > 17<<10 || !strings.HasSuffix(long, "\n… (cut)\n") {
		t.Errorf("%d bytes that end in %q", len(long), long[len(long)-20:])
	}
}

func TestPick(t *testing.T) {
	entries := []string{"_Z6attn_aPf", "_Z6attn_bPf", "_ZN2ns4scanIfEEvPT_", "plain"}
	kernel := func(patterns ...string) *manifest.Kernel {
		return &manifest.Kernel{Name: "op/k", File: "kernels/op/k/kernel.yaml", Entries: patterns,
			Lines: map[string]int{"entries[0]": 5, "entries[1]": 6}}
	}
	for _, c := range []struct {
		patterns, want, err string
	}{
		{"", "_Z6attn_aPf _Z6attn_bPf _ZN2ns4scanIfEEvPT_ plain", ""},
		{"attn_*", "_Z6attn_aPf _Z6attn_bPf", ""},
		{"attn_b attn_*", "_Z6attn_aPf _Z6attn_bPf", ""},
		{"scan", "_ZN2ns4scanIfEEvPT_", ""},
		{"plain _Z6attn_aPf", "_Z6attn_aPf plain", ""},
		{"attn_c", "", `kernels/op/k/kernel.yaml:5: entries: "attn_c" matches no __global__ function; there are attn_a, attn_b, plain, scan`},
		{"attn_a attn", "", `kernels/op/k/kernel.yaml:6: entries: "attn" matches no __global__ function; there are attn_a, attn_b, plain, scan`},
		{"[", "", `kernels/op/k/kernel.yaml:5: entries: "[" matches no __global__ function; there are attn_a, attn_b, plain, scan`},
	} {
		got, err := pick(kernel(strings.Fields(c.patterns)...), entries)
		if text := strings.Join(got, " "); text != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q: got %q, %v", c.patterns, text, err)
		}
	}
	if _, err := pick(kernel(), nil); err == nil || err.Error() != "kernels/op/k/kernel.yaml: the sources hold no __global__ function" {
		t.Errorf("no entry: %v", err)
	}
}

func TestFindCubinWantsExactlyOne(t *testing.T) {
	dir := t.TempDir()
	if _, err := findCubin(dir, "k", "sm_90"); err == nil || err.Error() != "nvcc left 0 cubins of k for sm_90" {
		t.Errorf("none: %v", err)
	}
	write(t, filepath.Join(dir, "k.compute_80.sm_80.cubin"), "")
	if got, err := findCubin(dir, "k", "sm_90"); err == nil {
		t.Errorf("another architecture's: %s", got)
	}
	write(t, filepath.Join(dir, "k.compute_90.sm_90.cubin"), "")
	if got, err := findCubin(dir, "k", "sm_90"); err != nil || filepath.Base(got) != "k.compute_90.sm_90.cubin" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestLargeCodeIsNotRead: an initialised array of a gigabyte makes a cubin of
// one, which is refused by its size and not read.
func TestLargeCodeIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k.sm_90.cubin")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readCubin(dir, "k", "sm_90", nil)
	runtime.ReadMemStats(&after)
	var refused *InputError
	if !errors.As(err, &refused) || refused.Error() != "k.sm_90.cubin: has 1024 MiB, and gate reads files of a build of at most 256 MiB" {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated", took)
	}
}

// TestLargeArrayIsReadOnce: the code of an initialised array is in memory once
// while it is identified, so that the largest that is read bounds what it takes.
func TestLargeArrayIsReadOnce(t *testing.T) {
	compilesMuch(t)
	const size = 16 << 20
	root, k := newKernel(t, nil)
	write(t, filepath.Join(k.Dir, "k.cu"), fmt.Sprintf("__device__ unsigned char large[%d] = {1};\n", size)+cudaText)
	a := mustBuild(t, t.TempDir(), root, k)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readCubin(filepath.Dir(a.Library), "k", "sm_90", nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	took := after.TotalAlloc - before.TotalAlloc
	if took < size || took > 2*size {
		t.Errorf("%d bytes were allocated for an array of %d", took, size)
	}
}
