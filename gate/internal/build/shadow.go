package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/kernelgate/gate/gate/internal/manifest"
)

// A header that appears can shadow one that was found elsewhere, without any
// file that was read being another. So the names of the headers are remembered
// wherever in the tree the compiler looks before it finds: beside every file
// that it read, and below every folder that include names.

// below marks a folder of which the whole tree is listed.
const below = "**"

// shadows are the folders of the tree in which a new name can matter, with
// the names in them.
func (b *Builder) shadows(p places, k *manifest.Kernel, files map[string]string) (map[string]string, error) {
	folders := map[string]bool{}
	for name := range files {
		if project(name) {
			folders[filepath.Dir(p.path(name))] = true
		}
	}
	for _, folder := range k.Include {
		folders[filepath.Join(k.Dir, filepath.FromSlash(folder), below)] = true
	}
	names := map[string]string{}
	for dir := range folders {
		sum, err := b.hashes.names(dir)
		if err != nil {
			return nil, err
		}
		names[p.name(dir)] = sum
	}
	return names, nil
}

// names hashes the names of the headers in a folder, or below it. A folder
// that is not there has none, and may come to have some.
func (h *hasher) names(dir string) (string, error) {
	return h.once(dir+"\x00names", func() (string, error) { return hashNames(dir) })
}

func hashNames(dir string) (string, error) {
	root, deep := strings.CutSuffix(dir, string(filepath.Separator)+below)
	list := sha256.New()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (!deep || e.Name() == ".git"):
			return fs.SkipDir
		case !e.IsDir() && header(e.Name()):
			rel, err := filepath.Rel(root, path)
			fmt.Fprintf(list, "%s\n", filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

func header(name string) bool {
	switch filepath.Ext(name) {
	case ".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", "":
		return true
	}
	return false
}
