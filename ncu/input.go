package ncu

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
)

const (
	maxLine  = 16 << 20 // bytes; the widest raw page seen has rows of 150 KB
	maxInput = 64 << 30 // bytes after decompression: ends a gzip bomb
	bufSize  = 256 << 10
)

var errLongLine = errors.New("a line is longer than 16 MiB")

// lines reads a text line by line with memory bounded by maxLine. It undoes
// gzip, a UTF-8 byte order mark and UTF-16.
type lines struct {
	r     io.Reader
	buf   []byte
	start int // of the unread part of buf
	end   int
	line  int // number of the line last returned
	total int64
	torn  bool // the line last returned has no end
	err   error
}

func newLines(r io.Reader) (*lines, error) {
	src, err := decode(r)
	if err != nil {
		return nil, err
	}
	return &lines{r: src, buf: make([]byte, bufSize)}, nil
}

// next returns the next line without its end. The bytes are valid until the
// next call. At the end it returns io.EOF.
func (l *lines) next() ([]byte, error) {
	from := l.start
	for {
		if i := bytes.IndexByte(l.buf[from:l.end], '\n'); i >= 0 {
			out := l.buf[l.start : from+i]
			l.start = from + i + 1
			return l.trim(out), nil
		}
		if l.err != nil {
			return l.lastLine()
		}
		from = l.end - l.start
		if err := l.fill(); err != nil {
			return nil, err
		}
		from += l.start
	}
}

func (l *lines) lastLine() ([]byte, error) {
	if l.start == l.end || l.err != io.EOF {
		return nil, l.err
	}
	out := l.buf[l.start:l.end]
	l.start, l.torn = l.end, true
	return l.trim(out), nil
}

func (l *lines) trim(b []byte) []byte {
	l.line++
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return bytes.TrimPrefix(b, utf8BOM)
}

// fill reads more bytes behind the unread ones, which it moves to the front.
func (l *lines) fill() error {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.end -= l.start
		l.start = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			return errLongLine
		}
		grown := make([]byte, 2*len(l.buf))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	for empty := 0; ; empty++ {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.total += int64(n)
		switch {
		case l.total > maxInput:
			return errors.New("the text is larger than 64 GiB")
		case err != nil:
			l.err = fromReader(err)
			return nil
		case n > 0:
			return nil
		case empty > 100:
			return &readError{io.ErrNoProgress}
		}
	}
}

var (
	utf8BOM    = []byte("\xef\xbb\xbf")
	utf16LE    = []byte("\xff\xfe")
	utf16BE    = []byte("\xfe\xff")
	gzipMagic  = []byte("\x1f\x8b")
	zstdMagic  = []byte("\x28\xb5\x2f\xfd")
	zipMagic   = []byte("PK\x03\x04")
	reportHead = []byte("NVR\x00")
	lfsHead    = []byte("version https://git-lfs")
)

// decode peels gzip and UTF-16 off r and refuses what is not text at all.
func decode(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 4096)
	head, err := b.Peek(len(lfsHead))
	if err != nil && err != io.EOF {
		return nil, fromReader(err)
	}
	if bytes.HasPrefix(head, gzipMagic) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fromReader(damaged(err))
		}
		b = bufio.NewReaderSize(gzipText{z}, 4096)
		head, err = b.Peek(len(lfsHead))
		if err != nil && err != io.EOF {
			return nil, fromReader(err)
		}
	}
	if err := refuseBinary(head); err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, utf16LE), len(head) > 3 && head[0] != 0 && head[1] == 0 && head[3] == 0:
		return &utf16Reader{r: b, low: 0, high: 1}, nil
	case bytes.HasPrefix(head, utf16BE), len(head) > 3 && head[0] == 0 && head[1] != 0 && head[2] == 0:
		return &utf16Reader{r: b, low: 1, high: 0}, nil
	}
	return b, nil
}

// gzipText turns what gzip says about damaged input into a refusal of the file.
type gzipText struct{ z *gzip.Reader }

func (g gzipText) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return n, err
}

func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF || errors.As(err, &corrupt) {
		return &SyntaxError{Msg: "the gzip file is cut off or damaged", Err: err}
	}
	return err
}

// A readError is one of the underlying reader, which says nothing about the
// file's contents.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// fromReader marks an error that came with the bytes, unless it is a refusal.
func fromReader(err error) error {
	var s *SyntaxError
	if err == io.EOF || errors.As(err, &s) {
		return err
	}
	return &readError{err}
}

// refuseBinary recognises the files that people pass by mistake.
func refuseBinary(head []byte) error {
	switch {
	case bytes.HasPrefix(head, reportHead):
		return &SyntaxError{Msg: "this is a binary .ncu-rep report, not CSV", Hint: hintExport}
	case bytes.HasPrefix(head, zstdMagic):
		return &SyntaxError{Msg: "this is a zstd-compressed report (.ncu-repz), which cannot be read", Hint: hintExport}
	case bytes.HasPrefix(head, zipMagic):
		return &SyntaxError{Msg: "this is a zip archive, not CSV", Hint: "unpack it first"}
	case bytes.HasPrefix(head, lfsHead):
		return &SyntaxError{Line: 1, Msg: "this is a git-lfs pointer, not the file itself", Hint: "fetch the file with: git lfs pull"}
	}
	return nil
}

const hintExport = "export it with: ncu -i FILE --csv --page raw --print-units base"
