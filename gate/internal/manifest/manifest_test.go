package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

const (
	opText = `op: sum
sources: [sum.cc]
dims: [N, M]
cases:
  small: {N: 4, M: 8}
  large: {N: 4096, M: 8}
tolerance: {relative_error: 1.0e-3}
`
	kernelText = `op: sum
sources: [k.cu]
arch: [sm_90]
flags: [-O3]
entries: ["sum_*"]
cases: [small]
`
)

// A tree is a folder of files.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// plain is a tree of one op with one kernel, with changes.
func plain(change map[string]string) map[string]string {
	files := map[string]string{
		"kernels/sum/op.yaml": opText, "kernels/sum/sum.cc": "", "kernels/sum/one/kernel.yaml": kernelText, "kernels/sum/one/k.cu": "",
	}
	for name, text := range change {
		files[name] = text
	}
	return files
}

var everything = []string{"kernels/**/kernel.yaml"}

func kernelNames(s *Set) string {
	var names []string
	for _, k := range s.Kernels {
		names = append(names, k.Name)
	}
	return strings.Join(names, " ")
}

func TestLoad(t *testing.T) {
	root := tree(t, plain(nil))
	s, err := Load(root, everything)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Kernels) != 1 || len(s.Ops) != 1 {
		t.Fatalf("%d kernels, %d ops", len(s.Kernels), len(s.Ops))
	}
	k := s.Kernels[0]
	if k.Name != "sum/one" || k.File != "kernels/sum/one/kernel.yaml" || k.Dir != filepath.Join(root, "kernels/sum/one") || k.Op != s.Ops[0] {
		t.Errorf("%+v", k)
	}
	if fmt.Sprint(k.Sources, k.Arch, k.Flags, k.Entries, k.Cases) != "[k.cu] [sm_90] [-O3] [sum_*] [small=N:4,M:8]" {
		t.Errorf("%v %v %v %v %v", k.Sources, k.Arch, k.Flags, k.Entries, k.Cases)
	}
	if k.Lines["entries[0]"] != 5 || k.Lines["cases[0]"] != 6 {
		t.Errorf("lines %v", k.Lines)
	}
	op := s.Ops[0]
	if op.Name != "sum" || fmt.Sprint(op.Cases) != "[large=N:4096,M:8 small=N:4,M:8]" || op.Tolerance["relative_error"] != 1e-3 {
		t.Errorf("%+v", op)
	}
}

