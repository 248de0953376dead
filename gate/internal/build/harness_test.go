package build

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/kernels/harness"
)

func openHarness(t *testing.T, cache string) *Harness {
	t.Helper()
	h, err := OpenHarness(cache, harness.Files)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHarnessIsUnpackedWhole(t *testing.T) {
	cache := t.TempDir()
	h := openHarness(t, cache)
	header := filepath.Join(h.Include, "gate.h")
	whole, err := os.ReadFile(header)
	if err != nil || len(whole) == 0 {
		t.Fatalf("gate.h: %v", err)
	}
	if again := openHarness(t, cache); again.Include != h.Include {
		t.Errorf("unpacked at %s, then at %s", h.Include, again.Include)
	}
	for name, damage := range map[string]func() error{
		"a file is gone":      func() error { return os.Remove(header) },
		"a file is cut":       func() error { return os.Truncate(header, 10) },
		"the folder is empty": func() error { return errors.Join(os.RemoveAll(h.Include), os.Mkdir(h.Include, 0o755)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		openHarness(t, cache)
		if data, err := os.ReadFile(header); err != nil || string(data) != string(whole) {
			t.Errorf("%s: %v, %d bytes", name, err, len(data))
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "harness", ".unpack-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// anOp is an op of two sources and a header, in a folder of its own.
func anOp(t *testing.T) *manifest.Op {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"op.cc":  "#include \"op.h\"\n#  include <vector>\n# include \"none.h\"\nint f() { return N; }\n",
		"two.cc": "int g() { return 2; }\n", "op.h": "#include \"deep.h\"\n#define N 1\n", "deep.h": "#include \"op.h\"\n", "unused.h": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &manifest.Op{Name: "op", Dir: dir, Sources: []string{"two.cc", "op.cc"}, Tolerance: map[string]float64{"relative_error": 1e-3}}
}

func TestOpFiles(t *testing.T) {
	op := anOp(t)
	files, err := OpFiles(op)
	if err != nil || strings.Join(files, " ") != "deep.h op.cc op.h two.cc" {
		t.Errorf("%v, %v", files, err)
	}
	op.Sources = []string{"gone.cc"}
	if _, err := OpFiles(op); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for line, want := range map[string]string{
		`#include "a.h"`: `"a.h`, `  #  include  "a.h" // x`: `"a.h`, `#include <a.h>`: "<a.h", `#include<a/b.h>`: "<a/b.h", `//#include "a.h"`: "",
		`#include "../a.h"`: `"../a.h`, `#include "a.h`: "", `#include ""`: "", `#include`: "", `#include MACRO`: "", `#define X "a.h"`: "",
	} {
		name, quoted, ok := include(line)
		form := map[bool]string{true: `"`, false: "<"}[quoted]
		if ok != (want != "") || ok && form+name != want {
			t.Errorf("%s: %s%s, %v", line, form, name, ok)
		}
	}
}

// TestOpFilesMissNoHeader: whatever g++ would find in the op's folder is one of
// its files, and what it would find elsewhere in the project is refused.
func TestOpFilesMissNoHeader(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"op/op.cc":        "#include <angled.h>\n#include \"sub/a.h\"\n#include <vector>\n#include \"gate.h\"\n",
		"op/angled.h":     "",
		"op/sub/a.h":      "#include \"b.h\"\n#include \"top.h\"\n#include \"../up.h\"\n",
		"op/sub/b.h":      "",
		"op/top.h":        "",
		"op/up.h":         "",
		"op/outside.cc":   "\n#include \"../common.h\"\n",
		"op/absolute.cc":  "#include \"" + root + "/common.h\"\n",
		"op/sub/leave.cc": "#include <../common.h>\n",
		"common.h":        "",
		"op/looks.cc":     "#if __has_include(\"sub/a.h\")\n#define MORE\n#endif\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	op := &manifest.Op{Name: "op", File: "kernels/op/op.yaml", Dir: filepath.Join(root, "op"), Sources: []string{"op.cc"}}
	if files, err := OpFiles(op); err != nil || strings.Join(files, " ") != "angled.h op.cc sub/a.h sub/b.h top.h up.h" {
		t.Errorf("%v, %v", files, err)
	}
	for source, want := range map[string]string{
		"outside.cc": "kernels/op/outside.cc:2: ../common.h lies outside", "absolute.cc": "kernels/op/absolute.cc:1: " + root + "/common.h lies outside", "sub/leave.cc": "kernels/op/sub/leave.cc:1: ../common.h lies outside",
		"looks.cc": "kernels/op/looks.cc:1: __has_include is refused in an op",
	} {
		op.Sources = []string{source}
		if files, err := OpFiles(op); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v", source, files, err)
		}
	}
}

// TestHarnessIDFollowsWhatJudges: evidence belongs to the harness, the op and
// the case as they were, and to no comment in them.
func TestHarnessIDFollowsWhatJudges(t *testing.T) {
	h := openHarness(t, t.TempDir())
	small := manifest.Case{Name: "small", Dims: []manifest.Dim{{Name: "N", Size: 8}}}
	id := func(op *manifest.Op, c manifest.Case) string {
		t.Helper()
		got, err := h.ID(op, c)
		if err != nil || len(got) != 64 {
			t.Fatalf("%q, %v", got, err)
		}
		return got
	}
	first := id(anOp(t), small)
	write := func(op *manifest.Op, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(op.Dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*manifest.Op, *manifest.Case)
		same   bool
	}{
		{"nothing", func(*manifest.Op, *manifest.Case) {}, true},
		{"a comment", func(op *manifest.Op, _ *manifest.Case) { write(op, "two.cc", "// more\nint g()  { return 2; }\n") }, true},
		{"a header that nobody includes", func(op *manifest.Op, _ *manifest.Case) { write(op, "unused.h", "#define X") }, true},
		{"code of the op", func(op *manifest.Op, _ *manifest.Case) { write(op, "two.cc", "int g() { return 3; }\n") }, false},
		{"a header of a header", func(op *manifest.Op, _ *manifest.Case) { write(op, "deep.h", "#define N 2\n") }, false},
		{"a header that appears", func(op *manifest.Op, _ *manifest.Case) { write(op, "none.h", "") }, false},
		{"a tolerance", func(op *manifest.Op, _ *manifest.Case) { op.Tolerance["relative_error"] = 1e-2 }, false},
		{"another tolerance", func(op *manifest.Op, _ *manifest.Case) { op.Tolerance["max_abs_error"] = 1 }, false},
		{"the least work of the case", func(_ *manifest.Op, c *manifest.Case) { c.Work = roof.Work{Bytes: 8, Flops: 16, Unit: "f16"} }, true},
		{"a size", func(_ *manifest.Op, c *manifest.Case) { c.Dims = []manifest.Dim{{Name: "N", Size: 9}} }, false},
		{"the rows that are compared", func(_ *manifest.Op, c *manifest.Case) { c.Rows = 2048 }, false},
		{"the case's name", func(_ *manifest.Op, c *manifest.Case) { c.Name = "large" }, false},
	} {
		op, kase := anOp(t), small
		c.change(op, &kase)
		if got := id(op, kase); (got == first) != c.same {
			t.Errorf("%s: the id is %s, at first %s", c.name, got, first)
		}
	}
}

func TestMakeBuildsOnce(t *testing.T) {
	h := &Harness{cache: t.TempDir(), shared: t.TempDir()}
	runs := 0
	build := func(out string) error { runs++; return os.WriteFile(out, []byte("x"), 0o755) }
	for range 2 {
		path, err := h.make("tool", build)
		if data, readErr := os.ReadFile(path); err != nil || readErr != nil || string(data) != "x" {
			t.Fatalf("%s, %v, %v", path, err, readErr)
		}
	}
	if runs != 1 {
		t.Errorf("built %d times", runs)
	}
	failed := errors.New("it failed")
	if _, err := h.make("other", func(out string) error { os.WriteFile(out, nil, 0o755); return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.cache, "other*")); len(left) != 0 {
		t.Errorf("a build that failed left something: %v", left)
	}
	if err := os.WriteFile(filepath.Join(h.cache, "tool", "tool"), []byte("damaged"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := h.make("tool", build); err != nil || runs != 2 {
		t.Errorf("damaged: %s, %v, built %d times", path, err, runs)
	}
}

// Who built at the same time keeps the file that the first one published and
// may run already: what confines a program is bound to that file, not its name.
func TestMakeReplacesNothing(t *testing.T) {
	h := &Harness{cache: t.TempDir(), shared: t.TempDir()}
	var first os.FileInfo
	path, err := h.make("tool", func(out string) error {
		path, err := h.make("tool", func(out string) error { return os.WriteFile(out, []byte("x"), 0o755) })
		if err == nil {
			first, err = os.Stat(path)
		}
		return errors.Join(err, os.WriteFile(out, []byte("another build of the same"), 0o755))
	})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(first, now) {
		t.Errorf("the file was replaced, %v", err)
	}
}
