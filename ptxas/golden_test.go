package ptxas

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

//go:generate sh testdata/record.sh

var update = flag.Bool("update", false, "rewrite golden files")

// render writes what was read, one line a record, in log order.
func render(log *Log) string {
	var b strings.Builder
	fmt.Fprintf(&b, "units %d\n", log.Units)
	for i := range log.Entries {
		renderEntry(&b, &log.Entries[i])
	}
	for _, f := range log.Functions {
		renderFunction(&b, "function", f)
	}
	for _, list := range [][]Diagnostic{log.Advisories, log.Warnings, log.Errors, log.Notes} {
		for _, d := range list {
			fmt.Fprintf(&b, "%s %s %s %s line %d ×%d key %q stack %v spills %v %v limit %v: %s\n", d.Source, d.Severity, d.Kind, d.Code,
				d.Line, d.Repeats, d.Key, d.StackBytes, d.SpillStoreBytes, d.SpillLoadBytes, d.RegisterLimit, strings.TrimLeft(d.Place+": ", ": ")+d.Text)
		}
	}
	return b.String()
}

func renderEntry(b *strings.Builder, e *Entry) {
	fmt.Fprintf(b, "%s %s %s #%d line %d\n", e.Source, e.Arch, e.Name, e.Occurrence, e.Line)
	if e.Key != e.Name {
		fmt.Fprintf(b, "  key %s\n", e.Key)
	}
	fmt.Fprintf(b, "  registers %v barriers %v shared %v stack %v cumulative %v stores %v loads %v local %v textures %v surfaces %v samplers %v constant %v unknown %q callee-spills %v\n",
		e.Registers, e.Barriers, e.SharedBytes, e.StackBytes, e.CumulativeStackBytes, e.SpillStoreBytes, e.SpillLoadBytes,
		e.LocalBytes, e.Textures, e.Surfaces, e.Samplers, e.Constant, e.Unknown, e.CalleeSpillBytes())
	for _, f := range e.Callees {
		renderFunction(b, "  callee", f)
	}
	for _, f := range e.UnitFunctions {
		renderFunction(b, "  unit-function", f)
	}
}

func renderFunction(b *strings.Builder, what string, f Function) {
	fmt.Fprintf(b, "%s %s line %d stack %v stores %v loads %v\n", what, f.Key, f.Line, f.StackBytes, f.SpillStoreBytes, f.SpillLoadBytes)
}

func renderUsage(u *ResourceUsage) string {
	var b strings.Builder
	for i := range u.Functions {
		f := &u.Functions[i]
		fmt.Fprintf(&b, "%s %s #%d line %d registers %v stack %v shared %v (declared %v) local %v textures %v surfaces %v samplers %v constant %v unknown %q\n",
			f.Arch, f.Name, f.Occurrence, f.Line, f.Registers, f.StackBytes, f.SharedBytes, f.StaticSharedBytes(), f.LocalBytes,
			f.Textures, f.Surfaces, f.Samplers, f.Constant, f.Unknown)
	}
	return b.String()
}

// read parses a file by its kind and renders the result or the error.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	if strings.HasSuffix(path, ".txt") {
		u, err := ParseResourceUsage(bytes.NewReader(data), name)
		if err != nil {
			return fmt.Sprintf("%T: %v\n", err, err) + renderUsage(u)
		}
		return renderUsage(u)
	}
	log, err := Parse(bytes.NewReader(data), name)
	if err != nil {
		return fmt.Sprintf("%T: %v\n", err, err) + render(log)
	}
	return render(log)
}

func readText(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// recordings are the logs and resource usage texts below a folder.
func recordings(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".log") || strings.HasSuffix(path, ".txt")) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no recordings in %s", dir)
	}
	sort.Strings(files)
	return files
}

func TestGolden(t *testing.T) {
	want := map[string]bool{}
	for _, path := range recordings(t, "testdata") {
		got, golden := read(t, path), path+".golden"
		want[golden] = true
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(golden)
		if err != nil {
			t.Error(err)
		} else if got != string(data) {
			t.Errorf("%s: not equal to its golden file; got\n%s", path, got)
		}
	}
	err := filepath.WalkDir("testdata", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".golden") && path != corpusGolden && !want[path] {
			t.Errorf("%s belongs to no recording", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var corpusGolden = filepath.Join("testdata", "undistributed.golden")

// TestCorpus reads logs that are not distributed with the module. The golden
// file holds the size of each result and its digest, or the error.
func TestCorpus(t *testing.T) {
	root := os.Getenv("GATE_CORPUS")
	if root == "" {
		t.Skip("GATE_CORPUS is not set")
	}
	dir := filepath.Join(root, "ptxas")
	var b strings.Builder
	for _, path := range recordings(t, dir) {
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, path)
		if strings.HasPrefix(got, "*") {
			first, _, _ := strings.Cut(got, "\n")
			fmt.Fprintf(&b, "%s: %s\n", filepath.ToSlash(rel), first)
			continue
		}
		fmt.Fprintf(&b, "%s: %d lines sha256 %x\n", filepath.ToSlash(rel), strings.Count(got, "\n"), sha256.Sum256([]byte(got)))
	}
	if *update {
		if err := os.WriteFile(corpusGolden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(corpusGolden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(data) {
		t.Errorf("not equal to %s; got\n%s", corpusGolden, b.String())
	}
}
