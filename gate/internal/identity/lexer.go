package identity

import "bytes"

// A kind is the kind of a token.
type kind byte

const (
	kindEnd          kind = iota // of the input
	kindIdentifier               // keywords too
	kindNumber                   // a preprocessing number, digit separators included
	kindString                   // with its prefix; raw strings too
	kindCharacter                // with its prefix
	kindPunctuator               // the longest that C++ knows; a byte that begins nothing else
	kindHash                     // a # that begins a directive
	kindDirectiveEnd             // the end of the line that a directive fills
)

// A lexer cuts C++ source into tokens. Comments, white space and line splices separate tokens and are not tokens.
// It accepts what a compiler would reject, because its answer is only ever hashed, but says so when a literal or a
// comment has no end outside a directive: that is a torn file.
type lexer struct {
	data      []byte
	pos       int
	line      int // of pos, as the line markers count
	lineStart bool
	directive bool
	lenient   bool // an open quote is not an error, as in text that the preprocessor skips
	err       error
}

func newLexer(data []byte) *lexer {
	return &lexer{data: data, line: 1, lineStart: true}
}

// fail ends the input with an error at pos.
func (x *lexer) fail(msg string) kind {
	if x.err == nil {
		x.err = &formatError{Line: 1 + newlines(x.data[:x.pos]), Msg: msg}
	}
	x.pos = len(x.data)
	return kindEnd
}

func newlines(text []byte) int { return bytes.Count(text, []byte{'\n'}) }

// next returns the next token; text is valid until the data changes, with line splices inside it removed.
func (x *lexer) next() (k kind, text []byte) {
	if end := x.skipSpace(); end {
		return kindDirectiveEnd, nil
	}
	if x.err != nil || x.pos >= len(x.data) {
		if x.directive && x.err == nil {
			x.directive = false
			return kindDirectiveEnd, nil
		}
		return kindEnd, nil
	}
	start, c := x.pos, x.data[x.pos]
	atLineStart := x.lineStart
	x.lineStart = false
	switch class[c] {
	case classLetter:
		return x.identifier(start)
	case classDigit:
		return x.number(start)
	case classQuote:
		return x.quoted(start, start, c)
	}
	if c == '.' && start+1 < len(x.data) && isDigit(x.data[start+1]) {
		return x.number(start)
	}
	if atLineStart && (c == '#' || c == '%' && start+1 < len(x.data) && x.data[start+1] == ':') {
		x.pos++
		if c == '%' { // the other spelling of #
			x.pos++
		}
		x.directive = true
		return kindHash, x.data[start:x.pos]
	}
	x.pos++
	if class[c] == classOperator {
		x.pos = start + operator(x.data[start:])
	}
	return kindPunctuator, x.data[start:x.pos]
}

