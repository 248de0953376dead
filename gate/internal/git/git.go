// Package git answers what gate asks of a repository: where its root is, which
// commit is the base, what differs from it, and the base's files in a folder
// of their own. It writes in gate's cache only: no byte below the user's .git
// and no file of the user's tree changes, whatever happens to the process.
package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// A Repo is a checked-out repository.
type Repo struct {
	Root  string
	own   place
	cache string // gate's folder

	compared map[string]*Comparison // by commit
}

// ErrNoRepo is returned outside of any repository.
var ErrNoRepo = errors.New("this folder is not in a git repository")

// Open finds the repository that holds dir. What is read of its history is
// kept below cache.
func Open(ctx context.Context, dir, cache string) (*Repo, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("git is not installed: %w", err)
	}
	out, err := text(ctx, dir, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
	if err != nil {
		var ge *failedCall
		switch known := errors.As(err, &ge); {
		case known && strings.Contains(ge.Output, "not a git repository"):
			return nil, ErrNoRepo
		case known && strings.Contains(ge.Output, "must be run in a work tree"):
			return nil, exit.Usagef("change into a clone that has files", "this folder is in a repository without a working tree: there are no files to check")
		}
		return nil, err
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("git names the folders of the repository as %q: a name has a line break, or git is older than 2.31", out)
	}
	return &Repo{Root: lines[0], own: place{root: lines[0], gits: lines[1:]}, cache: cache}, nil
}

// run asks the user's repository itself. Only questions that git answers from
// references and names are asked so; objects are read in gate's own folder.
func (r *Repo) run(ctx context.Context, args ...string) (string, error) {
	return text(ctx, r.Root, args...)
}

// head is the commit checked out.
func (r *Repo) head(ctx context.Context) (string, error) {
	commit, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if saidNo(err) {
		return "", &NoBaseError{Msg: "the repository has no commit yet"}
	}
	return commit, err
}

// Head is the commit checked out, and whether the files differ from it. A file
// that is neither tracked nor ignored is a difference.
func (r *Repo) Head(ctx context.Context) (commit string, dirty bool, err error) {
	if commit, err = r.head(ctx); err != nil {
		return "", false, err
	}
	c, err := r.Compare(ctx, commit)
	if err != nil {
		return commit, false, err
	}
	return commit, len(c.Changed) > 0, nil
}
