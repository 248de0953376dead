package project

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// unknownBase says why it cannot be told what a kernel was at the base; "" where
// it can. Git has to hold everything that decides what the kernel is: a file
// that is ignored or lies elsewhere has only the content of now, on both sides.
func (p *Project) unknownBase(head build.Result, base *build.Result) (string, error) {
	if p.compared == nil {
		return "", nil
	}
	files, err := p.decisive(head.Kernel)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if !p.holds(f) {
			return notHeld(f), nil
		}
	}
	if base == nil || head.Artifact == nil {
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(head.Artifact.Inputs)) {
		if why, err := p.unknownInput(name, head.Artifact.Inputs[name]); why != "" || err != nil {
			return why, err
		}
	}
	if base.Artifact == nil || p.baseRoot == p.Root {
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(base.Artifact.Inputs)) {
		file, tree := build.InTree(name)
		if _, ok := leads(p.baseRoot, file, func(string) bool { return true }); !tree || file != "" && !ok {
			return "at the base " + notHeld(file), nil
		}
	}
	return "", nil
}

// unknownInput says why the base's content of what the head's build read cannot
// be told.
func (p *Project) unknownInput(name, sum string) (string, error) {
	why, asked := p.unknown[name+" "+sum]
	if asked {
		return why, nil
	}
	file, tree := build.InTree(name)
	real, ok := leads(p.Root, file, p.compared.Knows)
	switch {
	case file == "" && tree: // gate's own
	case !tree || !ok:
		why = notHeld(file)
	case p.compared.Converted(real):
		why = fmt.Sprintf("a .gitattributes changed how git converts %s when it checks it out, so it is not known what lay there at the base", file)
	case p.baseRoot == p.Root: // nothing else was built to compare with
		same, err := p.compared.Same(real, sum)
		if err != nil {
			return "", err
		}
		if !same {
			why = file + " changed while gate was reading it"
		}
	}
	if p.unknown == nil {
		p.unknown = map[string]string{}
	}
	p.unknown[name+" "+sum] = why
	return why, nil
}

// holds reports whether git can tell what the base has of a file of the working
// tree: one that is ignored, lies elsewhere, or is a link to such a file is
// nobody's but the user's.
func (p *Project) holds(file string) bool {
	_, ok := leads(p.Root, file, p.compared.Knows)
	return ok
}

// baseHolds reports whether a file of the base is the base's own, and no link to
// a file of somewhere else.
func (p *Project) baseHolds(file string) bool {
	if p.baseRoot == p.Root {
		return p.holds(file)
	}
	_, ok := leads(p.baseRoot, file, func(string) bool { return true })
	return ok
}

func notHeld(file string) string {
	return fmt.Sprintf("it reads %s, which git does not hold, so it is not known what was there at the base (commit the file to have it compared)", file)
}

// decisive are the files of the working tree, from the root, that say what is
// built and how it is judged. An op of the base's tree is git's by its nature.
func (p *Project) decisive(k *manifest.Kernel) ([]string, error) {
	if rel, err := filepath.Rel(p.Root, k.Op.Dir); err != nil || !filepath.IsLocal(rel) {
		return []string{k.File}, nil
	}
	sources, err := build.OpFiles(k.Op)
	if err != nil {
		return nil, err
	}
	files := []string{k.File, k.Op.File}
	for _, s := range sources {
		files = append(files, path.Join(path.Dir(k.Op.File), s))
	}
	return files, nil
}

// mostLinks is how many symbolic links a path may take, as on Linux.
const mostLinks = 40

// leads follows the symbolic links of a path from the root, each of which has to
// be known, to a known file. One that leads out of the tree, or by an absolute
// path, is not followed: at the base it would lead to the same place.
func leads(root, file string, known func(string) bool) (real string, ok bool) {
	real = path.Clean(file)
	for range mostLinks {
		if !filepath.IsLocal(filepath.FromSlash(real)) {
			return "", false
		}
		link, target, err := firstLink(root, real)
		switch {
		case err != nil:
			return "", false
		case link == "":
			return real, known(real)
		case !known(link) || path.IsAbs(target) || strings.Contains(strings.TrimLeft(target, "./"), ".."):
			return "", false
		}
		real = path.Join(path.Dir(link), target, strings.TrimPrefix(real, link))
	}
	return "", false
}

// firstLink is the first part of a path that is a symbolic link, and where it
// leads; "" where there is none.
func firstLink(root, file string) (link, target string, err error) {
	for end := 0; end < len(file); {
		next := strings.IndexByte(file[end+1:], '/')
		if next < 0 {
			end = len(file)
		} else {
			end += 1 + next
		}
		target, err := os.Readlink(filepath.Join(root, filepath.FromSlash(file[:end])))
		if err == nil {
			return file[:end], filepath.ToSlash(target), nil
		}
		if errors.Is(err, os.ErrNotExist) {
			return "", "", err
		}
	}
	return "", "", nil
}
