package identity

import (
	"regexp"
	"strconv"
	"strings"
)

// checkStrings refuses assembler code that reads files or makes code that no
// token shows. Literals that follow each other are one.
func (h *hostHasher) checkStrings(k kind, text []byte) {
	if k == kindString {
		h.text.WriteString(unescape(string(text)))
		return
	}
	if h.text.Len() > 0 {
		joined := h.text.String()
		h.text.Reset()
		if word := assembles(joined, h.asm); word != "" {
			h.err = &SourceError{File: h.file, Line: h.line,
				Msg: "the assembler's " + word + " is refused: it brings in what no identity holds"}
			return
		}
		h.asm = false
	}
	if k == kindIdentifier {
		switch string(text) {
		case "asm", "__asm", "__asm__":
			h.asm = true
		}
	}
}

// assembles is the first word in assembler text that reads a file or can make
// such a word; "" where there is none. In a template the compiler replaces
// operands and alternatives, so that a word with one can become any. What does
// not say that it is a template can still end a line of the assembler's, as the
// name of a section does, so that its later statements count.
func assembles(text string, template bool) string {
	if !strings.Contains(text, ".") && !template {
		return ""
	}
	tail := text
	if !template { // what comes first is a name
		tail = text[min(len(text), strings.IndexAny(text+"\n", "\n;:")):]
	}
	if word := readsFiles.FindString(tail); word != "" {
		return strings.ToLower(word)
	}
	statements := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == ';' || c == ':' })
	for i, statement := range statements {
		words := strings.Fields(statement)
		if len(words) == 0 || i == 0 && !template && !strings.HasPrefix(text, "\n") && !strings.HasPrefix(text, ";") {
			continue
		}
		if template && canBecomeAnother(words[0]) {
			return words[0]
		}
	}
	return ""
}

// readsFiles finds the words wherever they stand: a comment can come before one,
// or seem to begin inside of a string.
var readsFiles = regexp.MustCompile(`(?i)\.(incbin|include|macro|irp|irpc|irep|irepc|rept?|altmacro|mri)\b`)

var (
	alternatives = regexp.MustCompile(`^\{.*(\||%[A-Za-z])`)
	replaced     = regexp.MustCompile(`^(%|\{*\..*[%{|])`)
)

// canBecomeAnother recognises words with operands or alternatives in them that
// could end up as a directive. Device code that the host never assembles may
// begin a line with operands in braces.
func canBecomeAnother(word string) bool {
	word = strings.ReplaceAll(word, "%=", "")
	return alternatives.MatchString(word) || replaced.MatchString(word)
}

// unescape is what a string literal holds. What is odd stays as it is.
func unescape(literal string) string {
	prefix, body, ok := strings.Cut(literal, `"`)
	if !ok {
		return literal
	}
	if strings.HasSuffix(prefix, "R") {
		_, body, _ = strings.Cut(body, "(")
		return body
	}
	var out strings.Builder
	body = strings.TrimSuffix(body, `"`)
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			out.WriteByte(body[i])
			continue
		}
		i++
		base, digits := 8, "01234567"
		end := i
		if body[i] == 'x' {
			base, digits, i, end = 16, "0123456789abcdefABCDEF", i+1, i+1
		}
		for end < len(body) && strings.IndexByte(digits, body[end]) >= 0 && (base == 16 || end < i+3) {
			end++
		}
		if n, err := strconv.ParseUint(body[i:end], base, 32); err == nil {
			out.WriteByte(byte(n))
			i = end - 1
		} else if at := strings.IndexByte("ntrfv", body[i]); at >= 0 {
			out.WriteByte("\n\t\r\f\v"[at])
		} else {
			out.WriteByte(body[i])
		}
	}
	return out.String()
}
