package build

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/git"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// A PointerError is an input of a build in whose place lies a pointer of
// git-lfs. Neither the kernel nor a tool is at fault: what was meant is not here.
type PointerError struct{ File string } // from the root

func (e *PointerError) Error() string {
	return printable.Line(e.File) + " is a pointer of git-lfs, and its content is not here (git lfs pull; the base is read as git holds it)"
}

// ExitCode is that of what is missing.
func (e *PointerError) ExitCode() int { return exit.Inconclusive }

// Hint says nothing: the message says it all.
func (e *PointerError) Hint() string { return "" }

// noPointer refuses the content of a file that is a pointer.
func (p places) noPointer(file string, data []byte) error {
	if !git.Pointer(data) {
		return nil
	}
	name, _ := InTree(p.name(file))
	return &PointerError{name}
}

// pointers finds a pointer among the files that a kernel may be built from. It
// is asked about code that does not compile, so it also finds one that a
// condition would leave out.
func (b *Builder) pointers(p places, k *manifest.Kernel) error {
	folders := []string{k.Dir}
	if k.Op != nil {
		folders = append(folders, k.Op.Dir)
	}
	for _, dir := range k.Include {
		folders = append(folders, filepath.Join(k.Dir, filepath.FromSlash(dir)))
	}
	var files []string
	for _, s := range k.Sources {
		files = append(files, filepath.Join(k.Dir, filepath.FromSlash(s)))
	}
	for i := 0; i < len(files); i++ {
		data, err := os.ReadFile(files[i])
		if err != nil {
			continue // a folder, say
		}
		if err := p.noPointer(files[i], data); err != nil {
			return err
		}
		s, err := identity.ReadSource(data, files[i])
		if err != nil {
			continue
		}
		for _, name := range s.Looks {
			for _, dir := range append([]string{filepath.Dir(files[i])}, folders...) {
				found := filepath.Join(dir, filepath.FromSlash(name))
				if info, err := os.Stat(found); err == nil && info.Mode().IsRegular() && project(p.name(found)) && !slices.Contains(files, found) {
					files = append(files, found)
				}
			}
		}
	}
	return nil
}

// opPointer refuses a file of an op that is a pointer.
func opPointer(op *manifest.Op, file string, data []byte) error {
	if !git.Pointer(data) {
		return nil
	}
	return fmt.Errorf("op %s: %w", op.Name, &PointerError{path.Join(path.Dir(op.File), file)})
}
