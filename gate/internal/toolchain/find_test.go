package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// house is a machine with a compiler in every place, each of another build.
type house struct {
	flag, home, path, host, cache string
}

func newHouse(t *testing.T) house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := house{
		flag:  fakeCUDA(t, filepath.Join(dir, "flag"), "b/flag"),
		home:  fakeCUDA(t, filepath.Join(dir, "home"), "b/home"),
		path:  fakeCUDA(t, filepath.Join(dir, "path"), "b/path"),
		host:  filepath.Join(dir, "host"),
		cache: filepath.Join(dir, "cache"),
	}
	write(t, filepath.Join(h.host, "g++"), script(gxxBanner), 0o755)
	final := fakeWheels(t, installDir(h.cache), pinnedBuild)
	if err := os.Symlink("lib", filepath.Join(rootIn(final), "lib64")); err != nil {
		t.Fatal(err)
	}
	if err := writeMarker(final); err != nil {
		t.Fatal(err)
	}
	return h
}

// systemPath holds what the fake scripts need and, as is checked, no nvcc.
const systemPath = "/usr/bin:/bin"

func TestFindOrder(t *testing.T) {
	if p := lookPath("nvcc", systemPath); p != "" {
		t.Skipf("%s would be found in every case", p)
	}
	h := newHouse(t)
	nvcc := filepath.Join(h.flag, "bin/nvcc")
	withPath := filepath.Join(h.path, "bin") + ":" + h.host + ":" + systemPath
	without := h.host + ":" + systemPath
	for _, c := range []struct {
		name   string
		o      Options
		source Source
		build  string
	}{
		{"flag before all", Options{NVCC: nvcc, Env: environment("CUDA_HOME", h.home, "PATH", withPath), CacheDir: h.cache}, sourceFlag, "b/flag"},
		{"flag before a wrong CUDA_HOME", Options{NVCC: nvcc, Env: environment("CUDA_HOME", "/nowhere", "PATH", withPath)}, sourceFlag, "b/flag"},
		{"flag by name", Options{NVCC: "nvcc", Env: environment("PATH", withPath)}, sourceFlag, "b/path"},
		{"CUDA_HOME before PATH", Options{Env: environment("CUDA_HOME", h.home, "PATH", withPath), CacheDir: h.cache}, sourceCUDAHome, "b/home"},
		{"PATH before the cache", Options{Env: environment("PATH", withPath), CacheDir: h.cache}, sourcePath, "b/path"},
		{"the cache last", Options{Env: environment("PATH", without), CacheDir: h.cache}, sourceCache, pinnedBuild},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(context.Background(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Source != c.source || got.Build != c.build {
				t.Errorf("found %s from %s, want %s from %s", got.Build, got.Source, c.build, c.source)
			}
			if got.HostCompiler != filepath.Join(h.host, "g++") || got.HostVersion != "g++ (Debian 12.2.0-14+deb12u1) 12.2.0" {
				t.Errorf("host compiler %q %q", got.HostCompiler, got.HostVersion)
			}
			if got.Ptxas != filepath.Join(got.Root, "bin/ptxas") || got.CuObjDump != filepath.Join(got.Root, "bin/cuobjdump") {
				t.Errorf("tools are not those beside nvcc: %+v", got)
			}
			if want := []string{filepath.Join(got.Root, "include"), filepath.Join(got.Root, "include/cccl")}; !slices.Equal(got.Include, want) {
				t.Errorf("include %q, want %q", got.Include, want)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	path := filepath.Join(h.path, "bin") + ":" + h.host + ":" + systemPath
	failing := write(t, filepath.Join(dir, "failing/bin/nvcc"), "#!/bin/sh\necho 'cannot open shared object file' >&2\nexit 127\n", 0o755)
	alien := write(t, filepath.Join(dir, "alien/bin/nvcc"), script("nvcc 1.0, not NVIDIA's\n"), 0o755)
	plain := write(t, filepath.Join(dir, "plain/bin/nvcc"), "text", 0o644)
	noPtxas := fakeCUDA(t, filepath.Join(dir, "noptxas"), "b/x")
	if err := os.Remove(filepath.Join(noPtxas, "bin/ptxas")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		want string // in the error's text
	}{
		{"flag names nothing", Options{NVCC: "/nowhere/nvcc", Env: environment("PATH", path)}, "nvcc from flag is not usable: /nowhere/nvcc: no such file"},
		{"flag names no program on PATH", Options{NVCC: "nvcc-99", Env: environment("PATH", path)}, "no such program on PATH"},
		{"flag names a folder", Options{NVCC: h.flag, Env: environment("PATH", path)}, "it is not a program file"},
		{"flag names a text file", Options{NVCC: plain, Env: environment("PATH", path)}, "it cannot be executed"},
		{"flag names another program", Options{NVCC: alien, Env: environment("PATH", path)}, "has no line"},
		{"CUDA_HOME is wrong", Options{Env: environment("CUDA_HOME", "/nowhere", "PATH", path), CacheDir: h.cache}, "nvcc from CUDA_HOME is not usable: /nowhere/bin/nvcc"},
		{"CUDA_HOME's nvcc fails", Options{Env: environment("CUDA_HOME", filepath.Dir(filepath.Dir(failing)), "PATH", path)}, "cannot open shared object file"},
		{"no ptxas", Options{Env: environment("CUDA_HOME", noPtxas, "PATH", path)}, "ptxas from CUDA_HOME is not usable"},
		{"the first nvcc on PATH fails", Options{Env: environment("PATH", filepath.Dir(failing)+":"+path), CacheDir: h.cache}, "nvcc from PATH is not usable"},
		{"NVCC_CCBIN is wrong", Options{NVCC: filepath.Join(h.flag, "bin/nvcc"), Env: environment("PATH", path, "NVCC_CCBIN", "/nowhere")}, "host compiler from NVCC_CCBIN is not usable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(context.Background(), c.o)
			if got != nil || err == nil {
				t.Fatalf("found %+v", got)
			}
			var u *UnusableError
			if !errors.As(err, &u) {
				t.Fatalf("error is %T: %v", err, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestEndlessVersionIsRefused(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "nvcc"), "#!/bin/sh\nexec head -c 5000000 /dev/zero\n", 0o755)
	if text, err := askVersion(context.Background(), path); text != "" || err == nil || !strings.Contains(err.Error(), "it printed more than 16384 bytes") {
		t.Errorf("kept %d bytes; %v", len(text), err)
	}
}

func TestFindNothing(t *testing.T) {
	h := newHouse(t)
	bin := filepath.Join(h.path, "bin")
	t.Chdir(filepath.Dir(bin))
	for name, o := range map[string]Options{
		"zero options":          {},
		"empty cache":           {Env: environment("PATH", h.host), CacheDir: t.TempDir()},
		"relative PATH entries": {Env: environment("PATH", "bin:.:"+h.host)},
		"no host compiler":      {Env: environment("PATH", bin)},
	} {
		got, err := Find(context.Background(), o)
		var n *NotFoundError
		if got != nil || !errors.As(err, &n) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		} else if n.Advice == "" {
			t.Errorf("%s: no hint", name)
		}
	}
}

func TestDamagedCacheIsAnError(t *testing.T) {
	root := func(h house) string { return rootIn(installDir(h.cache)) }
	for name, damage := range map[string]func(h house) error{
		"file gone":    func(h house) error { return os.Remove(filepath.Join(root(h), "nvvm/bin/cicc")) },
		"file short":   func(h house) error { return os.Truncate(filepath.Join(root(h), "lib/libcudart_static.a"), 1) },
		"marker gone":  func(h house) error { return os.Remove(filepath.Join(installDir(h.cache), markerFile)) },
		"marker short": func(h house) error { return os.Truncate(filepath.Join(installDir(h.cache), markerFile), 10) },
		"marker huge":  func(h house) error { return os.Truncate(filepath.Join(installDir(h.cache), markerFile), markerLimit+1) },
		"other lock": func(h house) error {
			path := filepath.Join(installDir(h.cache), markerFile)
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), lockSHA256(), strings.Repeat("0", 64))), 0o644)
		},
		"link lost":      func(h house) error { return os.Remove(filepath.Join(root(h), "lib64")) },
		"folder emptied": func(h house) error { return os.RemoveAll(filepath.Join(installDir(h.cache), "nvidia")) },
	} {
		h := newHouse(t)
		if err := damage(h); err != nil {
			t.Fatal(err)
		}
		_, err := Find(context.Background(), Options{Env: environment("PATH", h.host), CacheDir: h.cache})
		var u *UnusableError
		if !errors.As(err, &u) || u.Advice != installHint {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestWarmFindStartsNoProcess(t *testing.T) {
	h := newHouse(t)
	o := Options{Env: environment("CUDA_HOME", h.home, "PATH", h.host+":"+systemPath), CacheDir: h.cache}
	nvcc, gxx := filepath.Join(h.home, "bin/nvcc"), filepath.Join(h.host, "g++")
	find := func(wantCalls int) *Toolchain {
		t.Helper()
		got, err := Find(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := calls(t, nvcc), calls(t, gxx); a != wantCalls || b != 5 {
			t.Fatalf("nvcc was asked %d times, want %d; g++ %d times, want 5", a, wantCalls, b)
		}
		return got
	}
	cold := find(1)
	if warm := find(1); warm.Fingerprint() != cold.Fingerprint() {
		t.Error("the fingerprint changed by itself")
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(nvcc, later, later); err != nil {
		t.Fatal(err)
	}
	find(2)
	write(t, nvcc, script(strings.ReplaceAll(nvccBanner, pinnedBuild, "b/other")), 0o755)
	if got := find(3); got.Build != "b/other" || got.Fingerprint() == cold.Fingerprint() {
		t.Errorf("a replaced nvcc is taken for the old one: %s", got.Build)
	}
}

func TestCorruptVersionCacheIsAskedAgain(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "null": "null", "list": "[]", "other": `{"a":{"size":"x"}}`,
	} {
		h := newHouse(t)
		write(t, filepath.Join(h.cache, "versions.json"), content, 0o644)
		o := Options{Env: environment("CUDA_HOME", h.home, "PATH", h.host+":"+systemPath), CacheDir: h.cache}
		for range 2 {
			if got, err := Find(context.Background(), o); err != nil || got.Build != "b/home" {
				t.Errorf("%s: got %+v, error %v", name, got, err)
			}
		}
		if n := calls(t, filepath.Join(h.home, "bin/nvcc")); n != 1 {
			t.Errorf("%s: nvcc was asked %d times: the file was not repaired", name, n)
		}
	}
}

func TestForgedAnswerIsAskedAgain(t *testing.T) {
	h := newHouse(t)
	o := Options{Env: environment("CUDA_HOME", h.home, "PATH", h.host+":"+systemPath), CacheDir: h.cache}
	if _, err := Find(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.cache, "versions.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.ReplaceAll(string(data), "Cuda compilation tools", "x"), 0o644)
	if _, err := Find(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if n := calls(t, filepath.Join(h.home, "bin/nvcc")); n != 2 {
		t.Errorf("nvcc was asked %d times, want 2", n)
	}
}

func TestUnwritableCacheIsNoError(t *testing.T) {
	h := newHouse(t)
	file := write(t, filepath.Join(t.TempDir(), "file"), "", 0o644)
	o := Options{NVCC: filepath.Join(h.home, "bin/nvcc"), Env: environment("PATH", h.host+":"+systemPath), CacheDir: filepath.Join(file, "cache")}
	if _, err := Find(context.Background(), o); err != nil {
		t.Error(err)
	}
}

func TestHostCompilerByVariable(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	named := write(t, filepath.Join(dir, "g++"), script("g++ (other) 13.1.0\n"), 0o755)
	for value, want := range map[string]string{dir: named, named: named, "g++": filepath.Join(h.host, "g++"), "": filepath.Join(h.host, "g++")} {
		got, err := FindHostCompiler(context.Background(), Options{Env: environment("NVCC_CCBIN", value, "PATH", h.host+":"+systemPath)})
		if err != nil || got.Path != want {
			t.Errorf("NVCC_CCBIN=%s: got %+v, %v", value, got, err)
		}
	}
	for _, value := range []string{"/nowhere", "g++-of-nowhere", h.home} {
		if got, err := FindHostCompiler(context.Background(), Options{Env: environment("NVCC_CCBIN", value, "PATH", h.host+":"+systemPath)}); err == nil {
			t.Errorf("NVCC_CCBIN=%s: got %+v", value, got)
		}
	}
}

func TestFingerprint(t *testing.T) {
	base := Toolchain{Version: "13.0.88", Build: "n", PtxasBuild: "p", CiccSHA256: "c", HostVersion: "h", NVCC: "/a", Root: "/a", HostCompiler: "/a"}
	moved := base
	moved.NVCC, moved.Root, moved.HostCompiler, moved.Source = "/b", "/b", "/b", sourceCache
	if moved.Fingerprint() != base.Fingerprint() {
		t.Error("the fingerprint depends on a path")
	}
	seen := map[string]bool{base.Fingerprint(): true}
	for i, change := range []func(*Toolchain){
		func(t *Toolchain) { t.Version = "x" }, func(t *Toolchain) { t.Build = "x" },
		func(t *Toolchain) { t.PtxasBuild = "x" }, func(t *Toolchain) { t.CiccSHA256 = "x" },
		func(t *Toolchain) { t.CiccSHA256 = "" }, func(t *Toolchain) { t.HostVersion = "x" },
		func(t *Toolchain) { t.HostVersion = "" },
	} {
		other := base
		change(&other)
		if seen[other.Fingerprint()] {
			t.Errorf("change %d does not change the fingerprint", i)
		}
		seen[other.Fingerprint()] = true
	}
}

func TestCacheDir(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string // "" is an error
	}{
		{[]string{"GATE_CACHE", "/g", "XDG_CACHE_HOME", "/x", "HOME", "/h"}, "/g"},
		{[]string{"XDG_CACHE_HOME", "/x", "HOME", "/h"}, "/x/gate"},
		{[]string{"XDG_CACHE_HOME", "x", "HOME", "/h"}, "/h/.cache/gate"},
		{[]string{"HOME", "/h"}, "/h/.cache/gate"},
		{[]string{"GATE_CACHE", "g", "HOME", "/h"}, ""},
		{nil, ""},
	} {
		got, err := CacheDir(environment(c.env...))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: got %q, %v, want %q", c.env, got, err, c.want)
		}
	}
}

func TestFindTool(t *testing.T) {
	h := newHouse(t)
	const ncu = "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\nVersion 2025.3.1.0 (build 36398880) (public-release)\n"
	bin := filepath.Dir(write(t, filepath.Join(t.TempDir(), "ncu"), script(ncu), 0o755))
	got, err := FindTool(context.Background(), "ncu", Options{Env: environment("PATH", bin+":"+systemPath), CacheDir: h.cache})
	if err != nil || got.Version != "2025.3.1.0" || got.Path != filepath.Join(bin, "ncu") {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = FindTool(context.Background(), "ncu-of-nowhere", Options{Env: environment("PATH", bin)})
	var n *NotFoundError
	if !errors.As(err, &n) {
		t.Errorf("error %v", err)
	}
}

func TestCompareVersions(t *testing.T) {
	in := []string{"2025.10.0", "2025.3.1", "2024.1", "2025.3"}
	slices.SortFunc(in, compareVersions)
	if want := []string{"2024.1", "2025.3", "2025.3.1", "2025.10.0"}; !slices.Equal(in, want) {
		t.Errorf("got %q", in)
	}
}

// BenchmarkFindWarm is the cost that every check pays for its compiler.
func BenchmarkFindWarm(b *testing.B) {
	root := os.Getenv("CUDA_HOME")
	if root == "" {
		b.Skip("CUDA_HOME is not set")
	}
	o := Options{Env: os.Getenv, CacheDir: b.TempDir()}
	if _, err := Find(context.Background(), o); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Find(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	}
}
