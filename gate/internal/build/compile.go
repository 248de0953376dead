package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	args := b.arguments(k, arch, tmp)
	output, status, err := b.nvcc(ctx, k, tmp, args)
	if err != nil {
		return nil, err
	}
	if status != 0 {
		refused := &CompileError{Kernel: k.Name, Output: p.shorten(output)}
		if strings.Contains(refused.Output, "Permission denied") {
			refused.Output += "(the compiler may read the folder of the kernel, that of its op, and those under include: in kernel.yaml)\n"
		}
		return nil, refused
	}
	meta, err := b.identify(k, arch, tmp, args)
	if err != nil {
		return nil, err
	}
	files, names, err := b.inputs(ctx, p, k, arch, tmp)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, "ptxas.log"), output, 0o644); err != nil {
		return nil, err
	}
	key := objectKey(request, files)
	if err := b.publish(tmp, key, meta); err != nil {
		return nil, err
	}
	if err := b.remember(request, deps{Files: files, Names: names, Object: key}); err != nil {
		return nil, err
	}
	o := b.openObject(key)
	if o == nil {
		return nil, errors.New("the object that was just stored cannot be read")
	}
	return o, nil
}

// inputs are what a build depends on: the files that were read, and the names
// that would be found instead of them.
func (b *Builder) inputs(ctx context.Context, p places, k *manifest.Kernel, arch, tmp string) (files, names map[string]string, err error) {
	rules, err := b.rules(ctx, k, arch, tmp)
	if err != nil {
		return nil, nil, err
	}
	if files, err = b.hashDeps(p, k, rules); err != nil {
		return nil, nil, err
	}
	names, err = b.shadows(p, k, files)
	return files, names, err
}

// arguments are nvcc's. The folder of the kernel is the working folder, so
// that no absolute path reaches the code.
func (b *Builder) arguments(k *manifest.Kernel, arch, out string) []string {
	args := append(b.language(k, arch), "-Xptxas", "-v", "-lineinfo",
		"-I", b.Include, "-shared", "-Xcompiler", "-fPIC", "--keep", "--keep-dir", out,
		"-MD", "-MF", filepath.Join(out, "deps.d"), "-o", filepath.Join(out, "lib.so"))
	for _, s := range k.Sources {
		args = append(args, here(s))
	}
	return args
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

// rules are the make rules of all sources. Of several, nvcc -MD leaves the
// last one's rule alone, so each is then asked for by itself.
func (b *Builder) rules(ctx context.Context, k *manifest.Kernel, arch, tmp string) ([]string, error) {
	if len(k.Sources) == 1 {
		rule, err := os.ReadFile(filepath.Join(tmp, "deps.d"))
		return []string{string(rule)}, err
	}
	var rules []string
	for _, s := range k.Sources {
		out := filepath.Join(tmp, "source.d")
		text, status, err := b.nvcc(ctx, k, tmp, append(b.language(k, arch), "-I", b.Include, "-M", "-MF", out, here(s)))
		if err == nil && status != 0 {
			err = fmt.Errorf("exit status %d: %s", status, printable.Last(string(text)))
		}
		if err != nil {
			return nil, fmt.Errorf("asking nvcc what %s includes: %w", s, err)
		}
		rule, err := os.ReadFile(out)
		if err != nil {
			return nil, err
		}
		rules = append(rules, string(rule))
	}
	return rules, nil
}

// nvcc returns everything that the compiler printed, in its order. status is
// not 0 for a compiler that refused the code, and only then.
func (b *Builder) nvcc(ctx context.Context, k *manifest.Kernel, tmp string, args []string) (output []byte, status int, err error) {
	r, err := command.Command{Path: b.Toolchain.NVCC, Args: args, Dir: k.Dir, Limit: compileLimit, Most: maxOutput, Merge: true, Confine: b.confine(k, tmp)}.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, 0, fmt.Errorf("nvcc was stopped: %w", ctx.Err())
	case err != nil:
		return nil, 0, err
	case r.Stopped != "" || r.Signal != "":
		return nil, 0, fmt.Errorf("nvcc: %w", r.Err())
	}
	return r.Stdout, r.Code, nil
}

// confine lets the compiler read what kernel.yaml declares.
func (b *Builder) confine(k *manifest.Kernel, tmp string) *command.Confinement {
	read := append(b.Toolchain.Folders(), b.Include, k.Dir)
	if k.Op != nil {
		read = append(read, k.Op.Dir)
	}
	for _, folder := range k.Include {
		read = append(read, filepath.Join(k.Dir, filepath.FromSlash(folder)))
	}
	return &command.Confinement{Temp: tmp, Read: read}
}

// shorten takes the folders of this machine out of the compiler's lines.
func (p places) shorten(output []byte) string {
	text := string(output)
	for _, pl := range p {
		if pl.letter == "R" {
			text = strings.ReplaceAll(text, pl.dir+string(filepath.Separator), "")
		}
	}
	const most = 16 << 10
	if len(text) > most {
		text = text[:most] + "\n… (cut)\n"
	}
	return text
}

