package scaffold

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestOurOwnWorkflowsAreTheTemplates, with the action of the checkout.
func TestOurOwnWorkflowsAreTheTemplates(t *testing.T) {
	files, err := rendered("./")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d templates, %v", len(files), err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, ".github/workflows", name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not its template: %v", name, err)
		}
	}
}

// TestWriteKeepsWhatIsThere, and takes no name that can come to mean something
// else.
func TestWriteKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, ref := range []string{"", "main", "v1", "11bd719"} {
		if _, _, err := Write(dir, ref); err == nil {
			t.Errorf("%q is taken", ref)
		}
	}
	ref := strings.Repeat("a", 40)
	if written, kept, err := Write(dir, ref); err != nil || len(written) != 3 || len(kept) != 0 {
		t.Fatalf("%v, %v, %v", written, kept, err)
	}
	path := filepath.Join(dir, ".github/workflows/gate-judge.yml")
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), "kernelgate/gate@"+ref) || strings.Contains(string(data), "@REF") {
		t.Errorf("%s, %v", data, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if written, kept, err := Write(dir, ref); err != nil || len(written) != 0 || len(kept) != 3 {
		t.Errorf("%v, %v, %v", written, kept, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("%s", data)
	}
}

// sources are all workflows and actions: our own, the templates, and those that
// the documents show.
func sources(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, pattern := range []string{"action.yml", ".github/workflows/*.yml", "gate/internal/scaffold/workflows/*.yml"} {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		if len(files) == 0 {
			t.Errorf("nothing is called %s", pattern)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[f] = string(data)
		}
	}
	doc, err := os.ReadFile(filepath.Join(root, "gate/docs/github.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(shown) == 0 {
		t.Error("github.md shows no workflow")
	}
	for _, m := range shown {
		out["github.md: "+m[1][:20]] = m[1]
	}
	return out
}

// TestWorkflowPolicy: what actionlint does not look for.
func TestWorkflowPolicy(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^[ -]*uses: (\S+)`)
	pinned := regexp.MustCompile(`^(?:\./|kernelgate/gate@(?:REF|[0-9a-f]{40})|[\w.-]+/[\w./-]+@[0-9a-f]{40})$`)
	for file, text := range sources(t) {
		workflow := strings.Contains(text, "\njobs:")
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %s is not pinned by a commit", file, m[1])
			}
		}
		if strings.Contains(text, "pull_request_target:") || strings.Contains(text, "allow-unsafe") {
			t.Errorf("%s runs a change with the repository's rights", file)
		}
		if workflow && !strings.Contains(text, "\npermissions:") {
			t.Errorf("%s takes the permissions that the repository gives by default", file)
		}
		if n := strings.Count(text, "actions/checkout@"); n != strings.Count(text, "persist-credentials:") {
			t.Errorf("%s: a checkout does not say whether it keeps the credential", file)
		}
		if strings.Contains(text, "self-hosted") && regexp.MustCompile(`(?s)self-hosted.*?permissions:\s+contents: write`).MatchString(strings.SplitN(text, "  keep:", 2)[0]) {
			t.Errorf("%s: the runner with the GPU may write", file)
		}
		for i, block := range runBlocks(text) {
			if strings.Contains(block, "${{") {
				t.Errorf("%s: run block %d holds an expression: %s", file, i, block)
			}
		}
		if strings.Contains(text, "workflow_run:") && (strings.Contains(text, "github.event.workflow_run.head_sha") || strings.Contains(text, "ref:")) {
			t.Errorf("%s: what follows a run checks something else out than the default branch", file)
		}
	}
}

// TestShortestWorkflow: the first workflow that github.md shows has fifteen lines at
// most, as a reader counts them.
func TestShortestWorkflow(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "gate/docs/github.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(string(doc))
	if shown == nil {
		t.Fatal("github.md shows no workflow")
	}
	lines := 0
	for l := range strings.Lines(shown[1]) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("it has %d lines", lines)
	}
}

// runBlocks are the scripts of a workflow.
func runBlocks(text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		trimmed := strings.TrimLeft(strings.TrimLeft(l, " "), "- ")
		script, ok := strings.CutPrefix(trimmed, "run:")
		if !ok {
			continue
		}
		indent := len(l) - len(strings.TrimLeft(l, " -"))
		for _, below := range lines[i+1:] {
			if strings.TrimSpace(below) != "" && len(below)-len(strings.TrimLeft(below, " ")) <= indent-1 {
				break
			}
			if strings.TrimSpace(script) != "|" && script != "" {
				break
			}
			script += "\n" + below
		}
		out = append(out, script)
	}
	return out
}
