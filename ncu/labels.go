package ncu

import (
	_ "embed"
	"strings"
	"sync"
)

// labelTable maps section and label of a details page to the counter. It was
// made from the section definitions embedded in public .ncu-rep files of
// releases 2020.2 to 2025.1. A label that stood for different counters in
// different releases is left out, because a page does not name its release.
//
//go:embed labels.tsv
var labelTable string

var labels = sync.OnceValue(func() map[longKey]string {
	m := make(map[longKey]string)
	for row := range strings.Lines(labelTable) {
		f := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if len(f) == 3 {
			m[longKey{section: f[0], label: f[1]}] = f[2]
		}
	}
	return m
})

// labelCounter returns the counter behind a label of a details page. With
// --print-metric-name name the counter itself stands in the label's place.
func labelCounter(section, label string) (string, bool) {
	if strings.Contains(label, "__") && validCounter(label) {
		return label, true
	}
	c, ok := labels()[longKey{section: section, label: label}]
	return c, ok
}
