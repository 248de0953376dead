package toolchain

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLockFile(t *testing.T) {
	entry := regexp.MustCompile(`^(nvidia-[a-z-]+)==([0-9.]+) \\\n    --hash=sha256:([0-9a-f]{64}) \\\n    --hash=sha256:([0-9a-f]{64})\n`)
	want := map[string]string{
		"nvidia-cuda-nvcc": Version, "nvidia-cuda-crt": Version, "nvidia-nvvm": Version, "nvidia-cuda-runtime": Version,
		"nvidia-cuda-cccl": "13.0.85", "nvidia-cuda-cuobjdump": "13.2.51", "nvidia-cuda-nvdisasm": "13.2.51",
	}
	text := string(lock)
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	hashes := map[string]bool{}
	for text != "" {
		m := entry.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("not a pinned package with two hashes: %.80q", text)
		}
		if want[m[1]] != m[2] {
			t.Errorf("%s is pinned to %s, want %q", m[1], m[2], want[m[1]])
		}
		delete(want, m[1])
		hashes[m[3]], hashes[m[4]] = true, true
		text = text[len(m[0]):]
	}
	if len(want) != 0 || len(hashes) != 14 {
		t.Errorf("missing packages %v; %d distinct hashes, want 14", want, len(hashes))
	}
}

// TestInstallForReal fetches the real compiler, 110 MB, and builds with it.
func TestInstallForReal(t *testing.T) {
	if os.Getenv("GATE_TEST_NETWORK") != "1" {
		t.Skip("GATE_TEST_NETWORK is not 1")
	}
	cache := t.TempDir()
	start := time.Now()
	tc, err := Install(context.Background(), InstallOptions{Options: Options{CacheDir: cache, Env: os.Getenv}, Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %v", time.Since(start))
	env := func(name string) string {
		if name == "CUDA_HOME" {
			return ""
		}
		return os.Getenv(name)
	}
	found, err := Find(context.Background(), Options{NVCC: tc.NVCC, Env: env, CacheDir: cache})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	src := write(t, filepath.Join(dir, "k.cu"), "#include <cuda_fp16.h>\n#include <cuda/std/type_traits>\n__global__ void k(__half* x) { x[threadIdx.x] = x[0] * x[1]; }\nint run() { k<<<1, 32>>>(nullptr); return cudaDeviceSynchronize(); }\n", 0o644)
	for _, args := range [][]string{
		{"-cubin", "-o", filepath.Join(dir, "k.cubin")},
		{"-shared", "-Xcompiler=-fPIC", "-o", filepath.Join(dir, "k.so")},
	} {
		cmd := exec.Command(found.NVCC, append(args, "-arch=sm_90", "-ccbin", found.HostCompiler, src)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", cmd.Args, err, out)
		}
	}
	for _, tool := range []string{found.CuObjDump, filepath.Join(found.Root, "bin/nvdisasm")} {
		arg := map[bool]string{true: "-sass", false: "-c"}[tool == found.CuObjDump]
		out, err := exec.Command(tool, arg, filepath.Join(dir, "k.cubin")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "HMUL2") {
			t.Errorf("%s: %v\n%.500s", tool, err, out)
		}
	}
}
