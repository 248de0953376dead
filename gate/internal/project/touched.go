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
// store; zero for a file that no commit has as it is. Git is asked once, by the
// first record that nobody has looked at yet.
func (p *Project) Added(ctx context.Context) func(path string) (time.Time, error) {
	if p.repo == nil {
		return nil
	}
	ask := sync.OnceValues(func() (map[string]time.Time, error) {
		folder, err := filepath.Rel(p.Root, p.Store())
		if err != nil || !filepath.IsLocal(folder) || p.Head.Commit == "" {
			return nil, nil
		}
		times, err := p.repo.Committed(ctx, filepath.ToSlash(folder))
		if err != nil {
			return nil, fmt.Errorf("it is not known when it was committed: %w", err)
		}
		now, err := p.repo.Compare(ctx, p.Head.Commit)
		if err != nil {
			return nil, err
		}
		for _, f := range now.Changed {
			delete(times, f)
		}
		return times, nil
	})
	return func(path string) (time.Time, error) {
		times, err := ask()
		rel, outside := filepath.Rel(p.Root, path)
		if err != nil || outside != nil {
			return time.Time{}, err
		}
		return times[filepath.ToSlash(rel)], nil
	}
}
