package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ticked   = regexp.MustCompile("`([^`]+)`")
	function = regexp.MustCompile(`^[A-Za-z]+(\.[A-Za-z]+)*$`)
)

// TestDesignNamesFunctionsThatExist holds the first column of the tables in
// docs/design, and the line that leads through the packages, to the code. A name
// without a package is of the one before it.
func TestDesignNamesFunctionsThatExist(t *testing.T) {
	const file = "docs/design/0001-questions.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]map[string]bool{}
	found := 0
	check := func(at, name string) string {
		parts := strings.Split(name, ".")
		if in := declaredIn(t, packages, parts[0]); len(parts) > 1 && in != nil {
			at, parts = parts[0], parts[1:]
		}
		found++
		if last := parts[len(parts)-1]; !declaredIn(t, packages, at)[last] {
			t.Errorf("%s names %s, and package %s does not declare %s", file, name, at, last)
		}
		return at
	}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		at := ""
		for _, m := range ticked.FindAllStringSubmatch(cells[1], -1) {
			at = check(at, m[1])
		}
	}
	_, diagram, _ := strings.Cut(string(text), "```\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	at := ""
	for _, word := range strings.Fields(diagram) {
		if name := strings.TrimSuffix(word, ","); function.MatchString(name) && (strings.Contains(name, ".") && filepath.Ext(name) != ".yaml" || at != "" && ast.IsExported(name)) {
			at = check(at, name)
		}
	}
	if found < 25 {
		t.Errorf("only %d functions were found", found)
	}
}

// declaredIn are the names of functions, methods and types of a package; nil for
// what is not one.
func declaredIn(t *testing.T, known map[string]map[string]bool, name string) map[string]bool {
	if in, ok := known[name]; ok {
		return in
	}
	dir := filepath.Join("internal", name)
	if name == "ptxas" {
		dir = filepath.Join("..", name)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		if known[name] == nil {
			known[name] = map[string]bool{}
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				known[name][d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						known[name][s.Name.Name] = true
					}
				}
			}
		}
	}
	return known[name]
}
