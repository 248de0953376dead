package identity

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// findCompiler returns nvcc and its include folder, or skips: the recorded cases still run then.
func findCompiler(t testing.TB) (nvcc, include string) {
	t.Helper()
	path := filepath.Join(os.Getenv("CUDA_HOME"), "bin", "nvcc")
	if _, err := os.Stat(path); os.Getenv("CUDA_HOME") == "" || err != nil {
		if path, err = exec.LookPath("nvcc"); err != nil {
			if *update {
				t.Fatal("-update needs the CUDA compiler in $CUDA_HOME or on PATH")
			}
			t.Skip("no CUDA compiler in $CUDA_HOME or on PATH: only recorded builds are tested")
		}
	}
	return path, filepath.Join(filepath.Dir(filepath.Dir(path)), "include")
}

// A build is what one compilation leaves.
type build struct{ cubin, host, stub []byte }

// modules reads the name of the module out of the host intermediate, where it is the anonymous namespace's.
func (b build) modules(t testing.TB) Modules {
	t.Helper()
	_, rest, ok := strings.Cut(string(b.host), "#define _NV_ANON_NAMESPACE _GLOBAL__N_")
	id, _, _ := strings.Cut(rest, "\n")
	m := Modules{}
	if err := m.AddModule(id, "kernel.cu"); !ok || err != nil {
		t.Fatal(err)
	}
	return m
}

// compile builds a source as gate does, without the link, in dir.
func compile(t testing.TB, nvcc, dir, source string, args ...string) build {
	t.Helper()
	keep := filepath.Join(dir, "keep")
	if err := os.MkdirAll(keep, 0o777); err != nil {
		t.Fatal(err)
	}
	base := []string{"-std=c++17", "-O3", "-lineinfo", "-Xcompiler", "-fPIC", "--keep", "--keep-dir", "keep", "-c", "-o", "keep/x.o"}
	if !strings.Contains(strings.Join(args, " "), "-gencode") {
		base = append(base, "-gencode", "arch=compute_90,code=sm_90")
	}
	cmd := exec.Command(nvcc, append(append(base, args...), source)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return build{only(t, filepath.Join(keep, "*.cubin")), only(t, filepath.Join(keep, "*.cudafe1.cpp")), only(t, filepath.Join(keep, "*.cudafe1.stub.c"))}
}

func only(t testing.TB, pattern string) []byte {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %d files, want 1", pattern, len(files))
	}
	return readFile(t, files[0])
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
