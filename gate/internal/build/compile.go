package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// compileLimit ends a compiler that does not end.
const compileLimit = 30 * time.Minute

// maxOutput bounds what is kept of the compiler's output.
const maxOutput = 64 << 20

// compile runs nvcc in a folder of its own and moves the outcome into the
// cache in one rename, so that a kill at any moment leaves no half object.
func (b *Builder) compile(ctx context.Context, p places, request string, k *manifest.Kernel, arch string) (*object, error) {
	tmp, err := disk.TempDir(b.shared, "nvcc")
	if err != nil {
		return nil, err
	}
	defer disk.RemoveTemp(tmp)
	if err := noPrecompiled(k); err != nil {
		return nil, err
	}
	linked, err := b.linkInputs(p, k)
	if err != nil {
		return nil, err
	}
	args := b.arguments(k, arch, tmp)
	output, err := b.nvcc(ctx, p, k, arch, args, tmp)
	if errors.As(err, new(*CompileError)) {
		err = cmp.Or(b.pointers(p, k), err)
	}
	if err != nil {
		return nil, err
	}
	if why := checkLibrary(filepath.Join(tmp, library)); why != "" {
		return nil, &CompileError{Kernel: k.Name, Why: why}
	}
	in, err := b.inputs(p, k, tmp, output)
	if err != nil {
		return nil, userFault(k, err)
	}
	for name, sum := range linked {
		in.files[name] = input{sum: sum, counts: "content " + sum}
	}
	m, cubins, err := b.identify(p, k, arch, tmp, in)
	if err != nil {
		return nil, userFault(k, err)
	}
	if b.left != nil {
		b.left(tmp)
	}
	m.Command = b.portable(args, tmp)
	if err := os.WriteFile(filepath.Join(tmp, "ptxas.log"), output, 0o644); err != nil {
		return nil, err
	}
	found, err := b.findings(p, k, in)
	if err != nil {
		return nil, err
	}
	return b.store(tmp, request, found, m, cubins, !in.computed)
}

// store keeps an object. One that a macro chose a file for is made anew each
// time, because nothing says which names were looked for.
func (b *Builder) store(tmp, request string, found deps, m *meta, cubins []string, reuse bool) (*object, error) {
	found.Object = objectKey(request, found)
	if err := b.publish(tmp, found.Object, m, cubins); err != nil {
		return nil, err
	}
	if reuse {
		if err := b.remember(request, found); err != nil {
			return nil, err
		}
	}
	if o := b.openObject(found.Object); o != nil {
		return o, nil
	}
	return nil, errors.New("the object that was just stored cannot be read")
}

// userFault turns code that gate refuses into an error that names the file as
// the user knows it.
func userFault(k *manifest.Kernel, err error) error {
	var large *InputError
	if errors.As(err, &large) {
		return &InputError{k.File, large.File + " " + large.Msg}
	}
	var source *identity.SourceError
	if !errors.As(err, &source) {
		return err
	}
	file := source.File
	if !path.IsAbs(file) {
		file = path.Join(path.Dir(k.File), file)
	}
	return &InputError{File: fmt.Sprintf("%s:%d", file, source.Line), Msg: source.Msg}
}

