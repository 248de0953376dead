package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	checks = flag.Int("checks", 2, "how many checks each of 8 processes runs in one clone")
	full   = flag.Bool("full", false, "try every size of a disk, every limit and every stage of the compiler")
)

// some are the first few of what is tried, or all of it.
func some[T any](all []T, few int) []T {
	if *full {
		return all
	}
	return all[:few]
}

// takesLong leaves a test out of make race.
func takesLong(t *testing.T) {
	if testing.Short() {
		t.Skip("starts gate many times")
	}
}

// status runs a program and returns its exit status.
func (v victim) status(env []string, name string, args ...string) (code int, stdout, stderr string) {
	v.Helper()
	var out, said bytes.Buffer
	cmd, _ := v.command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(cmd.Env, env), &out, &said
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		v.Fatalf("%s %q: %v", name, args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

// TestParallelChecks: checks of one clone at the same time, from a cache that is
// empty at first, each have the verdict and the status of a lone one.
func TestParallelChecks(t *testing.T) {
	v := newVictim(t)
	v.run("gate", "baseline", "record", "--store", "kernels/evidence")
	v.run("git", "add", "-A")
	v.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "evidence")
	v.change(1)
	noGPU := []string{"FAKE_GPU="}
	alone := append(noGPU, "GATE_CACHE="+t.TempDir())
	code, want, said := v.status(alone, "gate", "check", "--format", "json")
	if code != 4 || want == "" {
		t.Fatalf("alone: exit status %d\n%s", code, said)
	}
	git := v.files(filepath.Join(v.dir, ".git"))
	cache := append(noGPU, "GATE_CACHE="+t.TempDir())
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range *checks {
				got, stdout, stderr := v.status(cache, "gate", "check", "--format", "json")
				if got != code || stdout != want {
					t.Errorf("worker %d, check %d: exit status %d, want %d\n%s%s", worker, i, got, code, stderr, difference(lines(want), lines(stdout)))
				}
			}
		})
	}
	wg.Wait()
	if !slices.Equal(v.files(filepath.Join(v.dir, ".git")), git) {
		t.Error("git's folder is another")
	}
	t.Logf("8 × %d checks", *checks)
}

// spoiled is what a check says on a machine that lacks something: a tool failed,
// or nothing was lacking after all. A kernel is never to blame.
func (v victim) spoiled(what string, code int, said string) {
	v.Helper()
	v.Logf("%s: exit status %d", what, code)
	if code != 0 && code != 3 || strings.Contains(said, "does not compile") {
		v.Errorf("%s: exit status %d\n%s", what, code, said)
	}
}

// TestDiskFull gives gate caches of several sizes. Where there is too little
// room a tool failed, and with more room the next run succeeds.
func TestDiskFull(t *testing.T) {
	takesLong(t)
	v := newVictim(t)
	small := 0
	for i, size := range some([]int{512, 64, 16, 256, 1024, 1536, 2048, 4096}, 2) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", size)); err != nil {
			t.Skipf("no disk of a chosen size without root: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
		v.change(i)
		here := []string{"GATE_CACHE=" + dir}
		code, out, said := v.status(here, "gate", "check")
		v.spoiled(fmt.Sprintf("check, cache of %d KiB", size), code, out+said)
		if code == 3 {
			small++
		}
		store := filepath.Join(dir, "store")
		code, out, said = v.status(nil, "gate", "baseline", "record", "--store", store)
		v.spoiled(fmt.Sprintf("baseline record, store on a disk of %d KiB", size), code, out+said)
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=256m"); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"check"}, {"baseline", "record", "--store", store}} {
			if code, out, said := v.status(here, "gate", args...); code != 0 {
				t.Errorf("%d KiB, %q with more room: exit status %d\n%s%s", size, args, code, out, said)
			}
		}
	}
	if small < 2 {
		t.Errorf("only %d of the caches were too small", small)
	}
}

