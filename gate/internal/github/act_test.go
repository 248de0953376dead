package github

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/scaffold"
)

// A stage runs the real workflows by act on this machine: a repository with a
// simulated GPU, and the fake GitHub.
type stage struct {
	*testing.T
	*fake
	act, repo, artifacts string
	local                []string // what stands for GitHub's actions, and for gate's
	env                  []string
	played               // the last run of a workflow
}

// A played is one run of a workflow.
type played struct {
	status   int // of the step that failed first, 0 for none
	failed   bool
	said     []said
	requests []string // that the fake was sent meanwhile
	log      string
}

// A said is a command to the runner, as act prints it.
type said struct {
	Command string            `json:"command"`
	Fields  map[string]string `json:"kvPairs"`
	Arg     string            `json:"arg"`
	Content string            `json:"content"` // of a summary
}

// ref is the commit of gate that the workflows of the stage name.
var ref = strings.Repeat("a", 40)

func newStage(t *testing.T) *stage {
	act, cuda := os.Getenv("GATE_ACT"), os.Getenv("CUDA_HOME")
	if act == "" || cuda == "" {
		t.Skip("GATE_ACT and CUDA_HOME name no act and no CUDA toolkit (make workflows)")
	}
	dir := t.TempDir()
	s := &stage{T: t, fake: newFake(t), act: act, repo: filepath.Join(dir, "repo"), artifacts: filepath.Join(dir, "artifacts")}
	t.Setenv("GOFLAGS", "-trimpath -buildvcs=false") // act puts an action at another place each time, and a runner does not: its cache serves
	bin, toolkit := filepath.Join(dir, "bin"), filepath.Join(dir, "cuda")
	s.simulate(bin, toolkit, cuda)
	s.actions(filepath.Join(dir, "actions"))
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")+":/fakes/FAKE_GPU=GPU-00000000-0000-0000-0000-00000000ac70&FAKE_GPU_NAME=NVIDIA+H200",
		"CUDA_HOME="+toolkit, "GATE_CACHE="+filepath.Join(dir, "cache"), "GATE_NVML=off", "GATE_CONFINE=off", "ARTIFACTS="+s.artifacts, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com", "XDG_CACHE_HOME="+filepath.Join(dir, "xdg"),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	if err := os.CopyFS(s.repo, os.DirFS("../../testdata/script/repo")); err != nil {
		t.Fatal(err)
	}
	s.must("git", "init", "-q", "-b", "main")
	s.must("git", "remote", "add", "origin", "https://github.example/o/r")
	if _, _, err := scaffold.Write(s.repo, ref); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.repo, ".github/workflows/gate.yml"), []byte(shortest(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("git", "add", "-A")
	s.must("git", "commit", "-qm", "start")
	return s
}

// shortest is the first workflow that github.md shows.
func shortest(t *testing.T) string {
	doc, err := os.ReadFile("../../docs/github.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if m == nil {
		t.Fatal("github.md shows no workflow")
	}
	return string(m[1])
}

func goEnv(t *testing.T, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// simulate makes a machine with a GPU and gate: gate's own whole-tool test, which
// is the compiler, the driver and the profiler under their names.
func (s *stage) simulate(bin, toolkit, cuda string) {
	s.Helper()
	for _, dir := range []string{bin, filepath.Join(toolkit, "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			s.Fatal(err)
		}
	}
	entries, err := os.ReadDir(cuda)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "bin" {
			os.Symlink(filepath.Join(cuda, e.Name()), filepath.Join(toolkit, e.Name()))
		}
	}
	os.Symlink(filepath.Join(cuda, "bin/ptxas"), filepath.Join(toolkit, "bin/ptxas"))
	os.Symlink(filepath.Join(cuda, "bin/nvcc"), filepath.Join(toolkit, "bin/real-nvcc"))
	tool := filepath.Join(bin, "ncu")
	for _, build := range [][]string{{"test", "-c", "-o", tool, "../.."}, {"build", "-o", filepath.Join(bin, "gate"), "../.."}} {
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			s.Fatalf("%v: %s", err, out)
		}
	}
	for _, as := range []string{filepath.Join(bin, "nvidia-smi"), filepath.Join(toolkit, "bin/nvcc")} {
		if err := os.Link(tool, as); err != nil {
			s.Fatal(err)
		}
	}
}

