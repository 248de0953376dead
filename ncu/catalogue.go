package ncu

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
)

// A Direction says which way a metric improves.
type Direction uint8

const (
	Neither Direction = iota // more is neither good nor bad in itself
	Lower
	Higher
)

// String returns neither, lower or higher.
func (d Direction) String() string {
	return [...]string{"neither", "lower", "higher"}[d%3]
}

// An Aggregation says how the values of several launches become one.
type Aggregation uint8

const (
	Mean Aggregation = iota // weighted by the duration of the launches
	Sum
	Max
	Min
)

// String returns mean, sum, max or min.
func (a Aggregation) String() string {
	return [...]string{"mean", "sum", "max", "min"}[a%4]
}

// A Metric is one entry of the catalogue: a figure with one meaning on every
// chip, whatever the counters that it is computed from.
type Metric struct {
	Name   string // such as ncu.dram_bytes
	Unit   string // ns, byte, %, … or "" for a count
	Better Direction
	Over   Aggregation // over the launches of one call
	Doc    string      // one sentence
}

// RawPrefix comes before the name of a counter to address it as it is:
// ncu.raw.sm__cycles_active.sum.
const RawPrefix = "ncu.raw."

// durationCounter is part of every request: means are weighted with it.
const durationCounter = "gpu__time_duration.sum"

// A definition is a metric with its formulas, the preferred one first. Only the
// first is asked for; the others serve files recorded with other options.
type definition struct {
	Metric
	formulas map[chip][]formula
}

var catalogue = sync.OnceValue(func() map[string]definition {
	m := make(map[string]definition)
	for _, d := range definitions() {
		m[d.Name] = d
	}
	return m
})

// Metrics returns the catalogue, sorted by name.
func Metrics() []Metric {
	out := make([]Metric, 0, len(catalogue()))
	for _, d := range catalogue() {
		out = append(out, d.Metric)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Chips are the families of GPUs on which a metric of the catalogue can be
// measured, as NVIDIA names them: gh100. A raw counter has none: each chip has its
// own.
func (m Metric) Chips() []string {
	var out []string
	for _, c := range chips {
		if len(catalogue()[m.Name].formulas[c]) > 0 {
			out = append(out, c.String())
		}
	}
	return out
}

// AllChips are the families of GPUs that the catalogue knows.
func AllChips() []string {
	var out []string
	for _, c := range chips {
		out = append(out, c.String())
	}
	return out
}

// Lookup returns a metric of the catalogue, or the one that stands for a raw
// counter (ncu.raw.NAME). A raw counter has no direction, takes its unit from
// the file, and is aggregated by the last part of its name that says how.
func Lookup(name string) (Metric, bool) {
	if d, ok := catalogue()[name]; ok {
		return d.Metric, true
	}
	counter, ok := strings.CutPrefix(name, RawPrefix)
	if !ok || !validCounter(counter) {
		return Metric{}, false
	}
	return Metric{Name: name, Over: rawAggregation(counter), Doc: "The counter " + counter + " as ncu prints it."}, true
}

// rawAggregation reads the suffixes of a counter. A total adds up; a rate or a
// share of a total does not.
func rawAggregation(counter string) Aggregation {
	parts := strings.Split(counter, ".")
	switch last := parts[len(parts)-1]; {
	case len(parts) == 2 && last == "sum":
		return Sum
	case len(parts) == 2 && last == "max", strings.HasPrefix(counter, "launch__"):
		return Max
	case len(parts) == 2 && last == "min":
		return Min
	}
	return Mean
}

// validCounter accepts what ncu names its metrics with, so that a name from a
// policy can become part of a command line.
func validCounter(s string) bool {
	if s == "" || len(s) > 256 || s[0] == '-' || s[0] == '.' {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// Counters returns what to pass to ncu's --metrics for the named metrics on a
// chip, sorted and without repetition, and for each metric that the chip cannot
// offer the reason. The duration is always among the counters.
func Counters(cc string, names ...string) (counters []string, unavailable map[string]string) {
	set := map[string]bool{durationCounter: true}
	unavailable = make(map[string]string)
	for _, name := range names {
		if c, ok := strings.CutPrefix(name, RawPrefix); ok && validCounter(c) {
			set[c] = true
			continue
		}
		f, reason := formulasFor(cc, name)
		if reason != "" {
			unavailable[name] = reason
			continue
		}
		i := slices.IndexFunc(f, formula.askable)
		if i < 0 {
			unavailable[name] = fmt.Sprintf("ncu does not give %s by name; --set full collects it", f[0].counters[0])
			continue
		}
		for _, c := range f[i].counters {
			set[c] = true
		}
	}
	for c := range set {
		counters = append(counters, c)
	}
	sort.Strings(counters)
	return counters, unavailable
}

// askable reports whether ncu takes the counters by name. What it derives
// itself, or counts by patching instructions, comes with its sections only.
func (f formula) askable() bool {
	return !slices.ContainsFunc(f.counters, func(c string) bool {
		return strings.HasPrefix(c, "derived__") || strings.HasPrefix(c, "sass__")
	})
}

// formulasFor returns the formulas of a metric on a chip, or why there are none.
func formulasFor(cc, name string) ([]formula, string) {
	d, ok := catalogue()[name]
	if !ok {
		return nil, fmt.Sprintf("there is no metric %q", name)
	}
	c := chipOf(cc)
	if c == unknownChip {
		return nil, fmt.Sprintf("compute capability %q is not in the catalogue", cc)
	}
	if f := d.formulas[c]; len(f) > 0 {
		return f, ""
	}
	return nil, fmt.Sprintf("%s (compute capability %s) has no counter for it", c, cc)
}

// Derive computes a metric for one launch. The compute capability is that of
// the launch when cc is "", and must not contradict it otherwise. A metric that the chip has no counter for is
// Unavailable; one whose counters are not in the file is Missing. The error is
// a *SyntaxError for a cell that cannot be read.
func Derive(cc string, l *Launch, name string) (Value, error) {
	if c, ok := strings.CutPrefix(name, RawPrefix); ok {
		return l.Metric(c)
	}
	if cc == "" {
		cc = l.CC
	}
	if l.CC != "" && chipOf(cc) != chipOf(l.CC) {
		return missing(fmt.Sprintf("the launch ran on compute capability %s, not %s", l.CC, cc)), nil
	}
	formulas, reason := formulasFor(cc, name)
	if reason != "" {
		return Value{Kind: Unavailable, Reason: reason}, nil
	}
	var first Value
	for i, f := range formulas {
		v, err := f.eval(l, catalogue()[name].Unit)
		if err != nil || v.Kind == Number {
			return v, err
		}
		if i == 0 {
			first = v
		}
	}
	return first, nil
}