func (b *Builder) hashDeps(p places, k *manifest.Kernel, rules []string) (map[string]string, error) {
	files := map[string]string{}
	for _, rule := range rules {
		list := parseDeps(rule)
		if len(list) == 0 {
			return nil, errors.New("nvcc did not say which files it read")
		}
		for _, f := range list {
			if !filepath.IsAbs(f) {
				f = filepath.Join(k.Dir, f)
			}
			name := p.name(filepath.Clean(f))
			sum, err := b.hashes.file(filepath.Clean(f), !project(name))
			if err != nil {
				return nil, err
			}
			files[name] = sum
		}
	}
	return files, nil
}

// meta is what is remembered of an object beside its files.
type meta struct {
	Arch     string            `json:"arch"`
	HostID   string            `json:"host_id"`
	Entries  []string          `json:"entries"`
	Cubins   []string          `json:"cubins"`
	Command  []string          `json:"command"`
	Compiler string            `json:"compiler"`
	Code     map[string]string `json:"code_ids"` // by the selected entries
}

func (b *Builder) identify(k *manifest.Kernel, arch, tmp string, args []string) (*meta, error) {
	m := &meta{Arch: arch, Command: b.portable(args, tmp), Compiler: b.Toolchain.Version, Code: map[string]string{}}
	var hosts []string
	for _, s := range k.Sources {
		stem := strings.TrimSuffix(filepath.Base(s), filepath.Ext(s))
		cubin, err := findCubin(tmp, stem, arch)
		if err != nil {
			return nil, err
		}
		m.Cubins = append(m.Cubins, filepath.Base(cubin))
		host, err := b.hostID(filepath.Join(tmp, stem+".cudafe1.cpp"))
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	if flags := hostFlags(k.Flags); len(flags) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(flags, "\x00")))
		hosts = append(hosts, hex.EncodeToString(sum[:]))
	}
	m.HostID = identity.Combine(hosts...)
	cubins, err := readCubins(tmp, m.Cubins)
	if err != nil {
		return nil, err
	}
	for _, c := range cubins {
		for _, e := range c.Entries {
			m.Entries = append(m.Entries, e)
		}
	}
	slices.Sort(m.Entries)
	selected, err := pick(k, m.Entries)
	if err != nil {
		return nil, err
	}
	m.Code[strings.Join(selected, "\n")], err = codeID(cubins, selected)
	return m, err
}

// hostFlags are the flags that decide what the host code does behind the
// intermediate that the host id is read from: the stream that "0" means, what
// the host compiler is told, what is linked.
func hostFlags(flags []string) []string {
	var out []string
	for i, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		switch {
		case slices.Contains([]string{"--default-stream", "-default-stream", "-Xcompiler", "--compiler-options", "-Xlinker",
			"--linker-options", "-l", "--library", "-L", "--library-path", "-cudart", "--cudart"}, name):
			out = append(out, f)
			if name == f && i+1 < len(flags) {
				out = append(out, flags[i+1])
			}
		case strings.HasPrefix(f, "-l") && f != "-lineinfo", strings.HasPrefix(f, "-L"):
			out = append(out, f)
		}
	}
	return out
}

// portable replaces the folders of this machine in a command.
func (b *Builder) portable(args []string, tmp string) []string {
	out := []string{"nvcc"}
	for _, a := range args {
		a = strings.ReplaceAll(a, tmp, "$OUT")
		a = strings.ReplaceAll(a, b.Toolchain.HostCompiler, "$CXX")
		out = append(out, strings.ReplaceAll(a, b.Include, "$HARNESS"))
	}
	return out
}

func (b *Builder) hostID(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading the compiler's host-side intermediate: %w", err)
	}
	defer f.Close()
	return identity.HostID(f, b.system)
}

func findCubin(dir, stem, arch string) (string, error) {
	stem = strings.ReplaceAll(stem, "[", `\[`)
	for _, pattern := range []string{stem + ".cubin", stem + "." + arch + ".cubin", stem + ".compute_*." + arch + ".cubin"} {
		if found, _ := fs.Glob(os.DirFS(dir), pattern); len(found) == 1 {
			return filepath.Join(dir, found[0]), nil
		}
	}
	return "", fmt.Errorf("nvcc left no cubin of %s.cu for %s", stem, arch)
}

// publish keeps the files worth keeping and renames the folder into place.
func (b *Builder) publish(tmp, key string, m *meta) error {
	keep := map[string]bool{"lib.so": true, "ptxas.log": true}
	for _, c := range m.Cubins {
		keep[c] = true
	}
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep[e.Name()] {
			if err := os.RemoveAll(filepath.Join(tmp, e.Name())); err != nil {
				return err
			}
		}
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "meta.json"), data, 0o644); err != nil {
		return err
	}
	return disk.PublishFolder(tmp, b.objectDir(key), func() bool { return b.openObject(key) != nil })
}
