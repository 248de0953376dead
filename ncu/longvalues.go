package ncu

import (
	"fmt"
	"slices"
	"strings"
)

const maxKeys = 1 << 16 // of one table

// A longIndex numbers the rows of a table by section and label. Launches of one
// file have nearly the same rows in the same order, so each of them needs no
// more than the places of its cells.
type longIndex struct {
	keys   []longKey
	names  []string // counters by number, "" for a label that stands for none
	at     map[longKey]int
	byName map[string][]int // numbers, that of the command line first
	size   int              // bytes of all keys
}

// A longKey names a row. Body is the label of the table or chart that the row
// is of, and empty for the metrics of the section itself.
type longKey struct{ section, body, label string }

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
	x.size += len(key.section) + len(key.body) + len(key.label)
	if n >= maxKeys || x.size > maxLaunchText {
		return 0, fmt.Errorf("the table has too many different metrics, %d with %d bytes of names", n+1, x.size)
	}
	key = longKey{strings.Clone(key.section), strings.Clone(key.body), strings.Clone(key.label)}
	x.at[key] = n
	x.keys = append(x.keys, key)
	name, ok := key.counter()
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

// counter returns the counter that a row stands for.
func (k longKey) counter() (string, bool) {
	switch {
	case k.body != "":
		return "", false // tables repeat labels for other counters
	case k.section == commandLineName:
		return k.label, true
	}
	return labelCounter(k.section, k.label)
}

// longValues holds the metric rows of one launch.
type longValues struct {
	index  *longIndex
	rows   []longRow
	places []int32 // places in rows plus one, by number; 0 for absent rows
	placed int     // how many of the rows are in places

	repeats bool         // a page with tables and charts: their labels can repeat
	several map[int]bool // numbers of rows that repeat with other values
}

type longRow struct {
	number int
	cell   cell
}

func (v *longValues) add(key longKey, c cell) error {
	guess := 0
	if len(v.rows) > 0 {
		guess = v.rows[len(v.rows)-1].number + 1
	}
	n, err := v.index.number(key, guess)
	if err != nil {
		return err
	}
	if old, twice := v.cell(n); twice {
		same := old.text == c.text && old.unit == c.unit
		switch {
		case same && !v.repeats:
			return nil
		case same:
		case !v.repeats:
			return fmt.Errorf("metric %q of section %q has two values, %q and %q",
				clip(key.label, 80), clip(key.section, 80), clip(old.text, 80), clip(c.text, 80))
		default:
			v.markSeveral(n)
		}
	}
	v.rows = append(v.rows, longRow{n, c})
	v.place()
	return nil
}

// markSeveral notes that a row has more than one value.
func (v *longValues) markSeveral(number int) {
	if v.several == nil {
		v.several = make(map[int]bool)
	}
	v.several[number] = true
}

// place enters new rows in places, unless the launch has so few of the table's
// metrics that the table of places would be much larger than its rows.
func (v *longValues) place() {
	if 8*len(v.rows) < len(v.index.keys) {
		return
	}
	if more := len(v.index.keys) - len(v.places); more > 0 {
		v.places = append(v.places, make([]int32, more)...)
	}
	for ; v.placed < len(v.rows); v.placed++ {
		v.places[v.rows[v.placed].number] = int32(v.placed + 1)
	}
}

// severalValues stands for a label that has more than one value.
var severalValues = missing(ReasonSeveral)

// cell returns the value of a row.
func (v *longValues) cell(number int) (cell, bool) {
	if v.several[number] {
		return cell{parsed: &severalValues}, true
	}
	if number < len(v.places) && v.places[number] > 0 {
		return v.rows[v.places[number]-1].cell, true
	}
	for _, r := range v.rows[v.placed:] {
		if r.number == number {
			return r.cell, true
		}
	}
	return cell{}, false
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
	n, ok := v.index.at[longKey{section: section, label: label}]
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

func (v *longValues) labels() []labelled {
	out := make([]labelled, 0, len(v.rows))
	for _, r := range v.rows {
		k := v.index.keys[r.number]
		out = append(out, labelled{Row{Section: k.section, Body: k.body, Label: k.label, Counter: v.index.names[r.number]}, r.cell})
	}
	return out
}
