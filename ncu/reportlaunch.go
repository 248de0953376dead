package ncu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

const (
	maxReportMetrics = 1 << 16 // of one launch
	maxReportRules   = 1 << 12
	maxSections      = 1 << 10
	maxReportText    = 1 << 16 // bytes of a rule's text or a name
)

// A Section is a group of metrics as the user interface shows them. A .ncu-rep
// carries the definitions, from which labels get their counters.
type Section struct {
	ID, Name string
	Metrics  []SectionMetric // of the header table
}

// A SectionMetric is one labelled counter of a section.
type SectionMetric struct{ Counter, Label string }

// launch reads one result. Fields that are not named here, among them sources
// and call stacks, are passed over.
func (p *reportReader) launch(l *Launch, b []byte) error {
	v := &reportValues{at: make(map[string]cell)}
	l.values = v
	err := eachField(b, func(f field) error {
		if f.wire == wireVarint {
			return l.reportNumber(f)
		}
		if f.wire != wireBytes {
			return nil
		}
		switch f.num {
		case 5:
			l.Mangled = reportText(f.bytes)
		case 6:
			if l.Kernel == "" {
				l.Kernel = reportText(f.bytes)
			}
		case 7:
			l.Kernel = reportText(f.bytes)
		case 10:
			return reportDim(&l.Grid, f.bytes)
		case 11:
			return reportDim(&l.Block, f.bytes)
		case 13:
			return p.metric(v, f.bytes)
		case 17:
			return l.reportSection(f.bytes)
		case 19:
			return l.reportRule(f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if l.Kernel == "" {
		return errors.New("a launch has no kernel name")
	}
	l.Key = NameKey(l.Kernel)
	v.sections = l.Sections
	if n, ok := v.number("device__attribute_device_index"); ok && n >= 0 && n < 1<<16 {
		l.Device = int(n)
	}
	major, hasMajor := v.number("device__attribute_compute_capability_major")
	minor, hasMinor := v.number("device__attribute_compute_capability_minor")
	if hasMajor && hasMinor {
		l.CC = fmt.Sprintf("%.0f.%.0f", major, minor)
	}
	return nil
}

func (l *Launch) reportNumber(f field) error {
	var dst *int
	switch f.num {
	case 1:
		dst = &l.Process
	case 22:
		dst = &l.Context
	case 23:
		dst = &l.Stream
	default:
		return nil
	}
	if f.value > math.MaxInt32 {
		return fmt.Errorf("field %d of a launch is %d", f.num, f.value)
	}
	*dst = int(f.value)
	return nil
}

func reportDim(dst *[3]int, b []byte) error {
	return eachField(b, func(f field) error {
		if f.wire != wireVarint || f.num < 1 || f.num > 3 {
			return nil
		}
		if f.value > math.MaxInt32 {
			return fmt.Errorf("a size is %d", f.value)
		}
		dst[f.num-1] = int(f.value)
		return nil
	})
}

// reportText copies text out of the buffer of a result.
func reportText(b []byte) string {
	if len(b) > maxReportText {
		b = b[:maxReportText]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// metric reads one metric: the number of its name, its value, its instances.
func (p *reportReader) metric(v *reportValues, b []byte) error {
	id, named := uint64(0), false
	c := cell{parsed: &Value{Kind: Missing, Reason: ReasonNotAvailable}}
	count := 0
	err := eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireVarint:
			id, named = f.value, true
		case f.num == 2 && f.wire == wireBytes:
			value, err := reportValue(f.bytes)
			c.parsed = &value
			return err
		case f.num == 3 && f.wire == wireBytes:
			count++
			_, err := reportInstance(f.bytes)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !named || id >= uint64(len(p.names)) {
		return fmt.Errorf("metric %d has no name in the table of %d", id, len(p.names))
	}
	name := p.names[id]
	if _, twice := v.at[name]; twice {
		return fmt.Errorf("metric %q occurs twice in a launch", clip(name, 80))
	}
	p.values++
	if len(v.at) >= maxReportMetrics || p.values > maxReportValues {
		return errors.New("it holds too many metrics")
	}
	if c.parsed.Kind == Number {
		c.parsed.Unit = reportUnit(name)
	}
	if count > 0 {
		c.wire = bytes.Clone(b)
	}
	v.at[name] = c
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

func (l *Launch) reportSection(b []byte) error {
	if len(l.Sections) >= maxSections {
		return errors.New("a launch has too many sections")
	}
	var s Section
	err := eachField(b, func(f field) error {
		if f.wire != wireBytes {
			return nil
		}
		switch f.num {
		case 1:
			s.ID = reportText(f.bytes)
		case 2:
			s.Name = reportText(f.bytes)
		case 4:
			return s.header(f.bytes)
		}
		return nil
	})
	l.Sections = append(l.Sections, s)
	return err
}

func (s *Section) header(b []byte) error {
	return eachField(b, func(f field) error {
		if f.num != 2 || f.wire != wireBytes || len(s.Metrics) >= maxSections {
			return nil
		}
		var m SectionMetric
		err := eachField(f.bytes, func(f field) error {
			switch {
			case f.num == 1 && f.wire == wireBytes:
				m.Counter = reportText(f.bytes)
			case f.num == 2 && f.wire == wireBytes:
				m.Label = reportText(f.bytes)
			}
			return nil
		})
		s.Metrics = append(s.Metrics, m)
		return err
	})
}

// ruleTypes names the kinds of rule messages as details pages print them.
var ruleTypes = map[uint64]string{0: "INF", 1: "INF", 2: "WRN", 3: "ERR", 4: "OPT"}

// reportRule reads the result of one rule, which has any number of messages.
func (l *Launch) reportRule(b []byte) error {
	var r Rule
	var bodies [][]byte
	err := eachField(b, func(f field) error {
		if f.wire != wireBytes {
			return nil
		}
		switch f.num {
		case 1:
			r.Name = reportText(f.bytes)
		case 3:
			bodies = append(bodies, f.bytes)
		case 4:
			r.Section = reportText(f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, body := range bodies {
		err := eachField(body, func(f field) error {
			if f.num != 1 || f.wire != wireBytes {
				return nil
			}
			return l.ruleItem(r, f.bytes)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ruleItem reads one message of a rule and the speedup that it estimates.
func (l *Launch) ruleItem(r Rule, b []byte) error {
	said := false
	r.Speedup = missing(ReasonNotAvailable)
	err := eachField(b, func(f field) error {
		if f.wire != wireBytes {
			return nil
		}
		switch f.num {
		case 1:
			said = true
			return r.message(f.bytes)
		case 10:
			return r.speedup(f.bytes)
		}
		return nil
	})
	if err != nil || !said {
		return err
	}
	if len(l.Rules) >= maxReportRules {
		return errors.New("a launch has too many rule results")
	}
	l.Rules = append(l.Rules, r)
	return nil
}

// filePath matches what rules that failed print of the machine they ran on.
var filePath = regexp.MustCompile(`(?:[A-Za-z]:)?(?:[/\\][^\s/\\:]+){2,}`)

func (r *Rule) message(b []byte) error {
	kind := uint64(0)
	err := eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireBytes:
			r.Text = strings.TrimSpace(reportText(f.bytes))
		case f.num == 2 && f.wire == wireVarint:
			kind = f.value
		}
		return nil
	})
	r.Type = ruleTypes[kind]
	if r.Type == "" {
		r.Type = "INF"
	}
	if r.Type == "ERR" {
		r.Text = filePath.ReplaceAllString(r.Text, "(path)")
	}
	return err
}

func (r *Rule) speedup(b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.wire == wireVarint:
			r.SpeedupType = map[uint64]string{1: "local", 2: "global"}[f.value]
		case f.num == 2 && f.wire == wire64:
			r.Speedup = reportFloat(math.Float64frombits(f.value))
			r.Speedup.Unit = "%"
		}
		return nil
	})
}

// reportValues holds the metrics of one launch of a report.
type reportValues struct {
	at       map[string]cell
	sections []Section
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
