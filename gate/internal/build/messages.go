package build

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// maxMessage bounds the compiler's lines in an error.
const maxMessage = 16 << 10

// refused is the error for code that the compiler, or the linker that it
// starts, turned down.
func (b *Builder) refused(ctx context.Context, p places, k *manifest.Kernel, arch, tmp string, output []byte) error {
	if unknownArch.Match(output) {
		return b.unknownArch(ctx, k, arch)
	}
	e := &CompileError{Kernel: k.Name}
	if linkFault.Match(output) {
		e.Why, output = "does not link", linkerLines(output)
	}
	text := strings.ReplaceAll(string(output), tmp+string(os.PathSeparator), "")
	e.Output = fromRoot(k, p.shorten([]byte(text)))
	if strings.Contains(e.Output, "Permission denied") {
		e.Output += "(the compiler may read the folder of the kernel, that of its op, and what include:, objects: and libraries: in kernel.yaml name)\n"
	}
	return e
}

// shorten takes the folders of this machine out of the compiler's lines.
func (p places) shorten(output []byte) string {
	text := string(output)
	for _, pl := range p {
		if pl.letter == "R" {
			text = strings.ReplaceAll(text, pl.dir+string(os.PathSeparator), "")
		}
	}
	if len(text) > maxMessage {
		text = text[:maxMessage] + "\n… (cut)\n"
	}
	return text
}

var unknownArch = regexp.MustCompile(`(?m)^nvcc fatal\s*: (?:Unsupported gpu architecture|Value '[^']*' is not defined for option 'gpu-)`)

// unknownArch says which architectures the compiler knows: kernel.yaml is wrong,
// and not the code.
func (b *Builder) unknownArch(ctx context.Context, k *manifest.Kernel, arch string) error {
	r, err := command.Command{Path: b.Toolchain.NVCC, Args: []string{"--list-gpu-code"}, Dir: k.Dir, Limit: compileLimit, Most: maxOutput}.Run(ctx)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return fmt.Errorf("asking nvcc for its architectures: %w", err)
	}
	return &InputError{fmt.Sprintf("%s:%d", k.File, k.Lines[fmt.Sprintf("arch[%d]", slices.Index(k.Arch, arch))]),
		fmt.Sprintf("this compiler (%s) does not know %s; it knows %s, and forms of some that end in a or f", b.Toolchain.Version, arch, strings.Join(strings.Fields(string(r.Stdout)), ", "))}
}

var (
	linkFault  = regexp.MustCompile(`(?m)^(?:collect2: (?:error|fatal)|nvlink (?:error|fatal)\b|.*\bld: )`)
	linkerLine = regexp.MustCompile(`^(?:collect2: |nvlink |.*\bld: )|: in function |undefined reference|multiple definition|first defined here|cannot find`)
)

// linkerLines leaves out what the compiler said before the linker started, and
// the names of the files that the linker read.
func linkerLines(output []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(output) {
		if linkerLine.Match(line) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// placed finds names of files as the compiler prints them: it works in the
// folder of the kernel.
var placed = regexp.MustCompile(`(?m)(^|from |compilation of ")(\.{1,2}/[^\s:("]+)`)

// fromRoot names a kernel's files from the root of the repository.
func fromRoot(k *manifest.Kernel, text string) string {
	return placed.ReplaceAllStringFunc(text, func(found string) string {
		m := placed.FindStringSubmatch(found)
		return m[1] + path.Join(path.Dir(k.File), m[2])
	})
}

var warning = regexp.MustCompile(`^(?:\S+(?:\(\d+\)|:\d+:\d+): warning\b|nvcc warning\b|ptxas warning\b|nvlink warning\b|ptxas (?:/tmp/)?\S+, line \d+; warning\b)`)

// Warnings are the lines of warning that the compiler printed about a kernel,
// each once: nvcc reads a source for the device and again for the host.
func Warnings(k *manifest.Kernel, a *Artifact) ([]string, error) {
	log, err := os.ReadFile(a.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's log: %w", err)
	}
	var found []string
	for line := range bytes.Lines(log) {
		if !warning.Match(line) {
			continue
		}
		if text := strings.TrimSpace(fromRoot(k, string(line))); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found, nil
}
