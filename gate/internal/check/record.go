package check

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// record copies into the store what this user's cache holds of what was asked,
// and notes what the store gained, what is missing and what it no longer needs.
func (r *run) record(ctx context.Context, v *verdict.Verdict) error {
	copied, err := r.shelf.Share(r.asked.Needs(r.ledger))
	if err != nil {
		return err
	}
	if r.Moves {
		if err := r.moves(); err != nil {
			return err
		}
	}
	if v.Counts.Measured+copied > 0 || r.Moves { // one that recorded nothing leaves the store as it is
		if err := r.keepStatic(); err != nil {
			return err
		}
	}
	if _, err := r.shelf.Write.Send(ctx); err != nil {
		return err
	}
	r.notes = append(r.notes, r.recorded(copied, v.Counts))
	needed, err := r.project.Needed(ctx)
	if err != nil {
		r.notes = append(r.notes, "it is not known what the store no longer needs: "+err.Error())
		return nil
	}
	old, err := r.shelf.Write.Prune(ctx, needed, true)
	if err != nil {
		return err
	}
	if len(old.Records)+len(old.Raw) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("gate baseline prune would remove %s", Pruned(old)))
	}
	return nil
}

// unfinished is where records lie while they are measured.
func (o Options) unfinished(p *project.Project) *store.Unfinished {
	return store.OpenUnfinished(filepath.Join(o.Cache, "unfinished"), Audit(p, nil, o.Now))
}

// forget removes what killed runs left of times that they had stored.
func (r *run) forget() {
	left := r.unfinished(r.project)
	for _, n := range r.asked.Needs(r.ledger) {
		if e := r.ledger.Find(n); n.Tier == evidence.Latency && e.Measured() {
			if err := left.Forget(e.Record); err != nil {
				r.notes = append(r.notes, "what a run before this one left could not be removed: "+err.Error())
			}
		}
	}
}

// recorded says what came into the store.
func (r *run) recorded(copied int, c verdict.Counts) string {
	var parts []string
	if c.Measured > 0 {
		parts = append(parts, fmt.Sprintf("%s measured now", plural(c.Measured, "record")))
	}
	if copied > 0 {
		parts = append(parts, fmt.Sprintf("%s copied from this user's cache", plural(copied, "record")))
	}
	text := "nothing was recorded"
	if len(parts) > 0 {
		text = "recorded: " + strings.Join(parts, ", ")
	}
	if c.Missing > 0 {
		text += fmt.Sprintf("; %s missing", plural(c.Missing, "record"))
		if why := r.why(); why != "" {
			text += ": " + why
		}
	} else if len(parts) == 0 {
		text += ": the store holds all that is asked for"
	}
	return text
}

// remedy is the command that records what is missing.
func (r *run) remedy() string {
	var names []string
	all := map[string]bool{}
	for i := range r.asked.Questions {
		q := &r.asked.Questions[i]
		all[q.Subject.Name] = true
		open := q.Kind != plan.Settled && q.Stopped == "" && slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool {
			return n.Asked() && n.Tier != evidence.Static && n.Never == "" && r.ledger.Find(n).Record == nil
		})
		if open && !slices.Contains(names, q.Subject.Name) {
			names = append(names, quote(q.Subject.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	command := "gate baseline record"
	if len(names) < len(all) {
		command += " " + strings.Join(names, " ")
	}
	where := "a GPU"
	if m := r.project.Policy.Machines; len(m) > 0 {
		var each []string
		for _, x := range m {
			each = append(each, cmp.Or(x.Match, x.Name))
		}
		where = strings.Join(each, ", and on one with ")
	}
	return "what is missing is recorded by " + command + " on a machine with " + where
}

// why is the first cause why something was not measured.
func (r *run) why() string {
	for _, n := range r.asked.Needs(r.ledger) {
		if e := r.ledger.Find(n); n.Asked() && e.Record == nil && len(e.Why) > 0 {
			return e.Why[0]
		}
	}
	return ""
}

// Prune removes from the store of a project what no code of the working tree or
// of its base needs, and returns the store's name.
func Prune(ctx context.Context, o Options, dry bool) (name string, p store.Pruned, err error) {
	if err := o.Prepare(); err != nil {
		return "", p, err
	}
	of, err := project.Open(ctx, o.Options)
	if err != nil {
		return "", p, err
	}
	var needed []evidence.Address
	if needed, err = of.Needed(ctx); err != nil {
		return "", p, fmt.Errorf("nothing was removed: %w", err)
	}
	s, err := store.At(of.Store(), o.Cache)
	if err != nil {
		return "", p, err
	}
	if _, err := s.Fetch(ctx); err != nil {
		return "", p, err
	}
	p, err = s.Prune(ctx, needed, dry)
	return s.Name(), p, err
}

// Pruned says how much a prune removes.
func Pruned(p store.Pruned) string {
	return fmt.Sprintf("%s and %s, %.1f kB", plural(len(p.Records), "record"), plural(len(p.Raw), "raw file"), float64(p.Bytes)/1000)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
