package ncu

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxMessages     = 1000
	maxMessage      = 4096
	maxToolLines    = 16
	maxContinuation = 256 // lines of one quoted field
	tornSeparators  = 6   // of quoted fields in a line that is not a row
)

// A Reader reads launches one by one. Its memory does not grow with the file.
//
// A file can be refused at its last line, so launches are worth something only
// when Next has returned io.EOF.
type Reader struct {
	name     string
	src      io.Reader
	lines    *lines
	table    table
	launches int
	tables   int
	messages []Message
	failed   *ToolError
	textPage bool
	none     bool // ncu said that it profiled nothing
	inset    int  // columns of a table about GPUs inside of a page, after its header
	err      error
}

// A table takes the rows of one page.
type table interface {
	row(b []byte, line int) (*Launch, error)
	flush() (*Launch, error)
}

// NewReader returns a Reader of CSV output of ncu. The name is used in errors
// only.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{name: name, src: r}
}

// Read reads a whole file and parses every cell, so that no lookup in the
// report fails later. The report is never nil. Beside an error it holds what was
// read before, which says what went wrong and is not a measurement.
func Read(r io.Reader, name string) (*Report, error) {
	rd := NewReader(r, name)
	rep := &Report{}
	for {
		l, err := rd.Next()
		rep.Messages = rd.messages
		if err == io.EOF {
			return rep, nil
		}
		if err == nil {
			err = l.check()
		}
		if err != nil {
			return rep, err
		}
		rep.Launches = append(rep.Launches, l)
	}
}

// check parses every cell of the launch.
func (l *Launch) check() error {
	return l.values.each(func(name string, c cell) error {
		_, err := l.parse(name, c, true)
		return err
	})
}

// refuse makes the error for a cell that cannot be read.
func (l *Launch) refuse(name string, c cell, err error) error {
	e := &SyntaxError{File: l.file, Line: c.line, Err: err, Msg: fmt.Sprintf("%s: %q %v", name, clip(c.text, 80), err)}
	if errors.Is(err, errAmbiguous) || errors.Is(err, errHalfKnown) {
		e.Hint = "run ncu with LC_ALL=C, which prints numbers without thousands separators"
	}
	return e
}

// Messages returns what ncu has said so far.
func (r *Reader) Messages() []Message { return r.messages }

// Next returns the next launch, or io.EOF after the last one of a file that is
// whole and in order. Other errors are *SyntaxError, *ToolError or those of the
// underlying reader; they are final.
func (r *Reader) Next() (*Launch, error) {
	if r.err != nil {
		return nil, r.err
	}
	l, err := r.next()
	if r.failed != nil {
		err = r.failed // what ncu says about itself explains whatever else is wrong
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	l.file = r.name
	r.launches++
	return l, nil
}

func (r *Reader) next() (*Launch, error) {
	if r.lines == nil {
		lines, err := newLines(r.src)
		if err != nil {
			return nil, r.wrap(err, 0)
		}
		r.lines = lines
	}
	for {
		b, err := r.lines.next()
		if err == io.EOF {
			return r.finish()
		}
		if err != nil {
			return nil, r.wrap(err, r.lines.line+1)
		}
		l, err := r.line(b)
		if err != nil {
			return nil, r.wrap(err, r.lines.line)
		}
		if l != nil {
			return l, nil
		}
	}
}

// line handles one line of text. Nearly all lines of a file are table rows.
func (r *Reader) line(b []byte) (*Launch, error) {
	switch {
	case len(b) == 0:
		return nil, nil
	case r.table != nil && rowLike(b):
		if r.inset > 0 && r.insetRow(b) {
			return nil, nil
		}
		r.inset = 0
		return r.row(b)
	case b[0] == '=' && bytes.HasPrefix(b, []byte("==")):
		return nil, r.message(string(b))
	}
	if i := bytes.Index(b, []byte(headerStart)); i >= 0 {
		return r.open(string(b[i:])) // program output without a line end may precede it
	}
	return nil, r.noise(b)
}

// rowLike says whether a line starts as rows of a table do: with a quoted
// number, or with the empty field of the row of units. A last line can be cut
// off after one byte.
func rowLike(b []byte) bool {
	switch {
	case b[0] != '"':
		return false
	case len(b) == 1:
		return true
	}
	return b[1] >= '0' && b[1] <= '9' || b[1] == '"' && (len(b) == 2 || b[2] == ',')
}

// row hands a row to the table, joined with the lines that a quoted line end
// has cut off it.
func (r *Reader) row(b []byte) (*Launch, error) {
	line := r.lines.line
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, &SyntaxError{Line: line, Msg: "the row holds a NUL byte", Hint: hintTorn}
	}
	if bytes.Count(b, []byte{'"'})%2 == 0 {
		return r.table.row(b, line)
	}
	joined := append([]byte(nil), b...)
	for i := 0; i < maxContinuation; i++ {
		next, err := r.lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		joined = append(append(joined, '\n'), next...)
		if len(joined) > maxLine {
			break
		}
		if bytes.Count(joined, []byte{'"'})%2 == 0 {
			return r.table.row(joined, line)
		}
	}
	return nil, &SyntaxError{Line: line, Msg: "a quoted field does not end", Hint: hintTorn, Err: errOpenQuote}
}

const hintTorn = "the file is cut off, or program output is mixed into a row: write the table to a file of its own with --log-file"

