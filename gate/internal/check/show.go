package check

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/store"
)

// Show reads the records that each selector names from the project's store and
// this user's cache, and audits them as a check does. A selector is the file of a
// record, or a kernel by the name that it was recorded under, with a case and a
// tier if need be (KERNEL:CASE:TIER).
func Show(ctx context.Context, o Options, selectors ...string) ([][]store.Found, error) {
	o.Base, o.Judge = project.NoBase, project.JudgeHead // whatever is recorded is shown
	if err := o.Prepare(); err != nil {
		return nil, err
	}
	p, err := project.Look(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, project: p}
	if err := r.openShelf(ctx); err != nil {
		return nil, err
	}
	defer r.audits.Save()
	a := Audit(p, r.audits, o.Now)
	a.Added = p.Added(ctx)
	var out [][]store.Found
	for _, s := range selectors {
		found, err := r.recordsOf(s, a)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if rel, err := filepath.Rel(o.Dir, found[i].Place); err == nil && filepath.IsLocal(rel) {
				found[i].Place = rel
			}
		}
		out = append(out, found)
	}
	return out, nil
}

func (r *run) recordsOf(selector string, a store.Audit) ([]store.Found, error) {
	if _, err := os.Stat(selector); err == nil || strings.HasSuffix(selector, ".json") {
		if err != nil {
			return nil, exit.Usagef("gate baseline show KERNEL shows where its records lie", "no record lies at %s", selector)
		}
		one, err := a.File(selector)
		return []store.Found{one}, err
	}
	fits, err := selected(selector)
	if err != nil {
		return nil, err
	}
	out, err := r.shelf.Find(fits)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, exit.Usagef("gate baseline list lists what is recorded", "no record of %s was found in %s or in this user's cache", selector, r.shelf.Read[0].Name())
	}
	return out, nil
}

// storedTiers are those that a store holds records of, and kinds of records in them.
var storedTiers = kinds()

func kinds() []string {
	var out []string
	for _, t := range append(slices.Clone(evidence.Order), evidence.Calibration, evidence.Sessions) {
		out = append(out, string(t))
	}
	for _, tool := range evidence.Sanitizers {
		out = append(out, evidence.Key{Tier: evidence.Sanitizer, Tool: tool}.Name())
	}
	return out
}

// selected reads KERNEL:CASE:TIER, of which the case and the tier may be missing
// or empty.
func selected(text string) (func(*evidence.Record) bool, error) {
	parts := append(strings.Split(text, ":"), "", "")
	if len(parts) > 5 || parts[0] == "" || parts[2] != "" && !slices.Contains(storedTiers, parts[2]) {
		return nil, exit.Usagef("KERNEL, KERNEL:CASE or KERNEL:CASE:TIER, and a tier is one of "+strings.Join(storedTiers, ", ")+"; or the file of a record",
			"%q names no record", text)
	}
	is := func(want, got string) bool { return want == "" || want == got }
	return func(r *evidence.Record) bool {
		return r.Provenance.Kernel == parts[0] && is(parts[1], r.Address.Case) && (is(parts[2], string(r.Tier)) || parts[2] == r.Key().Name())
	}, nil
}
