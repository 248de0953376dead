package nvccflags

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variables are those by which nvcc 13.0.88 takes flags and folders from its
// environment though gate names its host compiler: those of nvcc.profile, and
// those that nvcc asks for itself. Each reaches a command that holds the text
// beside it, so that none may come from outside.
var variables = []struct{ name, value, reaches string }{
	{"NVCC_PREPEND_FLAGS", "-DREACHED", " -D__CUDA_ARCH__=900 "},
	{"NVCC_APPEND_FLAGS", "-DREACHED", " -D__CUDA_ARCH__=900 "},
	{"PTXAS_FLAGS", "REACHED", "#$ ptxas "},
	{"CUDAFE_FLAGS", "REACHED", "#$ cudafe++ "},
	{"NVLINK_FLAGS", "REACHED", "#$ nvlink "},
	{"INCLUDES", "REACHED", " -D__CUDA_ARCH__=900 "},
	{"SYSTEM_INCLUDES", "REACHED", " -D__CUDA_ARCH__=900 "},
	{"LIBRARIES", "REACHED", " -shared "},
	{"LD_LIBRARY_PATH", "REACHED", "#$ LD_LIBRARY_PATH="},
	{"PATH", "REACHED", "#$ PATH="},
	{"TMPDIR", "REACHED", "#$ ptxas "},
}

func TestEnvironmentReachesTheCompiler(t *testing.T) {
	b := newBench(t)
	if err := os.Mkdir(filepath.Join(b.dir, "REACHED"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, v := range variables {
		value := v.value
		if v.name == "PATH" {
			value = b.bin + ":/usr/bin:/bin:REACHED"
		}
		out, err := b.run([]string{v.name + "=" + value}, b.nvcc, "--dryrun", "-ccbin", b.cxx, "-gencode", "arch=compute_90,code=sm_90", "-shared", "./k.cu")
		if err != nil {
			t.Errorf("%s: %v\n%s", v.name, err, out)
		}
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(l string) bool { return strings.Contains(l, "REACHED") && strings.Contains(l, v.reaches) }) {
			t.Errorf("%s does not reach a line with %q; is it still one that nvcc reads?", v.name, v.reaches)
		}
	}
}

var appended = regexp.MustCompile(`(?m)^([A-Z_]+)\s*(?:\+=|=\+)`)

func TestVariablesOfTheProfileAreListed(t *testing.T) {
	_, bin := compiler(t)
	profile, err := os.ReadFile(filepath.Join(bin, "nvcc.profile"))
	if err != nil {
		t.Fatal(err)
	}
	found := appended.FindAllStringSubmatch(string(profile), -1)
	if len(found) < 7 {
		t.Fatalf("nvcc.profile has only %q", found)
	}
	for _, m := range found {
		if !slices.ContainsFunc(variables, func(v struct{ name, value, reaches string }) bool { return v.name == m[1] }) {
			t.Errorf("nvcc.profile takes %s from the environment, which is not listed", m[1])
		}
	}
}
