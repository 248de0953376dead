package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/exit"
)

func TestMain(m *testing.M) {
	// The tests see no configuration of the user, and one author.
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	} {
		os.Setenv(name, value)
	}
	if os.Getenv(repeat) != "" {
		makeTrees()
	}
	os.Exit(m.Run())
}

// A sandbox is a repository that a test works in.
type sandbox struct {
	t   *testing.T
	dir string
}

func newSandbox(t *testing.T) sandbox {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := sandbox{t, dir}
	s.git("init", "-q", "-b", "main")
	return s
}

func (s sandbox) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s sandbox) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// commit records a file and returns the commit.
func (s sandbox) commit(name, text string) string {
	s.t.Helper()
	s.write(name, text)
	s.git("add", "-A")
	s.git("commit", "-q", "-m", name)
	return s.git("rev-parse", "HEAD")
}

// old is a time before every run.
func (s sandbox) old() time.Time { return time.Now().Add(-30 * 24 * time.Hour) }

// unset is an environment in which no variable is set.
func unset(string) string { return "" }

func (s sandbox) open() *Repo {
	s.t.Helper()
	r, err := Open(context.Background(), s.dir, s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func TestOpen(t *testing.T) {
	s := newSandbox(t)
	s.write("a/b/c", "")
	if r, err := Open(context.Background(), filepath.Join(s.dir, "a/b"), ""); err != nil || r.Root != s.dir {
		t.Errorf("%+v, %v, want root %s", r, err, s.dir)
	}
	if r, err := Open(context.Background(), t.TempDir(), ""); !errors.Is(err, ErrNoRepo) || r != nil {
		t.Errorf("no repository: %v", err)
	}
	s.git("init", "-q", "--bare", "bare")
	for _, dir := range []string{"bare", ".git"} {
		_, err := Open(context.Background(), filepath.Join(s.dir, dir), "")
		if status, hint := exit.Of(err); status != exit.Usage || hint == "" || !strings.Contains(err.Error(), "without a working tree") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := Open(context.Background(), filepath.Join(s.dir, "none"), ""); err == nil || errors.Is(err, ErrNoRepo) {
		t.Errorf("no folder: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(context.Background(), s.dir, s.t.TempDir()); err == nil || errors.Is(err, ErrNoRepo) || !strings.HasPrefix(err.Error(), "git is not installed: ") {
		t.Errorf("no git: %v", err)
	}
}

func TestNoCommitYet(t *testing.T) {
	s := newSandbox(t)
	r := s.open()
	var none *NoBaseError
	if _, err := r.Base(context.Background(), "", unset); !errors.As(err, &none) || none.Msg != "the repository has no commit yet" {
		t.Errorf("base: %v", err)
	}
	if _, _, err := r.Head(context.Background()); !errors.As(err, &none) {
		t.Errorf("head: %v", err)
	}
}

func TestBaseIsTheMergeBase(t *testing.T) {
	s := newSandbox(t)
	fork := s.commit("a", "1")
	s.git("tag", "v1")
	s.git("checkout", "-q", "-b", "work")
	head := s.commit("b", "1")
	s.git("checkout", "-q", "main")
	main := s.commit("c", "1")
	s.git("checkout", "-q", "work")
	r := s.open()
	for _, c := range []struct{ revision, commit, how string }{
		{"", fork, "merge-base with main"}, {"main", fork, "merge-base with main"}, {"v1", fork, "merge-base with v1"},
		{main, fork, "merge-base with " + main}, {"HEAD", head, "merge-base with HEAD"}, {"main~1", fork, "merge-base with main~1"},
		{"refs/heads/main", fork, "merge-base with main"},
	} {
		got, err := r.Base(context.Background(), c.revision, unset)
		if err != nil || got.Commit != c.commit || got.How != c.how {
			t.Errorf("%q: %+v, %v, want %s, %s", c.revision, got, err, c.commit, c.how)
		}
	}
	s.git("update-ref", "refs/remotes/origin/main", head)
	if got, err := r.Base(context.Background(), "", unset); err != nil || got.Commit != head || got.How != "merge-base with origin/main" {
		t.Errorf("with a remote: %+v, %v", got, err)
	}
}

func TestBehind(t *testing.T) {
	s := newSandbox(t)
	first := s.commit("a", "1")
	second := s.commit("a", "2")
	third := s.commit("a", "3")
	s.git("checkout", "-q", "-b", "side", first)
	side := s.commit("b", "1")
	r := s.open()
	for _, c := range []struct {
		commit string
		n      int
		is     bool
	}{{third, 0, true}, {second, 1, true}, {first, 2, true}, {side, 0, false}, {strings.Repeat("0", 40), 0, false}, {"", 0, false}, {"main", 0, false}, {"--all", 0, false}} {
		if n, is := r.Behind(t.Context(), c.commit, third); n != c.n || is != c.is {
			t.Errorf("%.8s is %d behind, an ancestor: %v; want %d, %v", c.commit, n, is, c.n, c.is)
		}
	}
}

func TestNoSuchRevision(t *testing.T) {
	s := newSandbox(t)
	s.commit("a", "1")
	r := s.open()
	for _, revision := range []string{"none", "-x", "--help", "--output=/tmp/x", "--all", "a b", "HEAD..HEAD", "HEAD^{tree}", "main\nmain", "HEAD:a"} {
		got, err := r.Base(context.Background(), revision, unset)
		if status, hint := exit.Of(err); status != exit.Usage || hint == "" || !strings.Contains(err.Error(), "there is no revision") {
			t.Errorf("%q: %+v, %v", revision, got, err)
		}
	}
}

// TestHeadIsNeverTheBase: with HEAD as the base of itself nothing would differ.
func TestHeadIsNeverTheBase(t *testing.T) {
	s := newSandbox(t)
	main := s.commit("a", "1")
	s.git("checkout", "-q", "-b", "work")
	s.commit("b", "1")
	for _, c := range []struct {
		name, branch, base, msg, hint string
		change                        func()
	}{
		{"the branch of the pull request", "main", main, "", "", func() { s.git("update-ref", "refs/remotes/origin/master", "HEAD") }},
		{"a branch that is not here", "release", "", `the branch "release", which GITHUB_BASE_REF names, is not here`, "fetch-depth: 0", func() {}},
		{"a branch like an option", "--all", "", `the branch "--all", which GITHUB_BASE_REF names, is not here`, "fetch-depth: 0", func() {}},
		{"no default branch", "", "", "no default branch is known here: there is no origin/HEAD, origin/main, origin/master, main or master", "--base BRANCH",
			func() {
				s.git("update-ref", "-d", "refs/remotes/origin/master")
				s.git("branch", "-q", "-m", "main", "trunk")
			}},
	} {
		c.change()
		got, err := s.open().Base(context.Background(), "", func(name string) string { return map[string]string{"GITHUB_BASE_REF": c.branch}[name] })
		var none *NoBaseError
		switch {
		case c.base != "" && (err != nil || got.Commit != c.base):
			t.Errorf("%s: %+v, %v", c.name, got, err)
		case c.base == "" && (!errors.As(err, &none) || none.Msg != c.msg || !strings.Contains(none.Hint, c.hint) || got.Commit != ""):
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestShallowCloneHasNoBase(t *testing.T) {
	s := newSandbox(t)
	s.commit("a", "1")
	s.git("checkout", "-q", "-b", "work")
	s.commit("b", "1")
	s.git("checkout", "-q", "main")
	s.commit("c", "1")
	for _, c := range []struct{ branches, msg string }{
		{"--no-single-branch", "HEAD and origin/main have no common commit here: the clone is shallow"},
		{"--single-branch", `the branch "main", which GITHUB_BASE_REF names, is not here: the clone is shallow`},
	} {
		clone := sandbox{t, filepath.Join(t.TempDir(), "clone")}
		s.git("clone", "-q", "--depth=1", c.branches, "--branch", "work", "file://"+s.dir, clone.dir)
		var none *NoBaseError
		got, err := clone.open().Base(context.Background(), "", func(string) string { return "main" })
		if !errors.As(err, &none) || none.Msg != c.msg || !strings.Contains(none.Hint, "fetch-depth: 0") {
			t.Errorf("%s: %+v, %v", c.branches, got, err)
		}
	}
}

func TestUnrelatedHistoryHasNoBase(t *testing.T) {
	s := newSandbox(t)
	s.commit("a", "1")
	s.git("checkout", "-q", "--orphan", "other")
	s.commit("b", "1")
	var none *NoBaseError
	got, err := s.open().Base(context.Background(), "main", unset)
	if !errors.As(err, &none) || none.Msg != "HEAD and main have no common commit here" || none.Hint != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestHead(t *testing.T) {
	s := newSandbox(t)
	commit := s.commit("a", "1")
	for _, c := range []struct {
		name   string
		change func()
		dirty  bool
	}{
		{"clean", func() {}, false},
		{"ignored", func() { s.write(".git/info/exclude", "x\n"); s.write("x", "") }, false},
		{"untracked", func() { s.write("new", "") }, true},
		{"gone again", func() { os.Remove(filepath.Join(s.dir, "new")) }, false},
		{"changed", func() { s.write("a", "2") }, true},
		{"staged", func() { s.git("add", "a") }, true},
		{"removed", func() { s.git("rm", "-q", "-f", "a") }, true},
	} {
		c.change()
		if got, dirty, err := s.open().Head(context.Background()); err != nil || got != commit || dirty != c.dirty {
			t.Errorf("%s: %s, dirty %v, %v", c.name, got, dirty, err)
		}
	}
}

func TestChangedListsEveryNameAsItIs(t *testing.T) {
	s := newSandbox(t)
	s.write(".gitignore", "*.log\n")
	s.write("gone", "1")
	s.write("old name", "some text that git could take for a rename\nof the other file\n")
	base := s.commit("same", "1")
	odd := []string{"a b", "a\"b", "a\\b", "a\nb", "ядро", "-x", ":(top)y", "tab\tname", "sub/dir/deep"}
	for i, name := range odd {
		s.write(name, "1")
		if i%2 == 0 {
			s.git("--literal-pathspecs", "add", "--", name)
		}
	}
	s.write("x.log", "ignored")
	if err := os.Remove(filepath.Join(s.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	s.git("mv", "old name", "new name")
	got, err := changedSince(s.open(), base)
	want := append([]string{"gone", "old name", "new name"}, odd...)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %q, %v\nwant %q", got, err, want)
	}
	if got, err := changedSince(s.open(), strings.Repeat("0", 40)); err == nil {
		t.Errorf("an unknown commit: %q", got)
	}
	s.git("config", "diff.relative", "true")
	if got, err := changedSince(s.open(), base); err != nil || !slices.Equal(got, want) {
		t.Errorf("with diff.relative: %q, %v", got, err)
	}
}

func TestNothingChanged(t *testing.T) {
	s := newSandbox(t)
	base := s.commit("a", "1")
	if got, err := changedSince(s.open(), base); err != nil || len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDiffLines(t *testing.T) {
	s := newSandbox(t)
	s.write(":(glob)*", "1\n")
	base := s.commit("p", "one\ntwo\nthree\n")
	s.write("p", "one\n2\nthree\nfour\n")
	s.write(":(glob)*", "2\n")
	s.git("config", "diff.external", "false")
	s.git("config", "color.ui", "always")
	r := s.open()
	for _, c := range []struct {
		file string
		most int
		want []string
	}{
		{"p", 10, []string{"-two", "+2", "+four"}}, {"p", 2, []string{"-two", "+2", "… and more"}}, {"none", 10, nil},
		{":(glob)*", 10, []string{"-1", "+2"}},
	} {
		if got := r.DiffLines(context.Background(), base, c.file, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
	if got := r.DiffLines(context.Background(), strings.Repeat("0", 40), "p", 10); got != nil {
		t.Errorf("an unknown commit: %q", got)
	}
}

func TestErrorSaysTheFirstLine(t *testing.T) {
	cause := errors.New("exit status 128")
	for _, c := range []struct{ output, want string }{
		{"fatal: bad object\nusage: git\n", "git diff: fatal: bad object"}, {"", "git diff: exit status 128"}, {"\n\n", "git diff: exit status 128"},
	} {
		if e := (&failedCall{Args: []string{"diff", "x"}, Output: c.output, Err: cause}); e.Error() != c.want || !errors.Is(e, cause) {
			t.Errorf("%q: %s", c.output, e)
		}
	}
}

func TestCancelledIsAnError(t *testing.T) {
	s := newSandbox(t)
	commit := s.commit("a", "1")
	r := s.open()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if files, err := r.Compare(ctx, commit); err == nil {
		t.Errorf("changed: %q", files.Changed)
	}
	if base, err := r.Base(ctx, "", unset); err == nil || errors.As(err, new(*NoBaseError)) {
		t.Errorf("base: %+v, %v", base, err)
	}
}

// TestCommitted: a file is as old as the newest commit that touched it, on
// whatever side of a merge that was.
func TestCommitted(t *testing.T) {
	s := newSandbox(t)
	at := func(second int) { t.Setenv("GIT_COMMITTER_DATE", fmt.Sprintf("%d +0000", 1_800_000_000+second)) }
	at(1)
	s.write("e/b c\n", "1")
	first := s.commit("e/a", "1")
	at(2)
	s.commit("e/a", "2")
	s.git("checkout", "-q", "-b", "side", first)
	at(3)
	s.commit("e/d", "1")
	at(4)
	s.git("merge", "-q", "-m", "merge", "main")
	at(5)
	s.commit("elsewhere", "1")
	s.git("config", "log.showSignature", "true")
	s.git("config", "log.diffMerges", "on")
	s.write("e/new", "1")
	got, err := s.open().Committed(context.Background(), "HEAD", "e")
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	for file, second := range map[string]int64{"e/a": 2, "e/b c\n": 1, "e/d": 3} {
		if got[file].Unix() != 1_800_000_000+second {
			t.Errorf("%q: %v, want second %d", file, got[file], second)
		}
	}
	if got, err := s.open().Committed(context.Background(), first, "e"); err != nil || len(got) != 2 || got["e/a"].Unix() != 1_800_000_001 {
		t.Errorf("up to the first commit: %v, %v", got, err)
	}
	if got, err := s.open().Committed(context.Background(), "HEAD", "none"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
