package ncu

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader turns UTF-16 into UTF-8, two bytes of room at a time.
type utf16Reader struct {
	r         *bufio.Reader
	low, high int // places of the low and the high byte in a unit
	started   bool
	pending   []byte
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	n := copy(p, u.pending)
	u.pending = u.pending[n:]
	for n < len(p) {
		c, err := u.char()
		if err == nil && c == '\ufeff' && !u.started {
			c, err = u.char()
		}
		u.started = true
		if err != nil {
			if n > 0 && errors.Is(err, io.EOF) {
				return n, nil
			}
			return n, err
		}
		if n+utf8.UTFMax > len(p) {
			u.pending = utf8.AppendRune(nil, c)
			k := copy(p[n:], u.pending)
			u.pending = u.pending[k:]
			return n + k, nil
		}
		n += utf8.EncodeRune(p[n:], c)
	}
	return n, nil
}

func (u *utf16Reader) char() (rune, error) {
	c, err := u.unit()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	d, err := u.unit()
	if err == io.EOF {
		err = nil
	}
	if err != nil {
		return 0, err
	}
	if c = utf16.DecodeRune(c, d); c == utf8.RuneError {
		return 0, &SyntaxError{Msg: "the UTF-16 text holds half a surrogate pair"}
	}
	return c, nil
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.r, b[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			return 0, &SyntaxError{Msg: "the UTF-16 text ends in the middle of a character"}
		}
		return 0, err
	}
	return rune(b[u.low]) | rune(b[u.high])<<8, nil
}
