package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"slices"
	"strings"
)

// A mechanism is something that one package should do for all. Its copies are
// the packages that hold a place of it: a function, or a type, with a mark in
// its syntax. The marks are listed here and nowhere else.
type mechanism struct {
	name string
	mark string // what is looked for, for the reader
	has  func(ast.Node) bool
}

var mechanisms = []mechanism{
	{"runner of child programs", "calls exec.Command or exec.CommandContext", calls("exec.Command", "exec.CommandContext")},
	{"environment of a child", "calls os.Environ", calls("os.Environ")},
	{"writer with a limit", "is a method Write([]byte) (int, error)", isWriter},
	{"atomic write of a file", "calls os.CreateTemp and os.Rename", both(calls("os.CreateTemp"), calls("os.Rename"))},
	{"publication of a folder or output", "calls os.Rename without os.CreateTemp", both(calls("os.Rename"), not(calls("os.CreateTemp")))},
	{"file lock", "calls unix.Flock, syscall.Flock or flock.New", calls("unix.Flock", "syscall.Flock", "flock.New")},
	{"strict JSON decoder", "calls DisallowUnknownFields", calls(".DisallowUnknownFields")},
	{"cleaner of untrusted text", "calls unicode.IsControl, or names U+2028", either(calls("unicode.IsControl"), namesLineSeparator)},
	{"stat cache", "is a struct with a size and a modification time", isStat},
}

// writeMechanisms writes where each mechanism stands.
func writeMechanisms(w io.Writer, h *house) {
	fmt.Fprintln(w, "# Mechanisms: copies (packages), places, and where\nA package with several places holds one copy.")
	for _, m := range mechanisms {
		var places, packages []string
		for _, r := range h.packages {
			if !r.counted {
				continue
			}
			for name, n := range nodes(r) {
				if m.has(n) {
					places, packages = append(places, name), append(packages, r.name)
				}
			}
		}
		slices.Sort(places)
		slices.Sort(packages)
		fmt.Fprintf(w, "%3d %3d  %s (%s): %s\n", len(slices.Compact(packages)), len(places), m.name, m.mark, strings.Join(places, ", "))
	}
	fmt.Fprintln(w)
}

// nodes are the functions and the types of a package, by title.
func nodes(r *room) map[string]ast.Node {
	found := map[string]ast.Node{}
	for _, file := range r.files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found[title(r, d)] = d
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok {
						found[r.name+"."+t.Name.Name] = t
					}
				}
			}
		}
	}
	return found
}

// calls holds for a function that calls one of the given: "package.Name", or
// ".Name" for a method of any value.
func calls(names ...string) func(ast.Node) bool {
	return inside(func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return false
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return slices.Contains(names, "."+s.Sel.Name) || ok && slices.Contains(names, x.Name+"."+s.Sel.Name)
	})
}

// inside holds for a function with such a node in its body.
func inside(is func(ast.Node) bool) func(ast.Node) bool {
	return func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			return false
		}
		found := false
		ast.Inspect(f.Body, func(n ast.Node) bool {
			found = found || n != nil && is(n)
			return !found
		})
		return found
	}
}

func namesLineSeparator(n ast.Node) bool {
	return inside(func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		return ok && (l.Kind == token.CHAR && l.Value == `'\u2028'` || l.Kind == token.INT && l.Value == "0x2028")
	})(n)
}

func isWriter(n ast.Node) bool {
	f, ok := n.(*ast.FuncDecl)
	return ok && f.Recv != nil && f.Name.Name == "Write" && f.Type.Params.NumFields() == 1 && f.Type.Results.NumFields() == 2
}

func isStat(n ast.Node) bool {
	t, ok := n.(*ast.TypeSpec)
	if !ok {
		return false
	}
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return false
	}
	size, modified := false, false
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			size = size || strings.EqualFold(name.Name, "size")
			modified = modified || strings.EqualFold(name.Name, "mtime") || strings.EqualFold(name.Name, "modtime")
		}
	}
	return size && modified
}

func both(a, b func(ast.Node) bool) func(ast.Node) bool {
	return func(n ast.Node) bool { return a(n) && b(n) }
}

func either(a, b func(ast.Node) bool) func(ast.Node) bool {
	return func(n ast.Node) bool { return a(n) || b(n) }
}

func not(a func(ast.Node) bool) func(ast.Node) bool {
	return func(n ast.Node) bool { return !a(n) }
}
