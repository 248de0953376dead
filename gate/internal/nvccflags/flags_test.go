package nvccflags

import (
	"strings"
	"testing"
)

func TestAccepted(t *testing.T) {
	for _, flags := range []string{
		"", "-O3", "-O 3", "-O=3", "--optimize=3", "--optimize 2", "-O3 --use_fast_math", "-use_fast_math -lineinfo", "-maxrregcount=64",
		"-maxrregcount 64", "-DEXTRA=0", "-D EXTRA=0", "-DA,B=2", "-DX= -UY", "-DT=a::b -DE=1e-5f -DM=-1", "--define-macro=X", "-std=c++20", "--std c++20",
		"-Xptxas -O2", "-Xptxas=-O2,-dlcm=cg", "--ptxas-options=-v", "-Xptxas -v -Xptxas -warn-spills", "-Xcompiler -Wall,-Wextra,-Wno-unused-parameter",
		"-Xcompiler=-fopenmp", "-Xcompiler -O2 -Xcompiler=-march=x86-64-v3,-DX=1", "-Xlinker=-z,defs", "-Xlinker -Bsymbolic,--as-needed",
		"-Xnvlink=-v", "-rdc=true", "--relocatable-device-code true", "-G -g", "-default-stream=per-thread", "-diag-suppress=177,20012",
		"-Werror=reorder,all-warnings", "-extended-lambda --expt-relaxed-constexpr", "-ftz=true -fmad false", "-m64 -restrict -res-usage",
	} {
		if r := Check(strings.Fields(flags)); r != nil {
			t.Errorf("%s: %+v", flags, *r)
		}
	}
}

