package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A transcript is a fenced block of a document whose first line is "$ gate …".
// Every line that starts with "$ " is run by a shell in a copy of this
// repository, on a machine without a GPU; what follows is its standard output
// and standard error. A line "…" stands for any number of lines, and a last
// line "[exit N]" is the expected status, 0 when there is none.
type transcript struct {
	file  string
	line  int // of its first line, from 1
	steps []step
	end   int // of the line after its last
}

type step struct {
	command string
	output  []string
	exit    string // "[exit N]" as written, "" without
}

const (
	prompt   = "$ "
	ellipsis = "…"
)

var exitLine = regexp.MustCompile(`^\[exit ([0-9]+)\]$`)

// transcripts finds those of one document.
func transcripts(file, text string) []transcript {
	var found []transcript
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		fence := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(fence, "```") {
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		if i+1 < end && strings.HasPrefix(lines[i+1], prompt+"gate ") {
			found = append(found, transcript{file: file, line: i + 2, steps: steps(lines[i+1 : end]), end: end + 1})
		}
		i = end
	}
	return found
}

func steps(lines []string) []step {
	var out []step
	for _, l := range lines {
		if command, ok := strings.CutPrefix(l, prompt); ok {
			out = append(out, step{command: command})
			continue
		}
		last := &out[len(out)-1]
		last.output = append(last.output, l)
	}
	for i := range out {
		s := &out[i]
		if n := len(s.output); n > 0 && exitLine.MatchString(s.output[n-1]) {
			s.exit, s.output = s.output[n-1], s.output[:n-1]
		}
	}
	return out
}

func (s step) status() int {
	if s.exit == "" {
		return 0
	}
	n, _ := strconv.Atoi(exitLine.FindStringSubmatch(s.exit)[1]) // the pattern is one of digits
	return n
}

func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("../README.md"); err == nil {
		files = append(files, "../README.md")
	}
	return files
}

func TestTranscripts(t *testing.T) {
	takesLong(t)
	var all []transcript
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, transcripts(file, string(data))...)
	}
	if len(all) == 0 {
		t.Fatal("found 0 transcripts in README.md and gate/docs")
	}
	needCompiler(t)
	house := newHouse(t)
	fresh := map[string]map[int][]string{} // by file and first line: the block as it is now
	for _, x := range all {
		t.Run(fmt.Sprintf("%s:%d", filepath.Base(x.file), x.line), func(t *testing.T) {
			if lines, ok := house.replay(t, x); !ok && *update {
				if fresh[x.file] == nil {
					fresh[x.file] = map[int][]string{}
				}
				fresh[x.file][x.line] = lines
			}
		})
	}
	for _, x := range slices.Backward(all) {
		if lines := fresh[x.file][x.line]; lines != nil {
			rewrite(t, x, lines)
		}
	}
}

