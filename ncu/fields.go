package ncu

import (
	"errors"
	"strings"
)

var (
	errOpenQuote  = errors.New("a quoted field does not end")
	errAfterQuote = errors.New("text follows a closing quote")
	errBare       = errors.New("a field stands without quotes")
	errAfterComma = errors.New("the row is cut off after a comma")
	errLineEnd    = errors.New("a line end stands inside a field that has none")
)

// nextField cuts the first field off a CSV row. More says that a comma follows
// it, so that at least one field remains, if only an empty one.
func nextField(row string) (field, rest string, more bool, err error) {
	if row == "" || row[0] != '"' {
		return bareField(row)
	}
	end := strings.IndexByte(row[1:], '"') + 1
	if end == 0 {
		return "", "", false, errOpenQuote
	}
	if end+1 == len(row) {
		return row[1:end], "", false, nil
	}
	if row[end+1] == ',' {
		return row[1:end], row[end+2:], true, nil
	}
	return escapedField(row)
}

// bareField reads a field without quotes. ncu quotes every field, and leaves one
// without at the end of some rows, which is empty.
func bareField(row string) (field, rest string, more bool, err error) {
	if row != "" {
		return "", "", false, errBare
	}
	return "", "", false, nil
}

// escapedField reads a quoted field that holds doubled quotes.
func escapedField(row string) (field, rest string, more bool, err error) {
	var b strings.Builder
	s := row[1:]
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return "", "", false, errOpenQuote
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		switch {
		case s == "":
			return b.String(), "", false, nil
		case s[0] == ',':
			return b.String(), s[1:], true, nil
		case s[0] != '"':
			return "", "", false, errAfterQuote
		}
		b.WriteByte('"')
		s = s[1:]
	}
}

// splitFields appends all fields of a row to dst.
func splitFields(dst []string, row string) ([]string, error) {
	for {
		f, rest, more, err := nextField(row)
		if err != nil {
			return nil, err
		}
		dst = append(dst, f)
		if !more {
			return dst, nil
		}
		row = rest
	}
}
