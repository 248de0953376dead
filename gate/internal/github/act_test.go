package github

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/scaffold"
)

// A stage runs the real workflows by act on this machine: a repository with a
// simulated GPU, and the fake GitHub.
type stage struct {
	*testing.T
	*fake
	act, root, repo, artifacts, ref string
	env                             []string
	log                             string // of the last run
	failed                          bool
}

func newStage(t *testing.T) *stage {
	act, cuda := os.Getenv("GATE_ACT"), os.Getenv("CUDA_HOME")
	if act == "" || cuda == "" {
		t.Skip("GATE_ACT and CUDA_HOME name no act and no CUDA toolkit (go -C .ci/act build -o FILE github.com/nektos/act)")
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &stage{T: t, fake: newFake(t), act: act, root: root, repo: filepath.Join(dir, "repo"), artifacts: filepath.Join(dir, "artifacts"), ref: strings.Repeat("a", 40)}
	bin, toolkit := filepath.Join(dir, "bin"), filepath.Join(dir, "cuda")
	s.simulate(bin, toolkit, cuda)
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")+":/fakes/FAKE_GPU=GPU-00000000-0000-0000-0000-00000000ac70&FAKE_GPU_NAME=NVIDIA+H200",
		"CUDA_HOME="+toolkit, "GATE_CACHE="+filepath.Join(dir, "cache"), "GATE_NVML=off", "GATE_CONFINE=off", "ARTIFACTS="+s.artifacts, "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com", "XDG_CACHE_HOME="+filepath.Join(dir, "xdg"),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	if err := os.CopyFS(s.repo, os.DirFS(filepath.Join(root, "gate/testdata/script/repo"))); err != nil {
		t.Fatal(err)
	}
	s.must("git", "init", "-q", "-b", "main")
	s.must("git", "remote", "add", "origin", "https://github.example/o/r")
	if _, _, err := scaffold.Write(s.repo, s.ref); err != nil {
		t.Fatal(err)
	}
	s.must("git", "add", "-A")
	s.must("git", "commit", "-qm", "start")
	return s
}

func goEnv(t *testing.T, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// simulate makes a machine with a GPU: gate's own whole-tool test, which is the
// compiler, the driver and the profiler under their names.
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
	if out, err := exec.Command("go", "test", "-c", "-o", tool, "../..").CombinedOutput(); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	for _, as := range []string{filepath.Join(bin, "nvidia-smi"), filepath.Join(toolkit, "bin/nvcc")} {
		if err := os.Link(tool, as); err != nil {
			s.Fatal(err)
		}
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
	shims := filepath.Join(s.root, "gate/internal/github/testdata/shims")
	args := append([]string{name, "-W", ".github/workflows/" + workflow, "-e", event, "-P", "self-hosted=-self-hosted", "-P", "ubuntu-latest=-self-hosted", "--json", "--no-cache-server",
		"--local-repository", "kernelgate/gate@" + s.ref + "=" + s.root,
		"--local-repository", "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02=" + filepath.Join(shims, "upload"),
		"--local-repository", "actions/setup-go@d35c59abb061a4a6fb18e82ac0862c26744d6ab5=" + filepath.Join(shims, "go")}, more...)
	cmd := exec.Command(s.act, args...)
	cmd.Dir, cmd.Env = s.repo, s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s.failed = cmd.Run() != nil
	s.log = out.String()
}

// follow runs the workflow that judges, as GitHub does after the other one.
func (s *stage) follow(sha string, repository int, conclusion string) {
	s.Helper()
	s.must("git", "checkout", "-q", "main")
	repo := node{"id": repository, "full_name": "o/r"}
	s.run = node{"id": 9, "run_attempt": 1, "event": "pull_request", "path": ".github/workflows/gate-collect.yml", "head_sha": sha, "head_branch": "change", "head_repository": repo,
		"repository": node{"id": 1, "full_name": "o/r"}, "status": "completed", "conclusion": conclusion, "created_at": "2026-01-01T10:00:00Z", "html_url": "https://github.example/run/9"}
	s.pulls[0] = s.pull(7, sha)
	s.pulls[0]["head"].(node)["repo"] = repo
	s.changes("kernels/toy/scale/scale.cu")
	s.play("workflow_run", "gate-judge.yml", node{"action": "completed", "repository": node{"id": 1, "full_name": "o/r", "default_branch": "main"}, "workflow_run": s.run},
		"-s", "GITHUB_TOKEN=secret", "--env", "GITHUB_API_URL="+s.server.URL)
}

// collect makes a change and runs the workflow that measures it.
func (s *stage) collect(edit string, repository int, more ...string) (sha string) {
	s.Helper()
	s.must("git", "checkout", "-q", "-B", "change", "main")
	s.must("sed", "-i", edit, "kernels/toy/scale/scale.cu")
	s.must("git", "commit", "-qam", "change")
	sha = s.must("git", "rev-parse", "HEAD")
	os.RemoveAll(s.artifacts)
	s.play("pull_request", "gate-collect.yml", node{"action": "synchronize", "number": 7, "repository": node{"id": 1, "full_name": "o/r", "default_branch": "main"},
		"pull_request": node{"number": 7, "head": node{"ref": "change", "sha": sha, "repo": node{"id": repository, "full_name": "o/r"}}, "base": node{"ref": "main", "sha": s.must("git", "rev-parse", "main")}}}, more...)
	s.names, s.fake.artifacts = nil, nil
	if data, err := os.ReadFile(filepath.Join(s.artifacts, "gate-bundle")); err == nil {
		s.keep("gate-bundle", "gate.bundle", data)
	}
	return sha
}

func (s *stage) last() node {
	s.Helper()
	if len(s.checks) == 0 {
		s.Fatalf("no check was written\n%s", s.log)
	}
	return s.checks[len(s.checks)-1]
}

// TestWorkflows runs gate-collect.yml and gate-judge.yml as they are written for
// a repository. act shows that they hang together; it enforces no permission.
func TestWorkflows(t *testing.T) {
	s := newStage(t)
	const slower, same = "s/2 . in/5 * in/; s/latency=10000/latency=10500/", "s/2 . in/7 * in/"

	sha := s.collect(same, 1)
	if s.failed || len(s.fake.artifacts) != 1 {
		t.Fatalf("collect failed\n%s", s.log)
	}
	s.follow(sha, 1, "success")
	if c := s.last(); s.failed || c["conclusion"] != "success" || c["head_sha"] != sha {
		t.Errorf("a change that passes: failed is %v, %v\n%s", s.failed, c, s.log)
	}

	sha = s.collect(slower, 1)
	s.follow(sha, 1, "success")
	if c := s.last(); !s.failed || c["conclusion"] != "failure" || c["output"].(node)["annotations_count"] != 1 || !strings.Contains(s.log, `"command":"error"`) {
		t.Errorf("a change that is slower: failed is %v, %v\n%s", s.failed, c, s.log)
	}
	if len(s.comments) != 1 || !strings.Contains(s.comments[0]["body"].(string), "fail: 1 of 2 kernels failed") {
		t.Errorf("%v", s.comments)
	}

	sha = s.collect(slower, 2)
	s.follow(sha, 2, "success")
	if c := s.last(); !s.failed || c["conclusion"] != "failure" || len(s.comments) != 1 {
		t.Errorf("a change from a fork: failed is %v, %v\n%s", s.failed, c, s.log)
	}
	s.collect(same, 2, "--env", "GITHUB_TOKEN=secret")
	if !s.failed || len(s.fake.artifacts) != 0 || !strings.Contains(s.log, "from a fork, and GITHUB_TOKEN is set") {
		t.Errorf("a fork was measured with a token: %s", s.log)
	}

	sha = s.collect("s/{/{ !/", 1)
	s.names, s.fake.artifacts = nil, nil
	s.follow(sha, 1, "failure")
	if c := s.last(); !s.failed || c["conclusion"] != "action_required" || c["status"] != "completed" {
		t.Errorf("a run that left nothing: failed is %v, %v\n%s", s.failed, c, s.log)
	}

	sha = s.collect(same, 1)
	whole := s.fake.artifacts
	s.names, s.fake.artifacts = nil, nil
	s.keep("gate-bundle", "gate.bundle", whole[0][:len(whole[0])/2])
	s.follow(sha, 1, "success")
	if c := s.last(); !s.failed || c["conclusion"] != "action_required" {
		t.Errorf("a hostile bundle: failed is %v, %v\n%s", s.failed, c, s.log)
	}
	s.names, s.fake.artifacts = []string{"gate-bundle"}, whole
	other := strings.Repeat("d", 40)
	s.follow(other, 1, "success")
	if c := s.last(); !s.failed || c["conclusion"] != "action_required" || c["head_sha"] != other {
		t.Errorf("the bundle of another commit: failed is %v, %v\n%s", s.failed, c, s.log)
	}
}
