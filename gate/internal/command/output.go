package command

import (
	"bytes"
	"strings"
)

const (
	stderrTail = 16 << 10 // bytes
	longLine   = 4 << 10  // bytes of a line that is passed on
)

// A capture keeps what is written to it up to a bound: the beginning, or with
// last the end. It never refuses: a child that was told so would end by it.
type capture struct {
	kept  []byte
	most  int
	last  bool
	cut   bool          // there was more
	wrote chan struct{} // a sign of life; closed when there is more than may be kept
}

func (c *capture) Write(p []byte) (int, error) {
	switch {
	case c.cut && !c.last:
	case len(c.kept)+len(p) <= c.most:
		c.kept = append(c.kept, p...)
		if c.wrote != nil {
			select {
			case c.wrote <- struct{}{}:
			default:
			}
		}
	case c.last:
		c.cut = true
		c.kept = append(c.kept, p...)
		c.kept = bytes.Clone(c.kept[len(c.kept)-c.most:])
	default:
		c.cut = true
		c.kept = append(c.kept, p[:c.most-len(c.kept)]...)
		close(c.wrote)
	}
	return len(p), nil
}

func (c *capture) text() string {
	text := strings.ToValidUTF8(string(c.kept), "\uFFFD")
	if c.cut {
		return "… (cut)\n" + text
	}
	return text
}

// A lineWriter cuts a stream into lines; of a line longer than longLine it
// drops the rest.
type lineWriter struct {
	emit    func(string)
	partial []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '\n':
			l.flush()
		case len(l.partial) < longLine:
			l.partial = append(l.partial, b)
		}
	}
	return len(p), nil
}

func (l *lineWriter) flush() {
	if s := strings.TrimRight(string(l.partial), "\r \t"); s != "" {
		l.emit(s)
	}
	l.partial = l.partial[:0]
}
