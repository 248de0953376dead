package identity

import (
	"bytes"
	"path"
	"strconv"
	"strings"
)

// stubSuffix ends the name of the file that holds the launch stubs; the host intermediate includes it at its end.
const stubSuffix = ".cudafe1.stub.c"

// Replacements for what says where a file lies and not what it does. No token of C++ looks like them.
const (
	unitName   = "<unit>"
	stubName   = "<stub>"
	lineNumber = "<line>"
)

// token hashes one token of the project. The literals that __FILE__ and __LINE__ leave are replaced: a string that
// is the name of the current file, and beside it, as in `"x.cu", 25` or `25, "x.cu"`, the number of the current line.
// A number that is not both beside the name and equal to the line stays what it is, so a block size is never lost.
func (h *hostHasher) token(k kind, text []byte) {
	isFile := k == kindString && h.isCurrentFile(text)
	if len(h.held) > 0 && h.hold(k, text, isFile) {
		return
	}
	isLine := k == kindNumber && h.isCurrentLine(text)
	switch {
	case isFile:
		h.recipe.token(k, []byte(h.shortName()))
		h.after = 1
		return
	case h.after == 1 && len(text) == 1 && text[0] == ',':
		h.after = 2
		h.recipe.token(k, text)
		return
	case h.after == 2 && isLine:
		h.recipe.token(k, []byte(lineNumber))
	case isLine:
		h.held = append(h.held, token{k, text})
	default:
		h.recipe.token(k, h.normalise(k, text))
	}
	h.after = 0
}

// hold keeps a line number and the comma behind it until the next token says what they are; false says that they are
// released and the token is still to be hashed.
func (h *hostHasher) hold(k kind, text []byte, isFile bool) bool {
	if len(h.held) == 1 && len(text) == 1 && text[0] == ',' {
		h.held = append(h.held, token{k, text})
		return true
	}
	if len(h.held) == 2 && isFile {
		h.held[0].text = []byte(lineNumber)
	}
	h.release()
	return false
}

func (h *hostHasher) release() {
	for _, t := range h.held {
		h.recipe.token(t.kind, t.text)
	}
	h.held = h.held[:0]
}

func (h *hostHasher) isCurrentFile(literal []byte) bool {
	content, ok := quotedContent(literal)
	return ok && len(content) > 0 && string(content) == h.file
}

// shortName names the current file without its folder; the translation unit's own name, and the one that nvcc makes
// of it for the stubs, have no part in an id.
func (h *hostHasher) shortName() string {
	switch {
	case h.file == h.unit:
		return unitName
	case strings.HasSuffix(h.file, stubSuffix):
		return stubName
	}
	return path.Base(h.file)
}

func (h *hostHasher) isCurrentLine(text []byte) bool {
	var buf [20]byte
	return bytes.Equal(text, strconv.AppendInt(buf[:0], int64(h.line), 10))
}

func (h *hostHasher) normalise(k kind, text []byte) []byte {
	if k == kindIdentifier && text[0] == '_' {
		return h.identifier(text)
	}
	return text
}

// identifier takes hashes and counters of the compiler out of a name. __T<n>, the type of a closure, counts the
// closures of the system's headers too.
func (h *hostHasher) identifier(text []byte) []byte {
	if number, ok := bytes.CutPrefix(text, []byte("__T")); ok && isNumber(number) {
		n, seen := h.closures[string(number)]
		if !seen {
			n = len(h.closures)
			h.closures[string(number)] = n
		}
		return strconv.AppendInt([]byte("<closure>"), int64(n), 10)
	}
	if len(text) < len(internalPrefix) || !bytes.Contains(text, []byte("_GLOBAL__N_")) &&
		!bytes.Contains(text, []byte(internalPrefix)) && !bytes.Contains(text, []byte(staticPrefix)) {
		return text
	}
	return []byte(stripModule(string(text)))
}

func isNumber(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}
