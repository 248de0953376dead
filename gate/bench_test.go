package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	benchKernels = flag.String("kernels", "20", "of how many kernels BenchmarkNothingChanged is, separated by commas")
	benchBefore  = flag.String("before", "", "another gate, which BenchmarkNothingChanged runs by turns with this one")
)

// BenchmarkNothingChanged is gate check, process start included, on kernels of
// which nothing changed: their evidence was measured on a simulated GPU, and
// there is none when they are checked. On a machine with other work the time of
// the processor says more than that of the clock.
func BenchmarkNothingChanged(b *testing.B) {
	needCompiler(b)
	for _, text := range strings.Split(*benchKernels, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			b.Fatalf("-kernels %s", *benchKernels)
		}
		b.Run(text, func(b *testing.B) { nothingChanged(b, n) })
	}
}

func nothingChanged(b *testing.B, kernels int) {
	dir, cache := filepath.Join(b.TempDir(), "repo"), b.TempDir()
	plain := append(os.Environ(), "GATE_CACHE="+cache, "CUDA_HOME="+filepath.Join(lab.dir, "cuda"), "GATE_NVML=off", "GIT_CONFIG_GLOBAL="+os.DevNull)
	in := func(env []string, name string, args ...string) *os.ProcessState {
		b.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return cmd.ProcessState
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/script/repo")); err != nil {
		b.Fatal(err)
	}
	for i := range kernels - 2 { // and the two of the skeleton
		name := filepath.Join(dir, "kernels", "toy", fmt.Sprintf("k%04d", i))
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
	gates := map[string]string{"cpu-ms": "gate"}
	if *benchBefore != "" {
		gates["before-cpu-ms"] = *benchBefore
	}
	spent, checks := map[string]time.Duration{}, 0
	for _, gate := range gates {
		in(plain, gate, "check")
	}
	for b.Loop() {
		checks++
		for name, gate := range gates {
			state := in(plain, gate, "check")
			spent[name] += state.UserTime() + state.SystemTime()
		}
	}
	for name, sum := range spent {
		b.ReportMetric(sum.Seconds()*1e3/float64(checks), name)
	}
}
