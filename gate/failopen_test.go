package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fewestWays is how many ways to fail open are known. A way that is found is
// added; none is taken away.
const fewestWays = 60

// TestEveryWayToFailOpenHasAScript holds gate/docs/fail-open.md to the scripts and
// tests that it names: each exists, ends with the status, and looks for the text.
func TestEveryWayToFailOpenHasAScript(t *testing.T) {
	doc, err := os.ReadFile("docs/fail-open.md")
	if err != nil {
		t.Fatal(err)
	}
	ways := 0
	for _, line := range strings.Split(string(doc), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || cells[0] == "way" {
			continue
		}
		ways++
		switch len(cells) {
		case 4:
			scriptShows(t, cells)
		case 2:
			testExists(t, cells)
		default:
			t.Errorf("%d cells: %s", len(cells), line)
		}
	}
	if ways < fewestWays {
		t.Errorf("%d ways are listed, at least %d are known", ways, fewestWays)
	}
}

func scriptShows(t *testing.T, cells []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "script", cells[3]+".txtar"))
	if err != nil {
		t.Errorf("%s: %v", cells[0], err)
		return
	}
	script := strings.ReplaceAll(string(data), `\`, "")
	if !strings.Contains(script, "\nexits "+cells[1]+" gate ") || !strings.Contains(script, cells[2]) {
		t.Errorf("%s: %s does not end with %s, or does not look for %q", cells[0], cells[3], cells[1], cells[2])
	}
}

func testExists(t *testing.T, cells []string) {
	t.Helper()
	folder, names, _ := strings.Cut(cells[1], " ")
	for _, name := range strings.Split(names, ", ") {
		if out, err := exec.Command("grep", "-r", "^func "+name+"(", filepath.Join("..", strings.Trim(folder, "`"))).CombinedOutput(); err != nil {
			t.Errorf("%s: %s is not in %s: %s", cells[0], name, folder, out)
		}
	}
}