// actions copies what a runner would fetch of gate, as it is now, and only that:
// act copies the folder of an action for every step that uses it.
func (s *stage) actions(dir string) {
	s.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = "../../.."
	out, err := list.Output()
	if err != nil {
		s.Fatal(err)
	}
	needed := regexp.MustCompile(`^(?:action\.yml|go\.(?:mod|sum)|\.ci/action|(?:gate|ncu|ptxas)/.*|kernels/harness/.*)$`)
	for name := range strings.SplitSeq(string(out), "\x00") {
		if !needed.MatchString(name) || strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("../../..", name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o755)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	shims, err := filepath.Abs("testdata/shims")
	if err != nil {
		s.Fatal(err)
	}
	for name, folder := range map[string]string{"kernelgate/gate@" + ref: dir,
		"actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02": filepath.Join(shims, "upload"),
		"actions/setup-go@d35c59abb061a4a6fb18e82ac0862c26744d6ab5":        filepath.Join(shims, "go")} {
		s.local = append(s.local, "--local-repository", name+"="+folder)
	}
}

func (s *stage) must(name string, args ...string) string {
	s.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = s.repo, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

var exitStatus = regexp.MustCompile(`exit(?:ed with code| status) (\d+)`)

// play runs one workflow with an event.
func (s *stage) play(name, workflow string, payload any, more ...string) {
	s.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		s.Fatal(err)
	}
	event := filepath.Join(s.TempDir(), "event.json")
	if err := os.WriteFile(event, data, 0o644); err != nil {
		s.Fatal(err)
	}
	args := slices.Concat([]string{name, "-W", ".github/workflows/" + workflow, "-e", event, "-P", "self-hosted=-self-hosted", "-P", "ubuntu-latest=-self-hosted",
		"--json", "--no-cache-server"}, s.local, more)
	cmd := exec.Command(s.act, args...)
	cmd.Dir, cmd.Env = s.repo, s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	before, start := len(s.fake.requests), time.Now()
	s.played = played{failed: cmd.Run() != nil, log: out.String()}
	s.played.requests = slices.Clone(s.fake.requests[before:])
	for line := range strings.Lines(s.log) {
		var one said
		if json.Unmarshal([]byte(line), &one) == nil && one.Command != "" {
			s.said = append(s.said, one)
		}
		if m := exitStatus.FindStringSubmatch(line); m != nil && s.status == 0 {
			fmt.Sscan(m[1], &s.status)
		}
	}
	s.Logf("%s on %s: %.1f s", workflow, name, time.Since(start).Seconds())
}

// follow runs the workflow that judges, as GitHub does after the other one.
func (s *stage) follow(sha string, repository int, action, conclusion string) {
	s.Helper()
	s.must("git", "checkout", "-q", "main")
	repo := node{"id": repository, "full_name": "o/r"}
	s.fake.run = node{"id": 9, "run_attempt": 1, "event": "pull_request", "path": ".github/workflows/gate-collect.yml", "head_sha": sha, "head_branch": "change", "head_repository": repo,
		"repository": node{"id": 1, "full_name": "o/r"}, "status": "completed", "conclusion": conclusion, "created_at": "2026-01-01T10:00:00Z", "run_started_at": "2026-01-01T00:00:00Z", "html_url": "https://github.example/run/9"}
	s.pulls[0] = s.pull(7, sha)
	s.pulls[0]["head"].(node)["repo"] = repo
	s.changes("kernels/toy/scale/scale.cu", "kernels/toy/shift/shift.cu")
	s.play("workflow_run", "gate-judge.yml", node{"action": action, "repository": node{"id": 1, "full_name": "o/r", "default_branch": "main"}, "workflow_run": s.fake.run},
		"-s", "GITHUB_TOKEN=secret", "--env", "GITHUB_API_URL="+s.server.URL)
}

// change commits a change, and is the event of its pull request.
func (s *stage) change(edit string, repository int) (sha string, event node) {
	s.Helper()
	s.must("git", "checkout", "-q", "-B", "change", "main")
	s.must("sed", "-i", edit, "kernels/toy/scale/scale.cu")
	s.must("git", "commit", "-qam", "change")
	sha = s.must("git", "rev-parse", "HEAD")
	return sha, node{"action": "synchronize", "number": 7, "repository": node{"id": 1, "full_name": "o/r", "default_branch": "main"},
		"pull_request": node{"number": 7, "head": node{"ref": "change", "sha": sha, "repo": node{"id": repository, "full_name": "o/r"}}, "base": node{"ref": "main", "sha": s.must("git", "rev-parse", "main")}}}
}

// collect makes a change and runs the workflow that measures it.
func (s *stage) collect(edit string, repository int, more ...string) (sha string) {
	s.Helper()
	sha, event := s.change(edit, repository)
	os.RemoveAll(s.artifacts)
	s.play("pull_request", "gate-collect.yml", event, more...)
	s.names, s.fake.artifacts = nil, nil
	if data, err := os.ReadFile(filepath.Join(s.artifacts, "gate-bundle")); err == nil {
		s.keep("gate-bundle", "gate.bundle", data)
	}
	return sha
}

// ends requires that the last run of a workflow ended so, and its check, where
// it wrote one.
func (s *stage) ends(what string, status int, conclusion, sha string) node {
	s.Helper()
	if (status != 0) != s.failed || s.status != status {
		s.Errorf("%s: failed is %v, status %d, want %d\n%s", what, s.failed, s.status, status, s.log)
	}
	if conclusion == "" {
		return nil
	}
	if len(s.checks) == 0 {
		s.Fatalf("%s: no check was written\n%s", what, s.log)
	}
	c := s.checks[len(s.checks)-1]
	if c["status"] != "completed" || c["conclusion"] != conclusion || c["head_sha"] != sha {
		s.Errorf("%s: %v\n%s", what, c, s.log)
	}
	return c
}

// told are the commands of one kind that the last run gave.
func (s *stage) told(command string) []said {
	return slices.DeleteFunc(slices.Clone(s.said), func(c said) bool { return c.Command != command })
}

// summary requires that the last run left a summary that says something.
func (s *stage) summary(want string) {
	s.Helper()
	if !slices.ContainsFunc(s.told("summary"), func(c said) bool { return strings.Contains(c.Content, want) }) {
		s.Errorf("no summary says %q\n%s", want, s.log)
	}
}

// The changes that the stages make.
const (
	same   = "s/2 . in/7 * in/"
	slower = "s/2 . in/5 * in/; s/latency=10000/latency=10500/"
	broken = "s/{/{ !/"
)

// TestWorkflows runs gate-collect.yml and gate-judge.yml as they are written for
// a repository. act shows that they hang together; it enforces no permission.
func TestWorkflows(t *testing.T) {
	s := newStage(t)

	sha := s.collect(same, 1)
	s.ends("a change that passes, measured", 0, "", "")
	if len(s.fake.artifacts) != 1 || len(s.played.requests) != 0 {
		t.Fatalf("%d bundles, requests %v\n%s", len(s.fake.artifacts), s.played.requests, s.log)
	}
	good := s.fake.artifacts[0]
	s.follow(sha, 1, "requested", "")
	if len(s.checks) != 1 || s.checks[0]["status"] != "in_progress" || s.checks[0]["output"].(node)["title"] != "queued since 10:00 UTC" {
		t.Errorf("%v\n%s", s.checks, s.log)
	}
	s.follow(sha, 1, "completed", "success")
	s.ends("a change that passes", 0, "success", sha)
	s.summary("### ✅ pass: 2 kernels passed")
	s.summary("is called unchanged, and the pull request changes what it is built from")
	if want := []string{"PATCH /repos/o/r/check-runs/1", "GET /repos/o/r/pulls/7", "GET /repos/o/r/issues/7/comments", "POST /repos/o/r/issues/7/comments"}; len(s.checks) != 1 ||
		!slices.Equal(s.played.requests[len(s.played.requests)-len(want):], want) || len(s.told("error")) != 0 {
		t.Errorf("requests %v, %d checks\n%s", s.played.requests, len(s.checks), s.log)
	}

	sha = s.collect(slower, 1)
	s.follow(sha, 1, "completed", "success")
	c := s.ends("a change that is slower", 1, "failure", sha)
	s.summary("### ❌ fail: 1 of 2 kernels failed")
	if told := s.told("error"); c["output"].(node)["annotations_count"] != 1 || len(told) == 0 || told[0].Fields["file"] != "kernels/toy/scale/scale.cu" {
		t.Errorf("%v, %+v", c, told)
	}
	if len(s.comments) != 1 || !strings.Contains(s.comments[0]["body"].(string), "fail: 1 of 2 kernels failed") {
		t.Errorf("%v", s.comments)
	}

	sha = s.collect(slower, 2)
	s.follow(sha, 2, "completed", "success")
	s.ends("a change from a fork", 1, "failure", sha)
	if len(s.comments) != 1 {
		t.Errorf("%v", s.comments)
	}
	s.collect(same, 2, "--env", "GITHUB_TOKEN=secret")
	s.ends("a fork that is measured with a token", 2, "", "")
	if len(s.fake.artifacts) != 0 || !strings.Contains(s.log, "from a fork, and GITHUB_TOKEN is set") {
		t.Error(s.log)
	}

	sha = s.collect(broken, 1)
	s.follow(sha, 1, "completed", "success")
	s.ends("a change that does not compile", 1, "failure", sha)
	s.summary("does not compile")

	s.crashes()
	s.hostile(good)
}

// crashes is a run that measures and leaves nothing.
func (s *stage) crashes() {
	sha := s.collect(same, 1, "--env", "GATE_CACHE=/dev/null/none")
	if len(s.fake.artifacts) != 0 || !s.failed {
		s.Errorf("it left a bundle\n%s", s.log)
	}
	s.follow(sha, 1, "completed", "failure")
	s.ends("a run that left nothing", 4, "action_required", sha)
	s.summary("left 0 bundles")
}

// hostile are bundles that are odd, and one of another commit.
func (s *stage) hostile(good []byte) {
	sha := s.must("git", "rev-parse", "change")
	s.names, s.fake.artifacts = nil, nil
	s.keep("gate-bundle", "gate.bundle", good[:len(good)/2])
	s.follow(sha, 1, "completed", "success")
	s.ends("a hostile bundle", 4, "action_required", sha)
	s.summary("the bundle is refused")
	other := strings.Repeat("d", 40)
	s.names, s.fake.artifacts = []string{"gate-bundle"}, [][]byte{good}
	s.follow(other, 1, "completed", "success")
	s.ends("the bundle of another commit", 4, "action_required", other)
	s.summary("and GitHub that it is of `dddddddddddd`")
}

// TestShortestWorkflow runs the workflow that github.md shows first.
func TestShortestWorkflow(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		edit    string
		status  int
		summary string
	}{{same, 0, "### ✅ pass"}, {slower, 1, "### ❌ fail: 1 of 2 kernels failed"}} {
		_, event := s.change(c.edit, 1)
		s.play("pull_request", "gate.yml", event, "--env", "GITHUB_BASE_REF=main")
		s.ends(c.edit, c.status, "", "")
		s.summary(c.summary)
		if len(s.played.requests) != 0 || len(s.told("error")) != c.status {
			t.Errorf("requests %v, errors %v", s.played.requests, s.told("error"))
		}
	}
}
