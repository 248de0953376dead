package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/gate/gate/internal/git"
)

// mostNamed bounds the records that a note names.
const mostNamed = 3

// evidenceTouched says which records of evidence a change adds, changes or
// removes: they are what an unchanged kernel is judged by.
func (p *Project) evidenceTouched(ctx context.Context, repo *git.Repo, base string, changed []string) (notes []string, err error) {
	var records []string
	raw := 0
	for _, f := range changed {
		switch {
		case !p.recorded(f):
		case strings.HasSuffix(f, ".json"):
			records = append(records, f)
		default:
			raw++
		}
	}
	held, err := repo.Held(ctx, base, records)
	if err != nil {
		return nil, err
	}
	what := map[string][]string{}
	for _, f := range records {
		did := "added"
		if _, err := os.Lstat(filepath.Join(p.Root, filepath.FromSlash(f))); err != nil {
			did = "removed"
		} else if held[f] {
			did = "changed"
		}
		what[did] = append(what[did], f)
	}
	for _, did := range []string{"added", "changed", "removed"} {
		if n := len(what[did]); n > 0 {
			names := strings.Join(what[did][:min(n, mostNamed)], ", ")
			if n > mostNamed {
				names += fmt.Sprintf(" and %d more", n-mostNamed)
			}
			notes = append(notes, fmt.Sprintf("records of evidence %s since the base (%d): %s", did, n, names))
		}
	}
	if raw > 0 && len(records) == 0 {
		notes = append(notes, fmt.Sprintf("%d raw files of evidence differ from the base's, and no record does", raw))
	}
	return notes, nil
}

// Near says of the commit of a record how far it is behind the base; nil where
// there is none.
func (p *Project) Near(ctx context.Context) func(commit string) (int, bool) {
	if p.repo == nil || p.Base.Commit == "" {
		return nil
	}
	type answer struct {
		n  int
		is bool
	}
	asked := map[string]answer{}
	return func(commit string) (int, bool) {
		a, known := asked[commit]
		if !known {
			a.n, a.is = p.repo.Behind(ctx, commit, p.Base.Commit)
			asked[commit] = a
		}
		return a.n, a.is
	}
}

// Added tells when the commit was made that brought a file of the repository's
// store with this content. It is zero for content that the head does not have:
// a run writes records while it goes on, and no commit says when that was. Git
// is asked once, by the first record that nobody has looked at yet.
func (p *Project) Added(ctx context.Context) func(path string, data []byte) (time.Time, error) {
	if p.repo == nil || p.Head.Commit == "" {
		return nil
	}
	type answer struct {
		times map[string]time.Time
		head  *git.Comparison
	}
	ask := sync.OnceValues(func() (a answer, err error) {
		folder, ok := p.fromRoot(p.Store())
		if !ok {
			return a, nil
		}
		if a.times, err = p.repo.Committed(ctx, p.Head.Commit, folder); err != nil {
			return a, fmt.Errorf("it is not known when it was committed: %w", err)
		}
		a.head, err = p.repo.Compare(ctx, p.Head.Commit)
		return a, err
	})
	return func(path string, data []byte) (time.Time, error) {
		a, err := ask()
		file, ok := p.fromRoot(path)
		if err != nil || !ok || a.head == nil || !a.head.Has(file, data) {
			return time.Time{}, err
		}
		return a.times[file], nil
	}
}

// fromRoot is the path of a file or folder as git writes it; false for one that
// lies outside, or is not there. A path may lead to it through links.
func (p *Project) fromRoot(path string) (string, bool) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(p.Root, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}
