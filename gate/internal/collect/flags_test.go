package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/toolchain"
	"github.com/kernelgate/gate/kernels/harness"
)

// parserMain is a program around the harness's own parser, which needs no GPU.
const parserMain = `#include <cstdio>
#include "failure.h"
#include "options.h"
int main(int argc, char** argv) {
  try {
    if (argc > 1) parse({argv + 1, argv + argc});
    else parse(arguments(0));
  } catch (const Failure& failure) {
    std::puts(failure.message.c_str());
    return 2;
  }
}
`

// harnessParser compiles the parser of the real harness. What it returns says
// what the parser refuses about arguments, "" for nothing: on the command line, and in
// standard input as gate writes them there.
func harnessParser(t *testing.T) func(args []string) string {
	t.Helper()
	cache, err := toolchain.CacheDir(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.Find(context.Background(), toolchain.Options{Env: os.Getenv, CacheDir: cache})
	if err != nil && os.Getenv("GATE_REQUIRE_NVCC") != "1" {
		t.Skipf("no CUDA compiler: %v", err)
	}
	if err != nil {
		t.Fatalf("GATE_REQUIRE_NVCC=1: %v", err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, harness.Files); err != nil {
		t.Fatal(err)
	}
	source, program := filepath.Join(dir, "parser_main.cc"), filepath.Join(dir, "parser")
	if err := os.WriteFile(source, []byte(parserMain), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tools.NVCC, "-ccbin", tools.HostCompiler, "-x", "c++", "-std=c++17", "-I", dir, filepath.Join(dir, "options.cu"), source, "-o", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args []string) string {
		said := func(cmd *exec.Cmd) string {
			out, err := cmd.CombinedOutput()
			if err == nil {
				return ""
			}
			return fmt.Sprintf("%v: %s", err, out)
		}
		byInput := exec.Command(program)
		byInput.Stdin = asInput(args)
		onLine, inInput := said(exec.Command(program, args...)), said(byInput)
		if onLine != inInput {
			t.Errorf("%q: %q on the command line, and %q in standard input", args, onLine, inInput)
		}
		return onLine
	}
}

// opWith loads an op whose op.yaml holds a tolerance, with names and sizes at
// the ends of what is allowed.
func opWith(t *testing.T, tolerance string) (*manifest.Kernel, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"kernels/op/op.yaml": "op: op\nsources: [op.cc]\ndims: [N, 9.x-_]\ncases:\n  small: {N: 1, 9.x-_: 2147483648}\n  " + strings.Repeat("a", 60) + ".b-_: {N: 8, 9.x-_: 8}\n" +
			"tolerance: {" + tolerance + "}\n",
		"kernels/op/op.cc": "", "kernels/op/k/k.cu": "",
		"kernels/op/k/kernel.yaml": "op: op\nsources: [k.cu]\narch: [sm_90]\ncases: [small, " + strings.Repeat("a", 60) + ".b-_]\n",
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	set, err := manifest.Load(root, []string{"kernels/**/kernel.yaml"})
	if err != nil {
		return nil, err
	}
	return set.Kernels[0], nil
}

// sent are the argument lists that a bench hands to its harness, in all modes.
func sent(t *testing.T, k *manifest.Kernel) [][]string {
	t.Helper()
	dir := t.TempDir()
	program, ncu := filepath.Join(dir, "harness"), filepath.Join(dir, "ncu")
	for path, text := range map[string]string{
		program: "#!/bin/sh\n" + askedByInput + "printf '%s\\n' \"$@\" >>" + dir + "/sent\necho >>" + dir + "/sent\nexit 1\n",
		ncu:     "#!/bin/sh\nwhile [ \"$1\" != " + program + " ]; do shift; done\nexec \"$@\"\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := fake(t, "")
	b.program, b.ncu, b.metrics = program, ncu, []string{"ncu.registers_per_thread"}
	b.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	var units []unit
	one, reference := &build.Artifact{Library: "/lib/a=b @c.so"}, &build.Artifact{Library: "/lib/a=b @c.so", Of: k}
	for _, c := range k.Cases {
		for _, role := range []string{"", "sm_90a", "reference:sm_90"} {
			artifact := one
			if strings.HasPrefix(role, "reference:") {
				artifact = reference
			}
			units = append(units, unit{pdl: k.PDL, kernel: k.Name, role: role, op: k.Op, on: c, artifact: artifact})
		}
	}
	ctx := context.Background()
	b.checkUnits(ctx, units)
	b.timeAlone(ctx, units, []evidence.CacheState{evidence.Warm})
	for _, group := range byContender(units) {
		b.profileUnits(ctx, group)
	}
	b.probe(ctx)
	data, err := os.ReadFile(filepath.Join(dir, "sent"))
	if err != nil {
		t.Fatal(err)
	}
	var lists [][]string
	modes, together := map[string]bool{}, 0
	for _, list := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		lists = append(lists, strings.Split(list, "\n"))
		modes[lists[len(lists)-1][0]] = true
		if lists[len(lists)-1][0] == "profile" && strings.Count("\n"+list, "\n--run\n") == len(k.Cases) {
			together++
		}
	}
	if len(k.Cases) < 2 || together != 3 {
		t.Fatalf("%d of 3 contenders were profiled on all of %d cases at once", together, len(k.Cases))
	}
	if len(modes) != 4 || !modes["check"] || !modes["time"] || !modes["profile"] || !modes["device"] {
		t.Fatalf("sent in modes %v", modes)
	}
	return lists
}

// TestHarnessKnowsEveryFlag: what op.yaml accepts and gate sends, the parser of
// the real harness accepts.
func TestHarnessKnowsEveryFlag(t *testing.T) {
	refused := harnessParser(t)
	if why := refused([]string{"device", "--no-such-flag", "1"}); !strings.Contains(why, "unknown flag: --no-such-flag") {
		t.Fatalf("an unknown flag: %q", why)
	}
	accepted := 0
	for _, name := range []string{"relative_error", "max_abs_error", "absolute_error"} {
		for _, value := range []string{"1.0e-3", "0", "-1", "5.0e-324", "0.12345678901234567", "1", "1.0000001", "1.0e+299", ".inf", ".nan"} {
			tolerance := name + ": " + value
			k, err := opWith(t, tolerance)
			if err != nil {
				continue // the user is told
			}
			accepted++
			for _, args := range sent(t, k) {
				if why := refused(args); why != "" {
					t.Errorf("tolerance {%s}: %q: %s", tolerance, args, why)
				}
			}
		}
	}
	if accepted < 4 {
		t.Errorf("op.yaml accepts %d of the tolerances", accepted)
	}
	k, err := opWith(t, "relative_error: 1.0e-3, max_abs_error: 2, between_runs: 1.0e-6}\nexact: [a, b]\ninout: [c]\nalignment: 16\nworkspace: 4096\nwork: {flops: N, unit: f16}\nreference: {rows: 16777216, cases: [small]}\nrepeatable: false # {")
	if err != nil {
		t.Fatal(err)
	}
	k.PDL = true
	for _, args := range sent(t, k) {
		if why := refused(args); why != "" {
			t.Errorf("%q: %s", args, why)
		}
		if args[0] != "check" {
			continue
		}
		all := strings.Join(args, " ")
		for _, want := range []string{"--tolerance between_runs=1e-06,max_abs_error=2,relative_error=0.001", "--exact a --exact b", "--inout c", "--alignment 16", "--workspace 4096", "--work-unit f16", "--varies", "--rows small=16777216", "--pdl op/k", "--reference op/k:reference:sm_90"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q lacks %q", all, want)
			}
		}
		if n := strings.Count(all, "--rows"); n != 1 {
			t.Errorf("rows of %d cases, and one has them: %q", n, all)
		}
		if n := strings.Count(all, "--reference"); n != 1 {
			t.Errorf("%d kernels are called references, and one is a library: %q", n, all)
		}
	}
}
