package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/manifest"
)

func TestLinkerLinesLeaveOutTheCompilers(t *testing.T) {
	output := `./k.cu(8): warning #177-D: variable "x" was declared but never referenced
ptxas info    : 0 bytes gmem
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
/usr/lib/gcc/x86_64-linux-gnu/12/crtbeginS.o
/tmp/out/k.o
/usr/bin/ld: /tmp/out/k.o: in function ` + "`use()':" + `
k.cudafe1.cpp:(.text+0x121): undefined reference to ` + "`missing()'" + `
collect2: error: ld returned 1 exit status
`
	if !linkFault.MatchString(output) || linkFault.MatchString("./k.cu(8): error: expected a \";\"\n") {
		t.Error("what the linker says is not told apart")
	}
	got := string(linkerLines([]byte(output)))
	if strings.Count(got, "\n") != 3 || !strings.Contains(got, "undefined reference") || strings.Contains(got, "ptxas") || strings.Contains(got, "crtbegin") {
		t.Errorf("%s", got)
	}
	if got := string(linkerLines([]byte("nvlink error   : Undefined reference to '_Z1fv' in 'k.o'\nnvlink fatal   : merge_elf failed\n"))); strings.Count(got, "\n") != 2 {
		t.Errorf("%s", got)
	}
}

func TestFilesAreNamedFromTheRoot(t *testing.T) {
	k := &manifest.Kernel{Name: "toy/scale", File: "kernels/toy/scale/kernel.yaml"}
	for in, want := range map[string]string{
		"./scale.cu(10): error: x":                 "kernels/toy/scale/scale.cu(10): error: x",
		"./../shared.h:3:5: error: x":              "kernels/toy/shared.h:3:5: error: x",
		"In file included from ./scale.cu:1:":      "In file included from kernels/toy/scale/scale.cu:1:",
		`1 error in the compilation of "./k.cu".`:  `1 error in the compilation of "kernels/toy/scale/k.cu".`,
		`  text with ./a.cu(1) inside of the line`: `  text with ./a.cu(1) inside of the line`,
	} {
		if got := fromRoot(k, in); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestWarningsAreListedOnce(t *testing.T) {
	log := filepath.Join(t.TempDir(), "ptxas.log")
	text := `./k.cu(8): warning #177-D: variable "x" was declared but never referenced
  int x;
Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"
./k.cu(8): warning #177-D: variable "x" was declared but never referenced
ptxas warning : Stack size for entry function '_Z1kv' cannot be statically determined
./host.h:4:2: warning: unused variable 'y' [-Wunused-variable]
ptxas info    : a warning in the middle
nvcc warning : Support for offline compilation for architectures prior to 'sm_75' will be removed
`
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Warnings(&manifest.Kernel{File: "a/b/kernel.yaml"}, &Artifact{Log: log})
	if err != nil || len(got) != 4 || got[0] != `a/b/k.cu(8): warning #177-D: variable "x" was declared but never referenced` {
		t.Errorf("%d: %q, %v", len(got), got, err)
	}
	if _, err := Warnings(&manifest.Kernel{}, &Artifact{Log: log + "x"}); err == nil {
		t.Error("a log that is not there has no warnings")
	}
}
