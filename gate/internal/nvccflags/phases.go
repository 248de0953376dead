package nvccflags

import (
	"slices"
	"strings"
)

var ptxas = table{program: "ptxas " + version, passedBy: "-Xptxas", options: slices.Concat([]option{
	row("--opt-level -O", one("0 1 2 3"), equals|joined, device),
	row("--Ofast-compile -Ofc", fast, equals, device),
	row("--allow-expensive-optimizations -allow-expensive-optimizations", yesNo, equals, device),
	row("--def-load-cache -dlcm", one("ca cg cs cv lu"), equals, device),
	row("--def-store-cache -dscm", one("wb wt cg cs"), equals, device),
	row("--force-load-cache -flcm", one("ca cg cs cv lu"), equals, device),
	row("--force-store-cache -fscm", one("wb wt cg cs"), equals, device),
	row("--maxrregcount -maxrregcount", pattern("archmax|archmin or a number", "archmax|archmin|[1-9][0-9]{0,2}"), equals, device),
	row("--device-function-maxrregcount -func-maxrregcount", pattern("archmax|archmin or a number", "archmax|archmin|[1-9][0-9]{0,2}"), equals, device),
	row("--register-usage-level -regUsageLevel", number(0, 10), equals, device),
	row("--maxntid -maxntid", number(1, 1024), equals, device),
	row("--minnctapersm -minnctapersm", number(1, 64), equals, device),
	row("--override-directive-values -override-directive-values", none, 0, device),
	row("--fmad -fmad", yesNo, equals, device),
	row("--optimize-float-atomics -opt-fp-atomics", none, 0, device),
	row("--disable-optimizer-constants -disable-optimizer-consts", none, 0, device),
	row("--dont-merge-basicblocks -no-bb-merge", none, 0, device),
	row("--return-at-end -ret-end", none, 0, device),
	row("--make-errors-visible-at-exit -make-errors-visible-at-exit", none, 0, device),
	row("--position-independent-code -pic", yesNo, equals, device),
	row("--device-stack-protector -device-stack-protector", yesNo, equals, device),
	row("--sp-bounds-check -sp-bounds-check", none, 0, device),
	row("--g-tensor-memory-access-check -g-tmem-access-check", none, 0, device),
	row("--gno-tensor-memory-access-check -gno-tmem-access-check", none, 0, device),
	row("--machine -m", one("64"), equals|joined, 0),
	row("--generate-line-info -lineinfo", none, 0, messages),
	row("--verbose -v", none, 0, messages),
	row("--warn-on-double-precision-use -warn-double-usage", none, 0, messages),
	row("--warn-on-local-memory-usage -warn-lmem-usage", none, 0, messages),
	row("--warn-on-spills -warn-spills", none, 0, messages),
	row("--warning-as-error -Werror", none, 0, messages),
},
	off(whyMake, "--compile-only -c", "--extensible-whole-program -ewp", "--output-file -o", "--help -h", "--version -V", "--list-version -version-ls",
		"--compile-as-tools-patch -astoolspatch", "--preserve-relocs -preserve-relocs", "--compiler-annotations -annotate"),
	off(whyRead, "--input-as-string -ias", "--options-file -optf"),
	off(whyArch, "--gpu-name -arch"),
	off(whyEntries, "--entry -e"),
	off(whyCores, "--split-compile -split-compile"),
	off(whyInside, "--sanitize -sanitize"),
	off("nvcc's -G says it to every step", "--device-debug -g"),
	off("it acts on no architecture that can be built", "--legacy-bar-warp-wide-behavior -legacy-bar-warp-wide-behavior"),
	off(whySilence, "--disable-warnings -w", "--suppress-debug-info -suppress-debug-info", "--suppress-stack-size-warning -suppress-stack-size-warning",
		"--suppress-double-demote-warning -suppress-double-demote-warning", "--suppress-sparse-mma-advisory-info -suppress-sparse-mma-advisory-info",
		"--suppress-async-bulk-multicast-advisory-warning -suppress-async-bulk-multicast-advisory-warning"),
)}

