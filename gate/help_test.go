package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// everyWord visits the words of the table that a user can type.
func everyWord(t *testing.T, visit func(command, word string)) {
	t.Helper()
	flags := 0
	eachCommand(newApp(io.Discard, io.Discard).Commands, "", func(path string, c *cli.Command) {
		visit(path, c.Name)
		for _, f := range c.Flags {
			for _, n := range textOf(f).names {
				flags++
				visit(path, n)
			}
		}
	})
	if flags < 40 {
		t.Errorf("%d flags were found: the search is broken", flags)
	}
}

// TestManualHasEverything: each command's section has its flags.
func TestManualHasEverything(t *testing.T) {
	var page bytes.Buffer
	if status := run(t.Context(), []string{"gate", "help", "--format", "man"}, &page, io.Discard); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	everyWord(t, func(command, word string) {
		_, section, found := strings.Cut(page.String(), "\n.SS gate"+command)
		section, _, _ = strings.Cut(section, "\n.S")
		if !found || strings.HasPrefix(word, "-") && !strings.Contains(section, roff(word)) {
			t.Errorf("the manual has no %s of gate%s", word, command)
		}
	})
	for _, list := range [][][2]string{variables, exit.Table} {
		for _, x := range list {
			if !strings.Contains(page.String(), roff(x[0])) {
				t.Errorf("the manual does not name %s", x[0])
			}
		}
	}
	for line := range strings.Lines(page.String()) { // only what was meant to be is a request
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.Contains(".TH .SH .SS .TP .PP .B .I", strings.Fields(line)[0]) {
			t.Errorf("%q", line)
		}
	}
}

var ownVariable = regexp.MustCompile(`"(GATE_[A-Z]+)"`)

// TestHelpNamesEveryVariable: what gate reads of the environment under a name of
// its own, but for the mark that it gives its children.
func TestHelpNamesEveryVariable(t *testing.T) {
	known := map[string]bool{"GATE_RUN": true}
	for _, v := range variables {
		known[v[0]] = true
	}
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range ownVariable.FindAllStringSubmatch(string(text), -1) {
			if found++; !known[m[1]] {
				t.Errorf("%s reads %s, which gate help does not name", path, m[1])
			}
		}
		return err
	})
	if err != nil || found < 4 {
		t.Errorf("%d variables were found: %v", found, err)
	}
}

// TestExitCodesAreDocumented: each status has its row.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|`).FindAllStringSubmatch(string(page), -1)
	var documented, known []string
	for _, r := range rows {
		documented = append(documented, strings.Split(r[1], ", ")...)
	}
	for _, s := range exit.Table {
		known = append(known, strings.Split(s[0], ", ")...)
	}
	if !slices.Equal(documented, known) {
		t.Errorf("documented are %q, and gate ends with %q", documented, known)
	}
}

func TestRoff(t *testing.T) {
	for given, want := range map[string]string{`a\b`: `a\eb`, "--x": `\-\-x`, ".SH x": `\&.SH x`, "a\n.b\n'c": "a\n\\&.b\n\\&'c", "'": `\&'`} {
		if got := roff(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

// TestCompletionHasEverything: help is completed as if it were not there.
func TestCompletionHasEverything(t *testing.T) {
	for shell, script := range shells {
		text := script(complete(newApp(io.Discard, io.Discard).Commands))
		everyWord(t, func(command, word string) {
			if shell == "fish" {
				word = fishWord(word)
			}
			if command != " help" && !strings.Contains(text, word) {
				t.Errorf("%s does not complete %q of gate%s", shell, word, command)
			}
		})
	}
}

// TestValuesHaveNames: a flag that takes a value says which.
func TestValuesHaveNames(t *testing.T) {
	eachCommand(newApp(io.Discard, io.Discard).Commands, "", func(path string, c *cli.Command) {
		for _, f := range c.Flags {
			if f.(cli.DocGenerationFlag).TakesValue() && textOf(f).value == "" {
				t.Errorf("gate%s %s does not say what it takes", path, textOf(f).names[0])
			}
		}
	})
}

func fishWord(word string) string {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		return "-l " + long
	}
	if short, ok := strings.CutPrefix(word, "-"); ok {
		return "-s " + short
	}
	return word
}