// arguments are nvcc's. The folder of the kernel is the working folder, so
// that no absolute path reaches the code. The linker prints which files it
// reads, and leaves no symbol open.
func (b *Builder) arguments(k *manifest.Kernel, arch, out string) []string {
	args := append(b.language(k, arch), "-Xptxas", "-v", "-lineinfo",
		"-I", b.Include, "-shared", "-Xcompiler", "-fPIC,-fno-gnu-unique"+b.fixedNames(), "-Xlinker", "-z,defs", "-Xlinker", "-t",
		"--keep", "--keep-dir", out, "-o", filepath.Join(out, library))
	for _, names := range [][]string{k.Sources, k.Objects, k.Libraries} {
		for _, name := range names {
			args = append(args, here(name))
		}
	}
	return args
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./+@:-]+$`)

// fixedNames are options that give headers of the toolkit and of the harness
// one name on every machine, since __FILE__ brings it into the code. A folder
// that nvcc could not write into a command keeps its name.
func (b *Builder) fixedNames() string {
	top, options := filepath.Dir(b.Toolchain.NVCC)+"/..", ""
	// nvcc writes the folders in these ways; of several that fit the last holds.
	for _, m := range []struct{ folder, name string }{{top, "/cuda"}, {top + "//include", "/cuda/include"},
		{top + "/targets/x86_64-linux/include", "/cuda/include"}, {top + "/targets/sbsa-linux/include", "/cuda/include"}, {b.Include, "/gate"}} {
		if plainPath.MatchString(m.folder) {
			options += ",-ffile-prefix-map=" + m.folder + "=" + m.name
		}
	}
	return options
}

// here is a name in the kernel's folder that no program takes for an option or
// for an absolute path.
func here(name string) string { return "./" + name }

// language is the part of the arguments that decides what the sources mean.
func (b *Builder) language(k *manifest.Kernel, arch string) []string {
	virtual := "compute_" + strings.TrimPrefix(arch, "sm_")
	args := append([]string{"-std=c++17", "-ccbin", b.Toolchain.HostCompiler}, k.Flags...)
	for _, folder := range k.Include {
		args = append(args, "-I", here(folder))
	}
	return append(args, "-gencode", "arch="+virtual+",code="+arch)
}

// nvcc returns everything that the compiler printed, in its order.
func (b *Builder) nvcc(ctx context.Context, p places, k *manifest.Kernel, arch string, args []string, tmp string) ([]byte, error) {
	reads, err := readsTo(tmp)
	if err != nil {
		return nil, err
	}
	r, err := command.Command{Path: b.Toolchain.NVCC, Args: args, Env: []string{reads}, Dir: k.Dir, Limit: compileLimit, Most: maxOutput, Merge: true,
		Confine: b.confine(k, tmp)}.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("nvcc was stopped: %w", ctx.Err())
	case err != nil:
		return nil, err
	case r.Stopped != "" || r.Signal != "":
		return nil, fmt.Errorf("nvcc: %w", r.Err())
	case r.Code != 0 && machineFault.Match(r.Stdout):
		return nil, fmt.Errorf("nvcc failed for want of something on this machine: %s", printable.First(string(machineFault.Find(r.Stdout))))
	case r.Code != 0:
		return nil, b.refused(ctx, p, k, arch, tmp, r.Stdout)
	}
	return r.Stdout, nil
}

// confine lets the compiler read what kernel.yaml declares.
func (b *Builder) confine(k *manifest.Kernel, tmp string) *command.Confinement {
	read := append(b.Toolchain.Folders(), b.Include, k.Dir)
	if k.Op != nil {
		read = append(read, k.Op.Dir)
	}
	for _, named := range slices.Concat(k.Include, k.Sources, k.Objects, k.Libraries) {
		read = append(read, filepath.Join(k.Dir, filepath.FromSlash(named)))
	}
	return &command.Confinement{Temp: tmp, Read: read}
}

// machineFault finds what says that the compiler failed through no fault of
// the code. A compiler that crashed by itself is not among it: that is what
// this code does to it.
var machineFault = regexp.MustCompile(`(?mi)^(?:nvcc: )?(?:Killed|Terminated|Hangup)$|^.*(?:(?:died due to|terminated with) signal (?:1|2|3|7|9|13|14|15|24|25)\b|(?:Killed|Terminated|Hangup|Bus error|` +
	`CPU time limit exceeded|File size limit exceeded) signal terminated program|when writing output to|No space left on device|Disk quota exceeded|File too large|` +
	`File size limit exceeded|Too many open files|Cannot allocate memory|out of memory|virtual memory exhausted|memory exhausted|` +
	`Read-only file system|Resource temporarily unavailable|Input/output error).*$`)

// portable replaces the folders of this machine in a command.
func (b *Builder) portable(args []string, tmp string) []string {
	out := []string{"nvcc"}
	for _, a := range args {
		a = strings.ReplaceAll(a, tmp, "$OUT")
		a = strings.ReplaceAll(a, b.Toolchain.HostCompiler, "$CXX")
		a = strings.ReplaceAll(a, filepath.Dir(filepath.Dir(b.Toolchain.NVCC)), "$CUDA")
		out = append(out, strings.ReplaceAll(a, b.Include, "$HARNESS"))
	}
	return out
}