// skipSpace passes white space, splices and comments; true says that a directive ended here.
func (x *lexer) skipSpace() bool {
	for x.pos < len(x.data) {
		switch c := x.data[x.pos]; {
		case c == '\n':
			x.pos++
			x.line++
			x.lineStart = true
			if x.directive {
				x.directive = false
				return true
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
			x.pos++
		case c == '\\' && x.splice(x.pos) > 0:
			x.pos += x.splice(x.pos)
			x.line++
		case c == '/':
			if !x.comment() {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// splice returns the length of a backslash and line end at i, 0 when there is none.
func (x *lexer) splice(i int) int {
	if i+1 < len(x.data) && x.data[i] == '\\' {
		if x.data[i+1] == '\n' {
			return 2
		}
		if x.data[i+1] == '\r' && i+2 < len(x.data) && x.data[i+2] == '\n' {
			return 3
		}
	}
	return 0
}

// comment passes a comment at pos, if there is one. Splices may stand between its first two characters.
func (x *lexer) comment() bool {
	i, splices := x.pos+1, 0
	for n := x.splice(i); n > 0; n = x.splice(i) {
		i += n
		splices++
	}
	if i >= len(x.data) || x.data[i] != '/' && x.data[i] != '*' {
		return false
	}
	x.line += splices
	if x.data[i] == '/' {
		x.lineComment(i + 1)
		return true
	}
	end := bytes.Index(x.data[i+1:], []byte("*/"))
	if end < 0 {
		x.fail("comment without an end")
		return false
	}
	x.line += newlines(x.data[i+1 : i+1+end])
	x.pos = i + 1 + end + 2
	return true
}

func (x *lexer) lineComment(i int) {
	for {
		end := bytes.IndexByte(x.data[i:], '\n')
		if end < 0 {
			x.pos = len(x.data)
			return
		}
		i += end
		back := i - 1
		if x.data[back] == '\r' {
			back--
		}
		if x.data[back] != '\\' {
			x.pos = i
			return
		}
		x.line++
		i++
	}
}

func (x *lexer) identifier(start int) (kind, []byte) {
	i, spliced := x.word(start, false)
	text := x.data[start:i]
	if spliced {
		text = withoutSplices(text)
	}
	if i < len(x.data) && (x.data[i] == '"' || x.data[i] == '\'') {
		switch string(text) {
		case "R", "u8R", "uR", "UR", "LR":
			if x.data[i] == '"' {
				return x.raw(start, i)
			}
		case "L", "u8", "u", "U":
			return x.quoted(start, i, x.data[i])
		}
	}
	x.pos = i
	return kindIdentifier, text
}

func (x *lexer) number(start int) (kind, []byte) {
	i, spliced := x.word(start, true)
	x.pos = i
	if spliced {
		return kindNumber, withoutSplices(x.data[start:i])
	}
	return kindNumber, x.data[start:i]
}

// word passes letters and digits, for a number also what a preprocessing number may hold.
func (x *lexer) word(i int, number bool) (end int, spliced bool) {
	for !number && i < len(x.data) && class[x.data[i]]&classWord != 0 {
		i++
	}
	for i < len(x.data) {
		c := x.data[i]
		switch {
		case class[c]&classWord != 0:
			i++
			if number && i < len(x.data) && (x.data[i] == '+' || x.data[i] == '-') && (c|0x20 == 'e' || c|0x20 == 'p') {
				i++
			}
		case number && c == '.':
			i++
		case number && c == '\'' && i+1 < len(x.data) && class[x.data[i+1]]&classWord != 0:
			i += 2
		case c == '\\' && x.splice(i) > 0:
			i += x.splice(i)
			x.line++
			spliced = true
		default:
			return i, spliced
		}
	}
	return i, spliced
}

// quoted reads a string or character literal whose prefix begins at start and whose quote is at i.
func (x *lexer) quoted(start, i int, quote byte) (kind, []byte) {
	k := kindString
	if quote == '\'' {
		k = kindCharacter
	}
	first, splices := i, 0
	for i++; i < len(x.data); i++ {
		switch x.data[i] {
		case quote:
			x.pos = i + 1
			x.line += splices
			if splices > 0 {
				return k, withoutSplices(x.data[start:x.pos])
			}
			return k, x.data[start:x.pos]
		case '\\':
			if n := x.splice(i); n > 0 {
				i += n - 1
				splices++
			} else if i++; i < len(x.data) && x.data[i] == '\n' {
				i--
			}
		case '\n':
			return x.openQuote(start, first)
		}
	}
	return x.openQuote(start, first)
}

func (x *lexer) openQuote(start, quote int) (kind, []byte) {
	if !x.lenient && !x.directive {
		return x.fail("literal without an end"), nil
	}
	// The compiler takes an open quote and the rest of its line for one token.
	x.pos = quote
	for x.pos < len(x.data) && x.data[x.pos] != '\n' {
		if n := x.splice(x.pos); n > 0 {
			x.pos += n
			x.line++
		} else {
			x.pos++
		}
	}
	return kindPunctuator, bytes.TrimSuffix(x.data[start:x.pos], []byte{'\r'})
}

const maxRawDelimiter = 16

func (x *lexer) raw(start, quote int) (kind, []byte) {
	open := bytes.IndexByte(x.data[quote+1:min(len(x.data), quote+2+maxRawDelimiter)], '(')
	if open < 0 {
		return x.openQuote(start, quote)
	}
	end := append([]byte{')'}, x.data[quote+1:quote+1+open]...)
	end = append(end, '"')
	body := quote + 1 + open + 1
	at := bytes.Index(x.data[body:], end)
	if at < 0 || x.directive && bytes.IndexByte(x.data[body:body+at], '\n') >= 0 { // a directive ends with its line
		return x.openQuote(start, quote)
	}
	x.pos = body + at + len(end)
	x.line += newlines(x.data[start:x.pos])
	return kindString, x.data[start:x.pos]
}

func withoutSplices(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\\\r\n"), nil)
	return bytes.ReplaceAll(text, []byte("\\\n"), nil)
}

const (
	classLetter = 1 << iota
	classDigit
	classQuote
	classOperator // begins an operator of two characters or more
	classWord     = classLetter | classDigit
)

var class = func() (t [256]byte) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == '$', c >= 0x80:
			t[c] = classLetter
		case '0' <= c && c <= '9':
			t[c] = classDigit
		case c == '"', c == '\'':
			t[c] = classQuote
		case bytes.IndexByte([]byte("+-*/%&|^!=<>:#."), byte(c)) >= 0:
			t[c] = classOperator
		}
	}
	return t
}()

// operator returns the length of the longest operator at the start of s, which is not empty.
func operator(s []byte) int {
	if len(s) == 1 {
		return 1
	}
	c, d := s[0], s[1]
	if len(s) > 2 {
		switch string(s[:3]) {
		case "<<=", ">>=", "<=>", "->*", "...":
			return 3
		}
	}
	switch {
	case d == '=' && bytes.IndexByte([]byte("+-*/%&|^!=<>"), c) >= 0:
		return 2
	case c == d && bytes.IndexByte([]byte("+-&|<>:#"), c) >= 0:
		return 2
	case c == '-' && d == '>', c == '.' && d == '*':
		return 2
	}
	return 1
}