// rewrite replaces one block. Blocks are rewritten from the last to the first,
// so that the lines of those above stay where they are.
func rewrite(t *testing.T, x transcript, block []string) {
	t.Helper()
	data, err := os.ReadFile(x.file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	lines = slices.Replace(lines, x.line-1, x.end-1, block...)
	if err := os.WriteFile(x.file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A house is where transcripts are run: a template of the repository, and
// folders that every transcript shares.
type house struct {
	dir      string
	template string
	cache    string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{dir: t.TempDir()}
	h.template, h.cache = filepath.Join(h.dir, "template"), filepath.Join(h.dir, "cache")
	copyTree(t, "../kernels", filepath.Join(h.template, "kernels"))
	data, err := os.ReadFile("../policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.template, "policies.yaml"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.cache, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"build", "harness"} {
		if err := os.Symlink(filepath.Join(lab.dir, "cache", part), filepath.Join(h.cache, part)); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"git init -q -b main", "git add -A", "git commit -q -m kernels"} {
		if out, status := h.run(t, h.template, command); status != 0 {
			t.Fatalf("%s: %s", command, out)
		}
	}
	return h
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// run gives a command line to a shell. There is no GPU: the nvidia-smi on PATH
// sees no driver.
func (h *house) run(t *testing.T, dir, command string) (output string, status int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GATE_CACHE="+h.cache, "CUDA_HOME="+lab.cudaHome, "HOME="+filepath.Join(h.dir, "home"),
		"FAKE_GPU=", "GATE_NVML=off", "NO_COLOR=", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2099-01-01T00:00:00Z")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), status
}

// replay runs a transcript in a fresh copy and returns it as it is now, and
// whether it still holds. A status that is not the expected one fails, also
// when blocks are rewritten.
func (h *house) replay(t *testing.T, x transcript) (block []string, holds bool) {
	t.Helper()
	dir := filepath.Join(h.dir, "repo")
	defer os.RemoveAll(dir)
	copyTree(t, h.template, dir)
	holds = true
	for _, s := range x.steps {
		output, status := h.run(t, dir, s.command)
		if status != s.status() {
			t.Errorf("%s:%d: $ %s\nexit status %d, want %d\n%s", x.file, x.line, s.command, status, s.status(), output)
			return nil, true
		}
		lines := h.neutral(output)
		if matches(stable(s.output), stable(lines)) {
			lines = s.output // with its ellipses
		} else {
			holds = false
			if !*update {
				t.Errorf("%s:%d: $ %s\n%s", x.file, x.line, s.command, difference(stable(s.output), stable(lines)))
			}
		}
		block = append(append(block, prompt+s.command), lines...)
		if s.exit != "" {
			block = append(block, s.exit)
		}
	}
	return block, holds
}

// neutral takes this machine's folders out of an output.
func (h *house) neutral(output string) []string {
	text := strings.NewReplacer(filepath.Join(h.dir, "repo"), "/home/me/kernels", h.cache, "/home/me/.cache/gate",
		lab.cudaHome, "/usr/local/cuda", filepath.Join(h.dir, "home"), "/home/me").Replace(output)
	text = strings.TrimRight(unconfined.ReplaceAllString(text, ""), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// unconfined is what a machine without Landlock says in every verdict.
var unconfined = regexp.MustCompile(`(?m)^.* ran unconfined: .*\n`)

var commit = regexp.MustCompile(`(head: |base: |--base |"commit": ")[0-9a-f]{7,40}\b`)

// stable replaces what differs between two runs of the same files.
func stable(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimRight(commit.ReplaceAllString(l, "${1}COMMIT"), " ")
	}
	return out
}

// matches compares line by line; an ellipsis stands for any number of lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == ellipsis {
		for skip := 0; skip <= len(got); skip++ {
			if matches(want[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

func difference(want, got []string) string {
	return "want:\n  " + strings.Join(want, "\n  ") + "\ngot:\n  " + strings.Join(got, "\n  ")
}

func TestTranscriptsAreFound(t *testing.T) {
	text := "# Title\n```\n$ gate check\nfine\n…\n[exit 1]\n```\n```sh\nmake\n```\n```console\n$ gate report x\n$ gate check y\na\n[exit 4]\n```\n```\ngate check\n```\n"
	found := transcripts("x.md", text)
	if len(found) != 2 || found[0].line != 3 || found[0].end != 7 || len(found[1].steps) != 2 {
		t.Fatalf("%+v", found)
	}
	if s := found[0].steps[0]; s.command != "gate check" || !slices.Equal(s.output, []string{"fine", ellipsis}) || s.status() != 1 {
		t.Errorf("%+v", s)
	}
	if s := found[1].steps; s[0].status() != 0 || len(s[0].output) != 0 || s[1].status() != 4 || !slices.Equal(s[1].output, []string{"a"}) {
		t.Errorf("%+v", s)
	}
	if found := transcripts("x.md", "```\n$ gates check\n```\n$ gate check\n"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func TestEllipsisMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"a b", "a b", true}, {"a b", "a", false}, {"a", "a b", false}, {"", "", true}, {"", "a", false},
		{"…", "", true}, {"…", "a b c", true}, {"a … c", "a c", true}, {"a … c", "a x y c", true}, {"a … c", "a x y", false},
		{"… b", "a b c", false}, {"… b …", "a b c", true}, {"a … a", "a", false}, {"a… c", "a x c", false},
	} {
		if got := matches(strings.Fields(c.want), strings.Fields(c.got)); got != c.ok {
			t.Errorf("%q against %q: %v", c.want, c.got, got)
		}
	}
}

func TestRewriteKeepsTheRest(t *testing.T) {
	before := "a\n```\n$ gate x\nold\nold\n[exit 1]\n```\nb\n```\n$ gate y\n```\n"
	file := filepath.Join(t.TempDir(), "x.md")
	if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	found := transcripts(file, before)
	rewrite(t, found[1], []string{"$ gate y", "new"})
	rewrite(t, found[0], []string{"$ gate x", "new", "[exit 1]"})
	got, err := os.ReadFile(file)
	if want := "a\n```\n$ gate x\nnew\n[exit 1]\n```\nb\n```\n$ gate y\nnew\n```\n"; err != nil || string(got) != want {
		t.Errorf("%v, got:\n%s\nwant:\n%s", err, got, want)
	}
}

// TestIdentityNamesItsTests: what identity.md says is held by a test or a script
// that there is.
func TestIdentityNamesItsTests(t *testing.T) {
	page, err := os.ReadFile("docs/identity.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	files, _ := filepath.Glob("internal/*/*_test.go")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+|[a-z_]+\\.txtar)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 40 {
		t.Fatalf("%d names", len(names))
	}
	for _, m := range names {
		if strings.HasSuffix(m[1], ".txtar") {
			if _, err := os.Stat(filepath.Join("testdata/script", m[1])); err != nil {
				t.Error(err)
			}
		} else if !strings.Contains(sources.String(), "\nfunc "+m[1]+"(") {
			t.Errorf("no test is called %s", m[1])
		}
	}
}
