package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/diff"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/store"
)

// compiled are the static records of the head's kernels as a store keeps them.
func (r *run) compiled() []*evidence.Record {
	var out []*evidence.Record
	for _, s := range r.asked.Subjects {
		if !s.Head.Identity.Known() {
			continue
		}
		made := r.ledger.Find(evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: s.Head.Identity}})).Record
		if made != nil {
			out = append(out, made.Kept(s.Arch, evidence.Provenance{Recorded: r.Now().UTC().Format(time.RFC3339), Kernel: s.Name,
				Commit: r.project.Head.Commit, Compiler: r.project.Tools.Version}))
		}
	}
	return out
}

// keepStatic keeps the compiler's figures where none stand, so that they are
// there to be compared with when the compiler is another one.
func (r *run) keepStatic() error {
	for _, made := range r.compiled() {
		if _, err := r.shelf.Write.Get(made.Key()); err == nil {
			continue
		}
		if err := r.shelf.Write.Put(made, nil); err != nil {
			return err
		}
	}
	return nil
}

// moves notes of every kernel how the compiler's figures moved since the latest
// other toolchain that recorded it.
func (r *run) moves() error {
	found, err := r.shelf.Write.Find(func(x *evidence.Record) bool { return x.Tier == evidence.Static })
	if err != nil {
		return err
	}
	now, same, unknown := "CUDA "+r.project.Tools.Version, map[string]int{}, 0
	for _, made := range r.compiled() {
		old := byAnother(made, found)
		if old == nil {
			unknown++
			continue
		}
		c, err := diff.Of(old, made)
		if err != nil {
			return err
		}
		from := "CUDA " + old.Provenance.Compiler
		if moved := c.Moved(); len(moved) > 0 {
			r.notes = append(r.notes, fmt.Sprintf("%s → %s: %s for %s: %s", from, now, made.Provenance.Kernel, made.Address.Case, movements(moved)))
		} else {
			same[from]++
		}
	}
	for _, from := range slices.Sorted(maps.Keys(same)) {
		r.notes = append(r.notes, fmt.Sprintf("%s → %s: the compiler's figures of %s did not move", from, now, plural(same[from], "kernel")))
	}
	if unknown > 0 {
		r.notes = append(r.notes, fmt.Sprintf("figures by another toolchain than %s are not recorded of %s", now, plural(unknown, "kernel")))
	}
	for _, f := range found {
		if f.Refused != nil {
			r.notes = append(r.notes, fmt.Sprintf("a recorded piece of evidence is refused: %s: %v", f.Place, f.Refused))
		}
	}
	return nil
}

// byAnother is the latest record of a kernel and architecture by another
// compiler.
func byAnother(made *evidence.Record, found []store.Found) *evidence.Record {
	var last *evidence.Record
	for _, f := range found {
		if f.Refused != nil || f.Record.Provenance.Kernel != made.Provenance.Kernel || f.Record.Address.Case != made.Address.Case ||
			f.Record.Provenance.Compiler == made.Provenance.Compiler {
			continue
		}
		if last == nil || f.Record.Provenance.Recorded > last.Provenance.Recorded {
			last = f.Record
		}
	}
	return last
}

// movements are the figures that moved, function by function. The kernel's own
// figure is that of its worst function, and is left out beside it.
func movements(moved []diff.Figure) string {
	var parts []string
	for _, f := range moved {
		repeated := func(g diff.Figure) bool { return g.Entry != "" && g.Metric == f.Metric }
		if f.Entry == "" && slices.ContainsFunc(moved, repeated) {
			continue
		}
		text := fmt.Sprintf("%s %s → %s (%s)", strings.TrimPrefix(f.Metric, "ptxas."), moment(f.A), moment(f.B), f.Direction)
		if f.Entry != "" {
			text = f.Entry + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// moment is a figure at one of two moments.
func moment(v evidence.Value) string {
	if !v.Known() {
		return "missing"
	}
	return metric.Show(v.Number, v.Unit())
}