// TestRefused is the list of what was tried against the table. The flags are
// separated by blanks, or by U+2423 where they hold blanks themselves.
func TestRefused(t *testing.T) {
	shell := func(flag, sign string) string {
		return flag + " holds " + sign + ": a shell reads nvcc's flags, so they hold letters, digits and _-+.,=:/@ alone"
	}
	const (
		file    = " is not an option; kernel.yaml names files by its other keys, such as sources"
		makes   = " is refused: gate chooses what is made and in which steps"
		deps    = " is refused: gate finds out which files were read"
		outputs = " is refused: gate chooses the files that are written"
		writes  = " is refused: it writes a file of its own"
		reads   = " is refused: it names files; kernel.yaml names them by its own keys"
		runs    = " is refused: it chooses a program that is run"
		arch    = " is refused: kernel.yaml says it under arch"
		passes  = " is refused: it would pass on what gate has not checked"
		silent  = " is refused: it silences what gate reads"
		join    = "make each word an entry of its own, or join an option and its value with ="
	)
	type refused struct {
		flags string
		index int
		msg   string
		hint  string
	}
	tried := []refused{
		// Commands for nvcc's shell.
		{"-DX=$(touch␣x)", 0, shell(`"-DX=$(touch x)"`, `'$'`), ""},
		{"-DX=$HOME", 0, shell(`"-DX=$HOME"`, `'$'`), ""},
		{"-DX=`id`", 0, shell("\"-DX=`id`\"", "'`'"), ""},
		{"-O3 -Xptxas 2>/dev/null", 2, shell(`"2>/dev/null"`, `'>'`), ""},
		{"-Xptxas=-v;id", 0, shell(`"-Xptxas=-v;id"`, `';'`), ""},
		{"-Xptxas=-v|cat", 0, shell(`"-Xptxas=-v|cat"`, `'|'`), ""},
		{"-Xptxas=-v&", 0, shell(`"-Xptxas=-v&"`, `'&'`), ""},
		{"-Xptxas=</etc/passwd", 0, shell(`"-Xptxas=</etc/passwd"`, `'<'`), ""},
		{"-Xcompiler=-DX(y)", 0, shell(`"-Xcompiler=-DX(y)"`, `'('`), ""},
		{"-Xcompiler=*.cc", 0, shell(`"-Xcompiler=*.cc"`, `'*'`), ""},
		{"-Xcompiler=?.cc", 0, shell(`"-Xcompiler=?.cc"`, `'?'`), ""},
		{"-Xcompiler=~/x", 0, shell(`"-Xcompiler=~/x"`, `'~'`), ""},
		{`-Xptxas=-O2\,-v`, 0, shell(`"-Xptxas=-O2\\,-v"`, `'\\'`), ""},
		{`-DX="a"`, 0, shell(`"-DX=\"a\""`, `'"'`), ""},
		{`-DX='a'`, 0, shell(`"-DX='a'"`, `'\''`), ""},
		{"-Xptxas=#", 0, shell(`"-Xptxas=#"`, `'#'`), ""},
		{"-Xcompiler=[a].cc", 0, shell(`"-Xcompiler=[a].cc"`, `'['`), ""},
		{"-Xcompiler={a,b}", 0, shell(`"-Xcompiler={a,b}"`, `'{'`), ""},
		{"-DX=!1", 0, shell(`"-DX=!1"`, `'!'`), ""},
		{"-DX=a\nid", 0, shell(`"-DX=a\nid"`, `'\n'`), ""},
		{"-DX=a\rid", 0, shell(`"-DX=a\rid"`, `'\r'`), ""},
		{"-DX=a\x00id", 0, shell(`"-DX=a\x00id"`, `'\x00'`), ""},
		{"-DX=ä", 0, shell(`"-DX=ä"`, `'ä'`), ""},
		{"-DX=\xff", 0, shell(`"-DX=\xff"`, `'�'`), ""},
		{"-O3␣-v", 0, `flag "-O3 -v" holds more than one word`, join},
		{"-Xptxas␣-v", 0, `flag "-Xptxas -v" holds more than one word`, join},
		{"-Xptxas=-v\t-w", 0, `flag "-Xptxas=-v\t-w" holds more than one word`, join},
		// Files.
		{"helper.cc", 0, `"helper.cc"` + file, ""},
		{"-O3 rows.o", 1, `"rows.o"` + file, ""},
		{"--use_fast_math true", 1, `"true"` + file, ""},
		{"-lrows", 0, "-l" + reads, ""},
		{"-l rows", 0, "-l" + reads, ""},
		{"-l=rows", 0, "-l" + reads, ""},
		{"--library=rows", 0, "--library" + reads, ""},
		{"-library=rows", 0, "-l" + reads, ""},
		{"-L/tmp", 0, "-L" + reads, ""},
		{"-Iinclude", 0, "-I is refused: name the folder in kernel.yaml under include", ""},
		{"--include-path=include", 0, "--include-path is refused: name the folder in kernel.yaml under include", ""},
		{"-isystem include", 0, "-isystem" + reads, ""},
		{"-include other.h", 0, "-include" + reads, ""},
		{"--pre-include=other.h", 0, "--pre-include" + reads, ""},
		{"@args", 0, `"@args" would read options from a file; flags stand in kernel.yaml`, ""},
		{"-optf args", 0, "-optf" + reads, ""},
		{"--options-file=args", 0, "--options-file" + reads, ""},
		{"-ldir=/tmp", 0, "-ldir" + reads, ""},
		{"-target-dir x", 0, "-target-dir" + reads, ""},
		{"-hls=use-lcs", 0, "-hls" + reads, ""},
		// What is made, where, and by whom.
		{"-c", 0, "-c" + makes, ""},
		{"--compile", 0, "--compile" + makes, ""},
		{"-ptx", 0, "-ptx" + makes, ""},
		{"--run", 0, "--run" + makes, ""},
		{"--dryrun", 0, "--dryrun" + makes, ""},
		{"--clean-targets", 0, "--clean-targets" + makes, ""},
		{"--version", 0, "--version" + makes, ""},
		{"-x c++", 0, "-x" + makes, ""},
		{"-MMD", 0, "-MMD" + deps, ""},
		{"-MF=x.d", 0, "-MF" + deps, ""},
		{"-o x", 0, "-o" + outputs, ""},
		{"--output-file=x", 0, "--output-file" + outputs, ""},
		{"--keep", 0, "--keep" + outputs, ""},
		{"-keep-dir=/tmp", 0, "-keep-dir" + outputs, ""},
		{"--save-temps", 0, "--save-temps" + outputs, ""},
		{"-time=x.csv", 0, "-time" + writes, ""},
		{"-time x.csv", 0, "-time" + writes, ""},
		{"-fdevice-time-trace=x", 0, "-fdevice-time-trace" + writes, ""},
		{"-ccbin=/tmp/g++", 0, "-ccbin" + runs, ""},
		{"--compiler-bindir /tmp", 0, "--compiler-bindir" + runs, ""},
		{"-noprof", 0, "-noprof" + runs, ""},
		{"-arch=sm_70", 0, "-arch" + arch, ""},
		{"-gencode arch=compute_70,code=sm_70", 0, "-gencode" + arch, ""},
		{"--forward-unknown-to-host-compiler -fplugin=x.so", 0, "--forward-unknown-to-host-compiler" + passes, ""},
		{"--forward-unknown-opts", 0, "--forward-unknown-opts" + passes, ""},
		{"-w", 0, "-w" + silent, ""},
		{"-t8", 0, "-t is refused: the code must not depend on the number of processors, and gate divides them among builds", ""},
		{"-e=k", 0, "-e is refused: all that the sources hold is built; kernel.yaml chooses under entries what is reported", ""},
		// Options of the programs that nvcc runs.
		{"-Xptxas -o,/tmp/x", 1, "-Xptxas: -o" + makes, ""},
		{"-Xptxas=-w", 0, "-Xptxas: -w" + silent, ""},
		{"-Xptxas=--suppress-stack-size-warning", 0, "-Xptxas: --suppress-stack-size-warning" + silent, ""},
		{"-Xptxas=-v,x.ptx", 0, `-Xptxas: "x.ptx" is not an option of ptxas 13.0.88`, ""},
		{"-Xptxas=@args", 0, `-Xptxas: "@args" would read options from a file; flags stand in kernel.yaml`, ""},
		{"-Xptxas=", 0, "-Xptxas: an option is empty", ""},
		{"-Xptxas=-v,,-O2", 0, "-Xptxas: an option is empty", ""},
		{"-Xptxas=-dlcm,cg", 0, "-Xptxas: -dlcm needs ca|cg|cs|cv|lu in the same word", ""},
		{"-Xptxas=-dlcm=xx", 0, `-Xptxas: -dlcm takes ca|cg|cs|cv|lu, not "xx"`, ""},
		{"-Xptxas -dclm=cg", 1, `-Xptxas: "-dclm=cg" is not in gate's table of the options of ptxas 13.0.88`, `did you mean "-dlcm"?`},
		{"-Xptxas -Xptxas", 1, `-Xptxas: "-Xptxas" is not in gate's table of the options of ptxas 13.0.88`, "gate/docs/flags.md lists them"},
		{"-Xnvlink=-time=x", 0, "-Xnvlink: -time" + writes, ""},
		{"-Xnvlink=-lrows", 0, "-Xnvlink: -l" + reads, ""},
		{"-Xlinker -o,/tmp/x", 1, "-Xlinker: -o" + writes, ""},
		{"-Xlinker=-Map=/tmp/x", 0, "-Xlinker: -Map" + writes, ""},
		{"-Xlinker=-T,x.lds", 0, "-Xlinker: -T" + reads, ""},
		{"-Xlinker=--wrap=run", 0, "-Xlinker: --wrap is refused: it exchanges one function for another", ""},
		{"-Xlinker=-plugin=x.so", 0, "-Xlinker: -plugin" + runs, ""},
		{"-Xlinker=-rpath,/tmp", 0, "-Xlinker: -rpath" + reads, ""},
		{"-Xlinker=-z", 0, "-Xlinker: -z needs defs|now|lazy|relro|norelro|noexecstack|nodelete|text", ""},
		{"-Xlinker=-z,execstack", 0, `-Xlinker: -z takes defs|now|lazy|relro|norelro|noexecstack|nodelete|text, not "execstack"`, ""},
		{"-Xlinker=rows.o", 0, `-Xlinker: "rows.o" is not an option of the host linker`, ""},
		{"-Xcompiler -o,/tmp/x", 1, "-Xcompiler: -o" + writes, ""},
		{"-Xcompiler=-o/tmp/x", 0, "-Xcompiler: -o" + writes, ""},
		{"-Xcompiler=-fplugin=x.so", 0, "-Xcompiler: -fplugin" + runs, ""},
		{"-Xcompiler=-wrapper,sh", 0, "-Xcompiler: -wrapper" + runs, ""},
		{"-Xcompiler=-B/tmp", 0, "-Xcompiler: -B" + runs, ""},
		{"-Xcompiler=-I/tmp", 0, "-Xcompiler: -I" + reads, ""},
		{"-Xcompiler=-include,x.h", 0, "-Xcompiler: -include" + reads, ""},
		{"-Xcompiler=-Wl,-z,defs", 0, "-Xcompiler: -Wl is refused: options of the linker are given to -Xlinker", ""},
		{"-Xcompiler=-Wp,-MD,x", 0, "-Xcompiler: -Wp is refused: gate passes nothing on to the assembler or the preprocessor alone", ""},
		{"-Xcompiler=-march=native", 0, "-Xcompiler: -march=native is refused: the code must not depend on the machine that builds it", ""},
		{"-Xcompiler=-ffast-math", 0, "-Xcompiler: -ffast-math is refused: the program that loads the library would then round otherwise", ""},
		{"-Xcompiler=-w", 0, "-Xcompiler: -w" + silent, ""},
		{"-Xcompiler=-D=X", 0, `-Xcompiler: -D takes NAME or NAME=VALUE, not "=X"`, ""},
		{"-Xcompiler=-Wfoo", 0, `-Xcompiler: -W takes one of g++'s warnings, not "foo"`, ""},
		{"-Xcompiler=-frobnicate", 0, `-Xcompiler: "-frobnicate" is not in gate's table of the options of the host compiler`, "gate/docs/flags.md lists them"},
		{"-Xcompiler=-fopnemp", 0, `-Xcompiler: "-fopnemp" is not in gate's table of the options of the host compiler`, `did you mean "-fopenmp"?`},
		// Values, and options that do not exist.
		{"-O3 -maxrregcount", 1, "-maxrregcount needs a number from 1 to 255", ""},
		{"-maxrregcount -lineinfo", 1, `-maxrregcount takes a number from 1 to 255, not "-lineinfo"`, ""},
		{"-maxrregcount=064", 0, `-maxrregcount takes a number from 1 to 255, not "064"`, ""},
		{"-maxrregcount64", 0, `"-maxrregcount64" is not in gate's table of the options of nvcc 13.0.88`, `did you mean "-maxrregcount"?`},
		{"-Ofast", 0, `-O takes 0|1|2|3, not "fast"`, ""},
		{"-O", 0, "-O needs 0|1|2|3", ""},
		{"-D", 0, "-D needs NAME or NAME=VALUE", ""},
		{"-D-MD", 0, `-D takes NAME or NAME=VALUE, not "-MD"`, ""},
		{"-DX,@file", 0, `-D takes NAME or NAME=VALUE, not "@file"`, ""},
		{"-use_fast_math=true", 0, "-use_fast_math takes no value", ""},
		{"--use-fast-math", 0, `"--use-fast-math" is not in gate's table of the options of nvcc 13.0.88`, `did you mean "--use_fast_math"?`},
		{"-std=gnu++17", 0, `-std takes c++03|c++11|c++14|c++17|c++20, not "gnu++17"`, ""},
		{"-Werror", 0, "-Werror needs all-warnings|cross-execution-space-call|default-stream-launch|deprecated-declarations|ext-lambda-captures-this|missing-launch-bounds|reorder", ""},
		{"-diag-suppress=x", 0, `-diag-suppress takes a number from 1 to 99999, not "x"`, ""},
		{"-optimize=3", 0, `"-optimize=3" is not in gate's table of the options of nvcc 13.0.88`, `did you mean "--optimize"?`},
		{"-Xcicc -O0", 0, `"-Xcicc" is not in gate's table of the options of nvcc 13.0.88`, "gate/docs/flags.md lists them"},
		{"-", 0, `"-" is not in gate's table of the options of nvcc 13.0.88`, "gate/docs/flags.md lists them"},
		{"--", 0, `"--" is not in gate's table of the options of nvcc 13.0.88`, "gate/docs/flags.md lists them"},
	}
	for _, c := range tried {
		var flags []string
		for _, f := range strings.Split(c.flags, " ") {
			flags = append(flags, strings.ReplaceAll(f, "␣", " "))
		}
		r := Check(flags)
		switch {
		case r == nil:
			t.Errorf("%q is accepted", flags)
		case r.Index != c.index || strings.TrimPrefix(r.Msg, "flag ") != strings.TrimPrefix(c.msg, "flag ") || r.Hint != c.hint:
			t.Errorf("%q:\ngot  %d %s (%s)\nwant %d %s (%s)", flags, r.Index, r.Msg, r.Hint, c.index, c.msg, c.hint)
		}
	}
	if r := Check([]string{"-O3", ""}); r == nil || r.Index != 1 || r.Msg != "a flag is empty" {
		t.Errorf("an empty flag: %+v", r)
	}
}

