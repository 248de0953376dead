package ptxas

import "strings"

// A mergeKey is what makes two messages one.
type mergeKey struct {
	source   Source
	severity Severity
	code     string
	what     string // key of the function for advisories (C75xx) that name one, else the text
}

// say hands out an advisory, warning, error or note.
func (p *parser) say(t tag, body []byte) error {
	text := string(trimTail(body))
	if text == "" {
		return nil
	}
	d := &p.message
	*d = Diagnostic{Severity: t.severity, Source: t.source, Place: t.place, Line: p.line, Repeats: 1}
	d.Code, d.Text = cutCode(text)
	d.classify()
	if d.Function != "" {
		d.Key = Key(d.Function)
	}
	p.said = true
	list := d.list()
	p.failed = p.failed || list == listErrors
	if p.messages[list] == "" {
		p.messages[list] = shorten(d.Text)
	}
	return nil
}

// The lists of a Log, in the order in which their messages explain why a text
// has no entry.
const (
	listErrors = iota
	listWarnings
	listAdvisories
	listNotes
	numLists
)

// list returns where a message goes.
func (d *Diagnostic) list() int {
	switch {
	case d.Severity == SeverityError || d.Severity == SeverityFatal:
		return listErrors
	case isAdvisory(d.Code):
		return listAdvisories
	case d.Severity == SeverityWarning || d.Kind == KindRegisterLimitOverride:
		return listWarnings
	}
	return listNotes
}

// message keeps a message, or counts it when there is an equal one.
func (c *collector) message(d *Diagnostic) error {
	k := mergeKey{d.Source, d.Severity, d.Code, d.Text}
	if isAdvisory(d.Code) && d.Key != "" {
		k.what = d.Key
	}
	list := [numLists]*[]Diagnostic{&c.log.Errors, &c.log.Warnings, &c.log.Advisories, &c.log.Notes}[d.list()]
	if i, ok := c.at[k]; ok {
		(*list)[i].Repeats++
		return nil
	}
	c.at[k] = len(*list)
	*list = append(*list, *d)
	return c.keep(1, d.Text)
}

// isAdvisory reports whether a code is one of the C75xx, which speak of what
// the compiler had to do to a kernel that uses the tensor cores or setmaxnreg.
func isAdvisory(code string) bool { return strings.HasPrefix(code, "C75") }

// cutCode takes "(C7510) " off the front of a message.
func cutCode(s string) (code, text string) {
	if len(s) > 7 && s[0] == '(' && s[1] == 'C' && allDigits(s[2:6]) && s[6] == ')' {
		return s[1:6], strings.TrimLeft(s[7:], " ")
	}
	return "", s
}

// classify reads the kind, the function and the figures out of the text.
func (d *Diagnostic) classify() {
	d.Kind = KindOther
	s := d.Text
	switch {
	case isAdvisory(d.Code):
		if strings.HasPrefix(s, "Potential Performance Loss") {
			d.Kind = KindPerformanceLoss
		}
		d.Function = between(s, "function '", "'")
	case strings.HasPrefix(s, "Overriding global maxrregcount "):
		d.Kind = KindRegisterLimitOverride
		d.RegisterLimit = figure(s, "value", " computed")
	case strings.HasPrefix(s, "Overriding maximum register limit "):
		d.about(KindRegisterLimitOverride, "for '", "' with ")
		d.RegisterLimit = figure(s, "with", " of maxrregcount")
	case strings.HasPrefix(s, "Too big maxrregcount value"):
		d.Kind = KindMaxRegistersIgnored
		d.RegisterLimit = figure(s, "specified", ",")
	case strings.HasPrefix(s, "Registers are spilled to local memory"):
		d.about(KindSpills, "function '", "', ")
		d.SpillStoreBytes = figure(s, ",", " bytes spill stores")
		d.SpillLoadBytes = figure(s, ",", " bytes spill loads")
	case strings.HasPrefix(s, "Local memory used for function"):
		d.about(KindLocalMemory, "function '", "', ")
		d.StackBytes = figure(s, "frame:", " bytes")
	case strings.HasSuffix(s, "cannot be statically determined"):
		d.about(KindStackSizeUnknown, "function '", "' cannot")
	case strings.Contains(s, "minnctapersm will be ignored"):
		d.about(KindMinBlocksIgnored, "for entry ", " is out of range")
	case strings.Contains(s, "with max regcount of"):
		d.about(KindCalleeRegisters, "function '", "' with max regcount")
		d.RegisterLimit = figure(s, "max regcount of", " calls")
	case strings.HasPrefix(d.Code, "C76"):
		d.about(KindRegisterAllocation, "in function ", ". ")
	case strings.Contains(s, "aborted due to errors"):
		d.Kind = KindAborted
	}
}

// about sets the kind, and the function that stands between two marks.
func (d *Diagnostic) about(kind Kind, mark, end string) {
	d.Kind, d.Function = kind, between(d.Text, mark, end)
}

// between returns the text between the first mark and the last end behind it: a
// name can hold quotes itself.
func between(s, mark, end string) string {
	_, s, ok := strings.Cut(s, mark)
	if !ok {
		return ""
	}
	i := strings.LastIndex(s, end)
	if i < 0 || i > maxName {
		return ""
	}
	return s[:i]
}

// figure reads the number before the last end; the mark and blanks stand
// before it.
func figure(s, mark, end string) Count {
	i := strings.LastIndex(s, end)
	if i < 0 {
		return Count{}
	}
	s = s[:i]
	start := len(s)
	for start > 0 && s[start-1] >= '0' && s[start-1] <= '9' {
		start--
	}
	n, rest, ok := cutInt([]byte(s[start:]))
	if !ok || len(rest) > 0 || !strings.HasSuffix(strings.TrimRight(s[:start], " "), mark) {
		return Count{}
	}
	return known(n)
}
