package ptxas

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of what Parse accepts; text beyond them is a SyntaxError.
const (
	maxLine    = 1 << 20   // bytes of one line
	maxName    = 64 << 10  // bytes of a function's name
	maxRecords = 1 << 20   // entries, functions and messages of one text
	maxText    = 256 << 20 // bytes of distinct names, messages and unknown fields kept
	maxArchs   = 256       // architectures
)

// Parse reads the output of ptxas -v, nvlink -v and the driver's linker, alone
// or inside a build log. The name is for messages only.
//
// A text in which no kernel was compiled is a *NoEntriesError, one that cannot
// be read is a *SyntaxError; any other error is the reader's. Memory grows with
// what is returned, not with the text around it.
func Parse(r io.Reader, name string) (*Log, error) {
	p := newParser(name)
	lines := newLineReader(r)
	for {
		line, err := lines.next()
		p.line = lines.number
		if err == io.EOF {
			return p.finish()
		}
		if err != nil {
			return nil, p.readError(err)
		}
		if err := p.parseLine(line, lines.torn); err != nil {
			return nil, err
		}
	}
}

// A lineReader yields lines without their end and counts them. A line is valid
// until the next one is read.
type lineReader struct {
	r      *bufio.Reader
	long   []byte // a line that is longer than r's buffer
	number int
	torn   bool // the last line has no end
}

func newLineReader(r io.Reader) lineReader {
	return lineReader{r: bufio.NewReaderSize(r, 64<<10)}
}

var (
	errLineTooLong = errors.New("line too long")
	errUTF16       = errors.New("text is UTF-16")
)

func (l *lineReader) next() ([]byte, error) {
	l.number++
	line, err := l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line, err = l.nextLong(line)
	}
	if l.number == 1 {
		if isUTF16(line) {
			return nil, errUTF16
		}
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")) // UTF-8 with a mark
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case err == io.EOF && len(line) > 0:
		l.torn = true
		return line, nil
	}
	return nil, err
}

// isUTF16 reports whether a text begins with the mark of UTF-16 or with two
// characters in it.
func isUTF16(s []byte) bool {
	if bytes.HasPrefix(s, []byte{0xFF, 0xFE}) || bytes.HasPrefix(s, []byte{0xFE, 0xFF}) {
		return true
	}
	return len(s) >= 4 && (s[0] == 0) != (s[1] == 0) && (s[0] == 0) == (s[2] == 0) && (s[1] == 0) == (s[3] == 0)
}

// nextLong collects a line that is longer than the buffer.
func (l *lineReader) nextLong(line []byte) ([]byte, error) {
	l.long = append(l.long[:0], line...)
	for {
		line, err := l.r.ReadSlice('\n')
		if len(l.long)+len(line) > maxLine {
			return nil, errLineTooLong
		}
		l.long = append(l.long, line...)
		if err != bufio.ErrBufferFull {
			return l.long, err
		}
	}
}

func (p *parser) readError(err error) error {
	switch err {
	case errLineTooLong:
		return p.syntaxError(fmt.Sprintf("line is longer than %d bytes", maxLine), "")
	case errUTF16:
		return p.syntaxError(err.Error(), "convert it to UTF-8; PowerShell's > writes UTF-16")
	}
	return fmt.Errorf("%s:%d: %w", p.file, p.line, err)
}

var (
	wordStackFrame = []byte(" bytes stack frame")
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
	if bytes.Contains(body, escapedQuote) {
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
	return p.message(t, body)
}

// untagged handles a line without the name of a tool.
func (p *parser) untagged(line []byte, torn bool) error {
	if bytes.Contains(line, wordStackFrame) {
		return p.frame(line)
	}
	if body, ok := bareInfo(line); ok {
		return p.linkerInfo(body, torn)
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
			return p.unit(whole)
		}
	}
	if torn && isCut(body) {
		return p.syntaxError("the text ends inside a line", "")
	}
	return p.message(tag{source: source, severity: SeverityInfo}, body)
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
		return p.unit(true)
	}
	if rest, ok := cutWord(body, "Function properties for "); ok && isLinkerName(rest) {
		return p.properties(SourceInfo, rest)
	}
	if rest, ok := cutWord(body, "used "); ok && p.props.source == SourceInfo {
		return p.used(SourceInfo, rest, torn)
	}
	return nil
}
