package identity

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// intermediate wraps project text the way nvcc does.
func intermediate(unit, text string) string {
	stem := strings.TrimSuffix(filepath.Base(unit), filepath.Ext(unit))
	return "# 1 \"" + unit + "\"\n" + text + "\n# 1 \"" + stem + ".cudafe1.stub.c\"\n" +
		"#define _NV_ANON_NAMESPACE _GLOBAL__N__864febaa_4_" + stem + "_cu_5176ac7d\n" +
		"#include \"" + stem + ".cudafe1.stub.c\"\n#undef _NV_ANON_NAMESPACE\n"
}

// hostOf is the id of an intermediate without stubs, of the module that intermediate names.
func hostOf(text []byte) (string, error) {
	return Unit{Host: text}.HostID(Modules{"864febaa_4_k_cu_5176ac7d": "k.cu"}, recordedSystem)
}

func hostID(t testing.TB, text string) string {
	t.Helper()
	id, err := hostOf([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(id) != 64 {
		t.Fatalf("id %q", id)
	}
	return id
}

func TestHostIDPairs(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  string
		equal bool
	}{
		{"white space", "f ( 1 ) ;", "f(1);", true},
		{"joined words", "long f;", "longf;", false},
		{"split operator", "a ++ b;", "a + + b;", false},
		{"line markers", "# 9 \"k.cu\"\nf();\n# 20\ng();", "# 3 \"k.cu\" 3\nf();\n#line 7\ng();", true},
		{"system text", "# 1 \"/system/a.h\" 3\nint a;\n# 5 \"k.cu\"\nf();", "# 1 \"/system/b.h\" 3\nint b; 'x\n# 5 \"k.cu\"\nf();", true},
		{"system flag on a project file", "# 1 \"k.cu\" 3\nf();", "# 1 \"k.cu\" 3\ng();", false},
		{"file without a marker of its own", "# 1 \"/system/a.h\"\na\n# 5 \"k.cu\"\nf();", "# 5 \"k.cu\"\nf();", true},
		{"project header", "# 1 \"../inc/a.h\"\nint a = 1;", "# 1 \"../inc/a.h\"\nint a = 2;", false},
		{"folder of a header", "# 1 \"../inc/a.h\"\nint a;", "# 1 \"/home/a.h\"\nint a;", true},
		{"device body", "void f()\n#if 0\n# 2\n{ a; }\n#endif\n;", "void f()\n#if 0\n# 2\n{ b + ' ; }\n#endif\n;", true},
		{"nested device body", "f(\n#if 0\n[](float\n{ }\n#if 0\n{ a }\n#endif\n#endif\n, p);", "f(\n#if 0\n#ifdef X\n#endif\n#endif\n, p);", true},
		{"text after a device body", "#if 0\na\n#endif\nb;", "#if 0\na\n#endif\nc;", false},
		{"marker in a device body", "#if 0\n# 1 \"/system/a.h\"\n#endif\nb;", "#if 0\n# 1 \"/system/a.h\"\n#endif\nc;", false},
		{"else of a device body", "#if 0\na\n#else\nb\n#endif\n", "#if 0\na\n#else\nc\n#endif\n", false},
		{"branch that is not 0", "#if 1\na\n#endif\n", "#if 1\nb\n#endif\n", false},
		{"diagnostic pragma", "#pragma GCC diagnostic push\nf();", "f();", true},
		{"other pragma", "#pragma unroll 4\nf();", "#pragma unroll 8\nf();", false},
		{"anonymous namespace", "namespace _GLOBAL__N__864febaa_4_k_cu_5176ac7d { }", "namespace _GLOBAL__N__00000000_4_k_cu__Z2ddi { }", false},
		{"closure numbers", "typedef decltype(a) __T0; typedef decltype(b) __T2; __T0 x;", "typedef decltype(a) __T7; typedef decltype(b) __T9; __T7 x;", true},
		{"closures swapped", "decltype(a) __T0; decltype(b) __T2; __T0 x;", "decltype(a) __T0; decltype(b) __T2; __T2 x;", false},
		{"file and line", "# 25\nfail(\"k.cu\", 25);", "# 31\nfail(\"k.cu\", 31);", false},
		{"line without a value", "# 25\nfail();", "# 31\nfail();", true},
		{"line that the compiler puts in later", "# 25\nfail(__builtin_LINE());", "# 31\nfail(__builtin_LINE());", false},
		{"place by the library", "# 25\nfail(std::source_location::current());", "# 31\nfail(std::source_location::current());", false},
		{"number beside the file", "# 25\nfail(\"k.cu\", 128);", "# 25\nfail(\"k.cu\", 256);", false},
		{"number that is the line", "# 128\nlaunch(1, 128, p);", "# 256\nlaunch(1, 256, p);", false},
		{"number before the file", "# 25\nfail(128, \"k.cu\");", "# 25\nfail(256, \"k.cu\");", false},
		{"number and comma before something else", "# 25\nf(25, 1);", "# 25\nf(26, 1);", false},
		{"string of another file", "f(\"a.cu\");", "f(\"b.cu\");", false},
		{"string that says nothing of files", "f(\"\");", "f(\"k.cu\");", false},
		{"literal and its value", "f(\"1\");", "f('1');", false},
		{"string and identifier", "f(\"a\");", "f(a);", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := hostID(t, intermediate("k.cu", c.a)), hostID(t, intermediate("k.cu", c.b))
			if (a == b) != c.equal {
				t.Errorf("equal: %v, want %v", a == b, c.equal)
			}
		})
	}
}

