package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// Op builds an op's shared object: host code only. What the compiler read has to
// be what identifies the op, or belong to gate or to the system.
func (h *Harness) Op(ctx context.Context, tc *toolchain.Toolchain, op *manifest.Op) (string, error) {
	key, err := h.opKey(tc, op)
	if err != nil {
		return "", err
	}
	made, err := h.make(op.Name+"-"+key+".so", func(out string) error {
		objects := make([]string, len(op.Sources))
		for i, s := range op.Sources {
			objects[i] = fmt.Sprintf("%s.%d.o", out, i)
			if err := h.compileOp(ctx, tc, op, s, objects[i]); err != nil {
				return err
			}
		}
		return h.opCompiler(ctx, tc, op, filepath.Dir(out), slices.Concat([]string{"-shared"}, objects, []string{"-lpthread", "-o", out}))
	})
	if err != nil && !errors.As(err, new(*InputError)) {
		err = fmt.Errorf("building op %s: %w", op.Name, err)
	}
	return made, err
}

// opKey addresses what is built of an op.
func (h *Harness) opKey(tc *toolchain.Toolchain, op *manifest.Op) (string, error) {
	files, err := OpFiles(op)
	if err != nil {
		return "", err
	}
	parts := []string{"op", filepath.Base(h.Include), tc.Fingerprint()}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(op.Dir, filepath.FromSlash(f)))
		if err != nil {
			return "", fmt.Errorf("op %s: %w", op.Name, err)
		}
		parts = append(parts, f, string(data))
	}
	return keyOf(parts...), nil
}

// compileOp compiles one source and lets compiler and assembler list what they
// read.
func (h *Harness) compileOp(ctx context.Context, tc *toolchain.Toolchain, op *manifest.Op, source, object string) error {
	switch name, err := findPrecompiled(op.Dir); {
	case err != nil:
		return err
	case name != "":
		return precompiledError(op.File, name)
	}
	args := []string{"-O3", "-std=c++17", "-fPIC", "-I", h.Include, "-I", op.Dir, "-c", filepath.Join(op.Dir, filepath.FromSlash(source)), "-o", object,
		"-MD", "-MF", object + ".d"}
	lists := []string{object + ".d"}
	if !strings.Contains(filepath.Base(tc.HostCompiler), "clang") { // whose assembler keeps no list
		args, lists = append(args, "-Wa,--MD,"+object+".as.d"), append(lists, object+".as.d")
	}
	tmp := filepath.Dir(object)
	if err := h.opCompiler(ctx, tc, op, tmp, args); err != nil {
		return err
	}
	files, err := OpFiles(op)
	if err != nil {
		return err
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			return fmt.Errorf("reading what the compiler read: %w", err)
		}
		for _, read := range prerequisites(data) {
			if !filepath.IsAbs(read) {
				read = filepath.Join(tmp, read)
			}
			rel, err := filepath.Rel(op.Dir, read)
			mine := err == nil && slices.Contains(files, filepath.ToSlash(rel))
			ours := slices.ContainsFunc(append(systemFolders(tc), tmp, h.Include), func(dir string) bool { return within(dir, filepath.Clean(read)) })
			if !mine && (!ours || err == nil && filepath.IsLocal(rel)) {
				return &InputError{path.Join(path.Dir(op.File), source), fmt.Sprintf("reads %s, which is none of the files that identify the op, so that evidence would outlive a change to it", printable.Line(read))}
			}
		}
	}
	return nil
}

// prerequisites are the files of a rule for make.
func prerequisites(rule []byte) []string {
	text := strings.NewReplacer("\\\n", " ", `\ `, "\x00", `\#`, "#", "$$", "$").Replace(string(rule))
	_, text, _ = strings.Cut(text, ": ")
	files := strings.Fields(text)
	for i, f := range files {
		files[i] = strings.ReplaceAll(f, "\x00", " ")
	}
	return files
}

// opCompiler runs the host compiler. What it says of the op is about the op's
// own lines.
func (h *Harness) opCompiler(ctx context.Context, tc *toolchain.Toolchain, op *manifest.Op, tmp string, args []string) error {
	r, err := h.compiler(ctx, tc, tc.HostCompiler, tmp, args, op.Dir)
	switch {
	case err != nil:
		return err
	case r.Err() == nil:
		return nil
	case r.Stopped != "" || r.Signal != "":
		return fmt.Errorf("%s: %w", filepath.Base(tc.HostCompiler), r.Err())
	case machineFault.Match(r.Stdout):
		return fmt.Errorf("%s failed for want of something on this machine: %s", filepath.Base(tc.HostCompiler), printable.First(string(machineFault.Find(r.Stdout))))
	}
	said := strings.ReplaceAll(string(r.Stdout), op.Dir+string(filepath.Separator), path.Dir(op.File)+"/")
	return &InputError{op.File, "the op does not compile: " + firstError(said)}
}

// firstError is the line with which a compiler says what is wrong.
func firstError(said string) string {
	for line := range strings.SplitSeq(said, "\n") {
		if strings.Contains(line, "error: ") || strings.Contains(line, "undefined reference") {
			return printable.Cut(printable.Line(line), 500)
		}
	}
	return printable.First(said)
}
