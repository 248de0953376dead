package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var kills = flag.Int("kills", 30, "kill gate so many times")

// A victim is a repository with a simulated GPU, in which gate is killed.
type victim struct {
	*testing.T
	dir, cache string
	mark       string // in the environment of every process that gate starts here
	env        []string
}

// fakePip stands for a python3 whose pip downloads nothing: the compiler that it
// installs is the one that is installed already.
const fakePip = `#!/bin/sh
case "$*" in "-c import sys, pip"*) echo "$0"; exit ;; esac
while [ $# -gt 0 ]; do [ "$1" = --target ] && target=$2; shift; done
mkdir -p "$target" && echo half >"$target/half" && sleep 0.3 && rm "$target/half" && cp -al %q/nvidia "$target"
`

func newVictim(t *testing.T) victim {
	needCompiler(t)
	v := victim{T: t, dir: filepath.Join(t.TempDir(), "repo"), cache: t.TempDir(), mark: fakeUUID(t.TempDir())}
	bin := t.TempDir()
	v.env = append(os.Environ(), "GATE_CACHE="+v.cache, "CUDA_HOME="+filepath.Join(lab.dir, "cuda"), "HOME="+t.TempDir(), "GATE_NVML=off",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "FAKE_GPU="+v.mark, "FAKE_GPU_NAME=NVIDIA H200",
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if err := os.CopyFS(v.dir, os.DirFS("testdata/script/repo")); err != nil {
		t.Fatal(err)
	}
	if err := becomeFake(filepath.Join(bin, "ncu")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "python3"), fmt.Appendf(nil, fakePip, filepath.Dir(filepath.Dir(lab.cudaHome))), 0o755); err != nil {
		t.Fatal(err)
	}
	v.run("git", "init", "-q", "-b", "main")
	v.run("git", "add", "-A")
	v.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "start")
	return v
}

func (v victim) command(name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = v.dir, v.env, &out, &out
	cmd.WaitDelay = time.Minute // what a killed gate leaves holds the output open until the next one
	return cmd, &out
}

func (v victim) run(name string, args ...string) {
	v.Helper()
	if cmd, out := v.command(name, args...); cmd.Run() != nil {
		v.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), cmd.ProcessState, out)
	}
}

// change gives gate a kernel that nobody has built or measured.
func (v victim) change(n int) {
	file := filepath.Join(v.dir, "kernels/toy/scale/scale.cu")
	text, err := os.ReadFile("testdata/script/repo/kernels/toy/scale/scale.cu")
	if err != nil {
		v.Fatal(err)
	}
	text = bytes.Replace(text, []byte("2 * in"), fmt.Appendf(nil, "%d * in", n+3), 1)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		v.Fatal(err)
	}
}

// left are processes and temporary files of gate.
func (v victim) left() (found []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	if len(environs) == 0 {
		v.Fatal("no process can be seen")
	}
	for _, e := range environs {
		if text, _ := os.ReadFile(e); bytes.Contains(text, []byte(v.mark)) {
			found = append(found, filepath.Dir(e))
		}
	}
	for _, dir := range []string{v.cache, v.dir} {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && (filepath.Dir(path) == filepath.Join(v.cache, "tmp") || strings.HasPrefix(e.Name(), ".tmp-")) {
				found = append(found, path)
			}
			return err
		})
	}
	return found
}

// files are the files below a folder with their content.
func (v victim) files(dir string) (list []string) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		list = append(list, path+"\x00"+string(data))
		return err
	})
	if err != nil || len(list) == 0 {
		v.Fatalf("%s: %d files, %v", dir, len(list), err)
	}
	return list
}

// TestKills kills gate without a warning at any moment of its work. The next
// run succeeds, and after it nothing of the killed one is left.
func TestKills(t *testing.T) {
	takesLong(t)
	v := newVictim(t)
	git := v.files(filepath.Join(v.dir, ".git"))
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	work := [][]string{{"check"}, {"baseline", "record", "--store", filepath.Join(v.cache, "store")}, {"calibrate", "toy/scale"}, {"toolchain", "install"}}
	if filepath.Base(filepath.Dir(lab.cudaHome)) != "nvidia" {
		t.Logf("gate toolchain install is left out: %s is not of the form that pip installs", lab.cudaHome)
		work = work[:3]
	}
	whole, interrupted := make([]time.Duration, len(work)), make([]int, len(work))
	v.run("gate", "check")
	for i := range *kills + len(work) { // the first of each kind is measured and not killed
		kind := i % len(work)
		v.change(i)
		if err := os.RemoveAll(filepath.Join(v.cache, "toolchains")); err != nil {
			t.Fatal(err)
		}
		if whole[kind] == 0 {
			start := time.Now()
			v.run("gate", work[kind]...)
			whole[kind] = time.Since(start)
			continue
		}
		took, early := v.kill(time.Duration(random.Int64N(int64(whole[kind]))), work[kind])
		whole[kind] = (whole[kind] + took) / 2
		if early {
			interrupted[kind]++
		}
	}
	if !slices.Equal(v.files(filepath.Join(v.dir, ".git")), git) {
		t.Error("git's folder is another")
	}
	sum := 0
	for i, n := range interrupted {
		t.Logf("gate %s: %d of %d kills came before its end", work[i][0], n, (*kills+len(work)-1-i)/len(work))
		sum += n
	}
	if sum < *kills/2 {
		t.Errorf("only %d of %d kills came before the end", sum, *kills)
	}
}

// kill kills gate some time after its start and runs it again. It says how long
// the second run took, and whether the first had not ended.
func (v victim) kill(after time.Duration, args []string) (took time.Duration, early bool) {
	v.Helper()
	cmd, out := v.command("gate", args...)
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	time.Sleep(after)
	cmd.Process.Kill()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		v.Fatal(err)
	}
	start := time.Now()
	v.run("gate", args...)
	took = time.Since(start)
	cmd.Wait()
	if left := v.left(); len(left) > 0 {
		v.Errorf("killed %v after its start, %q: %q is left\n%s", after, args, left, out)
	}
	return took, cmd.ProcessState.ExitCode() < 0
}
