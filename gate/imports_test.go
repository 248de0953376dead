package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kernelgate/gate"

// order lists every package of the module. A package imports packages of
// earlier lines only. A package that is not written yet may stand here.
var order = [][]string{
	{"ptxas", "ncu", "kernels/harness", "strictjson", "printable", "exit"},
	{"disk"}, {"command", "yamlfile", "evidence", "event"},
	{"nvccflags", "roof"}, {"git", "gpu", "identity", "manifest", "toolchain", "cache"},
	{"compare"},
	{"metric"},
	{"verdict"},
	{"policy"},
	{"schema"},
	{"store"},
	{"diff"},
	{"build"},
	{"bundle"},
	{"plan"},
	{"project"},
	{"collect"},
	{"judge"},
	{"explain"},
	{"selftest"},
	{"report"},
	{"check"},
	{"calibrate"},
	{"github", "scaffold", "doctor", "study/live", "study/peers", "study/house", "study/ladder"},
	{"gate"},
}

// libraries that are imported in one place each.
var libraries = map[string]string{
	"github.com/urfave/cli/v2":            "gate",
	"github.com/schollz/progressbar/v3":   "gate",
	"golang.org/x/term":                   "gate",
	"github.com/google/go-github":         "github",
	"github.com/landlock-lsm/go-landlock": "command",
	"gopkg.in/yaml.v3":                    "yamlfile",
	"github.com/montanaflynn/stats":       "compare",
}

// A listed package is what go list says of it.
type listed struct {
	ImportPath string
	Name       string
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,Module", "./...")
	cmd.Dir = ".."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}

// short is the name of a package in the order, and "" for other modules.
func short(importPath string) string {
	name, own := strings.CutPrefix(importPath, module+"/")
	if !own {
		return ""
	}
	return strings.TrimPrefix(name, "gate/internal/")
}

// place is the line of a package in the order, or -1.
func place(name string) int {
	return slices.IndexFunc(order, func(line []string) bool { return slices.Contains(line, name) })
}

func TestImportsFollowTheOrder(t *testing.T) {
	for _, p := range goList(t) {
		name := short(p.ImportPath)
		at := place(name)
		if at < 0 {
			t.Errorf("package %s has no place in the order", p.ImportPath)
			continue
		}
		for _, i := range p.Imports {
			imported := short(i)
			if imported == "" {
				continue
			}
			if place(imported) >= at {
				t.Errorf("%s imports %s, which does not stand before it in the order", name, imported)
			}
			if strings.HasPrefix(imported, "study/") {
				t.Errorf("%s imports %s, and nothing may import an experiment", name, imported)
			}
		}
	}
}

// TestParsersImportTheStandardLibraryOnly: ptxas and ncu are for others to import.
func TestParsersImportTheStandardLibraryOnly(t *testing.T) {
	found := 0
	for _, p := range goList(t) {
		if name := short(p.ImportPath); name != "ptxas" && name != "ncu" {
			continue
		}
		found++
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); strings.Contains(first, ".") {
				t.Errorf("%s imports %s", p.ImportPath, i)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d parsers were found, want 2", found)
	}
}

func TestEveryLibraryHasOnePlace(t *testing.T) {
	packages := goList(t)
	for library, by := range libraries {
		used, there := false, false
		for _, p := range packages {
			name := short(p.ImportPath)
			there = there || name == by
			for _, i := range p.Imports {
				if i != library && !strings.HasPrefix(i, library+"/") {
					continue
				}
				if used = used || name == by; name != by {
					t.Errorf("%s imports %s, and only %s may", name, library, by)
				}
			}
		}
		if there && !used {
			t.Errorf("%s does not import %s", by, library)
		}
	}
}

func TestPackagesAreNouns(t *testing.T) {
	for _, p := range goList(t) {
		for _, name := range []string{p.Name, path.Base(p.ImportPath)} {
			if slices.Contains([]string{"utils", "util", "common", "helpers", "helper", "types", "models", "misc", "shared"}, name) {
				t.Errorf("%s is called %q", p.ImportPath, name)
			}
		}
		if p.Module == nil || p.Module.Path != module {
			t.Errorf("%s is of another module", p.ImportPath)
		}
	}
}
