package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// mostFiles ends a walk over a tree in which links multiply folders.
const mostFiles = 1 << 20

// A walker lists the files below folders of a tree by their names, which are
// never taken for patterns. Links are followed where they stay in the tree and
// do not lead back.
type walker struct {
	root, real string // as given, and without links
	listed     map[string][]string
	notes      []string
	files      int
}

func newWalker(root string) (*walker, error) {
	real, err := filepath.EvalSymlinks(root)
	return &walker{root: root, real: real, listed: map[string][]string{}}, err
}

// below lists the regular files below a folder, slash-separated. A folder that
// is not there has none.
func (w *walker) below(folder string) ([]string, error) {
	folder = path.Clean(folder)
	if files, ok := w.listed[folder]; ok {
		return files, nil
	}
	files, err := w.enter(folder, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	w.listed[folder] = files
	return files, err
}

// enter lists a folder; parents are those that the way here went through,
// without links.
func (w *walker) enter(folder string, parents []string) ([]string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(w.root, filepath.FromSlash(folder)))
	if err != nil {
		return nil, err
	}
	if !w.inside(folder, real) {
		return nil, nil
	}
	if slices.Contains(parents, real) {
		w.notes = append(w.notes, fmt.Sprintf("%q leads back to a folder that holds it and was not followed", folder))
		return nil, nil
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, err
	}
	parents = append(slices.Clone(parents), real)
	var files []string
	for _, e := range entries {
		if w.files++; w.files > mostFiles {
			return nil, fmt.Errorf("there are more than %d files below %s", mostFiles, folder)
		}
		name := path.Join(folder, e.Name())
		switch kind := w.kind(name, filepath.Join(real, e.Name()), e.Type()); {
		case kind.IsRegular():
			files = append(files, name)
		case kind.IsDir() && e.Name() != ".git":
			below, err := w.enter(name, parents)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			files = append(files, below...)
		}
	}
	return files, nil
}

// kind is what an entry is, or what a link leads to. A link to nothing counts as
// a file, which is an error when it is read.
func (w *walker) kind(name, full string, mode fs.FileMode) fs.FileMode {
	if mode.Type() != fs.ModeSymlink {
		return mode.Type()
	}
	real, err := filepath.EvalSymlinks(full)
	if err != nil {
		return 0
	}
	info, err := os.Stat(real)
	if err != nil {
		return 0
	}
	if info.IsDir() || w.inside(name, real) {
		return info.Mode().Type() // of a folder, enter says whether it is inside
	}
	return fs.ModeIrregular
}

// inside reports whether a place without links is in the tree, and notes the
// name of one that is not.
func (w *walker) inside(name, real string) bool {
	rel, err := filepath.Rel(w.real, real)
	if err == nil && filepath.IsLocal(rel) {
		return true
	}
	w.notes = append(w.notes, fmt.Sprintf("%q leads out of the repository and was not followed", name))
	return false
}

// matching keeps the files that a pattern names. A name that is not UTF-8 cannot
// stand in a policy or a report, so a file that is meant under one is an error.
func matching(files []string, means func(name string) bool) ([]string, error) {
	var out []string
	for _, f := range files {
		valid := strings.ToValidUTF8(f, string(utf8.RuneError))
		if !means(valid) {
			continue
		}
		if valid != f {
			return nil, &yamlfile.Error{File: valid, Msg: fmt.Sprintf("the name %q is not UTF-8", f)}
		}
		out = append(out, f)
	}
	return out, nil
}
