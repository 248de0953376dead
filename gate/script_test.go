package main

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// update rewrites what goldens and transcripts show. Expected exit statuses
// stand in the commands and are never rewritten.
var update = flag.Bool("update", false, "rewrite goldens and transcripts")

// lab is what the scripts of one run share: a folder for builds, and the
// compiler they are made with.
var lab struct {
	dir      string // shared build cache and the fake toolkit
	nvcc     string // the real compiler, "" where there is none
	cudaHome string // the real toolkit
	missing  string // why there is no compiler
}

func TestMain(m *testing.M) {
	if fake := fakeOf(filepath.Base(os.Args[0])); fake != nil {
		unpackFakes()
		os.Exit(fake(os.Args[1:]))
	}
	testscript.Main(labRun{m}, map[string]func(){
		"gate":       func() { packFakes(); os.Exit(gate()) },
		"peak":       func() { os.Exit(runPeak(os.Args[1], os.Args[2], os.Args[3:])) },
		"nvidia-smi": func() { unpackFakes(); os.Exit(fakeSMI(os.Args[1:])) },
	})
}

// labRun makes the shared folder before the tests and removes it after them.
type labRun struct{ m *testing.M }

func (r labRun) Run() int {
	dir, err := os.MkdirTemp("", "gate-lab-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	lab.dir = dir
	os.Unsetenv("GITHUB_ACTIONS") // the tests are not about the workflow that they run in
	os.Setenv("GOTMPDIR", dir)    // testscript leaves an empty folder there
	if err := openLab(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return r.m.Run()
}

// openLab finds the real compiler and asks it who it is once for all scripts.
func openLab() error {
	for _, d := range []string{"cache/build", "cache/harness"} {
		if err := os.MkdirAll(filepath.Join(lab.dir, d), 0o755); err != nil {
			return err
		}
	}
	cache, err := toolchain.CacheDir(os.Getenv)
	if err != nil {
		cache = ""
	}
	tc, err := toolchain.Find(context.Background(), toolchain.Options{Env: os.Getenv, CacheDir: cache})
	if err != nil {
		lab.missing = err.Error()
		return nil
	}
	lab.nvcc, lab.cudaHome = tc.NVCC, tc.Root
	if err := makeFakeCUDA(filepath.Join(lab.dir, "cuda"), tc); err != nil {
		return err
	}
	home := func(name string) string {
		if name == "CUDA_HOME" {
			return filepath.Join(lab.dir, "cuda")
		}
		return os.Getenv(name)
	}
	_, err = toolchain.Find(context.Background(), toolchain.Options{Env: home, CacheDir: filepath.Join(lab.dir, "cache")})
	return err
}

// needCompiler skips a test that compiles where nothing can, unless a skip
// would hide that the machine is not set up.
func needCompiler(t testing.TB) {
	if lab.missing == "" {
		return
	}
	if os.Getenv("GATE_REQUIRE_NVCC") == "1" {
		t.Fatalf("GATE_REQUIRE_NVCC=1: %s", lab.missing)
	}
	t.Skipf("no CUDA compiler: %s (gate toolchain install gets one)", lab.missing)
}

func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("found 0 scripts in testdata/script: %v", err)
	}
	if lab.missing != "" && os.Getenv("GATE_REQUIRE_NVCC") == "1" {
		t.Fatalf("GATE_REQUIRE_NVCC=1: %s", lab.missing)
	}
	dir, files := "testdata/script", []string(nil)
	if testing.Short() { // those in which gate does several things at a time
		dir = ""
		for _, name := range []string{"two_checks_at_once", "first_check_measures", "signals", "kernel_hangs_when_timed", "calibrate_quiet", "progress", "two_gpus"} {
			files = append(files, filepath.Join("testdata/script", name+".txtar"))
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		Setup:               setup,
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"repo":    repo,
			"machine": machine,
			"json":    jsonField,
			"finding": finding,
			"await":   await,
			"damage":  damage,
			"dead":    dead,
		},
	})
}

// setup gives a script its own evidence and the builds of all scripts.
func setup(env *testscript.Env) error {
	own := filepath.Join(env.WorkDir, "cache")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	shared := filepath.Join(lab.dir, "cache")
	for _, part := range []string{"build", "harness"} {
		if err := os.Symlink(filepath.Join(shared, part), filepath.Join(own, part)); err != nil {
			return err
		}
	}
	if data, err := os.ReadFile(filepath.Join(shared, "versions.json")); err == nil {
		if err := os.WriteFile(filepath.Join(own, "versions.json"), data, 0o644); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{
		"GATE_CACHE": own, "CUDA_HOME": filepath.Join(lab.dir, "cuda"), "HOME": filepath.Join(env.WorkDir, "home"),
		"GIT_CEILING_DIRECTORIES": env.WorkDir, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull,
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_COMMITTER_DATE": "2099-01-01T00:00:00Z", // after whatever is recorded
		"SKELETON": filepath.Join(mustGetwd(), "testdata", "script", "repo"), "SYSTEM_PATH": systemPath(),
		"GATE_NVML": "off", // the machine's own GPUs are not the scripts'
	} {
		env.Setenv(name, value)
	}
	if lab.missing != "" {
		env.Setenv("CUDA_HOME", "")
	}
	return nil
}

func mustGetwd() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}

