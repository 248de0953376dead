package ncu

import (
	"bytes"
	"fmt"
	"sort"
)

// A rawTable is a raw page: one row of names, one of units, one per launch.
type rawTable struct {
	*header
	units  []unit         // nil until the units row was read
	metric map[string]int // places of the metric columns
	sorted []column       // metric columns by name
	lead   []string       // scratch for the leading fields
}

type column struct {
	name string
	at   int
}

func newRawTable(h *header) (*rawTable, error) {
	t := &rawTable{header: h, metric: make(map[string]int)}
	for i, c := range h.columns {
		if _, fixed := fixedColumn(c); fixed || nvtxColumn(c) || c == "" {
			continue
		}
		if _, twice := t.metric[c]; twice {
			return nil, fmt.Errorf("metric %q occurs twice in the header", c)
		}
		t.metric[c] = i
		t.sorted = append(t.sorted, column{c, i})
	}
	if len(t.metric) == 0 {
		return nil, fmt.Errorf("the table has no metric columns")
	}
	sort.Slice(t.sorted, func(i, j int) bool { return t.sorted[i].name < t.sorted[j].name })
	return t, nil
}

// row reads one row; the first one holds the units and gives no launch.
func (t *rawTable) row(b []byte, line int) (*Launch, error) {
	if b[len(b)-1] == ',' {
		return nil, errAfterComma
	}
	if bytes.IndexByte(b, '\n') >= 0 {
		return nil, errLineEnd
	}
	text := string(b)
	starts, err := fieldStarts(make([]uint32, 0, len(t.columns)), text)
	if err != nil {
		return nil, err
	}
	if len(starts) != len(t.columns) {
		return nil, fmt.Errorf("the row has %d fields, the header has %d", len(starts), len(t.columns))
	}
	r := &rawRow{table: t, text: text, starts: starts, line: line}
	if t.units == nil {
		return nil, t.setUnits(r)
	}
	l := &Launch{Line: line, values: r}
	t.lead = t.lead[:0]
	for i := range t.first {
		t.lead = append(t.lead, r.field(i))
	}
	if err := t.identify(l, t.lead); err != nil {
		return nil, err
	}
	if err := t.order.add(l.Process, l.ID); err != nil {
		return nil, err
	}
	return l, nil
}

func (t *rawTable) setUnits(r *rawRow) error {
	for n, i := range t.fixed {
		if i >= 0 && r.field(i) != "" {
			return fmt.Errorf("the row of units is missing: column %q is not empty in the row after the header", fixedNames[n])
		}
	}
	t.units = make([]unit, len(t.columns))
	for i := range t.columns {
		u, err := printedUnit(r.field(i))
		if err != nil {
			return err
		}
		t.units[i] = u
	}
	return nil
}

func (t *rawTable) flush() (*Launch, error) {
	if t.units == nil {
		return nil, fmt.Errorf("the table has a header and no row of units")
	}
	return nil, nil
}

// fieldStarts appends the place of every field of a row. Nearly all fields are
// text in quotes without quotes inside, and are passed over here; nextField
// judges the others.
func fieldStarts(dst []uint32, row string) ([]uint32, error) {
	for i := 0; ; {
		dst = append(dst, uint32(i))
		if i < len(row) && row[i] == '"' {
			end := i + 1
			for end < len(row) && row[end] != '"' {
				end++
			}
			if end+1 < len(row) && row[end+1] == ',' {
				i = end + 2
				continue
			}
		}
		_, rest, more, err := nextField(row[i:])
		if err != nil {
			return nil, err
		}
		if !more {
			return dst, nil
		}
		i = len(row) - len(rest)
	}
}

// A rawRow is the row of one launch, split but not parsed.
type rawRow struct {
	table  *rawTable
	text   string
	starts []uint32
	line   int
}

// field returns one field of a row that fieldStarts has accepted.
func (r *rawRow) field(i int) string {
	f, _, _, _ := nextField(r.text[r.starts[i]:])
	return f
}

func (r *rawRow) metric(name string) (cell, bool) {
	i, ok := r.table.metric[name]
	if !ok {
		return cell{}, false
	}
	return r.cell(i), true
}

func (r *rawRow) cell(i int) cell {
	return cell{text: r.field(i), unit: r.table.units[i], line: r.line}
}

func (r *rawRow) label(string, string) (cell, bool) { return cell{}, false }

func (r *rawRow) labels() []labelled { return nil }

func (r *rawRow) names() []string {
	out := make([]string, len(r.table.sorted))
	for i, c := range r.table.sorted {
		out[i] = c.name
	}
	return out
}

func (r *rawRow) each(do func(name string, c cell) error) error {
	for _, c := range r.table.sorted {
		if err := do(c.name, r.cell(c.at)); err != nil {
			return err
		}
	}
	return nil
}
