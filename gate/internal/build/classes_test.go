package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// TestEveryInputCounts holds what identities once missed: each edit changes
// what runs, and each is a change.
func TestEveryInputCounts(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	w := &bench{root: t.TempDir(), cache: t.TempDir()}
	outside := filepath.Join(w.root, "outside", "outside.h")
	write(t, outside, "#define OUTSIDE 1\n")
	trees := map[string]tree{}
	for _, tr := range toys() {
		trees[tr.name] = tr
	}
	with := func(tr tree, before string, more string) tree {
		tr = tr.clone()
		tr.files["k.cu"] = strings.Replace(tr.files["k.cu"], before, more+before, 1)
		return tr
	}
	const run = `extern "C" int gate_run`
	trees["outside"] = with(trees["plain"], run, fmt.Sprintf("#include %q\nextern \"C\" int out() { return OUTSIDE; }\n", outside))
	allowed := trees["outside"]
	allowed.kernel.Include = append(slices.Clone(allowed.kernel.Include), "../outside")
	trees["outside"] = allowed
	trees["late line"] = with(trees["plain"], run, "extern \"C\" int late() { return __builtin_LINE(); }\n")
	trees["locals"] = with(trees["plain"], run, "__global__ void l1(float* p) { static __device__ float t[2] = {1.25f, 2.5f}; p[0] = t[threadIdx.x]; }\n"+
		"__global__ void l2(float* p) { static __device__ float t[2] = {3.25f, 4.5f}; p[0] = t[threadIdx.x]; }\n")
	late := func(n int) string { // read by the sources too, which see nothing of it
		return fmt.Sprintf("#pragma once\n#include_next <crt/host_defines.h>\n#ifdef FATBINFILE\nstatic int late = %d;\nstatic __attribute__((constructor)) void count() { ++late; }\n#endif\n", n)
	}
	trees["late"] = trees["plain"].clone()
	trees["late"].files["include/crt/host_defines.h"] = late(1)
	bases := map[string]built{}
	for _, c := range []struct {
		in, what string
		edit     func(*tree)
	}{
		{"plain", "a launched kernel outside entries", func(tr *tree) { swap(tr, "k.cu", "= 40.0f;", "= 41.0f;") }},
		{"plain", "bodies of two instantiations exchanged", func(tr *tree) { swap(tr, "k.cu", "if constexpr (Causal)", "if constexpr (!Causal)") }},
		{"locals", "local tables of two kernels exchanged", func(tr *tree) {
			swap(tr, "k.cu", "{1.25f, 2.5f}", "{0, 0}")
			swap(tr, "k.cu", "{3.25f, 4.5f}", "{1.25f, 2.5f}")
			swap(tr, "k.cu", "{0, 0}", "{3.25f, 4.5f}")
		}},
		{"pair", "kernels of one name in two files exchanged", func(tr *tree) {
			swap(tr, "a.cu", "* 2.0f;", "+ 1.0f;")
			swap(tr, "b.cu", "+ 1.0f; }\n// }", "* 2.0f; }\n// }")
		}},
		{"rdc", "device code of a second file", func(tr *tree) { swap(tr, "b.cu", "x * SIZE", "x * 3 * SIZE") }},
		{"plain", "a define that acts on the host", func(tr *tree) { tr.kernel.Flags = append(tr.kernel.Flags, "-DSCALE=900") }},
		{"plain", "the host compiler's optimization", func(tr *tree) { tr.kernel.Flags[0] = "-O0" }},
		{"plain", "an object", func(tr *tree) { tr.rows = strings.Replace(tr.rows, "11", "12", 1) }},
		{"outside", "a header outside the folder of the kernel", func(tr *tree) { write(t, outside, "#define OUTSIDE 2\n") }},
		{"late line", "a line that is put in after the intermediate", func(tr *tree) { tr.files["k.cu"] = "\n" + tr.files["k.cu"] }},
		{"plain", "a header that only nvcc's own files read", func(tr *tree) {
			tr.files["fatbinary_section.h"] = strings.ReplaceAll(late(1), "crt/host_defines.h", "fatbinary_section.h")
		}},
		{"late", "what only nvcc's own files see of a header", func(tr *tree) { tr.files["include/crt/host_defines.h"] = late(2) }},
		{"lines", "a macro before a header of the system", func(tr *tree) { tr.files["k.cu"] = "#define NDEBUG\n" + tr.files["k.cu"] }},
	} {
		if _, ok := bases[c.in]; !ok {
			base, err := w.build(t, trees[c.in])
			if err != nil {
				t.Fatalf("%s: %v", c.in, err)
			}
			bases[c.in] = base
		}
		after := trees[c.in].clone()
		c.edit(&after)
		got, err := w.build(t, after)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got.truth == bases[c.in].truth {
			t.Errorf("%s: the edit changes nothing that runs", c.what)
		}
		if got.id == bases[c.in].id {
			t.Errorf("%s is called unchanged", c.what)
		}
	}
}

func swap(tr *tree, file, before, after string) {
	if !strings.Contains(tr.files[file], before) {
		panic(fmt.Sprintf("%s holds no %q", file, before))
	}
	tr.files[file] = strings.Replace(tr.files[file], before, after, 1)
}

