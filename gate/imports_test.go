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

// A listed package is what go list says of it.
type listed struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Standard,Imports,Module"}, args...)...)
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

// TestParsersAreStrangersToTheTool: ptxas and ncu are for others to import.
func TestParsersAreStrangersToTheTool(t *testing.T) {
	for _, parser := range []string{"ptxas", "ncu"} {
		own := 0
		for _, p := range goList(t, "-deps", "./"+parser) {
			switch {
			case p.Standard:
			case p.ImportPath == module+"/"+parser || strings.HasPrefix(p.ImportPath, module+"/"+parser+"/"):
				own++
			default:
				t.Errorf("%s depends on %s", parser, p.ImportPath)
			}
		}
		if own == 0 {
			t.Errorf("%s is no package", parser)
		}
	}
}

// outsiders are the libraries that few may import, by the paths of those; what
// lies below such a path belongs to it.
var outsiders = []struct {
	library string
	by      []string
}{
	{"github.com/urfave/cli/v2", []string{"gate"}},
	{"gopkg.in/yaml.v3", []string{"gate/internal/yamlfile", "gate/internal/policy"}},
	{"github.com/montanaflynn/stats", []string{"gate/internal/compare"}},
	{"github.com/schollz/progressbar/v3", []string{"gate"}},
	{"golang.org/x/term", []string{"gate"}},
}

func TestEveryLibraryHasOnePlace(t *testing.T) {
	packages := goList(t, "./...")
	for _, o := range outsiders {
		used := map[string]bool{}
		for _, p := range packages {
			if !slices.Contains(p.Imports, o.library) {
				continue
			}
			at := strings.TrimPrefix(p.ImportPath, module+"/")
			place := slices.IndexFunc(o.by, func(by string) bool { return at == by || by != "gate" && strings.HasPrefix(at, by+"/") })
			if place < 0 {
				t.Errorf("%s is imported by %s, and only %v may", o.library, at, o.by)
				continue
			}
			used[o.by[place]] = true
		}
		if len(used) != len(o.by) {
			t.Errorf("%s is imported in %v, want %v", o.library, used, o.by)
		}
	}
}

// layers are the stages of a check in their order: none knows a later one.
var layers = []string{"evidence", "compare", "policy", "report", "check"}

// mechanisms know nothing of gate: all may import them.
var mechanisms = []string{"command", "disk", "printable", "strictjson"}

func TestNothingKnowsWhatComesAfterIt(t *testing.T) {
	deps := map[string][]string{}
	for _, p := range goList(t, "-deps", "./gate") {
		deps[p.ImportPath] = p.Imports
	}
	internal := module + "/gate/internal/"
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(deps[from], func(d string) bool { return d == to || reaches(d, to, seen) })
	}
	for i, early := range layers {
		if deps[internal+early] == nil {
			t.Errorf("there is no package %s", early)
		}
		for _, late := range layers[i+1:] {
			if reaches(internal+early, internal+late, map[string]bool{}) {
				t.Errorf("%s depends on %s", early, late)
			}
		}
	}
	for _, m := range mechanisms {
		if deps[internal+m] == nil {
			t.Errorf("there is no package %s", m)
		}
	}
	for leaf, imports := range deps {
		for _, i := range imports {
			name, within := strings.CutPrefix(leaf, internal)
			switch {
			case !strings.HasPrefix(i, module) || !within:
			case slices.Contains(mechanisms, name):
				t.Errorf("%s is a mechanism and imports %s", name, i)
			case name == "evidence" && !slices.Contains(mechanisms, strings.TrimPrefix(i, internal)):
				t.Errorf("evidence is a leaf and imports %s", i)
			}
			if strings.HasPrefix(leaf, module) && leaf != module+"/gate" && i == internal+"check" {
				t.Errorf("%s imports check, which only the command may", leaf)
			}
		}
	}
}

func TestPackagesAreNouns(t *testing.T) {
	for _, p := range goList(t, "./...") {
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