// TestLimits sets limits of the shell's.
func TestLimits(t *testing.T) {
	takesLong(t)
	v := newVictim(t)
	failed := 0
	for i, limit := range some([]string{"-f 64", "-f 0", "-n 24", "-f 8", "-f 512", "-f 2048", "-n 12", "-n 64", "-v 1500000", "-v 3000000", "-t 1"}, 2) {
		v.change(i)
		env := []string{"GATE_CACHE=" + t.TempDir(), "GOMAXPROCS=2"}
		code, out, said := v.status(env, "sh", "-c", "ulimit "+limit+"; exec gate check")
		if strings.Contains(said, "runtime: ") || code == 128+int(unix.SIGXCPU) || code == 128+int(unix.SIGXFSZ) || code < 0 {
			t.Logf("ulimit %s: gate itself cannot run: exit status %d", limit, code)
			failed++
			continue
		}
		v.spoiled("ulimit "+limit, code, out+said)
		if code == 3 {
			failed++
		}
		if code, out, said := v.status(env, "gate", "check"); code != 0 {
			t.Errorf("after ulimit %s: exit status %d\n%s%s", limit, code, out, said)
		}
	}
	if failed < 2 {
		t.Errorf("only %d limits were felt", failed)
	}
}

// stages are the programs of a compilation, below the toolkit, or of the host
// compiler.
var stages = []string{"ld", "bin/ptxas", "bin/cudafe++", "nvvm/bin/cicc", "bin/fatbinary", "bin/nvlink", "cc1plus", "as"}

// TestStagesKilled kills each program of a compilation as soon as it starts.
func TestStagesKilled(t *testing.T) {
	takesLong(t)
	v := newVictim(t)
	root := t.TempDir()
	copyToolkit(t, lab.cudaHome, root)
	bin := filepath.Join(root, "host")
	host, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++")
	}
	script := func(path, text string) {
		os.Remove(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script(filepath.Join(bin, "g++"), "exec "+host+" -B"+bin+"/parts/ \"$@\"\n")
	env := []string{"CUDA_HOME=" + root, "GATE_CACHE=" + t.TempDir(), "GATE_CONFINE=off", "FAKE_GPU=", "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}
	if code, out, said := v.status(env, "gate", "check"); code != 4 {
		t.Fatalf("with a copy of the toolkit: exit status %d\n%s%s", code, out, said)
	}
	n := 0
	for _, stage := range some(stages, 2) {
		for _, signal := range some([]string{"KILL", "TERM"}, 1) {
			n++
			path := filepath.Join(root, stage)
			if !strings.Contains(stage, "/") {
				path = filepath.Join(bin, "parts", stage)
			}
			real, _ := os.Readlink(path)
			script(path, `case "$*" in *--version*|*-V*) exec `+filepath.Join(root, "real", filepath.Base(stage))+` "$@" ;; esac`+"\nkill -"+signal+" $$\n")
			v.change(n)
			code, out, said := v.status(env, "gate", "check")
			v.spoiled(stage+" ended by "+signal, code, out+said)
			if code != 3 && stage != "bin/nvlink" { // which only relocatable code needs
				t.Errorf("%s ended by %s: exit status %d\n%s%s", stage, signal, code, out, said)
			}
			os.Remove(path)
			if real != "" {
				if err := os.Symlink(real, path); err != nil {
					t.Fatal(err)
				}
			}
			if code, out, said := v.status(env, "gate", "check"); code != 4 {
				t.Errorf("after that: exit status %d\n%s%s", code, out, said)
			}
		}
	}
}

// copyToolkit makes a toolkit of links, but for nvcc, which looks for the others
// beside itself.
func copyToolkit(t *testing.T, from, to string) {
	t.Helper()
	for _, dir := range []string{"bin", "nvvm/bin", "real"} {
		if err := os.MkdirAll(filepath.Join(to, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(from, to string) {
		if err := os.Symlink(from, to); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "nvvm/bin", "nvvm", "."} {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "nvcc" || e.Name() == "nvcc.profile" {
				data, err := os.ReadFile(filepath.Join(from, dir, e.Name()))
				if err == nil {
					err = os.WriteFile(filepath.Join(to, dir, e.Name()), data, 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			link(filepath.Join(from, dir, e.Name()), filepath.Join(to, dir, e.Name()))
		}
	}
	for _, stage := range stages {
		if strings.Contains(stage, "/") {
			link(filepath.Join(from, stage), filepath.Join(to, "real", filepath.Base(stage)))
		}
	}
}

func lines(text string) []string { return strings.Split(text, "\n") }
