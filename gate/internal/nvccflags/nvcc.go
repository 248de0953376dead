package nvccflags

import "slices"

// Version is the release of nvcc whose options the tables hold.
const version = "13.0.88"

// Reasons that more than one table gives.
const (
	whyMake    = "gate chooses what is made and in which steps"
	whyWrite   = "it writes a file of its own"
	whyRead    = "it names files; kernel.yaml names them by its own keys"
	whyRun     = "it chooses a program that is run"
	whyPrint   = "it prints among the lines that gate reads"
	whySilence = "it silences what gate reads"
	whyArch    = "kernel.yaml says it under arch"
	whyEntries = "all that the sources hold is built; kernel.yaml chooses under entries what is reported"
	whyLTO     = "gate reads registers and spills of each source, which link-time optimization does not report"
	whyForeign = "it has no use on Linux with 64 bits"
	whyCores   = "the code must not depend on the number of processors, and gate divides them among builds"
	whyInside  = "code with instruments inside is not the code that is judged"
)

var nvcc = table{program: "nvcc " + version, joined: "-I -L -l -t", options: slices.Concat([]option{
	row("--define-macro -D", list(macro), equals|joined|apart, device|host|inputs),
	row("--undefine-macro -U", list(macroName), equals|joined|apart, device|host|inputs),
	row("--std -std", one("c++03 c++11 c++14 c++17 c++20"), equals|apart, device|host|inputs),
	row("--optimize -O", one("0 1 2 3"), equals|joined|apart, device|host|inputs),
	row("--Ofast-compile -Ofc", fast, equals|apart, device),
	row("--dopt -dopt", one("on"), equals|apart, device),
	row("--debug -g", none, 0, host),
	row("--device-debug -G", none, 0, device|host|inputs),
	row("--generate-line-info -lineinfo", none, 0, messages),
	row("--source-in-ptx -src-in-ptx", none, 0, messages),
	row("--maxrregcount -maxrregcount", number(1, 255), equals|apart, device),
	row("--use_fast_math -use_fast_math", none, 0, device),
	row("--ftz -ftz", yesNo, equals|apart, device),
	row("--prec-div -prec-div", yesNo, equals|apart, device),
	row("--prec-sqrt -prec-sqrt", yesNo, equals|apart, device),
	row("--fmad -fmad", yesNo, equals|apart, device),
	row("--extra-device-vectorization -extra-device-vectorization", none, 0, device),
	row("--restrict -restrict", none, 0, device),
	row("--jump-table-density -jtd", number(0, 101), equals|apart, device),
	row("--keep-device-functions -keep-device-functions", none, 0, device|host),
	row("--device-stack-protector -device-stack-protector", yesNo, equals|apart, device),
	row("--relocatable-device-code -rdc", yesNo, equals|apart, device|host|inputs),
	row("--cudadevrt -cudadevrt", one("none static"), equals|apart, device|host),
	row("--no-compress -no-compress", none, 0, device),
	row("--compress-mode -compress-mode", one("default size speed balance none"), equals|apart, device),
	row("--frandom-seed -frandom-seed", pattern("a word", "[A-Za-z0-9_.]+"), equals|apart, device|host),
	row("--default-stream -default-stream", one("legacy null per-thread"), equals|apart, device|host|inputs),
	row("--no-exceptions -noeh", none, 0, device|host|inputs),
	row("--ftemplate-depth -ftemplate-depth", number(1, 1<<16), equals|apart, device|host),
	row("--no-host-device-initializer-list -nohdinitlist", none, 0, device|host),
	row("--no-host-device-move-forward -nohdmoveforward", none, 0, device|host),
	row("--expt-relaxed-constexpr -expt-relaxed-constexpr", none, 0, device|host|inputs),
	row("--extended-lambda -extended-lambda", none, 0, device|host|inputs),
	row("--expt-extended-lambda -expt-extended-lambda", none, 0, device|host|inputs),
	row("--static-global-template-stub -static-global-template-stub", yesNo, equals|apart, device|host),
	row("--device-entity-has-hidden-visibility -device-entity-has-hidden-visibility", yesNo, equals|apart, device|host),
	row("--allow-unsupported-compiler -allow-unsupported-compiler", none, 0, device|host|inputs),
	row("--machine -m", one("64"), equals|apart, 0),
	row("--m64 -m64", none, 0, 0),
	row("--compiler-options -Xcompiler", phase(&hostCompiler), equals|apart, device|host|inputs),
	row("--linker-options -Xlinker", phase(&hostLinker), equals|apart, host),
	row("--ptxas-options -Xptxas", phase(&ptxas), equals|apart, device),
	row("--nvlink-options -Xnvlink", phase(&nvlink), equals|apart, device),
	row("--resource-usage -res-usage", none, 0, messages),
	row("--ftemplate-backtrace-limit -ftemplate-backtrace-limit", number(0, 1<<16), equals|apart, messages),
	row("--Wreorder -Wreorder", none, 0, messages),
	row("--Wdefault-stream-launch -Wdefault-stream-launch", none, 0, messages),
	row("--Wmissing-launch-bounds -Wmissing-launch-bounds", none, 0, messages),
	row("--Wext-lambda-captures-this -Wext-lambda-captures-this", none, 0, messages),
	row("--Wno-deprecated-declarations -Wno-deprecated-declarations", none, 0, messages),
	row("--Wno-deprecated-gpu-targets -Wno-deprecated-gpu-targets", none, 0, messages),
	row("--Werror -Werror", list(one("all-warnings cross-execution-space-call default-stream-launch deprecated-declarations "+
		"ext-lambda-captures-this missing-launch-bounds reorder")), equals|apart, messages),
	row("--display-error-number -err-no", none, 0, messages),
	row("--no-display-error-number -no-err-no", none, 0, messages),
	row("--diag-error -diag-error", list(number(1, 99999)), equals|apart, messages),
	row("--diag-suppress -diag-suppress", list(number(1, 99999)), equals|apart, messages),
	row("--diag-warn -diag-warn", list(number(1, 99999)), equals|apart, messages),
	row("--brief-diagnostics -brief-diag", yesNo, equals|apart, messages),
},
	off(whyMake, "--cuda -cuda", "--cubin -cubin", "--fatbin -fatbin", "--ptx -ptx", "--optix-ir -optix-ir", "--ltoir -ltoir",
		"--preprocess -E", "--compile -c", "--device-c -dc", "--device-w -dw", "--device-link -dlink", "--link -link", "--lib -lib", "--run -run",
		"--run-args -run-args", "--shared -shared", "--dryrun -dryrun", "--fdevice-syntax-only -fdevice-syntax-only", "--clean-targets -clean",
		"--no-device-link -nodlink", "--relocatable-link -r", "--help -h", "--version -V", "--list-gpu-code -code-ls", "--list-gpu-arch -arch-ls",
		"--compile-as-tools-patch -astoolspatch", "--archive-options -Xarchive", "--x -x", "--extensible-whole-program -ewp"),
	off("gate finds out which files were read", "--generate-dependencies -M", "--generate-nonsystem-dependencies -MM",
		"--generate-dependencies-with-compile -MD", "--generate-nonsystem-dependencies-with-compile -MMD", "--dependency-output -MF",
		"--generate-dependency-targets -MP", "--dependency-target-name -MT"),
	off("gate chooses the files that are written", "--output-file -o", "--output-directory -odir", "--objdir-as-tempdir -objtemp", "--keep -keep",
		"--keep-dir -keep-dir", "--save-temps -save-temps"),
	off(whyWrite, "--time -time", "--fdevice-time-trace -fdevice-time-trace"),
	off("name the folder in kernel.yaml under include", "--include-path -I"),
	off(whyRead, "--pre-include -include", "--system-include -isystem", "--library -l", "--library-path -L", "--options-file -optf",
		"--libdevice-directory -ldir", "--target-directory -target-dir", "--host-linker-script -hls", "--augment-host-linker-script -aug-hls"),
	off("it would pass on what gate has not checked", "--forward-unknown-to-host-compiler -forward-unknown-to-host-compiler",
		"--forward-unknown-to-host-linker -forward-unknown-to-host-linker", "--forward-unknown-opts -forward-unknown-opts"),
	off(whyRun, "--compiler-bindir -ccbin", "--archiver-binary -arbin", "--dont-use-profile -noprof", "--qpp-config -qpp-config"),
	off("a kernel must not depend on a runtime library outside it", "--cudart -cudart"),
	off(whyArch, "--gpu-architecture -arch", "--gpu-code -code", "--generate-code -gencode"),
	off("no code for other architectures may hide in the library", "--relocatable-ptx -reloc-ptx"),
	off(whyEntries, "--entries -e"),
	off(whyLTO, "--dlink-time-opt -dlto", "--lto -lto", "--gen-opt-lto -gen-opt-lto", "--split-compile-extended -split-compile-extended"),
	off(whyCores, "--threads -t", "--split-compile -split-compile", "--jobserver -jobserver"),
	off(whyInside, "--profile -pg", "--sanitize -sanitize"),
	off(whyPrint, "--verbose -v", "--optimization-info -opt-info"),
	off(whySilence, "--disable-warnings -w"),
	off(whyForeign, "--use-local-env -use-local-env", "--force-cl-env-setup -force-cl-env-setup", "--input-drive-prefix -idp",
		"--dependency-drive-prefix -ddp", "--drive-prefix -dp", "--no-align-double"),
)}
