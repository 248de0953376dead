package ncu

import (
	"fmt"
	"slices"
)

// A longIndex numbers the rows of a table by section and label. Launches of one
// file have nearly the same rows in the same order, so each of them needs no
// more than the places of its cells.
type longIndex struct {
	keys   []longKey
	names  []string // counters by number, "" for a label that stands for none
	at     map[longKey]int
	byName map[string][]int // numbers, that of the command line first
}

type longKey struct{ section, label string }

func newLongIndex() *longIndex {
	return &longIndex{at: make(map[longKey]int), byName: make(map[string][]int)}
}

// number returns the number of a row. Guess is the number that a row has if the
// launch looks like those before it.
func (x *longIndex) number(key longKey, guess int) (int, error) {
	if guess < len(x.keys) && x.keys[guess] == key {
		return guess, nil
	}
	if n, ok := x.at[key]; ok {
		return n, nil
	}
	n := len(x.keys)
	if n >= maxRows {
		return 0, fmt.Errorf("the table has more than %d different metrics", maxRows)
	}
	x.at[key] = n
	x.keys = append(x.keys, key)
	name, ok := key.label, true
	if key.section != commandLineName {
		name, ok = labelCounter(key.section, key.label)
	}
	x.names = append(x.names, name)
	switch {
	case !ok:
	case key.section == commandLineName:
		// A metric asked for by name is printed as it is; a label may be a
		// rounded copy of it.
		x.byName[name] = slices.Insert(x.byName[name], 0, n)
	default:
		x.byName[name] = append(x.byName[name], n)
	}
	return n, nil
}

// longValues holds the metric rows of one launch.
type longValues struct {
	index  *longIndex
	rows   []longRow
	places []int32 // places in rows plus one, by number; 0 for absent rows
	last   int     // number of the last row
}

type longRow struct {
	number int
	cell   cell
}

func (v *longValues) add(key longKey, c cell) error {
	guess := v.last + 1
	if len(v.rows) == 0 {
		guess = 0
	}
	n, err := v.index.number(key, guess)
	if err != nil {
		return err
	}
	v.last = n
	if old, twice := v.cell(n); twice {
		if old.text != c.text || old.unit != c.unit {
			return fmt.Errorf("metric %q of section %q has two values, %q and %q", key.label, key.section, old.text, c.text)
		}
		return nil
	}
	if n >= len(v.places) {
		v.places = append(v.places, make([]int32, max(len(v.index.keys), n+1)-len(v.places))...)
	}
	v.rows = append(v.rows, longRow{n, c})
	v.places[n] = int32(len(v.rows))
	return nil
}

func (v *longValues) cell(number int) (cell, bool) {
	if number >= len(v.places) || v.places[number] == 0 {
		return cell{}, false
	}
	return v.rows[v.places[number]-1].cell, true
}

func (v *longValues) metric(name string) (cell, bool) {
	for _, n := range v.index.byName[name] {
		if c, ok := v.cell(n); ok {
			return c, true
		}
	}
	return cell{}, false
}

func (v *longValues) label(section, label string) (cell, bool) {
	n, ok := v.index.at[longKey{section, label}]
	if !ok {
		return cell{}, false
	}
	return v.cell(n)
}

func (v *longValues) names() []string {
	var out []string
	for _, r := range v.rows {
		if name := v.index.names[r.number]; name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (v *longValues) each(do func(name string, c cell) error) error {
	for _, r := range v.rows {
		if err := do(v.index.keys[r.number].label, r.cell); err != nil {
			return err
		}
	}
	return nil
}
