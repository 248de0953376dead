// Package diff holds two records of evidence against each other, figure by
// figure. It says where they differ and in which direction, and decides nothing:
// two times from two runs are not an experiment.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
)

// A Direction says how a figure moved from A to B.
type Direction string

// The directions. Changed is a metric of which neither direction is better;
// Unknown is a figure that is missing on both sides, or that is in two units.
const (
	Equal   Direction = "equal"
	Better  Direction = "better"
	Worse   Direction = "worse"
	Changed Direction = "changed"
	OnlyA   Direction = "only in A"
	OnlyB   Direction = "only in B"
	Unknown Direction = "unknown"
)

// A Figure is one metric of both records. Change is a share of A, nil where
// that is not defined.
type Figure struct {
	Metric    string         `json:"metric"`
	Entry     string         `json:"entry,omitempty"` // the __global__ function that it is of
	Better    string         `json:"better"`
	A         evidence.Value `json:"a"`
	B         evidence.Value `json:"b"`
	Change    *float64       `json:"change,omitempty"`
	Direction Direction      `json:"direction"`
}

// A Part is something of a record's identity or origin that is not the same.
type Part struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// A Comparison is two records of one tier.
type Comparison struct {
	Tier    evidence.Tier `json:"tier"`
	Differs []Part        `json:"differs"`
	Figures []Figure      `json:"figures"`
}

// Count is the number of figures that moved in a direction.
func (c Comparison) Count(d Direction) int {
	n := 0
	for _, f := range c.Figures {
		if f.Direction == d {
			n++
		}
	}
	return n
}

// Of compares two records. Those of two tiers have no figure in common, and are
// refused.
func Of(a, b *evidence.Record) (Comparison, error) {
	if a.Tier != b.Tier {
		return Comparison{}, fmt.Errorf("a record of the tier %s has no figure in common with one of %s", a.Tier, b.Tier)
	}
	c := Comparison{Tier: a.Tier, Differs: parts(a, b), Figures: figures("", a.Metrics, b.Metrics)}
	for _, entry := range keys(a.Entries, b.Entries) {
		c.Figures = append(c.Figures, figures(entry, a.Entries[entry], b.Entries[entry])...)
	}
	return c, nil
}

// keys are those of both maps, in order.
func keys[V any](a, b map[string]V) []string {
	out := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(out)
	return slices.Compact(out)
}

func figures(entry string, a, b evidence.Metrics) []Figure {
	out := []Figure{}
	for _, name := range keys(a, b) {
		out = append(out, figure(name, entry, a, b))
	}
	return out
}

func figure(name, entry string, a, b evidence.Metrics) Figure {
	m, known := metric.Lookup(name)
	if !known { // a figure that this gate does not judge
		m.Better = metric.Neither
	}
	f := Figure{Metric: name, Entry: entry, Better: m.Better.String(), A: a.Get(name), B: b.Get(name), Direction: Unknown}
	switch {
	case f.A.Known() && !f.B.Known():
		f.Direction = OnlyA
	case f.B.Known() && !f.A.Known():
		f.Direction = OnlyB
	case f.A.Known() && f.A.Unit() == f.B.Unit():
		f.Direction = direction(m.Better, f.A.Number, f.B.Number)
		if f.A.Number != 0 {
			change := (f.B.Number - f.A.Number) / f.A.Number
			f.Change = &change
		}
	}
	return f
}

func direction(better metric.Better, a, b float64) Direction {
	switch {
	case a == b:
		return Equal
	case better == metric.Neither:
		return Changed
	case (b < a) == (better == metric.Lower):
		return Better
	}
	return Worse
}

// parts are what identifies the two records, and how they came about, where it
// is not the same.
func parts(a, b *evidence.Record) []Part {
	other := func(r *evidence.Record) string {
		if r.Base == nil {
			return ""
		}
		return r.Base.Code + " " + r.Base.Host
	}
	p, q := a.Provenance, b.Provenance
	out := []Part{}
	for _, part := range []Part{
		{"kernel", p.Kernel, q.Kernel},
		{"code", a.Address.Code, b.Address.Code},
		{"host", a.Address.Host, b.Address.Host},
		{"other arm", other(a), other(b)},
		{"op", a.Address.Op, b.Address.Op},
		{"case", a.Address.Case, b.Address.Case},
		{"harness", a.Address.Harness, b.Address.Harness},
		{"machine", a.Address.Machine, b.Address.Machine},
		{"card", p.Card, q.Card},
		{"compiler", p.Compiler, q.Compiler},
		{"profiler", p.Profiler, q.Profiler},
		{"protocol", p.Protocol, q.Protocol},
		{"commit", p.Commit, q.Commit},
		{"launches", launches(a), launches(b)},
	} {
		if part.A != part.B {
			out = append(out, part)
		}
	}
	return out
}

// launches are the profiled launches with their sizes, each once.
func launches(r *evidence.Record) string {
	var out []string
	for _, l := range r.Launches {
		out = append(out, fmt.Sprintf("%s grid %s block %s", l.Kernel, size(l.Grid), size(l.Block)))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

func size(n [3]int) string { return fmt.Sprintf("%d×%d×%d", n[0], n[1], n[2]) }

// Moved are the figures that are not equal, the worse ones first.
func (c Comparison) Moved() []Figure {
	out := slices.DeleteFunc(slices.Clone(c.Figures), func(f Figure) bool { return f.Direction == Equal })
	slices.SortStableFunc(out, func(f, g Figure) int { return cmp.Compare(rank(f.Direction), rank(g.Direction)) })
	return out
}

func rank(d Direction) int {
	return slices.Index([]Direction{Worse, OnlyA, OnlyB, Unknown, Changed, Better}, d)
}
