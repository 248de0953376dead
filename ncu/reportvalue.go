package ncu

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// reportValues holds the metrics of one launch of a report.
type reportValues struct {
	at       map[string]cell
	sections []Section
	stored   []storedMetric // until their names are known
	table    *nameTable
}

// A storedMetric is one metric as a report holds it.
type storedMetric struct {
	number uint64 // of its name
	value  Value
	wire   []byte // when it has instances
}

// resolve gives the metrics their names.
func (v *reportValues) resolve() error {
	v.at = make(map[string]cell, len(v.stored))
	for i := range v.stored {
		m := &v.stored[i]
		name, err := v.table.name(m.number)
		if err != nil {
			return err
		}
		c := cell{parsed: &m.value, wire: m.wire}
		// ncu repeats some metrics, once for each of its passes. The last value is
		// the one that it prints and computes rates from; the instances of another
		// value are not this one's.
		if before, twice := v.at[name]; twice && c.wire == nil && m.value.same(before.parsed) {
			c.wire = before.wire
		}
		if m.value.Kind == Number {
			m.value.Unit = reportUnit(name)
		}
		v.at[name] = c
	}
	v.stored, v.table = nil, nil
	return nil
}

// same compares what was read; a unit follows from the name.
func (v *Value) same(w *Value) bool {
	return v.Kind == w.Kind && v.Number == w.Number && v.Text == w.Text && v.Reason == w.Reason
}

func (v *reportValues) metric(name string) (cell, bool) {
	c, ok := v.at[name]
	return c, ok
}

// label finds a metric by the definitions of the report itself.
func (v *reportValues) label(section, label string) (cell, bool) {
	for _, s := range v.sections {
		if s.Name != section {
			continue
		}
		for _, m := range s.Metrics {
			if m.Label == label {
				return v.metric(m.Counter)
			}
		}
	}
	return cell{}, false
}

func (v *reportValues) labels() []labelled {
	var out []labelled
	for _, s := range v.sections {
		for _, m := range s.Metrics {
			if c, ok := v.metric(m.Counter); ok {
				out = append(out, labelled{Row{Section: s.Name, Label: m.Label, Counter: m.Counter}, c})
			}
		}
	}
	return out
}

func (v *reportValues) names() []string {
	out := make([]string, 0, len(v.at))
	for n := range v.at {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func (v *reportValues) number(name string) (float64, bool) {
	c, ok := v.at[name]
	if !ok {
		return 0, false
	}
	return c.parsed.Float()
}

func (v *reportValues) each(do func(name string, c cell) error) error {
	for _, name := range v.names() {
		if err := do(name, v.at[name]); err != nil {
			return err
		}
	}
	return nil
}

// reportUnit returns the unit of a counter where its name fixes it. Times are
// stored in ns.
func reportUnit(name string) string {
	switch {
	case strings.Contains(name, ".pct"), strings.HasSuffix(name, "_pct"):
		return "%"
	case strings.HasPrefix(name, "gpu__time_"):
		return "ns"
	}
	return ""
}

// reportValue reads a value, of which exactly one type is set.
func reportValue(b []byte) (Value, error) {
	out := missing(ReasonNotAvailable)
	err := eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireBytes:
			out = Value{Kind: Text, Text: reportText(f.bytes)}
			if out.Text == "" {
				out = missing(ReasonEmpty)
			}
		case f.num == 2 && f.wire == wire32:
			out = reportFloat(float64(math.Float32frombits(uint32(f.value))))
		case f.num == 3 && f.wire == wire64:
			out = reportFloat(math.Float64frombits(f.value))
		case (f.num == 4 || f.num == 5) && f.wire == wireVarint:
			out = Value{Kind: Number, Number: float64(f.value)}
		default:
			return fmt.Errorf("a value has the unknown type %d", f.num)
		}
		return nil
	})
	return out, err
}

func reportFloat(n float64) Value {
	switch {
	case math.IsNaN(n):
		return missing(ReasonNaN)
	case math.IsInf(n, 0):
		return missing(ReasonInfinite)
	}
	return Value{Kind: Number, Number: n}
}

// reportInstance reads one instance: what it belongs to, and its value.
func reportInstance(b []byte) (Instance, error) {
	var in Instance
	err := eachField(b, func(f field) error {
		if f.wire != wireBytes || f.num > 2 {
			return nil
		}
		v, err := reportValue(f.bytes)
		if err != nil {
			return err
		}
		if f.num == 1 {
			in.Key = v.Text
			if v.Kind == Number {
				in.Key = strconv.FormatFloat(v.Number, 'f', -1, 64)
			}
			return nil
		}
		in.Number, in.Text = v.Number, v.Text
		return nil
	})
	return in, err
}

// wireInstances reads the instances of a stored metric.
func wireInstances(metric []byte) ([]Instance, error) {
	var out []Instance
	err := eachField(metric, func(f field) error {
		if f.num != 3 || f.wire != wireBytes {
			return nil
		}
		in, err := reportInstance(f.bytes)
		out = append(out, in)
		return err
	})
	return out, err
}