func TestPatternsChooseKernels(t *testing.T) {
	files := plain(nil)
	for _, dir := range []string{"kernels/sum/two", "kernels/fixtures/bad", "kernels_more/three", "other/four"} {
		files[dir+"/kernel.yaml"], files[dir+"/k.cu"] = kernelText, ""
	}
	root := tree(t, files)
	for _, c := range []struct{ patterns, want string }{
		{"kernels/**/kernel.yaml", "fixtures/bad sum/one sum/two"},
		{"kernels/**/kernel.yaml !kernels/fixtures/**", "sum/one sum/two"},
		{"!kernels/fixtures/** kernels/**/kernel.yaml", "fixtures/bad sum/one sum/two"},
		{"kernels/sum/one/kernel.yaml", "sum/one"},
		{"kernels/**/kernel.yaml kernels/sum/*/kernel.yaml", "fixtures/bad sum/one sum/two"},
		{"kernels/*/two/kernel.yaml kernels_more/*/kernel.yaml", "kernels_more/three sum/two"},
		{"kernels/none/**", ""},
	} {
		s, err := Load(root, strings.Fields(c.patterns))
		if err != nil {
			t.Errorf("%s: %v", c.patterns, err)
			continue
		}
		if got := kernelNames(s); got != c.want {
			t.Errorf("%s: %q, want %q", c.patterns, got, c.want)
		}
	}
	for _, bad := range []string{"../**/kernel.yaml", "/etc/*", "kernels/[", "", "kernels/../../x"} {
		if _, err := Load(root, []string{bad}); err == nil || err.Error() != fmt.Sprintf("%q is not a pattern for files below the root", bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestEveryKernelHasItsOwnName(t *testing.T) {
	files := plain(map[string]string{"kernel.yaml": kernelText, "k.cu": ""})
	s, err := Load(tree(t, files), []string{"**/kernel.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if got := kernelNames(s); got != ". kernels/sum/one" {
		t.Errorf("names %q", got)
	}
}

func replaced(text, old, new string) string {
	if strings.Count(text, old) != 1 {
		panic(old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestKernelRefusals(t *testing.T) {
	for _, c := range []struct{ name, old, new, want, hint string }{
		{"misspelt key", "sources:", "source:", `1:2: unknown key "source"`, `did you mean "sources"?`},
		{"no op", "op: sum\n", "", "1: op is missing: which computation does this kernel implement?", ""},
		{"unknown op", "op: sum", "op: smu", `1:1: unknown op "smu"`, `did you mean "sum"?`},
		{"op far from any", "op: sum", "op: attention", `1:1: unknown op "attention"`, "known: sum"},
		{"no sources", "sources: [k.cu]\n", "", "1: sources needs at least one .cu file", ""},
		{"empty sources", "[k.cu]", "[]", "1:2: sources needs at least one .cu file", ""},
		{"source that is not there", "[k.cu]", "[x.cu]", `1:2: no file "x.cu" in this folder`, `did you mean "k.cu"?`},
		{"source of another ending", "[k.cu]", "[k.cpp]", `1:2: no file "k.cpp" in this folder`, `did you mean "k.cu"?`},
		{"source that is a folder", "[k.cu]", "[.]", `1:2: no file "." in this folder`, ""},
		{"source outside", "[k.cu]", "[../../../../x.cu]", `1:2: "../../../../x.cu" lies outside the repository`, ""},
		{"source twice", "[k.cu]", "[k.cu, k.cu]", `1:2: two files are called "k"`, ""},
		{"two sources of one name", "[k.cu]", "[k.cu, ../two/k.cu]", `1:2: two files are called "k"`, ""},
		{"no arch", "arch: [sm_90]\n", "", "1: arch needs at least one architecture, such as sm_90", ""},
		{"virtual arch", "[sm_90]", "[compute_90]", `1:3: "compute_90" is not an architecture such as sm_90 or sm_90a`, `did you mean "sm_90"?`},
		{"arch as a number", "[sm_90]", "[90]", `1:3: "90" is not an architecture such as sm_90 or sm_90a`, `did you mean "sm_90"?`},
		{"arch without its line", "[sm_90]", "[sm90]", `1:3: "sm90" is not an architecture such as sm_90 or sm_90a`, `did you mean "sm_90"?`},
		{"arch in capitals", "[sm_90]", "[SM_90A]", `1:3: "SM_90A" is not an architecture such as sm_90 or sm_90a`, `did you mean "sm_90a"?`},
		{"compute capability", "[sm_90]", "[12.0]", `1:3: "12.0" is not an architecture such as sm_90 or sm_90a`, `did you mean "sm_120"?`},
		{"arch twice", "[sm_90]", "[sm_90, sm_90]", `1:3: arch names "sm_90" twice`, ""},
		{"arch with more after it", "[sm_90]", `["sm_90,code=sm_70"]`, `1:3: "sm_90,code=sm_70" is not an architecture such as sm_90 or sm_90a`, ""},
		{"no cases", "cases: [small]\n", "", "1: cases needs at least one case of the op", ""},
		{"unknown case", "[small]", "[smal]", `1:6: op sum has no case "smal"`, `did you mean "small"?`},
		{"case twice", "[small]", "[small, small]", `1:6: cases names "small" twice`, ""},
		{"flag of gate's own", "[-O3]", "[-O3, -o, x]", "1:4: -o is refused: gate chooses the files that are written", ""},
		{"flag that runs a command", "[-O3]", `["-DX=$(id)"]`, `1:4: flag "-DX=$(id)" holds '$': a shell reads nvcc's flags, so they hold letters, digits and _-+.,=:/@ alone`, ""},
		{"file among the flags", "[-O3]", "[-O3, sum.o]", `1:4: "sum.o" is not an option; kernel.yaml names files by its other keys, such as sources`, ""},
		{"misspelt flag", "flags: [-O3]", "flags:\n  - -O3\n  - --use-fast-math", `1:6: "--use-fast-math" is not in gate's table of the options of nvcc 13.0.88`, `did you mean "--use_fast_math"?`},
		{"value on a line of its own", "flags: [-O3]", "flags:\n  - -maxrregcount\n  - many", `1:6: -maxrregcount takes a number from 1 to 255, not "many"`, ""},
		{"source for the shell", "[k.cu]", "[$(id).cu]", `1:2: "$(id).cu" holds '$', on which the shell that nvcc starts could act`, ""},
		{"two sources in one name", "[k.cu]", "['k.cu,rows.o']", `1:2: "k.cu,rows.o" holds a comma, at which nvcc splits names`, ""},
		{"source in a folder for the shell", "[k.cu]", "['../`id`/k.cu']", "1:2: \"../`id`/k.cu\" holds '`', on which the shell that nvcc starts could act", ""},
		{"folder of headers outside", "op: sum", "op: sum\ninclude: [../../../..]", `1:2: "../../../.." lies outside the repository`, ""},
		{"folder of headers that is not there", "op: sum", "op: sum\ninclude: [., inc]", `1:2: no folder "inc" in this folder`, ""},
		{"folder of headers that is a file", "op: sum", "op: sum\ninclude: [k.cu]", `1:2: no folder "k.cu" in this folder`, ""},
		{"object that is not there", "op: sum", "op: sum\nobjects: [rows.o]", `1:2: no file "rows.o" in this folder`, ""},
		{"object of another kind", "op: sum", "op: sum\nobjects: [k.cu]", `1:2: "k.cu" is not the name of a .o file`, ""},
		{"shared library", "op: sum", "op: sum\nlibraries: [librows.so]", `1:2: "librows.so" is not the name of a .a file`, ""},
		{"library outside", "op: sum", "op: sum\nlibraries: [../../../../librows.a]", `1:2: "../../../../librows.a" lies outside the repository`, ""},
		{"two folders of headers in one", "op: sum", "op: sum\ninclude: ['.,/etc']", `1:2: ".,/etc" holds a comma, at which nvcc splits names`, ""},
		{"nothing but a comment", kernelText, "# later\n", "1: is empty", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, plain(map[string]string{"kernels/sum/one/kernel.yaml": replaced(kernelText, c.old, c.new)}))
			wantError(t, root, strings.Replace(c.want, "1:", "kernels/sum/one/kernel.yaml:", 1), c.hint)
		})
	}
}

func TestFoldersOfKernelsAreNotForTheShell(t *testing.T) {
	root := tree(t, map[string]string{"kernels/sum/op.yaml": opText, "kernels/sum/sum.cc": "",
		"kernels/sum/a$(id)/kernel.yaml": kernelText, "kernels/sum/a$(id)/k.cu": ""})
	wantError(t, root, `kernels/sum/a$(id)/kernel.yaml: the folder "kernels/sum/a$(id)" holds '$', on which the shell that nvcc starts could act`, "")
}

func TestOpRefusals(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no name", "op: sum\n", "", "1: op needs a name of letters, digits, '_', '.' and '-'"},
		{"name for a path", "op: sum", "op: ../sum", "1:1: op needs a name of letters, digits, '_', '.' and '-'"},
		{"no sources", "[sum.cc]", "[]", "1:2: sources needs at least one file"},
		{"no file", "[sum.cc]", "[mus.cc]", `1:2: no file "mus.cc" in this folder`},
		{"file for the shell", "[sum.cc]", "['a;id.cc']", `1:2: "a;id.cc" holds ';', on which the shell that nvcc starts could act`},
		{"no dims", "[N, M]", "[]", "1:3: dims needs at least one dimension"},
		{"no cases", "cases:\n  small: {N: 4, M: 8}\n  large: {N: 4096, M: 8}\n", "cases: {}\n", "1:4: cases needs at least one case"},
		{"case without a dimension", "small: {N: 4, M: 8}", "small: {N: 4}", `1:5: case "small" does not set dimension M`},
		{"case with one too many", "small: {N: 4, M: 8}", "small: {N: 4, M: 8, K: 1}", `1:5: case "small" sets a dimension that dims does not list`},
		{"size of 0", "{N: 4, M: 8}", "{N: 0, M: 8}", `1:5: case "small" sets N to 0: a size from 1 to 2^31 is needed`},
		{"size below 0", "{N: 4, M: 8}", "{N: -4, M: 8}", `1:5: case "small" sets N to -4: a size from 1 to 2^31 is needed`},
		{"size too large", "{N: 4, M: 8}", "{N: 2147483649, M: 8}", `1:5: case "small" sets N to 2147483649: a size from 1 to 2^31 is needed`},
		{"size of a half", "{N: 4, M: 8}", "{N: 4.5, M: 8}", `1:5: a whole number is needed here, not "4.5"`},
		{"case name for a path", "small:", "../small:", `1:5: "../small" is not a name for a case: letters, digits, '_', '.' and '-'`},
		{"no tolerance", "tolerance: {relative_error: 1.0e-3}\n", "", "1: tolerance needs relative_error or max_abs_error, or exact has to name the outputs that are compared exactly"},
		{"unknown tolerance", "relative_error", "rel_err", `1:7: unknown tolerance "rel_err": the tolerances are relative_error, max_abs_error and, between runs that vary, between_runs`},
		{"tolerance that the harness does not know", "{relative_error: 1.0e-3}", "{relative_error: 1.0e-3, between_runs: 1}", `1:7: tolerance between_runs is for an op that says repeatable: false; of any other, two runs give the same bits`},
		{"tolerance of 0", "1.0e-3", "0", "1:7: tolerance relative_error must be above 0 and at most 1, not 0"},
		{"tolerance below 0", "1.0e-3", "-1", "1:7: tolerance relative_error must be above 0 and at most 1, not -1"},
		{"tolerance above 1", "1.0e-3", "1.001", "1:7: tolerance relative_error must be above 0 and at most 1, not 1.001"},
		{"no work", "tolerance:", "work:\ntolerance:", `1:7: key "work" has no value`},
		{"work of nothing", "tolerance:", "work: {}\ntolerance:", "1:7: work needs bytes, flops or both"},
		{"empty work", "tolerance:", `work: {bytes: "", flops: ""}` + "\ntolerance:", "1:7: work needs bytes, flops or both"},
		{"flops without a unit", "tolerance:", "work: {flops: N}\ntolerance:", "1:7: flops needs a unit, the arithmetic in which they are done: f64, f32, tf32, f16, bf16, f8, i8"},
		{"flops of an unknown unit", "tolerance:", "work: {flops: N, unit: fp16}\ntolerance:", "1:7: flops needs a unit, the arithmetic in which they are done: f64, f32, tf32, f16, bf16, f8, i8"},
		{"a unit of no flops", "tolerance:", "work: {bytes: N, unit: f16}\ntolerance:", "1:7: unit is the arithmetic of flops, and flops is missing"},
		{"work of an unknown dimension", "tolerance:", "work:\n  bytes: 4*N*K\ntolerance:", `1:8: work.bytes, case large: "4*N*K" is not a sum of products of whole numbers and dimensions: "K" is neither a number nor one of N, M`},
		{"work that is subtracted", "tolerance:", "work: {bytes: N-1}\ntolerance:", `1:7: work.bytes, case large: "N-1" is not a sum of products of whole numbers and dimensions: "N-1" is neither a number nor one of N, M`},
		{"work that is too much", "tolerance:", "work: {bytes: N*9007199254740992}\ntolerance:", `1:7: work.bytes, case large: "N*9007199254740992" is above 2^63`},
		{"work of 0", "tolerance:", "work: {bytes: 0*N}\ntolerance:", `1:7: work.bytes, case large: "0*N" is 0: leave out what is not known`},
		{"reference of no rows", "tolerance:", "reference: {}\ntolerance:", "1:7: reference needs rows, the number of rows that are compared"},
		{"reference of few rows", "tolerance:", "reference: {rows: 63}\ntolerance:", "1:7: reference.rows must be a number from 64 to 16777216, not 63"},
		{"reference of a case that there is not", "tolerance:", "reference: {rows: 64, cases: [smal]}\ntolerance:", `1:7: reference.cases: the op has no case "smal"`},
		{"reference of a case twice", "tolerance:", "reference: {rows: 64, cases: [small, small]}\ntolerance:", `1:7: reference.cases names "small" twice`},
		{"reference of no case", "tolerance:", "reference: {rows: 64, cases: []}\ntolerance:", "1:7: reference.cases needs at least one case; without it, rows of every case are drawn"},
		{"tolerance that nothing exceeds", "1.0e-3", ".inf", `1:7: ".inf" is not a finite number: no value would ever exceed it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, plain(map[string]string{"kernels/sum/op.yaml": replaced(opText, c.old, c.new)}))
			wantError(t, root, strings.Replace(c.want, "1:", "kernels/sum/op.yaml:", 1), "")
		})
	}
	root := tree(t, plain(map[string]string{"kernels/mus/op.yaml": opText, "kernels/mus/sum.cc": ""}))
	wantError(t, root, `kernels/sum/op.yaml:1: op "sum" is already defined in kernels/mus/op.yaml`, "")
	root = tree(t, plain(map[string]string{"kernels/sum/op.yaml": replaced(opText, "[N, M]", "[N, M, N]")}))
	wantError(t, root, `kernels/sum/op.yaml:3: dims names "N" twice`, "")
	root = tree(t, plain(map[string]string{"kernels/sum/op.yaml": replaced(opText, "[N, M]", `[N, "M:1,N"]`)}))
	wantError(t, root, `kernels/sum/op.yaml:3: "M:1,N" is not a name for a dimension: letters, digits, '_', '.' and '-'`, "")
}

func TestWork(t *testing.T) {
	text := replaced(opText, "tolerance:", "check_cases:\n  odd: {N: 3, M: 5}\nwork: {bytes: 4*N*M + 8, flops: 2*N, unit: f16}\ntolerance:")
	s, err := Load(tree(t, plain(map[string]string{"kernels/sum/op.yaml": text})), everything)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]roof.Work{"small": {Bytes: 136, Flops: 8, Unit: "f16"}, "large": {Bytes: 131080, Flops: 8192, Unit: "f16"}, "odd": {Bytes: 68, Flops: 6, Unit: "f16"}}
	for _, c := range s.Ops[0].Cases {
		if c.Work != want[c.Name] {
			t.Errorf("case %s: %+v, want %+v", c.Name, c.Work, want[c.Name])
		}
	}
	if len(s.Ops[0].Cases) != len(want) {
		t.Errorf("%d cases", len(s.Ops[0].Cases))
	}
}

func TestRowsOfTheReference(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "[large 0 small 0 odd 0]",
		"reference: {rows: 64}\n": "[large 64 small 64 odd 64]",
		"reference: {rows: 2048, cases: [large]}\n": "[large 2048 small 0 odd 0]",
	} {
		s, err := Load(tree(t, plain(map[string]string{"kernels/sum/op.yaml": replaced(opText, "tolerance:", text+"check_cases:\n  odd: {N: 3, M: 5}\ntolerance:")})), everything)
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for _, c := range s.Ops[0].Cases {
			got = append(got, c.Name, c.Rows)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
}

func wantError(t *testing.T, root, want, hint string) {
	t.Helper()
	s, err := Load(root, everything)
	var e *yamlfile.Error
	if !errors.As(err, &e) || s != nil {
		t.Fatalf("got %v, want a *yamlfile.Error", err)
	}
	if e.Error() != want || e.Advice != hint {
		t.Errorf("got  %s (hint %q)\nwant %s (hint %q)", e, e.Advice, want, hint)
	}
}

func TestLinesPointAtListEntries(t *testing.T) {
	text := "op: sum\nsources:\n  - k.cu\narch:\n  - sm_90\n  - hopper\ncases:\n  - small\n"
	root := tree(t, plain(map[string]string{"kernels/sum/one/kernel.yaml": text}))
	wantError(t, root, `kernels/sum/one/kernel.yaml:6: "hopper" is not an architecture such as sm_90 or sm_90a`, "")
}

// FuzzLoad holds: a kernel.yaml is refused by an *Error of that file, or it
// makes a kernel that can be built and judged: an op, sources below the root,
// architectures, cases of the op, and no flag of gate's own.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(kernelText), []byte(opText))
	f.Add([]byte(replaced(kernelText, "[small]", "[small, large]")), []byte(opText))
	f.Add([]byte("op: sum\nsources: [../one/k.cu]\narch: [sm_90a, sm_100f]\ncases: [large]\n"), []byte(opText))
	f.Add([]byte(kernelText), []byte(replaced(opText, "1.0e-3", ".nan")))
	f.Fuzz(func(t *testing.T, kernel, op []byte) {
		root := tree(t, plain(map[string]string{"kernels/sum/one/kernel.yaml": string(kernel), "kernels/sum/op.yaml": string(op)}))
		s, err := Load(root, everything)
		if err != nil {
			var e *yamlfile.Error
			if !errors.As(err, &e) || e.Msg == "" || !strings.HasSuffix(e.File, ".yaml") || s != nil {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if len(s.Kernels) != 1 {
			t.Fatalf("%d kernels of one file", len(s.Kernels))
		}
		k := s.Kernels[0]
		if k.Op == nil || len(k.Sources) == 0 || len(k.Arch) == 0 || len(k.Cases) == 0 || len(k.Op.Tolerance) == 0 {
			t.Fatalf("%+v cannot be judged", k)
		}
		for _, source := range k.Sources {
			rel, err := filepath.Rel(root, filepath.Join(k.Dir, source))
			if err != nil || !filepath.IsLocal(rel) {
				t.Fatalf("source %q lies outside", source)
			}
		}
		for _, c := range k.Cases {
			for _, d := range c.Dims {
				if d.Size < 1 || !slices.Contains(k.Op.Dims, d.Name) {
					t.Fatalf("case %s", c)
				}
			}
		}
		for _, tolerance := range k.Op.Tolerance {
			if !(tolerance > 0 && tolerance < 1e300*10) {
				t.Fatalf("tolerance %v", tolerance)
			}
		}
	})
}

func TestPatternsSelectFilesCalledKernelYAML(t *testing.T) {
	root := tree(t, plain(map[string]string{"kernels/sum/one/other.yaml": kernelText, "kernels/sum/one/kernel.yaml.orig": "{"}))
	for _, pattern := range []string{"kernels/**", "kernels/**/*.yaml", "kernels/sum/one/*"} {
		if set, err := Load(root, []string{pattern}); err != nil || kernelNames(set) != "sum/one" {
			t.Errorf("%s: %v, %v", pattern, set, err)
		}
	}
	if set, err := Load(root, []string{"kernels/sum/one/other.yaml"}); err != nil || len(set.Kernels) != 0 {
		t.Errorf("a file of another name: %v, %v", set, err)
	}
}

func TestTwoKernelsOfOneNameAreRefused(t *testing.T) {
	root := tree(t, plain(map[string]string{"kernels/kernel.yaml": kernelText, "kernels/k.cu": "",
		"kernels/kernels/kernel.yaml": kernelText, "kernels/kernels/k.cu": ""}))
	wantError(t, root, `kernels/kernels/kernel.yaml:1: kernel "kernels" is already defined in kernels/kernel.yaml`, "a kernel is called by its folder below kernels/")
}
