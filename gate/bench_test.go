package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkNothingChanged is gate check, process start included, on 20 kernels
// of which nothing changed: their evidence was measured on a simulated GPU, and
// there is none when they are checked.
func BenchmarkNothingChanged(b *testing.B) {
	needCompiler(b)
	dir, cache := filepath.Join(b.TempDir(), "repo"), b.TempDir()
	plain := append(os.Environ(), "GATE_CACHE="+cache, "CUDA_HOME="+filepath.Join(lab.dir, "cuda"), "GATE_NVML=off", "GIT_CONFIG_GLOBAL="+os.DevNull)
	in := func(env []string, name string, args ...string) {
		b.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/script/repo")); err != nil {
		b.Fatal(err)
	}
	for i := range 18 { // and the two of the skeleton
		name := filepath.Join(dir, "kernels", "toy", fmt.Sprintf("k%02d", i))
		if err := os.CopyFS(name, os.DirFS(filepath.Join(dir, "kernels", "toy", "scale"))); err != nil {
			b.Fatal(err)
		}
		in(plain, "sed", "-i", fmt.Sprintf("s/2 \\* in/%d * in/", i+4), filepath.Join(name, "scale.cu"))
	}
	in(plain, "git", "init", "-q", "-b", "main")
	in(plain, "git", "add", "-A")
	in(plain, "git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "start")
	ncu := filepath.Join(b.TempDir(), "ncu")
	if err := becomeFake(ncu); err != nil {
		b.Fatal(err)
	}
	in(append(plain, "FAKE_GPU="+fakeUUID(b.Name()), "FAKE_GPU_NAME=NVIDIA H200", "PATH="+filepath.Dir(ncu)+string(filepath.ListSeparator)+os.Getenv("PATH")), "gate", "check")
	for b.Loop() {
		in(plain, "gate", "check")
	}
}
