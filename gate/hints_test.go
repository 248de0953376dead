package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// hintFields are the fields, and their constants, in which advice stands.
var hintFields = map[string]bool{"Advice": true, "Fix": true, "Hint": true}

var namedCommand = regexp.MustCompile(`\bgate((?: [a-z]+)+)`)

// TestHintsNameCommandsThatExist finds every text that advises a command and
// looks the command up in the table.
func TestHintsNameCommandsThatExist(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, text := range advice(file) {
			for _, m := range namedCommand.FindAllStringSubmatch(text, -1) {
				found++
				if !isCommand(strings.Fields(m[1])) {
					t.Errorf("%s advises %q, and there is no such command", path, m[0])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 5 {
		t.Errorf("%d hints with a command were found: the search is broken", found)
	}
}

// advice are the string literals of a file that are given as hints.
func advice(file *ast.File) []string {
	var out []string
	literals := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, text)
				}
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && hintFields[key.Name] {
				literals(n.Value)
			}
		case *ast.AssignStmt:
			if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && hintFields[to.Sel.Name] {
				literals(n.Rhs[0])
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.SelectorExpr); ok && fn.Sel.Name == "Usagef" {
				literals(n.Args[0])
			}
		case *ast.FuncDecl:
			if n.Name.Name == "Hint" {
				literals(n.Body)
			}
		}
		return true
	})
	return out
}

// isCommand reports whether words begin with a command, and with a subcommand
// where the command has any.
func isCommand(words []string) bool {
	commands := newApp(io.Discard, io.Discard).Commands
	for {
		var named *cli.Command
		for _, c := range commands {
			if len(words) > 0 && c.HasName(words[0]) {
				named = c
			}
		}
		if named == nil {
			return false
		}
		if commands, words = named.Subcommands, words[1:]; len(commands) == 0 {
			return true
		}
	}
}