func TestBadNames(t *testing.T) {
	for _, name := range []string{"k.cu", "a b.cu", "gemm[1].cu", "ä.cu", "-v.cu", "a,b=c.cu", "../x/k.cu"} {
		if why := BadName(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
	for _, sign := range strings.Split("$ ` ; | & < > ( ) * ? ~ \\ ' \" \n \r \x00 \x1b \u0085", " ") {
		if BadName("a"+sign+"b.cu") == "" {
			t.Errorf("a name with %q is accepted", sign)
		}
	}
}

// FuzzCheck holds: what is accepted holds no character for a shell, and every
// word of it is an option or the value of one.
func FuzzCheck(f *testing.F) {
	f.Add("-O3\x1f-Xptxas\x1f-v,-O2")
	f.Add("-DX=1\x1f-Xcompiler=-Wall")
	f.Fuzz(func(t *testing.T, joined string) {
		flags := strings.Split(joined, "\x1f")
		if r := Check(flags); r != nil {
			if r.Msg == "" || r.Index < 0 || r.Index >= len(flags) {
				t.Fatalf("%q: %+v", flags, *r)
			}
			return
		}
		if strings.ContainsAny(joined, "$`;|&<>()*?~\\'\"#[]{}!\n\r\t \x00@") || !strings.HasPrefix(flags[0], "-") {
			t.Fatalf("%q is accepted", flags)
		}
	})
}
