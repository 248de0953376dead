package ncu

import (
	"bytes"
	"fmt"
	"sort"
)

const (
	maxRows         = 1 << 17 // of one launch
	commandLineName = "Command line profiler metrics"
)

// A longTable is a details page or the output of --metrics: one row per metric,
// and one per rule result. Metric rows end after the value, whatever the header
// promises.
type longTable struct {
	*header
	section, name, unit, value int // columns
	rule                       int // first of the five rule columns, or -1
	order                      order

	launch *Launch
	values *longValues
	prefix []byte // the identifying fields of the launch as printed
	fields []string
}

// ruleColumns close the header of a page with rule results.
var ruleColumns = []string{"Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"}

func newLongTable(h *header) (*longTable, error) {
	t := &longTable{
		header: h, rule: h.index(ruleColumns[0]),
		section: h.index("Section Name"), name: h.index("Metric Name"), unit: h.index("Metric Unit"), value: h.index("Metric Value"),
	}
	if t.section < h.first || t.name != t.section+1 || t.unit != t.name+1 || t.value != t.unit+1 {
		return nil, fmt.Errorf("the metric columns are not in a known order")
	}
	end := t.value + 1
	if t.rule >= 0 {
		for i, c := range ruleColumns {
			if h.index(c) != end+i {
				return nil, fmt.Errorf("the rule columns are not in a known order")
			}
		}
		end += len(ruleColumns)
	}
	if end != len(h.columns) {
		return nil, fmt.Errorf("the header has an unknown column %q", h.columns[end])
	}
	return t, nil
}

// row adds one row. It returns the previous launch when a new one starts.
func (t *longTable) row(b []byte, line int) (done *Launch, err error) {
	rest := b
	if t.launch != nil && bytes.HasPrefix(b, t.prefix) {
		rest = b[len(t.prefix):]
	} else {
		if rest, done, err = t.start(b, line); err != nil {
			return nil, err
		}
	}
	t.fields, err = splitFields(t.fields[:0], string(rest))
	if err != nil {
		return nil, err
	}
	return done, t.add(line)
}

// start reads the identifying fields of a row and opens a launch if they are
// those of a new one. It returns the rest of the row.
func (t *longTable) start(b []byte, line int) (rest []byte, done *Launch, err error) {
	row := string(b)
	tail, more := row, true
	t.fields = t.fields[:0]
	for i := 0; i < t.section; i++ {
		if !more {
			return nil, nil, fmt.Errorf("the row has %d fields, the header has %d", i, len(t.columns))
		}
		var f string
		if f, tail, more, err = nextField(tail); err != nil {
			return nil, nil, err
		}
		t.fields = append(t.fields, f)
	}
	if !more {
		return nil, nil, fmt.Errorf("the row has %d fields, the header has %d", t.section, len(t.columns))
	}
	l := &Launch{Line: line}
	if err := t.identify(l, t.fields); err != nil {
		return nil, nil, err
	}
	rest = b[len(b)-len(tail):]
	if o := t.launch; o != nil && o.ID == l.ID && o.Process == l.Process {
		if o.Kernel != l.Kernel || o.Block != l.Block || o.Grid != l.Grid {
			return nil, nil, fmt.Errorf("launch %d has two kernels or sizes", l.ID)
		}
		return rest, nil, nil
	}
	if err := t.order.add(l.Process, l.ID); err != nil {
		return nil, nil, err
	}
	done = t.launch
	t.values = &longValues{}
	l.values = t.values
	t.launch = l
	t.prefix = append(t.prefix[:0], b[:len(b)-len(tail)]...)
	return rest, done, nil
}

// add keeps the metric or the rule result in t.fields, the row after its
// identifying part.
func (t *longTable) add(line int) error {
	f := t.fields
	if n := len(f) - 1; n == 4 && f[n] == "" && t.rule >= 0 {
		f = f[:n] // metric rows of a page with rules end in an empty field
	}
	if len(f) != 4 && len(f) != len(t.columns)-t.section {
		return fmt.Errorf("the row has %d fields, the header has %d", t.section+len(t.fields), len(t.columns))
	}
	if len(t.values.rows)+len(t.launch.Rules) >= maxRows {
		return fmt.Errorf("launch %d has more than %d rows", t.launch.ID, maxRows)
	}
	if f[1] != "" {
		row := longRow{section: f[0], label: f[1], cell: cell{unit: baseUnit(f[2]), text: f[3], line: line}}
		if err := t.values.add(row); err != nil {
			return err
		}
	}
	if len(f) > 4 && f[4] != "" {
		r := Rule{Section: f[0], Name: f[4], Type: f[5], Text: f[6], SpeedupType: f[7]}
		v, err := parseSpeedup(f[8])
		if err != nil {
			return fmt.Errorf("estimated speedup %q: %w", f[8], err)
		}
		r.Speedup = v
		t.launch.Rules = append(t.launch.Rules, r)
	}
	return nil
}

// parseSpeedup reads the estimated speedup in %. Unlike metric values it is
// printed with up to three decimals and never grouped.
func parseSpeedup(s string) (Value, error) {
	if v, ok := absentCell(s); ok {
		return v, nil
	}
	if !numberLike(s) {
		return Value{}, errHalfKnown
	}
	n, err := scaled(s, 0)
	if err != nil {
		return Value{}, errHalfKnown
	}
	return Value{Kind: Number, Number: n, Unit: "%"}, nil
}

func (t *longTable) flush() (*Launch, error) {
	l := t.launch
	t.launch, t.values = nil, nil
	return l, nil
}

// longValues holds the metric rows of one launch.
type longValues struct {
	rows  []longRow
	at    map[longKey]int
	named map[string]int // by counter name
}

type longRow struct {
	section, label string
	cell           cell
}

type longKey struct{ section, label string }

func (v *longValues) add(r longRow) error {
	if v.at == nil {
		v.at = make(map[longKey]int)
		v.named = make(map[string]int)
	}
	key := longKey{r.section, r.label}
	if i, twice := v.at[key]; twice {
		if old := v.rows[i].cell; old.text != r.cell.text || old.unit != r.cell.unit {
			return fmt.Errorf("metric %q of section %q has two values, %q and %q", r.label, r.section, old.text, r.cell.text)
		}
		return nil
	}
	i := len(v.rows)
	v.rows = append(v.rows, r)
	v.at[key] = i
	name := r.label
	if r.section != commandLineName {
		var ok bool
		if name, ok = labelCounter(r.section, r.label); !ok {
			return nil
		}
	}
	// A metric asked for by name is printed as it is; a label may be a rounded
	// copy of it, so the former wins.
	if _, taken := v.named[name]; !taken || r.section == commandLineName {
		v.named[name] = i
	}
	return nil
}

func (v *longValues) metric(name string) (cell, bool) {
	i, ok := v.named[name]
	if !ok {
		return cell{}, false
	}
	return v.rows[i].cell, true
}

func (v *longValues) label(section, label string) (cell, bool) {
	i, ok := v.at[longKey{section, label}]
	if !ok {
		return cell{}, false
	}
	return v.rows[i].cell, true
}

func (v *longValues) names() []string {
	out := make([]string, 0, len(v.named))
	for n := range v.named {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func (v *longValues) each(do func(name string, c cell) error) error {
	for _, r := range v.rows {
		if err := do(r.label, r.cell); err != nil {
			return err
		}
	}
	return nil
}
