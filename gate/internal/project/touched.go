package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
