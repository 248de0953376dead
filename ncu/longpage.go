package ncu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	maxRows         = 1 << 17  // of one launch
	maxLaunchText   = 64 << 20 // bytes of the rows of one launch
	commandLineName = "Command line profiler metrics"
)

// A longTable is a details page or the output of --metrics: one row per metric,
// and one per rule result. Metric rows end after the value, whatever the header
// promises.
type longTable struct {
	*header
	section, name, unit, value int // columns
	body                       int // column of the label of a table or chart (--print-details), or -1
	rule                       int // first of the five rule columns, or -1
	index                      *longIndex

	launch *Launch
	values *longValues
	prefix []byte // the identifying fields of the launch as printed
	fields []string
	rows   int // of the launch before, a guess for the next
	size   int // bytes of the rows of the launch
}

// ruleColumns close the header of a page with rule results.
var ruleColumns = []string{"Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"}

func newLongTable(h *header) (*longTable, error) {
	t := &longTable{
		header: h, rule: h.column(ruleColumns[0]), index: newLongIndex(), body: h.column("Body Item Label"),
		section: h.column("Section Name"), name: h.column("Metric Name"), unit: h.column("Metric Unit"), value: h.column("Metric Value"),
	}
	before := t.section
	if t.body >= 0 {
		before++
	}
	if t.section < h.first || (t.body >= 0 && t.body != before) || t.name != before+1 || t.unit != t.name+1 || t.value != t.unit+1 {
		return nil, fmt.Errorf("the metric columns are not in a known order")
	}
	end := t.value + 1
	if t.rule >= 0 {
		for i, c := range ruleColumns {
			if h.column(c) != end+i {
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
	if t.size += len(rest); t.size > maxLaunchText {
		return nil, fmt.Errorf("launch %d has more than %d bytes", t.launch.ID, maxLaunchText)
	}
	t.fields, err = splitFields(t.fields[:0], string(rest))
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(b, '\n') >= 0 && !t.onlyRuleText(len(b)-len(rest), b) {
		return nil, errLineEnd
	}
	return done, t.add(line, b[len(b)-1] == ',')
}

// onlyRuleText reports whether nothing but the text of a rule has several lines,
// in a row of which the first so many bytes identify the launch.
func (t *longTable) onlyRuleText(identity int, row []byte) bool {
	for i, f := range t.fields {
		if strings.IndexByte(f, '\n') >= 0 && (t.rule < 0 || i != t.rule+2-t.section) {
			return false
		}
	}
	return bytes.IndexByte(row[:identity], '\n') < 0
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
	if done = t.launch; done != nil {
		t.rows = len(t.values.rows)
	}
	t.values = &longValues{index: t.index, repeats: t.body >= 0, rows: make([]longRow, 0, min(t.rows, 256))}
	l.values = t.values
	t.launch = l
	t.size = 0
	t.prefix = append(t.prefix[:0], b[:len(b)-len(tail)]...)
	return rest, done, nil
}

// add keeps the metric or the rule result in t.fields, the row after its
// identifying part. Open says that the row ends in a comma, as metric rows of a
// page with rules do and others only when they are cut off.
func (t *longTable) add(line int, open bool) error {
	f, body := t.fields, ""
	if t.body >= 0 && len(f) > 1 {
		body = f[1]
		f = slices.Delete(f, 1, 2)
	}
	switch n := len(f) - 1; {
	case open && n == 4 && f[1] != "" && t.rule >= 0:
		f = f[:n]
	case open:
		return errAfterComma
	case n == 3 && f[1] == "":
		return errors.New("the row has neither a metric nor a rule")
	}
	if len(f) != 4 && len(f) != len(t.columns)-t.name+1 {
		return fmt.Errorf("the row has %d fields, the header has %d", t.name-1+len(f), len(t.columns))
	}
	if len(t.values.rows)+len(t.launch.Rules) >= maxRows {
		return fmt.Errorf("launch %d has more than %d rows", t.launch.ID, maxRows)
	}
	if f[1] != "" {
		u, err := printedUnit(f[2])
		if err != nil {
			return err
		}
		if err := t.values.add(longKey{f[0], body, f[1]}, cell{unit: u, text: f[3], line: line}); err != nil {
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
	if err != nil || s[len(s)-1] == '.' {
		return Value{}, errHalfKnown
	}
	if math.IsInf(n, 0) {
		return missing(ReasonInfinite), nil
	}
	return Value{Kind: Number, Number: n, Unit: "%"}, nil
}

func (t *longTable) flush() (*Launch, error) {
	l := t.launch
	t.launch, t.values = nil, nil
	return l, nil
}
