package git

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
)

// A Base is the commit that a change is compared with.
type Base struct {
	Commit string
	How    string // why this commit: "merge-base with origin/main"
}

// A NoBaseError is a repository in which no base can be told, and why.
type NoBaseError struct{ Msg, Hint string }

func (e *NoBaseError) Error() string { return e.Msg }

const unshallow = "git fetch --unshallow (in a workflow: fetch-depth: 0)"

// Base resolves the base: the merge-base of HEAD with the named revision; when
// none is named, with the branch that a pull request asks to be merged into;
// outside of one, with the default branch that the remote or the local
// repository has. HEAD never takes the place of a base that is not known: all
// would be unchanged.
func (r *Repo) Base(ctx context.Context, revision string, env func(string) string) (Base, error) {
	head, err := r.head(ctx)
	if err != nil {
		return Base{}, err
	}
	if revision == "" {
		if base, err := r.ofEvent(ctx, head, env); base != nil || err != nil {
			return *cmp.Or(base, &Base{}), err
		}
	}
	names, none := candidates(revision, env("GITHUB_BASE_REF"))
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
			none = NoBaseError{Msg: fmt.Sprintf("HEAD and %s have no common commit here", short(name))}
			return Base{}, r.shallow(ctx, none)
		}
		if err != nil {
			return Base{}, err
		}
		return Base{Commit: merge, How: "merge-base with " + short(name)}, nil
	}
	if revision != "" {
		return Base{}, exit.Usagef(none.Hint, "%s", none.Msg) // the user's mistake, and not the repository's state
	}
	return Base{}, r.shallow(ctx, none)
}

var fullCommit = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// Behind is how many commits a commit is behind another one that it is an
// ancestor of; false where it is none, or is not known here.
func (r *Repo) Behind(ctx context.Context, commit, of string) (int, bool) {
	if !fullCommit.MatchString(commit) {
		return 0, false
	}
	if _, err := r.run(ctx, "merge-base", "--is-ancestor", commit, of); err != nil {
		return 0, false
	}
	count, err := r.run(ctx, "rev-list", "--count", commit+".."+of)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(count))
	return n, err == nil
}

// ofEvent is the base that GitHub names where HEAD is what the event is about,
// nil otherwise. It needs no history: the commit itself is fetched when it is
// read. Of a pull request, GitHub checks out a merge, whose first parent is the
// base.
func (r *Repo) ofEvent(ctx context.Context, head string, env func(string) string) (*Base, error) {
	e, err := event.Read(env)
	if err != nil {
		return nil, &NoBaseError{Msg: err.Error()}
	}
	switch {
	case e == nil:
	case e.Name == event.MergeGroup && e.MergeGroup.HeadSHA == head:
		return &Base{Commit: e.MergeGroup.BaseSHA, How: "the base of the merge queue's group"}, nil
	case e.Name == event.Push && e.After == head && strings.Trim(e.Before, "0") != "":
		return &Base{Commit: e.Before, How: "what the push replaced"}, nil
	case e.Name == event.PullRequest:
		parents, err := r.parents(ctx, head)
		if err == nil && len(parents) == 2 && parents[1] == e.PullRequest.Head.SHA {
			return &Base{Commit: parents[0], How: "what GitHub merged the pull request into"}, nil
		}
		return nil, err
	}
	return nil, nil
}

// parents are those that a commit names, which a shallow clone need not hold.
func (r *Repo) parents(ctx context.Context, commit string) ([]string, error) {
	var out strings.Builder
	err := r.read(ctx, &r.own, len(commit), nil, &out, "cat-file", "commit", commit)
	var parents []string
	for line := range strings.Lines(out.String()) {
		if strings.TrimSpace(line) == "" {
			break
		}
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "parent "); ok {
			parents = append(parents, id)
		}
	}
	return parents, err
}

// candidates are the revisions to try, and what to say when none is here.
func candidates(revision, branch string) ([]string, NoBaseError) {
	switch {
	case revision != "":
		return []string{revision}, NoBaseError{fmt.Sprintf("there is no revision %q here", revision), "git fetch, then name a branch, tag or commit"}
	case branch != "":
		return []string{"refs/remotes/origin/" + branch, "refs/heads/" + branch},
			NoBaseError{fmt.Sprintf("the branch %q, which GITHUB_BASE_REF names, is not here", branch), "in the workflow's checkout: fetch-depth: 0"}
	}
	return []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master"},
		NoBaseError{"no default branch is known here: there is no origin/HEAD, origin/main, origin/master, main or master",
			"name one: gate check --base BRANCH, or once: git remote set-head origin --auto"}
}

// shallow adds that the clone is shallow, which explains what is not here.
func (r *Repo) shallow(ctx context.Context, e NoBaseError) error {
	shallow, err := r.run(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return err
	}
	if shallow == "true" {
		e.Msg += ": the clone is shallow"
		e.Hint = unshallow
	}
	return &e
}

func short(ref string) string {
	for _, prefix := range []string{"refs/remotes/", "refs/heads/"} {
		ref = strings.TrimPrefix(ref, prefix)
	}
	return ref
}

// Includes reports whether a commit has another one among its ancestors, as far
// as this clone knows.
func (r *Repo) Includes(ctx context.Context, commit, ancestor string) (bool, error) {
	err := r.read(ctx, &r.own, len(commit), nil, nil, "merge-base", "--is-ancestor", ancestor, commit)
	if answered(err) {
		return false, nil
	}
	return err == nil, err
}
