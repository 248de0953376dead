package ptxas

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Bounds of a text; what lies beyond them is a SyntaxError.
const (
	maxLine  = 1 << 20  // bytes of one line
	maxInput = 64 << 30 // bytes after decompression: ends a gzip bomb
)

// A lineReader yields lines without their end and counts them. A line is valid
// until the next one is read. It undoes gzip and a byte order mark.
type lineReader struct {
	r      *bufio.Reader
	long   []byte // a line that is longer than r's buffer
	number int
	total  int64
	torn   bool // the last line has no end
	zipped bool
}

func newLineReader(r io.Reader) lineReader {
	return lineReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// A textError is about the text and not about the reader that brings it.
type textError struct{ msg, hint string }

func (e *textError) Error() string { return e.msg }

var (
	errLineTooLong = &textError{msg: fmt.Sprintf("line is longer than %d bytes", maxLine)}
	errTooLarge    = &textError{msg: fmt.Sprintf("text is larger than %d bytes", int64(maxInput))}
	errUTF16       = &textError{"text is UTF-16", "convert it to UTF-8; PowerShell's > writes UTF-16"}
	errGzip        = &textError{msg: "the gzip file is cut off or damaged"}
)

func (l *lineReader) next() ([]byte, error) {
	l.number++
	if l.number == 1 {
		if err := l.unzip(); err != nil {
			return nil, err
		}
	}
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
	if l.total += int64(len(line)); l.total > maxInput {
		return nil, errTooLarge
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case err == io.EOF && len(line) > 0:
		l.torn = true
		return line, nil
	}
	return nil, l.readError(err)
}

// unzip looks at the first bytes of the text.
func (l *lineReader) unzip() error {
	if head, _ := l.r.Peek(2); string(head) != "\x1f\x8b" {
		return nil // an error comes again with the first line
	}
	l.zipped = true
	z, err := gzip.NewReader(l.r)
	if err != nil {
		return l.readError(err)
	}
	l.r = bufio.NewReaderSize(z, 64<<10)
	return nil
}

// readError tells a damaged text from an error of the reader.
func (l *lineReader) readError(err error) error {
	var corrupt flate.CorruptInputError
	if l.zipped && (err == io.ErrUnexpectedEOF || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt)) {
		return errGzip
	}
	return err
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