// systemPath is PATH as far as it holds git and g++ but no CUDA tool.
func systemPath() string {
	var kept []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "nvcc")); err != nil {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

func condition(name string) (bool, error) {
	switch name {
	case "nvcc":
		return lab.missing == "", nil
	case "landlock":
		version, _ := command.Landlock()
		return version >= 3, nil
	case "ncu-installed":
		usual, _ := filepath.Glob("/opt/nvidia/nsight-compute/[0-9]*/ncu")
		_, err := os.Stat("/usr/local/cuda/bin/ncu")
		_, onPath := exec.LookPath("ncu")
		return len(usual) > 0 || err == nil || onPath == nil, nil
	case "sanitizer-installed":
		_, err := os.Stat("/usr/local/cuda/bin/compute-sanitizer")
		_, onPath := exec.LookPath("compute-sanitizer")
		return err == nil || onPath == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// exits runs a program that must end with exactly this status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// repo makes $WORK/repo, a git repository with two small kernels on its main
// branch, and goes there.
func repo(ts *testscript.TestScript, neg bool, args []string) {
	dir := filepath.Join(ts.Getenv("WORK"), "repo")
	ts.Check(os.CopyFS(dir, os.DirFS(ts.Getenv("SKELETON"))))
	ts.Check(ts.Chdir(dir))
	for _, line := range []string{"init -q -b main", "add -A", "commit -q -m start"} {
		ts.Check(ts.Exec("git", strings.Fields(line)...))
	}
}

// machine pretends that this is a machine with one GPU, or two, and with Nsight
// Compute and compute-sanitizer, or without both.
func machine(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: machine h200 [without-ncu] [two]")
	}
	if lab.missing != "" {
		ts.Fatalf("a script with a machine starts with [!nvcc] skip")
	}
	gpus := fakeUUID(ts.Name())
	if slices.Contains(args, "two") {
		gpus += "," + fakeUUID(ts.Name()+" 2")
	}
	ts.Setenv("FAKE_GPU", gpus)
	ts.Setenv("FAKE_GPU_NAME", "NVIDIA "+strings.ToUpper(args[0]))
	if !slices.Contains(args, "without-ncu") {
		dir := filepath.Join(ts.Getenv("WORK"), "ncu-bin")
		ts.Check(becomeFake(filepath.Join(dir, "ncu")))
		if err := os.Symlink("ncu", filepath.Join(dir, "compute-sanitizer")); !errors.Is(err, os.ErrExist) {
			ts.Check(err)
		}
		ts.Setenv("PATH", dir+string(filepath.ListSeparator)+ts.Getenv("PATH"))
	}
}

// jsonField compares a field of the JSON on standard output: json counts.measured 6.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: json PATH VALUE")
	}
	var at any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &at); err != nil {
		ts.Fatalf("standard output is not JSON: %v", err)
	}
	for _, key := range strings.Split(args[0], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(v) {
				ts.Fatalf("%s: no element %q", args[0], key)
			}
			at = v[n]
		default:
			ts.Fatalf("%s: nothing at %q", args[0], key)
		}
	}
	if got := fmt.Sprint(at); (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// finding requires a finding in the verdict on standard output:
// finding toy/scale latency fail 'slower than'.
func finding(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: finding KERNEL RULE STATUS [TEXT…]")
	}
	var v struct {
		Kernels []struct {
			Name     string
			Findings []struct{ Rule, Status, Reason string }
		}
	}
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &v); err != nil {
		ts.Fatalf("standard output is not a verdict: %v", err)
	}
	found := false
	for _, k := range v.Kernels {
		for _, f := range k.Findings {
			ok := k.Name == args[0] && f.Rule == args[1] && f.Status == args[2]
			for _, text := range args[3:] {
				ok = ok && strings.Contains(f.Reason, text)
			}
			found = found || ok
		}
	}
	if found == neg {
		ts.Fatalf("finding %q: found is %v", args, found)
	}
}

// await waits until a pattern names a file.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await PATTERN")
	}
	for range 6000 {
		if found, _ := filepath.Glob(ts.MkAbs(args[0])); len(found) > 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s did not appear within a minute", args[0])
}

// damage changes every file that a pattern names: it cuts the file in half, or
// replaces a text by another.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	files, _ := filepath.Glob(ts.MkAbs(args[0]))
	if neg || len(files) == 0 || len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: damage PATTERN half, or damage PATTERN OLD NEW; %d files", len(files))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		ts.Check(err)
		damaged := string(data[:len(data)/2])
		if len(args) == 3 {
			if damaged = strings.ReplaceAll(string(data), args[1], args[2]); damaged == string(data) {
				ts.Fatalf("%s does not hold %q", f, args[1])
			}
		}
		ts.Check(os.WriteFile(f, []byte(damaged), 0o644))
	}
}

// dead requires every process that a file lists by number to have ended.
func dead(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dead FILE")
	}
	numbers := strings.Fields(ts.ReadFile(args[0]))
	if len(numbers) == 0 {
		ts.Fatalf("%s lists no process", args[0])
	}
	for _, n := range numbers {
		status, err := os.ReadFile(filepath.Join("/proc", n, "status"))
		if err == nil && !strings.Contains(string(status), "\nState:\tZ") {
			ts.Fatalf("process %s still runs", n)
		}
	}
}
