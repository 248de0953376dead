package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A house is a checkout.
type house struct {
	fset     *token.FileSet
	packages []*room           // of the module, by import path
	exports  map[string]string // export data of every package, by import path
}

// A room is a package of the module.
type room struct {
	path    string // import path
	name    string // below gate/internal, "gate" for the command
	counted bool   // it belongs to what is measured
	files   []*ast.File
	tests   []*ast.File // in the package; external ones are left out
	lines   int         // of the files, and of those for other build constraints
}

// A listed package is what go list says of it.
type listed struct {
	ImportPath, Dir, Export, ForTest               string
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles []string
	Module                                         *struct {
		Path string
		Main bool
	}
}

// load reads the packages of the module at dir.
func load(dir string) (*house, error) {
	all, err := list(dir)
	if err != nil {
		return nil, err
	}
	h := &house{fset: token.NewFileSet(), exports: map[string]string{}}
	for _, p := range all {
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		h.exports[p.ImportPath] = p.Export
		if p.Module == nil || !p.Module.Main {
			continue
		}
		r, err := h.read(p)
		if err != nil {
			return nil, err
		}
		h.packages = append(h.packages, r)
	}
	if !slices.ContainsFunc(h.packages, func(r *room) bool { return r.counted }) {
		return nil, fmt.Errorf("%s holds no package below gate/", dir)
	}
	return h, nil
}

// read parses a package of the module.
func (h *house) read(p listed) (*room, error) {
	r := &room{path: p.ImportPath}
	r.name, r.counted = place(strings.TrimPrefix(p.ImportPath, p.Module.Path+"/"))
	var err error
	if r.files, r.lines, err = h.parse(p.Dir, slices.Concat(p.GoFiles, p.CgoFiles)); err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(p.IgnoredGoFiles, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	_, more, err := h.parse(p.Dir, others)
	if err != nil {
		return nil, err
	}
	r.lines += more
	r.tests, _, err = h.parse(p.Dir, p.TestGoFiles)
	return r, err
}

// place says what a package is called here, and whether it is measured.
func place(name string) (string, bool) {
	if name != "gate" && !strings.HasPrefix(name, "gate/") {
		return name, false
	}
	name = strings.TrimPrefix(name, "gate/internal/")
	first, _, _ := strings.Cut(name, "/")
	return name, first != "study" && name != "compare/live" && name != "compare/peers"
}

func list(dir string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-export",
		"-json=ImportPath,Dir,Export,ForTest,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,Module", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", dir, err)
		}
		all = append(all, p)
	}
}

// parse reads files and counts their lines.
func (h *house) parse(dir string, names []string) ([]*ast.File, int, error) {
	var files []*ast.File
	lines := 0
	for _, name := range names {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, 0, err
		}
		f, err := parser.ParseFile(h.fset, name, data, parser.SkipObjectResolution)
		if err != nil {
			return nil, 0, err
		}
		files, lines = append(files, f), lines+strings.Count(string(data), "\n")
	}
	return files, lines, nil
}

// each calls do with every function that is measured.
func (h *house) each(do func(r *room, f *ast.FuncDecl)) {
	for _, r := range h.packages {
		if !r.counted {
			continue
		}
		for _, file := range r.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					do(r, f)
				}
			}
		}
	}
}

// title is a function's name with its package and receiver: "build.Builder.compile".
func title(r *room, f *ast.FuncDecl) string {
	name := f.Name.Name
	if f.Recv != nil {
		name = receiver(f.Recv.List[0].Type) + "." + name
	}
	return path.Base(r.name) + "." + name
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
