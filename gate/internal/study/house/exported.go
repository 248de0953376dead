package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"slices"
	"strings"
)

// called are methods that others call through an interface, without a word of
// it in the text: errors, printing, encoding.
var called = []string{"Error", "Unwrap", "Is", "As", "String", "Write", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML", "ExitCode", "Hint"}

// writeExported writes how many constants, variables, types, functions and
// methods are exported, and which of them no other package uses. Fields are
// left out: encoding reads them.
func writeExported(w io.Writer, h *house) error {
	declared := map[string][]string{} // names, by package
	used, tested := map[string]bool{}, map[string]bool{}
	for _, r := range h.packages {
		if r.counted && r.name != "gate" {
			declared[r.name] = exported(r)
		}
		names, err := h.usedBy(r, r.files)
		if err != nil {
			return err
		}
		for n := range names {
			used[n] = true
		}
		// A test may use a package's insides in ways that cannot be resolved alone.
		names, _ = h.usedBy(r, slices.Concat(r.files, r.tests))
		for n := range names {
			tested[n] = true
		}
	}
	all, alone := 0, 0
	var text strings.Builder
	for _, r := range h.packages {
		var unused []string
		for _, name := range declared[r.name] {
			all++
			if _, method, ok := strings.Cut(name, "."); used[r.path+"."+name] || ok && slices.Contains(called, method) {
				continue
			}
			alone++
			if tested[r.path+"."+name] {
				name += " (tests)"
			}
			unused = append(unused, name)
		}
		if len(unused) > 0 {
			fmt.Fprintf(&text, "  %s: %s\n", r.name, strings.Join(unused, ", "))
		}
	}
	_, err := fmt.Fprintf(w, "# Exported names\n%d declared, %d never used by a non-test file of another package:\n%s", all, alone, &text)
	return err
}

// exported lists what a package exports, methods as "Type.Method".
func exported(r *room) []string {
	var names []string
	for _, file := range r.files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
					_, name, _ := strings.Cut(title(r, d), ".")
					names = append(names, name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					names = append(names, specNames(s)...)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func specNames(s ast.Spec) []string {
	var names []string
	switch s := s.(type) {
	case *ast.TypeSpec:
		names = []string{s.Name.Name}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return !ast.IsExported(n) })
}

// usedBy resolves files of a package and lists what they use of others: by
// name, or as the type of a value.
func (h *house) usedBy(r *room, files []*ast.File) (map[string]bool, error) {
	var first error
	config := types.Config{
		Importer: importer.ForCompiler(h.fset, "gc", func(path string) (io.ReadCloser, error) {
			if h.exports[path] == "" {
				return nil, fmt.Errorf("there is no export data of %s", path)
			}
			return os.Open(h.exports[path])
		}),
		Error: func(err error) {
			if first == nil {
				first = err
			}
		},
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config.Check(r.path, h.fset, files, info) // its error is the first that Error was given
	names := map[string]bool{}
	use := func(o types.Object) {
		if o.Pkg() != nil && o.Pkg().Path() != r.path {
			names[key(o)] = true
		}
	}
	for _, o := range info.Uses {
		use(o)
	}
	for _, e := range info.Types {
		if named := namedOf(e.Type); named != nil {
			use(named.Obj())
		}
	}
	return names, first
}

// namedOf is the named type that a value is, points to or holds; nil for others.
func namedOf(t types.Type) *types.Named {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return t
	case interface{ Elem() types.Type }: // pointer, slice, array, map
		return namedOf(t.Elem())
	}
	return nil
}

// key names an object as exported and its import path do; other objects get a
// name that no exported one has.
func key(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			if named := namedOf(recv.Type()); named != nil {
				return o.Pkg().Path() + "." + named.Obj().Name() + "." + o.Name()
			}
		}
	}
	if o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return o.Pkg().Path() + "." + o.Name()
}