// open starts a table at its header.
func (r *Reader) open(row string) (*Launch, error) {
	done, err := r.close()
	if err != nil {
		return nil, err
	}
	if strings.IndexByte(row, 0) >= 0 {
		return nil, &SyntaxError{Msg: "the header holds a NUL byte", Hint: hintTorn}
	}
	h, err := newHeader(row)
	if err != nil {
		return nil, err
	}
	if h.column("Metric Value") >= 0 {
		r.table, err = newLongTable(h)
	} else {
		r.table, err = newRawTable(h)
	}
	r.tables++
	return done, err
}

func (r *Reader) close() (*Launch, error) {
	if r.table == nil {
		return nil, nil
	}
	l, err := r.table.flush()
	r.table = nil
	return l, err
}

// finish ends the file: what it still holds, or why it is refused.
func (r *Reader) finish() (*Launch, error) {
	l, err := r.close()
	if err != nil {
		return nil, r.wrap(err, r.lines.line)
	}
	if l != nil {
		return l, nil
	}
	if r.failed != nil {
		return nil, r.failed
	}
	if r.launches > 0 {
		return nil, io.EOF
	}
	e := &SyntaxError{File: r.name, Err: ErrNoTable}
	switch {
	case r.none:
		e.Msg = "ncu profiled no kernel"
		e.Hint = "check the kernel filter and that the program launches kernels"
	case r.tables > 0:
		e.Msg = "the table has no rows"
	case r.textPage:
		e.Msg = "this is ncu's text output, not CSV"
		e.Hint = "run ncu with --csv --page raw --print-units base"
	default:
		e.Msg = "the file holds no table of ncu"
		e.Hint = "run ncu with --csv --page raw --print-units base"
	}
	return nil, e
}

// message keeps a line that ncu wrote about itself.
func (r *Reader) message(s string) error {
	severity, text, ok := strings.Cut(strings.TrimPrefix(s, "=="), "==")
	if !ok {
		return nil
	}
	text = clip(strings.TrimSpace(text), maxMessage)
	switch severity {
	case "ERROR":
		if r.failed == nil {
			r.failed = &ToolError{File: r.name, Line: r.lines.line}
		}
		if len(r.failed.Lines) < maxToolLines {
			r.failed.Lines = append(r.failed.Lines, text)
		}
		return nil
	case "PROF", "WARNING":
	default:
		return nil
	}
	r.none = r.none || strings.HasPrefix(text, "No kernels were profiled")
	for _, p := range []string{"Connected to process", "Disconnected from process", "Attaching to process", "Report:"} {
		if strings.HasPrefix(text, p) {
			text = p
		}
	}
	if len(r.messages) < maxMessages {
		r.messages = append(r.messages, Message{Line: r.lines.line, Severity: severity, Text: text})
	}
	return nil
}

// noise passes over program output. It refuses tables of other kinds, and
// lines that are rows of this one with something in front.
func (r *Reader) noise(b []byte) error {
	if bytes.HasPrefix(b, []byte("    Section: ")) {
		r.textPage = true
	}
	if b[0] == '"' || b[0] == 'I' {
		if err := foreignTable(b); err != nil {
			return err
		}
	}
	if r.table != nil && r.lines.torn && b[0] == '"' && bytes.Count(b, []byte{'"'})%2 != 0 {
		return &SyntaxError{Line: r.lines.line, Msg: "the last line is cut off", Hint: hintTorn, Err: errOpenQuote}
	}
	if n := insetHeader(b); n > 0 {
		r.inset = n
		return nil
	}
	if r.table != nil && bytes.Count(b, []byte(`","`)) >= tornSeparators {
		return &SyntaxError{Line: r.lines.line, Msg: "program output is mixed into a row of the table", Hint: hintTorn}
	}
	return nil
}

// insetHeader returns the number of columns of a table about the GPUs of the
// machine, which some sections print between the rows of a details page, or 0.
func insetHeader(b []byte) int {
	f, err := splitFields(nil, string(b))
	if err != nil || len(f) < 2 || !strings.HasSuffix(f[0], " ID") || len(f) >= len(fixedNames)-2 {
		return 0
	}
	return len(f)
}

// insetRow reports whether a row belongs to such a table: it is shorter than
// what identifies a launch, and not the beginning of another row of this one.
func (r *Reader) insetRow(b []byte) bool {
	f, err := splitFields(nil, string(b))
	if err != nil || len(f) != r.inset {
		return false
	}
	t, long := r.table.(*longTable)
	return long && !bytes.HasPrefix(t.prefix, b)
}

// foreignTable recognises what ncu and others print that is not a table of
// launches.
func foreignTable(b []byte) error {
	has := func(column string) bool { return bytes.Contains(b, []byte(column)) }
	switch {
	case has(`"Invocations"`) && has(`"Minimum"`):
		return &SyntaxError{Msg: "this is a summary over launches (--print-summary)", Hint: "run ncu without --print-summary"}
	case has(`"Address","Source"`) || has(`"#","Source"`):
		return &SyntaxError{Msg: "this is a source page, which lists instructions and not launches", Hint: "run ncu with --page raw"}
	case bytes.HasPrefix(b, []byte("ID,Process ID,")):
		return &SyntaxError{Msg: "the table was saved by another program, which can change its numbers", Hint: "use the file that ncu wrote"}
	}
	return nil
}

// wrap gives an error its place in the file.
func (r *Reader) wrap(err error, line int) error {
	var s *SyntaxError
	if errors.As(err, &s) {
		s.File = r.name
		if s.Line == 0 {
			s.Line = line
		}
		return s
	}
	var failed *readError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", r.name, failed.err)
	}
	return &SyntaxError{File: r.name, Line: line, Msg: err.Error(), Err: err}
}

// clip shortens text from outside to at most n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
