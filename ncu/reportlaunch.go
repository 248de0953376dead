package ncu

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
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
	function := ""
	err := eachField(b, func(f field) error {
		if f.wire == wireVarint {
			return l.reportNumber(f)
		}
		if f.wire != wireBytes {
			return nil
		}
		if err := p.keep(f); err != nil {
			return err
		}
		switch f.num {
		case 5:
			l.Mangled = reportText(f.bytes)
		case 6:
			function = reportText(f.bytes)
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
	v.sections = l.Sections
	// Triton's kernels have no name but the mangled one, which is not mangled.
	l.Kernel = cmp.Or(l.Kernel, function, l.Mangled)
	return l.identify(v)
}

// keep counts what a launch leaves in memory.
func (p *reportReader) keep(f field) error {
	switch f.num {
	case 5, 6, 7, 13, 17, 19:
		p.kept += int64(len(f.bytes))
	}
	if p.kept > p.limit {
		return fmt.Errorf("its launches hold more than %d bytes", p.limit)
	}
	return nil
}

// identify completes the launch from its own metrics.
func (l *Launch) identify(v *reportValues) error {
	if l.Kernel == "" {
		return errors.New("a launch has no kernel name")
	}
	l.Key = NameKey(l.Kernel)
	if n, ok := v.number("device__attribute_device_index"); ok && n >= 0 && n < maxDevices {
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
	name, value, count, err := p.metricFields(b)
	if err != nil {
		return err
	}
	c := cell{parsed: &value}
	// ncu repeats some metrics, once for each of its passes. The last value is
	// the one that it prints and computes rates from; the instances of another
	// value are not this one's.
	if before, twice := v.at[name]; twice && sameValue(*before.parsed, value) {
		c.wire = before.wire
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

// metricFields reads a metric's name and value, and counts its instances.
func (p *reportReader) metricFields(b []byte) (name string, value Value, instances int, err error) {
	id, named := uint64(0), false
	value = Value{Kind: Missing, Reason: ReasonNotAvailable}
	err = eachField(b, func(f field) (err error) {
		switch {
		case f.num == 1 && f.wire == wireVarint:
			id, named = f.value, true
		case f.num == 2 && f.wire == wireBytes:
			value, err = reportValue(f.bytes)
		case f.num == 3 && f.wire == wireBytes:
			instances++
			_, err = reportInstance(f.bytes)
		}
		return err
	})
	if err == nil && (!named || id >= uint64(len(p.names))) {
		err = fmt.Errorf("metric %d has no name in the table of %d", id, len(p.names))
	}
	if err != nil {
		return "", Value{}, 0, err
	}
	return p.names[id], value, instances, nil
}

// sameValue compares what was read; a unit follows from the name.
func sameValue(a, b Value) bool {
	return a.Kind == b.Kind && a.Number == b.Number && a.Text == b.Text && a.Reason == b.Reason
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
