// Package printable makes text from outside safe to print.
package printable

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Line makes control, bidirectional and invisible characters visible, line
// breaks and tabs too: in a name they would forge lines and columns.
func Line(s string) string { return clean(s, "") }

// Text is Line for a text that may have several lines.
func Text(s string) string { return clean(s, "\n\t") }

func clean(s, kept string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune(kept, r):
			b.WriteRune(r)
		case hidden(r) || r == unicode.ReplacementChar:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden holds for what a terminal acts on or does not show.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// JSON escapes in JSON what Text escapes in text, in JSON's own way: the value
// stays the same. The JSON's own line breaks and indentation stay.
func JSON(data []byte) []byte {
	if !bytes.ContainsFunc(data, func(r rune) bool { return r >= 0x7f && hidden(r) }) {
		return data
	}
	var b bytes.Buffer
	b.Grow(len(data) + 64)
	for _, r := range string(data) {
		switch {
		case r < 0x7f || !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.Bytes()
}

// Cut is Line for at most so many characters of a text.
func Cut(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return Line(s[:i]) + "…"
		}
	}
	return Line(s)
}

// First is the first line of a text that says something, at most 300
// characters of it.
func First(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return Cut(line, 300)
		}
	}
	return ""
}

// Last is the last line of a text that says something, at most 300 characters
// of it.
func Last(text string) string {
	text = strings.TrimSpace(text)
	return Cut(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), 300)
}

// Quote is Cut between quotation marks.
func Quote(s string, most int) string { return `"` + Cut(s, most) + `"` }
