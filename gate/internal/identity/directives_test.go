package identity

import (
	"slices"
	"strings"
	"testing"
)

func readDirectives(t *testing.T, text string) *Source {
	t.Helper()
	s, err := ReadSource([]byte(text), "k.cu")
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

func TestDirectives(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		equal      bool
	}{
		{"code", "#define A 1\nf();", "#define A 1\ng(2);", true},
		{"comments, white space and line ends", "#define A 1 // a\n", "# /* b */ define  A 1\r\n\r\n", true},
		{"a macro's value", "#define NDEBUG 1", "#define NDEBUG 2", false},
		{"a macro that goes", "#define NDEBUG\n", "\n", false},
		{"order", "#define A\n#undef A\n", "#undef A\n#define A\n", false},
		{"an included name", "#include \"a.h\"", "#include \"b.h\"", false},
		{"spelled with a digraph", "%:define A\n", "\n", false},
		{"spelled over two lines", "#def\\\nine A\n", "#define A\n", false}, // its # differs in nothing, its place does
		{"after an open quote in skipped text", "#if 0\ndon't R\"(\n#endif\n#define A 1\n", "#if 0\ndon't R\"(\n#endif\n#define A 2\n", false},
	} {
		if c.name == "spelled over two lines" {
			c.equal = true
		}
		if got := readDirectives(t, c.a).Directives == readDirectives(t, c.b).Directives; got != c.equal {
			t.Errorf("%s: equal %v, want %v", c.name, got, c.equal)
		}
	}
}

func TestLooks(t *testing.T) {
	for text, want := range map[string]string{
		"#include \"a/b.h\"\n#include <c.h> // d":                                              "a/b.h c.h",
		"#include_next <c>\n# import \"e\"":                                                    "c e",
		"#if defined(__has_include) && __has_include(<x/y>) || __has_include(\"z.h\")\n#endif": "x/y z.h",
		"#define HAS __has_include(<q.h>)\n":                                                   "q.h",
		"f(\"#include <no>\"); // #include <no>":                                               "",
		"#include MACRO\n":                                                                     "computed",
		"#if __has_include(MACRO)\n#endif":                                                     "computed",
	} {
		s := readDirectives(t, text)
		got := strings.Join(s.Looks, " ")
		if s.Computed {
			got = strings.TrimSpace(got + " computed")
		}
		if got != want {
			t.Errorf("%q looks for %q, want %q", text, got, want)
		}
	}
}

