package ptxas

import (
	"bytes"
	"strings"
)

var (
	wordStackFrame = []byte(" bytes stack frame")
	wordArch       = []byte("' for 'sm_")
	escapedQuote   = []byte("&#39;")
)

// parseLine finds the record of a line, if it holds one.
func (p *parser) parseLine(line []byte, torn bool) error {
	if p.props.source == SourcePtxas { // the next line is the frame, most often
		if f, ok := indentedFrame(line); ok {
			return p.figures(f)
		}
	}
	t, body, ok := findTag(line)
	if !ok {
		return p.untagged(line, torn)
	}
	if bytes.IndexByte(body, ':') >= 0 || bytes.IndexByte(body, '.') >= 0 { // cheap, and every tag has one
		if _, _, second := findTag(body); second {
			return p.scrambled("two records share a line")
		}
	}
	if bytes.IndexByte(body, '&') >= 0 {
		body = bytes.ReplaceAll(body, escapedQuote, []byte("'"))
	}
	switch t.severity {
	case "":
		if bytes.Contains(body, wordStackFrame) {
			return p.frame(body)
		}
		return nil
	case SeverityInfo:
		return p.info(t.source, body, torn)
	}
	return p.say(t, body)
}

// untagged handles a line without the name of a tool.
func (p *parser) untagged(line []byte, torn bool) error {
	if bytes.Contains(line, wordStackFrame) {
		return p.frame(line)
	}
	if body, ok := bareInfo(line); ok {
		return p.linkerInfo(body, torn)
	}
	if bytes.Contains(line, wordArch) {
		return p.scrambled("an entry function has lost its beginning")
	}
	return nil
}

// indentedFrame reads a line that holds a frame and nothing else.
func indentedFrame(line []byte) (frame, bool) {
	s := trimLeft(line)
	if len(s) == len(line) || len(s) == 0 || s[0] < '0' || s[0] > '9' {
		return frame{}, false
	}
	return parseFrame(s)
}

// info handles the body of an info line of ptxas or nvlink.
func (p *parser) info(source Source, body []byte, torn bool) error {
	if len(body) == 0 {
		return nil
	}
	switch c := body[0]; {
	case c == 'C':
		if rest, ok := cutWord(body, "Compiling entry function "); ok {
			return p.openEntry(source, rest)
		}
		if _, ok := cutWord(body, "Compile time = "); ok {
			return p.compileTime()
		}
	case c == 'F':
		if rest, ok := cutWord(body, "Function properties for "); ok {
			return p.properties(source, rest)
		}
	case c == 'U' || c == 'u':
		if rest, ok := cutWord(body[1:], "sed "); ok {
			return p.used(source, rest, torn)
		}
	case c >= '0' && c <= '9':
		if bytes.Contains(body, wordStackFrame) {
			return p.frame(body)
		}
		if gmem, whole := isGmem(body); gmem {
			return p.beginUnit(whole)
		}
	}
	if torn && isCut(body) {
		return p.syntaxError("the text ends inside a line", "")
	}
	return p.say(tag{source: source, severity: SeverityInfo}, body)
}

// isCut reports whether a body is the beginning of a record.
func isCut(body []byte) bool {
	if body[0] >= '0' && body[0] <= '9' {
		return true
	}
	for _, known := range []string{"Compiling entry function ", "Compile time = ", "Function properties for ", "Used ", "used "} {
		if strings.HasPrefix(known, string(body)) {
			return true
		}
	}
	return false
}

// linkerInfo handles a bare "info : " line, which is a record only if it has
// one of the linker's three shapes.
func (p *parser) linkerInfo(body []byte, torn bool) error {
	if gmem, whole := isGmem(body); gmem && whole {
		return p.beginUnit(true)
	}
	if rest, ok := cutWord(body, "Function properties for "); ok && isLinkerName(rest) {
		return p.properties(SourceInfo, rest)
	}
	if rest, ok := cutWord(body, "used "); ok && p.props.source == SourceInfo {
		return p.used(SourceInfo, rest, torn)
	}
	return nil
}