var nvlink = table{program: "nvlink " + version, passedBy: "-Xnvlink", joined: "-l -L", options: slices.Concat([]option{
	row("--device-stack-protector -device-stack-protector", yesNo, equals, device),
	row("--use-host-info -use-host-info", none, 0, device),
	row("--ignore-host-info -ignore-host-info", none, 0, device),
	row("--keep-system-libraries -keep-system-libraries", none, 0, device),
	row("--machine -m", one("64"), equals|joined, 0),
	row("--verbose -v", none, 0, messages),
	row("--report-arch -report-arch", none, 0, messages),
	row("--extra-warnings -extrawarn", none, 0, messages),
	row("--warning-as-error -Werror", none, 0, messages),
},
	off(whyMake, "--relocatable-link -r", "--emit-ptx -emit-ptx", "--output-file -o", "--help -h", "--version -V", "--cpu-arch -cpu-arch",
		"--gen-host-linker-script -ghls", "--preserve-relocs -preserve-relocs"),
	off(whyWrite, "--time -time", "--register-link-binaries"),
	off(whyRead, "--library -l", "--library-path -L", "--options-file -optf", "--uidx-file -uidx", "--nvvmpath -nvvmpath"),
	off(whyArch, "--arch -arch"),
	off(whyEntries, "--kernels-used -kernels-used", "--variables-used -variables-used"),
	off(whyLTO, "--link-time-opt -lto", "--dlto -dlto", "--Xnvvm -Xnvvm", "--Xptxas -Xptxas", "--maxrregcount -maxrregcount", "--Ofast-compile -Ofc",
		"--split-compile -split-compile", "--split-compile-extended -split-compile-extended"),
	off("nvcc's -G says it to every step", "--debug -g"),
	off(whyPrint, "--dump-callgraph -dump-callgraph", "--dump-callgraph-no-demangle -dump-callgraph-no-demangle"),
	off(whySilence, "--disable-warnings -w", "--disable-infos -disable-infos", "--suppress-arch-warning -suppress-arch-warning",
		"--suppress-debug-info -suppress-debug-info", "--suppress-stack-size-warning -suppress-stack-size-warning"),
)}

