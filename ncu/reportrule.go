package ncu

import (
	"errors"
	"math"
	"regexp"
	"strings"
)

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