// TestRefusedInput holds what no identity could hold to an exit status and a line.
func TestRefusedInput(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	tools(t)
	own := t.TempDir()
	object := filepath.Join(t.TempDir(), "rows.o")
	source := filepath.Join(t.TempDir(), "rows.cc")
	write(t, source, "int rows() { return 1; }\n")
	if out, err := exec.Command(tools(t).HostCompiler, "-c", "-fPIC", source, "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archive := filepath.Join(t.TempDir(), "librows.a")
	if out, err := exec.Command("ar", "rc", archive, object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	copied := func(from, to string) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data))
	}
	for _, c := range []struct {
		name, more string
		change     func(k *manifest.Kernel)
		status     int
		message    string
	}{
		{name: "fine", more: "int rows(); extern \"C\" int use() { return rows(); }", change: func(k *manifest.Kernel) {
			copied(archive, filepath.Join(k.Dir, "librows.a"))
			k.Libraries = []string{"librows.a"}
		}},
		{name: "incbin", more: "\nasm(\".incbin \\\"k.cu\\\"\");", status: exit.Usage, message: "kernels/op/k/k.cu:8: the assembler's .incbin is refused"},
		{name: "precompiled header", change: func(k *manifest.Kernel) { write(t, filepath.Join(k.Dir, "stddef.h.gch"), "") }, status: exit.Usage,
			message: "kernels/op/k/kernel.yaml: stddef.h.gch lies where headers are searched"},
		{name: "line", more: "\n#line 5 \"/usr/include/stdio.h\"\nint x;", status: exit.Usage, message: "kernels/op/k/k.cu:8: #line moves what follows into /usr/include/stdio.h"},
		{name: "no gate_run", change: func(k *manifest.Kernel) { write(t, filepath.Join(k.Dir, "k.cu"), "__global__ void f() {}\n") }, status: exit.Fail, message: "op/k has no function gate_run"},
		{name: "open symbol", more: "int nowhere(); extern \"C\" int use() { return nowhere(); }", status: exit.Fail, message: "op/k does not link"},
		{name: "object of another kind", change: func(k *manifest.Kernel) {
			write(t, filepath.Join(k.Dir, "rows.o"), "/* GNU ld script */ INPUT(librows.a)\n")
			k.Objects = []string{"rows.o"}
		}, status: exit.Fail, message: "op/k does not link: rows.o is not an object file"},
		{name: "shared library", change: func(k *manifest.Kernel) {
			copied(object, filepath.Join(k.Dir, "librows.a"))
			k.Libraries = []string{"librows.a"}
		}, status: exit.Fail, message: "op/k does not link: librows.a is not a static library"},
		{name: "device code of elsewhere", change: func(k *manifest.Kernel) {
			cmd := exec.Command(tools(t).NVCC, "-ccbin", tools(t).HostCompiler, "-Xcompiler", "-fPIC", "-c", "-o", "rows.o", "j.cu")
			write(t, filepath.Join(k.Dir, "j.cu"), "__global__ void f() {}\n")
			cmd.Dir = k.Dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			k.Objects = []string{"rows.o"}
		}, status: exit.Fail, message: "op/k does not link: rows.o holds code that is not compiled here (section .nv_fatbin)"},
	} {
		root, k := newKernel(t, nil)
		write(t, filepath.Join(k.Dir, "k.cu"), cudaText+c.more+"\n")
		if c.change != nil {
			c.change(k)
		}
		err := newBuilder(t, own).Build(context.Background(), root, []*manifest.Kernel{k})[0].Err
		var compile *CompileError
		status := 0
		if errors.As(err, &compile) {
			status = exit.Fail
		} else if err != nil {
			status, _ = exit.Of(err)
		}
		if status != c.status || err != nil && !strings.HasPrefix(err.Error(), c.message) {
			t.Errorf("%s: status %d, %v, want %d: %s", c.name, status, err, c.status, c.message)
		}
	}
}

// TestFaultOfTheMachine: a compiler that was stopped or had no room is a tool
// that failed; one that crashes over the code is the code's fault.
func TestFaultOfTheMachine(t *testing.T) {
	for said, kernel := range map[string]bool{
		"nvcc error   : 'ptxas' died due to signal 9 (Kill signal)":                false,
		"nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)":   true,
		"collect2: fatal error: ld terminated with signal 9 [Killed]":              false,
		"collect2: fatal error: ld terminated with signal 11 [Segmentation fault]": true,
		"nvcc: Terminated": false,
		"Killed":           false,
		"<built-in>: fatal error: when writing output to k.cpp4.ii: Invalid argument": false,
		"k.cu(3): error: Killed":                                                          true,
		"g++: fatal error: Killed signal terminated program cc1plus":                      false,
		"g++: internal compiler error: Segmentation fault signal terminated program as":   true,
		"/tmp/k.s: Fatal error: can't write 20 bytes to section: No space left on device": false,
		"fatal   : Could not open output file '/x': Too many open files":                  false,
		"ptxas fatal   : Memory allocation failure: out of memory":                        false,
		"cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes":          false,
		"k.cu(3): error: identifier \"x\" is undefined":                                   true,
	} {
		root, k := newKernel(t, nil)
		b := newBuilder(t, t.TempDir())
		fake := filepath.Join(t.TempDir(), "nvcc")
		write(t, fake, "#!/bin/sh\ncat <<'E'\n"+said+"\nE\nexit 1\n")
		if err := os.Chmod(fake, 0o755); err != nil {
			t.Fatal(err)
		}
		tc := *b.Toolchain
		tc.NVCC = fake
		b.Toolchain = &tc
		err := b.Build(context.Background(), root, []*manifest.Kernel{k})[0].Err
		var compile *CompileError
		if status, _ := exit.Of(err); err == nil || errors.As(err, &compile) != kernel || status != exit.Tool {
			t.Errorf("%s: %v, the kernel's fault: %v", said, err, errors.As(err, &compile))
		}
	}
}