// hostCompiler has what a kernel may need of g++'s thousands of options. nvcc
// preprocesses the device's side with it too, so that its macros act there.
var hostCompiler = table{program: "the host compiler", passedBy: "-Xcompiler", joined: "-o -l -L -I -B -T -M -x", options: slices.Concat([]option{
	row("-D", macro, joined, device|host|inputs),
	row("-U", macroName, joined, device|host|inputs),
	row("-O", one("0 1 2 3 s g"), joined, device|host|inputs),
	row("-g", none, 0, host),
	row("-march", one("x86-64 x86-64-v2 x86-64-v3 x86-64-v4 armv8-a armv8.2-a armv9-a"), equals, device|host|inputs),
	row("-mtune", one("generic"), equals, host),
	row("-fvisibility", one("default hidden"), equals, host),
	row("-ffp-contract", one("fast off"), equals, host),
	row("-W", pattern("one of g++'s warnings", warnings()), joined, messages),
	row("-pedantic", none, 0, messages),
	row("-pipe", none, 0, 0),
},
	switches(device|host|inputs, "-fPIC -fpic -fopenmp -fopenmp-simd -pthread -fexceptions -fno-exceptions -frtti -fno-rtti -fsigned-char -funsigned-char "+
		"-m64 -mavx -mavx2 -mfma -mf16c -msse4.2 -mpopcnt -fno-math-errno -fno-trapping-math"),
	switches(host, "-fno-strict-aliasing -fstrict-aliasing -fwrapv -fomit-frame-pointer -fno-omit-frame-pointer -funroll-loops -ftree-vectorize "+
		"-fno-tree-vectorize -finline-functions -fno-inline -fno-plt -fno-semantic-interposition -ffunction-sections -fdata-sections "+
		"-fvisibility-inlines-hidden -fno-builtin -fno-delete-null-pointer-checks"),
	switches(device|host|inputs, "-fstack-protector -fstack-protector-strong -fno-stack-protector"),
	off(whyMake, "-c", "-S", "-E", "-x", "-shared", "-static", "-r", "-v", "-###", "-std", "-flto", "-fsyntax-only", "-fPIE", "-fpie", "-pie", "-nostdlib", "-nostdinc"),
	off("the program that loads the library would then round otherwise", "-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-mdaz-ftz"),
	off("the code must not depend on the machine that builds it", "-march=native", "-mtune=native", "-mcpu=native"),
	off(whyWrite, "-o", "-M", "-MM", "-MD", "-MMD", "-MF", "-save-temps", "-gsplit-dwarf", "-fdump-tree-all", "-dumpdir", "-aux-info", "-fprofile-generate", "--coverage", "-ftime-trace"),
	off(whyRead, "-I", "-L", "-l", "-T", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-isysroot", "--sysroot", "-fprofile-use"),
	off(whyRun, "-B", "-specs", "-wrapper", "-fplugin", "-fuse-ld"),
	off("options of the linker are given to -Xlinker", "-Wl", "-Xlinker", "-z"),
	off("gate passes nothing on to the assembler or the preprocessor alone", "-Wa", "-Wp", "-Xassembler", "-Xpreprocessor"),
	off("gate gives folders fixed names", "-ffile-prefix-map", "-fmacro-prefix-map", "-fdebug-prefix-map"),
	off(whyInside, "-pg", "-fsanitize", "-finstrument-functions"),
	off(whySilence, "-w", "-fmax-errors"),
)}

func switches(c changes, names string) []option {
	var out []option
	for _, n := range strings.Fields(names) {
		out = append(out, row(n, none, 0, c))
	}
	return out
}

// warnings is a pattern of g++'s warnings, each also as no-X, error=X, no-error=X.
func warnings() string {
	names := "all extra pedantic shadow conversion sign-conversion sign-compare float-conversion float-equal double-promotion unused unused-parameter " +
		"unused-variable unused-but-set-variable unused-but-set-parameter unused-function unused-local-typedefs unused-value unused-result unknown-pragmas " +
		"uninitialized maybe-uninitialized deprecated deprecated-declarations deprecated-copy reorder switch switch-default switch-enum format " +
		"format-security parentheses psabi attributes cast-align cast-qual old-style-cast overloaded-virtual non-virtual-dtor delete-non-virtual-dtor " +
		"narrowing missing-field-initializers missing-declarations redundant-decls undef vla write-strings ignored-attributes ignored-qualifiers " +
		"class-memaccess comment strict-aliasing strict-overflow array-bounds stringop-overflow stringop-overread nonnull null-dereference logical-op " +
		"duplicated-cond duplicated-branches useless-cast implicit-fallthrough type-limits volatile terminate subobject-linkage return-type cpp"
	return "error|no-error|fatal-errors|(no-|error=|no-error=)?(" + strings.Join(strings.Fields(names), "|") + ")"
}

var hostLinker = table{program: "the host linker", passedBy: "-Xlinker", joined: "-l -L -o -T -R", options: slices.Concat([]option{
	row("-z", one("defs now lazy relro norelro noexecstack nodelete text"), apart, host),
	row("-O", one("0 1 2"), joined, host),
	row("-Bsymbolic", none, 0, host),
	row("-Bsymbolic-functions", none, 0, host),
	row("--gc-sections", none, 0, host),
	row("--no-gc-sections", none, 0, host),
	row("--as-needed", none, 0, host),
	row("--no-as-needed", none, 0, host),
	row("--no-undefined", none, 0, host),
	row("--exclude-libs", one("ALL"), equals|apart, host),
	row("--build-id", one("none md5 sha1"), equals, host),
	row("--hash-style", one("sysv gnu both"), equals, host),
	row("--sort-common", none, 0, host),
	row("--relax", none, 0, host),
	row("--no-relax", none, 0, host),
	row("--enable-new-dtags", none, 0, host),
	row("--strip-debug -S", none, 0, host),
	row("--fatal-warnings", none, 0, messages),
	row("--warn-common", none, 0, messages),
},
	off(whyMake, "-r", "--relocatable", "-shared", "-Bshareable", "-static", "-Bstatic", "-Bdynamic", "-pie", "--oformat", "-soname", "-h", "-v", "-V", "--version", "--help"),
	off(whyWrite, "-o", "--output", "-Map", "--Map", "--dependency-file", "--out-implib", "-M", "--print-map", "--cref"),
	off(whyRead, "-l", "--library", "-L", "--library-path", "-T", "--script", "--default-script", "--version-script", "--dynamic-list", "-R", "--just-symbols",
		"--retain-symbols-file", "-rpath", "--rpath", "-rpath-link", "--rpath-link", "--sysroot", "-b", "--format", "--whole-archive", "--no-whole-archive", "-f", "--auxiliary", "-F", "--filter"),
	off(whyRun, "-plugin", "--plugin", "-plugin-opt", "-I", "--dynamic-linker"),
	off("it exchanges one function for another", "--wrap", "--defsym", "-u", "--undefined", "-e", "--entry", "-init", "-fini", "--section-start"),
	off("undefined symbols are found by gate", "--allow-shlib-undefined", "--unresolved-symbols", "--warn-unresolved-symbols", "-w", "--no-warnings"),
)}
