package ptxas

import (
	"errors"
	"fmt"
	"io"
)

// A Reader reads the records of a log one by one. Its memory grows with the
// largest compilation unit and not with the text: the entries of a unit are
// complete when the unit ends.
type Reader struct {
	p     *parser
	lines lineReader
	err   error // to be returned when the records before it are
}

// A Record is an entry, a device function of a unit without entries, or a
// message: one field is set. What it points to is overwritten by the next call
// of Next; a copy of it stays valid.
type Record struct {
	Entry      *Entry      // Occurrence is 0: a Reader does not remember earlier entries
	Function   *Function   // one of Log.Functions
	Diagnostic *Diagnostic // each message as it is printed: Repeats is 1
}

// NewReader returns a Reader of what Parse reads. The name is for messages
// only.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{p: newParser(name), lines: newLineReader(r)}
}

// Next returns the next record, or io.EOF after the last one of a text that is
// whole and has an entry. Other errors are those of [Parse] and are final.
func (r *Reader) Next() (Record, error) {
	for {
		if rec, ok := r.p.take(); ok {
			return rec, nil
		}
		if r.err != nil {
			return Record{}, r.err
		}
		r.err = r.line()
	}
}

// Units returns the number of compilation and link units so far.
func (r *Reader) Units() int { return r.p.units }

// line reads one line.
func (r *Reader) line() error {
	line, err := r.lines.next()
	r.p.line = r.lines.number
	switch {
	case err == nil:
		err = r.p.parseLine(line, r.lines.torn)
	case err == io.EOF:
		return r.p.finish()
	default:
		err = r.p.readError(err)
	}
	if err != nil {
		r.p.abandon()
	}
	return err
}

// readError places an error of the lines.
func (p *parser) readError(err error) error {
	var text *textError
	if errors.As(err, &text) {
		return p.syntaxError(text.msg, text.hint)
	}
	return fmt.Errorf("%s:%d: %w", p.file, p.line, err)
}
