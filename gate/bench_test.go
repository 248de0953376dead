package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/exit"
)

var (
	benchKernels = flag.String("kernels", "20", "of how many kernels BenchmarkNothingChanged is, separated by commas")
	benchBefore  = flag.String("before", "", "other gates, separated by commas, which BenchmarkNothingChanged runs by turns with this one")
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

// A simulated is a repository of some kernels, committed, on a machine whose GPUs
// are simulated.
type simulated struct {
	*testing.B
	dir, cache  string
	plain, gpus []string // environments: without a GPU, and with some
}

func simulate(b *testing.B, kernels, gpus int) simulated {
	b.Helper()
	s := simulated{B: b, dir: filepath.Join(b.TempDir(), "repo"), cache: b.TempDir()}
	s.plain = append(os.Environ(), "GATE_CACHE="+s.cache, "CUDA_HOME="+filepath.Join(lab.dir, "cuda"), "GATE_NVML=off", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if err := os.CopyFS(s.dir, os.DirFS("testdata/script/repo")); err != nil {
		b.Fatal(err)
	}
	for i := range kernels - 2 { // and the two of the skeleton
		name := filepath.Join(s.dir, "kernels", "toy", fmt.Sprintf("k%04d", i))
		if err := os.CopyFS(name, os.DirFS(filepath.Join(s.dir, "kernels", "toy", "scale"))); err != nil {
			b.Fatal(err)
		}
		s.in(s.plain, "sed", "-i", fmt.Sprintf("s/2 \\* in/%d * in/", i+4), filepath.Join(name, "scale.cu"))
	}
	s.in(s.plain, "git", "init", "-q", "-b", "main")
	s.in(s.plain, "git", "add", "-A")
	s.in(s.plain, "git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "start")
	ncu := filepath.Join(b.TempDir(), "ncu")
	if err := becomeFake(ncu); err != nil {
		b.Fatal(err)
	}
	var uuids []string
	for i := range gpus {
		uuids = append(uuids, fakeUUID(fmt.Sprint(b.Name(), i)))
	}
	s.gpus = append(slices.Clone(s.plain), "FAKE_GPU="+strings.Join(uuids, ","), "FAKE_GPU_NAME=NVIDIA H200",
		"PATH="+filepath.Dir(ncu)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return s
}

func (s simulated) in(env []string, name string, args ...string) *os.ProcessState {
	s.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.dir, env
	// Another gate has no evidence of what it calls the identity of this code.
	if out, err := cmd.CombinedOutput(); err != nil && (!slices.Contains(others(), name) || cmd.ProcessState.ExitCode() != exit.Inconclusive) {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return cmd.ProcessState
}

// BenchmarkTwoGPUs is what a second GPU saves where four kernels changed, as the
// ratio of the wall times with two and with one. Both GPUs are simulated: a
// process of the measuring program sleeps for a second of FAKE_TOOK, so that the
// ratio is that of the work which is spread, and not that of a real host.
func BenchmarkTwoGPUs(b *testing.B) {
	needCompiler(b)
	s := simulate(b, 4, 2)
	for i, k := range []string{"scale", "shift", "k0000", "k0001"} {
		file := filepath.Join(s.dir, "kernels", "toy", k, strings.Replace(k, "k000"+k[len(k)-1:], "scale", 1)+".cu")
		s.in(s.plain, "sed", "-i", fmt.Sprintf("s/in\\[i\\]/%d * in[i]/", 11+2*i), file)
	}
	slow := append(slices.Clone(s.gpus), "FAKE_TOOK=300ms")
	s.in(s.plain, "gate", "collect", "--bundle", filepath.Join(b.TempDir(), "built")) // both sides
	var one, two time.Duration
	for b.Loop() {
		for took, args := range map[*time.Duration][]string{&one: {"check", "--gpu", "0"}, &two: {"check"}} {
			if err := os.RemoveAll(filepath.Join(s.cache, "evidence")); err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			s.in(slow, "gate", args...)
			*took += time.Since(start)
		}
	}
	b.ReportMetric(two.Seconds()/one.Seconds(), "two/one")
}

// others are the programs of -before. This gate is the test's own program, which
// is larger than one that is installed.
func others() []string {
	return strings.FieldsFunc(*benchBefore, func(c rune) bool { return c == ',' })
}

func nothingChanged(b *testing.B, kernels int) {
	s := simulate(b, kernels, 1)
	s.in(s.gpus, "gate", "check")
	gates := map[string]string{"cpu-ms": "gate"}
	for _, path := range others() {
		gates[filepath.Base(path)+"-cpu-ms"] = path
	}
	spent, checks := map[string]time.Duration{}, 0
	for _, gate := range gates {
		s.in(s.plain, gate, "check")
	}
	for b.Loop() {
		checks++
		for name, gate := range gates {
			state := s.in(s.plain, gate, "check")
			spent[name] += state.UserTime() + state.SystemTime()
		}
	}
	for name, sum := range spent {
		b.ReportMetric(sum.Seconds()*1e3/float64(checks), name)
	}
}
