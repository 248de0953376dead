package ncu

import (
	"errors"
	"strings"
)

var (
	errOpenQuote  = errors.New("a quoted field does not end")
	errAfterQuote = errors.New("text follows a closing quote")
	errBareQuote  = errors.New("a quote stands inside an unquoted field")
	errAfterComma = errors.New("the row is cut off after a comma")
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

// bareField reads a field without quotes, which ncu leaves at the end of rows.
func bareField(row string) (field, rest string, more bool, err error) {
	field, rest, more = strings.Cut(row, ",")
	if strings.IndexByte(field, '"') >= 0 {
		return "", "", false, errBareQuote
	}
	return field, rest, more, nil
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
