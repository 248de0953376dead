package main

import (
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hardToRead are ways of saying something that a reader whose English is a second
// language stumbles over, with what to say instead.
var hardToRead = []struct {
	words   *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bcomes? behind\b`), `"comes before" or "comes after"`},
	{regexp.MustCompile(`\bwants\b`), `"needs" or "requires"`},
	{regexp.MustCompile(`(?i)\bin silence\b`), `"without a word"`},
	{isNo, `"is not"`},
}

// isNo is an "is no", with the words around it: there is nothing wrong with "there
// is no base" and "is no longer".
var (
	isNo  = regexp.MustCompile(`(\S+) (?:is|are|was|were) no (\w+)`)
	plain = []string{"longer", "better", "worse", "more", "larger", "smaller", "slower", "faster", "other"}
)

func hard(text string) (found, instead string) {
	for _, h := range hardToRead {
		for _, m := range h.words.FindAllStringSubmatch(text, -1) {
			if h.words != isNo || !strings.EqualFold(strings.TrimLeft(m[1], "\"`'(:"), "there") && !slices.Contains(plain, m[2]) {
				return m[0], h.instead
			}
		}
	}
	return "", ""
}

// prose are the comments and texts of a Go file, and the whole of any other.
func prose(path string, text []byte) []string {
	if filepath.Ext(path) != ".go" {
		return strings.Split(string(text), "\n")
	}
	var out []string
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile(path, -1, len(text)), text, nil, scanner.ScanComments)
	for {
		switch _, kind, literal := s.Scan(); kind {
		case token.EOF:
			return out
		case token.COMMENT:
			out = append(out, strings.NewReplacer("\n// ", " ", "\n", " ").Replace(literal))
		case token.STRING:
			out = append(out, literal)
		}
	}
}

// TestProseIsPlain looks for hard words in what readers see: comments, messages
// and documents. Below kernels/ only documents are read: what the harness and the ops
// say is part of the identity of recorded evidence, and tests repeat it.
func TestProseIsPlain(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "--", "*.go", "*.md", "*.yaml", "*.yml", "Makefile", "*.cc")
	cmd.Dir = ".."
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("no list of files: %v", err)
	}
	read := 0
	for _, name := range strings.Fields(string(list)) {
		if strings.Contains(name, "/testdata/") || strings.HasPrefix(name, "kernels/") && filepath.Ext(name) != ".md" || name == "gate/prose_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
			continue
		}
		read++
		for _, p := range prose(name, text) {
			if found, instead := hard(p); found != "" {
				t.Errorf("%s: %q is hard to read, say %s", name, found, instead)
			}
		}
	}
	if read < 300 {
		t.Errorf("only %d files were read", read)
	}
}

func TestHardWords(t *testing.T) {
	for text, want := range map[string]bool{
		"NaN is no small error": true, "(it is no field)": true, "they are no evidence": true, "what comes behind": true, "the policy wants it": true,
		"there is no base": false, "There is no base": false, "(there are no rules)": false, "it is no longer here": false, "Wants": false, "is not a field": false,
	} {
		if found, _ := hard(text); (found != "") != want {
			t.Errorf("%q: found %q", text, found)
		}
	}
}