// TestNothingLocalCounts builds one commit as two users on two machines would:
// in other folders, with another home, temporary folder and environment.
func TestNothingLocalCounts(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	var first evidence.Identity
	for i, tr := range append(toys()[1:2], toys()[3]) {
		a := &bench{root: t.TempDir(), cache: t.TempDir()}
		b := &bench{root: filepath.Join(t.TempDir(), "deeper", "down"), cache: t.TempDir()}
		one, err := a.build(t, tr)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = one.id
		}
		if two, err := b.build(t, tr); err != nil || two.id != one.id {
			t.Errorf("%s: %v here, %v elsewhere, %v", tr.name, one.id, two.id, err)
		}
	}
	if tools(t).Version != "13.0.88" {
		t.Skip("the ids that are written down are those of 13.0.88")
	}
	if got := first.Short(); got != goldenID {
		t.Errorf("the ids are %s, written down are %s: are they meant to change? Evidence is recorded under them", got, goldenID)
	}
}

// goldenID are the ids of one small kernel. It is the same on every machine.
const goldenID = "v2852f3cc248-v2e9f49431f8"

// TestEnvironmentNeitherActsNorCounts sets the variables that nvcc reads.
func TestEnvironmentNeitherActsNorCounts(t *testing.T) {
	compilesMuch(t)
	root, k := newKernel(t, nil)
	own := t.TempDir()
	for _, name := range []string{"NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "PTXAS_FLAGS", "CUDAFE_FLAGS", "NVLINK_FLAGS", "INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES",
		"CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "DEPENDENCIES_OUTPUT"} {
		t.Setenv(name, "-DSTRANGE")
	}
	first := mustBuild(t, own, root, k)
	for _, name := range []string{"NVCC_APPEND_FLAGS", "PTXAS_FLAGS", "INCLUDES"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	if a := mustBuild(t, own, root, k); !a.Cached || a.Identity != first.Identity {
		t.Errorf("cached: %v, %+v", a.Cached, a.Identity)
	}
}

// TestEveryArchitecture builds a kernel with a little of everything for every
// architecture that the compiler knows, with and without relocatable code.
func TestEveryArchitecture(t *testing.T) {
	compilesMuch(t)
	t.Parallel()
	archs := []string{"sm_75", "sm_90a", "sm_100", "sm_120"}
	if *editCount > 60 {
		archs = strings.Fields("sm_75 sm_80 sm_86 sm_87 sm_88 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103 sm_110 sm_120 sm_120a sm_121")
	}
	own := t.TempDir()
	seen := map[evidence.Identity]string{}
	for _, flags := range [][]string{nil, {"-rdc=true"}} {
		root, k := newKernel(t, func(k *manifest.Kernel) { k.Flags, k.Arch = flags, archs })
		write(t, filepath.Join(k.Dir, "k.cu"), `#include <cassert>
__constant__ float bank[64];
namespace { __device__ int counter; }
__device__ __noinline__ int deep(int n) { volatile int a[8]; a[n & 7] = n; return n < 2 ? a[n & 7] : deep(n - 1) + deep(n - 2); }
__global__ void shared(float* p) { __shared__ float s[300]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = s[299 - threadIdx.x] + bank[3]; }
__global__ void stack(float* p, int n) { float a[100]; for (int i = 0; i < 100; i++) a[i] = p[i] * n; p[0] = a[n]; assert(n > 0); atomicAdd(&counter, deep(n)); }
extern "C" int gate_run(float* p) { shared<<<1, 300>>>(p); stack<<<1, 1>>>(p, 2); return 0; }
`)
		for _, r := range newBuilder(t, own).Build(context.Background(), root, []*manifest.Kernel{k}) {
			if r.Err != nil {
				t.Errorf("%s %v: %v", r.Arch, flags, r.Err)
				continue
			}
			if other := seen[r.Artifact.Identity]; other != "" || len(r.Artifact.Entries) != 2 {
				t.Errorf("%s %v: the ids of %q, entries %v", r.Arch, flags, other, r.Artifact.Entries)
			}
			seen[r.Artifact.Identity] = r.Arch
		}
	}
}
