// Package git answers what gate asks of a repository: where its root is, which
// commit is the base, what differs from it, and the base's files in a folder
// of their own. It never changes the user's tree or index.
package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// A Repo is a checked-out repository.
type Repo struct{ Root string }

// ErrNoRepo is returned outside of any repository.
var ErrNoRepo = errors.New("this folder is not in a git repository")

// Open finds the repository that holds dir.
func Open(ctx context.Context, dir string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("git is not installed: %w", err)
	}
	root, err := run(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		var ge *Error
		if errors.As(err, &ge) && strings.Contains(ge.Output, "not a git repository") {
			return nil, ErrNoRepo
		}
		return nil, err
	}
	return &Repo{Root: root}, nil
}

// A Base is the commit that a change is compared with.
type Base struct {
	Commit string
	How    string // why this commit: "merge-base with origin/main"
}

// A NoBaseError is a repository in which no base can be told, and why.
type NoBaseError struct{ Msg, Hint string }

func (e *NoBaseError) Error() string { return e.Msg }

// Base resolves the base: the merge-base of HEAD with the named revision, or,
// when none is named, with the default branch that the remote or the local
// repository has.
func (r *Repo) Base(ctx context.Context, revision string) (Base, error) {
	head, err := r.head(ctx)
	if err != nil {
		return Base{}, err
	}
	names := []string{revision}
	if revision == "" {
		names = []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master"}
	}
	for _, name := range names {
		commit, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
		if answered(err) {
			continue
		}
		if err != nil {
			return Base{}, err
		}
		merge, err := r.run(ctx, "merge-base", commit, head)
		if answered(err) {
			return Base{}, r.noMergeBase(ctx, name)
		}
		if err != nil {
			return Base{}, err
		}
		return Base{Commit: merge, How: "merge-base with " + short(name)}, nil
	}
	if revision != "" {
		return Base{}, &NoBaseError{Msg: fmt.Sprintf("there is no revision %q here", revision), Hint: "git fetch, then name a branch, tag or commit"}
	}
	return Base{Commit: head, How: "HEAD, since no main or master branch is known"}, nil
}

// answered reports whether git ran to its end and said no. A git that was
// killed or never started has said nothing about the repository.
func answered(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() > 0
}

// head is the commit checked out.
func (r *Repo) head(ctx context.Context) (string, error) {
	commit, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if answered(err) {
		return "", &NoBaseError{Msg: "the repository has no commit yet"}
	}
	return commit, err
}

func (r *Repo) noMergeBase(ctx context.Context, name string) error {
	e := &NoBaseError{Msg: fmt.Sprintf("HEAD and %s have no common commit here", short(name))}
	if shallow, _ := r.run(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		e.Msg += ": the clone is shallow"
		e.Hint = "git fetch --unshallow (in a workflow: fetch-depth: 0)"
	}
	return e
}

func short(ref string) string {
	for _, prefix := range []string{"refs/remotes/", "refs/heads/"} {
		ref = strings.TrimPrefix(ref, prefix)
	}
	return ref
}

// Head is the commit checked out, and whether tracked files differ from it.
func (r *Repo) Head(ctx context.Context) (commit string, dirty bool, err error) {
	if commit, err = r.head(ctx); err != nil {
		return "", false, err
	}
	status, err := r.run(ctx, "status", "--porcelain=v1", "--untracked-files=no")
	return commit, status != "", err
}

// Changed lists files that differ between a commit and the working tree,
// untracked ones included, by their paths from the root.
func (r *Repo) Changed(ctx context.Context, commit string) ([]string, error) {
	tracked, err := r.run(ctx, "diff", "--name-only", "-z", "--no-renames", commit, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := r.run(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range strings.Split(tracked+"\x00"+untracked, "\x00") {
		if f != "" {
			files = append(files, f)
		}
	}
	sort.Strings(files)
	return files, nil
}

// Worktree checks a commit out into a temporary folder. The caller removes it.
func (r *Repo) Worktree(ctx context.Context, commit string) (dir string, remove func(), err error) {
	parent, err := os.MkdirTemp("", "gate-base-")
	if err != nil {
		return "", nil, fmt.Errorf("making a folder for the base: %w", err)
	}
	dir = filepath.Join(parent, "base")
	remove = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		r.run(ctx, "worktree", "remove", "--force", dir)
		os.RemoveAll(parent)
		r.run(ctx, "worktree", "prune")
	}
	if _, err := r.run(ctx, "worktree", "add", "--detach", "--quiet", dir, commit); err != nil {
		remove()
		return "", nil, fmt.Errorf("checking out the base: %w", err)
	}
	return dir, remove, nil
}

// An Error is a git command that failed.
type Error struct {
	Args   []string
	Output string
	Err    error
}

func (e *Error) Error() string {
	msg, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	if msg == "" {
		msg = e.Err.Error()
	}
	return fmt.Sprintf("git %s: %s", e.Args[0], msg)
}

func (e *Error) Unwrap() error { return e.Err }

func (r *Repo) run(ctx context.Context, args ...string) (string, error) {
	return run(ctx, r.Root, args...)
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// A hook or a filter of the repository is code of the change; names are
	// read as bytes, never quoted for a person or taken for patterns.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1")
	cmd.Args = append([]string{"git", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"}, args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", &Error{Args: args, Output: errOut.String(), Err: err}
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// DiffLines are the lines of a file that differ from a commit, as "-…" and
// "+…", at most so many.
func (r *Repo) DiffLines(ctx context.Context, commit, file string, most int) []string {
	text, err := r.run(ctx, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "-U0", commit, "--", file)
	if err != nil {
		return nil
	}
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "+++") || strings.HasPrefix(l, "---") || l == "" || l[0] != '+' && l[0] != '-' {
			continue
		}
		if len(lines) == most {
			return append(lines, "… and more")
		}
		lines = append(lines, l)
	}
	return lines
}
