package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/diff"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/store"
)

// WriteDiff shows how the records of two sides differ, pair by pair.
func WriteDiff(w io.Writer, p diff.Pairs, now time.Time, format string) error {
	if format == "json" {
		return diffJSON(w, p, now)
	}
	for i, x := range p.Compared {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := writePair(w, x); err != nil {
			return err
		}
	}
	for _, left := range []struct {
		label string
		all   []store.Found
	}{{"only in A: ", p.OnlyA}, {"only in B: ", p.OnlyB}} {
		for _, f := range left.all {
			fmt.Fprintf(w, "%s%s\n", left.label, printable.Line(title(f.Record)+" in "+f.Place))
		}
	}
	for _, f := range p.Refused {
		fmt.Fprintf(w, "refused: %s\n", printable.Line(f.Place+": "+f.Refused.Error()))
	}
	return nil
}

func writePair(w io.Writer, p diff.Pair) error {
	for _, side := range []struct {
		label string
		of    store.Found
	}{{"A", p.A}, {"B", p.B}} {
		fmt.Fprintf(w, "%s: %s, recorded %s, %s\n", side.label, printable.Line(title(side.of.Record)), printable.Line(side.of.Record.Provenance.Recorded), printable.Line(side.of.Place))
	}
	if len(p.Comparison.Differs) > 0 {
		fmt.Fprintln(w)
		var rows [][]string
		for _, d := range p.Comparison.Differs {
			rows = append(rows, []string{d.What, digits(d.A), digits(d.B)})
		}
		if err := writeTable(w, []string{"differs", "A", "B"}, rows); err != nil {
			return err
		}
	}
	if len(p.Comparison.Figures) > 0 {
		fmt.Fprintln(w)
		if err := writeTable(w, figureHeader("A", "B"), figureRows(p.Comparison.Figures)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s; a difference of two records is not a verdict\n", tally(p.Comparison))
	return err
}

// tally counts figures by their direction.
func tally(c diff.Comparison) string {
	text, before := plural(len(c.Figures), "figure"), ": "
	for _, d := range []diff.Direction{diff.Equal, diff.Better, diff.Worse, diff.Changed, diff.OnlyA, diff.OnlyB, diff.Unknown} {
		if n := c.Count(d); n > 0 {
			text += fmt.Sprintf("%s%d %s", before, n, d)
			before = ", "
		}
	}
	return text
}

var longDigits = regexp.MustCompile(`[0-9a-f]{40,}`)

// digits cuts what is too long to be read.
func digits(text string) string {
	return longDigits.ReplaceAllStringFunc(text, func(id string) string { return id[:12] })
}

// figureHeader are the columns of figureRows.
func figureHeader(a, b string) []string {
	return []string{"metric", "better", a, b, "change", "direction", "of"}
}

func figureRows(figures []diff.Figure) [][]string {
	var rows [][]string
	for _, f := range figures {
		change := ""
		if f.Change != nil && f.Direction != diff.Equal {
			change = compare.Percent(*f.Change)
		}
		rows = append(rows, []string{f.Metric, f.Better, inTable(f.A), inTable(f.B), change, string(f.Direction), cmp.Or(f.Entry, f.A.Where(), f.B.Where())})
	}
	return rows
}

// inTable is a figure of two; why it is missing is in the record.
func inTable(v evidence.Value) string {
	if !v.Known() {
		return "missing"
	}
	return figureText(v)
}

func diffJSON(w io.Writer, p diff.Pairs, now time.Time) error {
	type side struct {
		A exhibit `json:"a"`
		B exhibit `json:"b"`
		diff.Comparison
	}
	out := struct {
		Schema  string    `json:"schema"`
		Pairs   []side    `json:"pairs"`
		OnlyA   []exhibit `json:"only_a"`
		OnlyB   []exhibit `json:"only_b"`
		Refused []exhibit `json:"refused"`
	}{"gate/diff/v1", []side{}, bare(p.OnlyA, now), bare(p.OnlyB, now), bare(p.Refused, now)}
	for _, x := range p.Compared {
		both := bare([]store.Found{x.A, x.B}, now)
		out.Pairs = append(out.Pairs, side{both[0], both[1], x.Comparison})
	}
	return writeJSON(w, out)
}

// bare are records without their content, which a diff shows as far as it is
// compared.
func bare(found []store.Found, now time.Time) []exhibit {
	out := []exhibit{}
	for _, f := range found {
		s := show(f, now)
		s.Record = nil
		if f.Record != nil {
			s.Name, s.Recorded = title(f.Record), f.Record.Provenance.Recorded
		}
		out = append(out, s)
	}
	return out
}