// TestHostIDTables: what -rdc=true writes after the end are the kernels' names, in hexadecimal.
func TestHostIDTables(t *testing.T) {
	text := intermediate("k.cu", "f();")
	if hostID(t, text) != hostID(t, text+"\nextern \"C\" { const unsigned char a[] = {0x5f,0x0}; }\n") {
		t.Error("the tables of kernel names have a part in the id")
	}
}

func TestHostIDTorn(t *testing.T) {
	whole := intermediate("k.cu", "f();\n#if 0\ng();\n#endif\n")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "line 1: host intermediate without its end"},
		{"no end", whole[:len(whole)-10], "line 10: host intermediate without its end"},
		{"torn in a body", "# 1 \"k.cu\"\n#if 0\ng();\n", "line 3: #if 0 without its #endif"},
		{"torn in a string", "# 1 \"k.cu\"\nf(\"a", "line 2: literal without an end"},
		{"torn in a comment", "# 1 \"k.cu\"\n/* a", "line 2: comment without an end"},
		{"torn in a marker", "# 1 \"k.c", "line 1: host intermediate without its end"},
		{"end in a user's file", "# 1 \"k.cu\"\n#undef _NV_ANON_NAMESPACE\n", "line 3: host intermediate without its end"},
		{"source in a system folder", "# 1 \"/system/k.cu\"\nf();\n", "line 2: the source file itself counts as a system header"},
		{"huge line", "# 99999999999999999999 \"k.cu\"\n", "line 2: line marker without a line number"},
		{"odd file name", "# 1 L\"k.cu\"\n", "line 2: line marker without a file name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := hostOf([]byte(c.text))
			var e *formatError
			if id != "" || !errors.As(err, &e) || err.Error() != c.want {
				t.Errorf("id %q, %v, want %s", id, err, c.want)
			}
		})
	}
}

func TestSourceHash(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		id, err := SourceHash(strings.NewReader(text), "a.cc")
		if err != nil || len(id) != 64 {
			t.Fatalf("%q, %v", id, err)
		}
		return id
	}
	for _, c := range []struct {
		name  string
		a, b  string
		equal bool
	}{
		{"comments and white space", "int a; // x\n\n/* y */ int b;", "int a;int b;", true},
		{"line endings", "int a;\r\nint b;\r\n", "int a;\nint b;\n", true},
		{"a directive ends with its line", "#define A\nb", "#define A b", false},
		{"continued directive", "#define A \\\n b\n", "#define A b\n", true},
		{"include", "#include \"a.h\"\n", "#include \"b.h\"\n", false},
		{"skipped text counts", "#if 0\na\n#endif\n", "#if 0\nb\n#endif\n", false},
		{"apostrophe in skipped text", "#if 0\ndon't\n#endif\n", "#if 0\n don't\n#endif // do\n", true},
		{"value", "f(1);", "f(2);", false},
		{"empty", "", "// nothing\n", true},
	} {
		if got := hash(c.a) == hash(c.b); got != c.equal {
			t.Errorf("%s: equal %v, want %v", c.name, got, c.equal)
		}
	}
	_, err := SourceHash(strings.NewReader("a\n/* b"), "a.cc")
	if err == nil || err.Error() != "a.cc:2: comment without an end" {
		t.Errorf("torn source: %v", err)
	}
}

func TestCombine(t *testing.T) {
	all := map[string]bool{
		Combine("a"): true, Combine("b"): true, Combine(""): true, Combine("a", "b"): true, Combine("b", "a"): true,
		Combine("a", "a"): true, Combine("ab"): true, Combine("a", "", "b"): true, Combine("a", "b", ""): true,
	}
	if len(all) != 9 {
		t.Errorf("%d different ids, want 9", len(all))
	}
	for id := range all {
		if !Current(id) || Current(id[2:]) || Current("v1"+id[2:]) || Current(id[:20]) {
			t.Errorf("%s is not told from ids of another scheme", id)
		}
	}
}

// TestRecipesDiffer: one text under two recipes has two ids.
func TestRecipesDiffer(t *testing.T) {
	text := intermediate("k.cu", "f();")
	source, err := SourceHash(bytes.NewReader([]byte(text)), "k.cu")
	if err != nil || source == hostID(t, text) {
		t.Errorf("source hash %s, host id %s, %v", source, hostID(t, text), err)
	}
}