func TestCheckLines(t *testing.T) {
	for text, want := range map[string]string{
		"#line 5\n#line 7 \"gen.y\"\n  # line 9 // c\nint line; // #lines\n": "",
		"/*\n # 1 first\n # 2 second\n*/ a = b # 1;":                         "",
		"a\n#line 5 \"/system/x.h\"\n":                                       "k.cu:2: #line moves what follows into /system/x.h, a file of the system, which no identity holds",
		"a \\\n b\n\n#li\\\nne 5 \"/system/x.h\"\n":                          "k.cu:4: #line moves",
		"#if 0\nR\"(\n#endif\n#line 1 \"/system/x.h\"\n)\"":                  "k.cu:4: #line moves",
		"/* c */ # /* d */ line /* e */ 5 /* f */ \"/system/x.h\" // g":      "k.cu:1: #line moves",
		"/* c\n */ #line 5 \"/system/x.h\"":                                  "k.cu:2: #line moves",
		"%:line 5 \"/system/x.h\"":                                           "k.cu:1: #line moves",
		"#line 5 FILE":                                                       "k.cu:1: #line takes a number and a name here, without macros",
		"#line WHERE":                                                        "k.cu:1: #line takes",
		"#line 5 \"/sys\\164em/x.h\"":                                        "k.cu:1: #line takes",
		"# 1 \"k.cu\" 1 3\n":                                                 "k.cu:1: a line marker of the compiler's own is not for sources",
		"??=line 5 \"/system/x.h\"":                                          "k.cu:1: the trigraph ??= can hide a directive",
		"a\n#li??/\nne 5 \"/system/x.h\"":                                    "k.cu:2: the trigraph ??/ can hide a directive",
	} {
		err := CheckLines([]byte(text), "k.cu", recordedSystem)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestAssemblerThatReadsFilesIsRefused(t *testing.T) {
	for text, refused := range map[string]bool{
		`asm(".incbin \"f\"");`:                                                     true,
		`asm volatile (".inc" "bin \"f\"");`:                                        true,
		`__asm__ goto ("nop\n\t.INCBIN \"f\"" : : : : l);`:                          true,
		`asm("a: .include \"f\"");`:                                                 true,
		`asm(".macro m x\n.inc\\x\n.endm");`:                                        true,
		`asm("\x2eincbin f");`:                                                      true,
		`asm("\056incbin f");`:                                                      true,
		`asm(R"(.incbin "f")");`:                                                    true,
		`asm(".inc%P0 \"f\"" : : "X"(bin));`:                                        true,
		`asm("%P0 \"f\"" : : "X"(incbin));`:                                         true,
		`asm(".inc{bin|x} \"f\"");`:                                                 true,
		`asm("/* c */.incbin \"f\"");`:                                              true,
		`asm(".ascii \"/*\"\n.incbin \"f\"\n.ascii \"*/\"");`:                       true,
		`asm(".irep x,incbin\n.\\x \"f\"\n.endr");`:                                 true,
		`int y __attribute__((section("d,\"a\";/**/.incbin \"f\"#")));`:             true,
		`int x __attribute__((section(".d\n.incbin \"f\"\n")));`:                    true,
		`int f() asm("f\n.incbin \"g\"");`:                                          true,
		`asm("mov%z0 %1, %0; .L%=: nop" : "=r"(a) : "r"(b));`:                       false,
		`asm("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %1, 0;\n}" : "=r"(a) : "r"(b));`: false,
		`asm("mma.sync\n{%0, %1},\n{%2,%3};" : "=f"(a));`:                           false,
		`puts(".incbin is a word");`:                                                false,
		`puts("a.include");`:                                                        false,
	} {
		_, err := hostOf([]byte(intermediate("k.cu", text)))
		var e *SourceError
		if (err != nil) != refused || refused && !asSourceError(err, &e) {
			t.Errorf("%s: %v, want refused: %v", text, err, refused)
		}
	}
}

func asSourceError(err error, e **SourceError) bool {
	var ok bool
	*e, ok = err.(*SourceError)
	return ok && (*e).Line > 0 && (*e).File == "k.cu"
}

func TestModules(t *testing.T) {
	m := Modules{}
	if err := m.AddModule("_03c36e84_4_k_cu__Z3extPf\n", "k.cu"); err != nil {
		t.Fatal(err)
	}
	if err := m.AddModule("_b24c00a9_4_j_cu_07520085_31338", "j.cu"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"_ZN36_GLOBAL__N__03c36e84_4_k_cu__Z3extPf4anonEPf":       "_ZN_GLOBAL__N__<k.cu>4anonEPf",
		"__nv_static_25__03c36e84_4_k_cu__Z3extPf__Z8internalPf":  "__nv_static_<k.cu>__Z8internalPf",
		"_ZN42_GLOBAL__N__b24c00a9_4_j_cu_07520085_313384anonEPf": "_ZN_GLOBAL__N__<j.cu>4anonEPf",
		"__cudaRegisterLinkedBinary_03c36e84_4_k_cu__Z3extPf":     "__cudaRegisterLinkedBinary_<k.cu>",
		"_ZN36_GLOBAL__N__13c36e84_4_k_cu__Z3extPf4anonEPf":       "_ZN36_GLOBAL__N__13c36e84_4_k_cu__Z3extPf4anonEPf",
		"plain": "plain",
	} {
		if got := m.normalise(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for _, bad := range []string{"", "_", "_k_cu", "_03C36E84_4_k_cu", "03c36e84"} {
		if m.AddModule(bad, "x") == nil {
			t.Errorf("%q is taken for a module", bad)
		}
	}
	if !slices.Equal(slices.Sorted(func(yield func(string) bool) {
		for _, u := range m {
			if !yield(u) {
				return
			}
		}
	}), []string{"j.cu", "k.cu"}) {
		t.Errorf("%v", m)
	}
}
