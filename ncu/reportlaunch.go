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
	v := &reportValues{table: p.names}
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
	if l.Kernel == "" {
		return errors.New("a launch has no kernel name")
	}
	l.Key = NameKey(l.Kernel)
	return nil
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
func (l *Launch) identify(v *reportValues) {
	if n, ok := v.number("device__attribute_device_index"); ok && n >= 0 && n < maxDevices {
		l.Device = int(n)
	}
	major, hasMajor := v.number("device__attribute_compute_capability_major")
	minor, hasMinor := v.number("device__attribute_compute_capability_minor")
	if hasMajor && hasMinor {
		l.CC = fmt.Sprintf("%.0f.%.0f", major, minor)
	}
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
	m, instances, err := storedMetricOf(b)
	if err != nil {
		return err
	}
	p.values++
	if len(v.stored) >= maxReportMetrics || p.values > maxReportValues {
		return errors.New("it holds too many metrics")
	}
	if instances > 0 {
		m.wire = bytes.Clone(b)
	}
	v.stored = append(v.stored, m)
	return nil
}

// storedMetricOf reads the number of a metric's name and its value, and counts
// its instances.
func storedMetricOf(b []byte) (m storedMetric, instances int, err error) {
	named := false
	m.value = Value{Kind: Missing, Reason: ReasonNotAvailable}
	err = eachField(b, func(f field) (err error) {
		switch {
		case f.num == 1 && f.wire == wireVarint:
			m.number, named = f.value, true
		case f.num == 2 && f.wire == wireBytes:
			m.value, err = reportValue(f.bytes)
		case f.num == 3 && f.wire == wireBytes:
			instances++
			_, err = reportInstance(f.bytes)
		}
		return err
	})
	if err == nil && !named {
		err = errors.New("a metric has no number")
	}
	return m, instances, err
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
