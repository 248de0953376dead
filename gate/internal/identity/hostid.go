package identity

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxSourceBytes bounds a host intermediate or a source file. The C++ headers that CUTLASS needs come to some 20 MB.
const maxSourceBytes = 256 << 20

// HostID returns the identity of the host code in nvcc's host intermediate (x.cudafe1.cpp, kept by --keep). isSystem
// says of a file, named as the compiler named it, whether it belongs to the toolkit or the system; see SystemDirs.
//
// An intermediate without its generated end is a *formatError: half of a file never has an id.
func HostID(r io.Reader, isSystem func(file string) bool) (string, error) {
	data, err := readSource(r, "")
	if err != nil {
		return "", err
	}
	h := newHostHasher(data, isSystem)
	if err := h.run(); err != nil {
		return "", err
	}
	return h.recipe.hex(), nil
}

func readSource(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSourceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading source: %w", err)
	}
	if len(data) > maxSourceBytes {
		return nil, &formatError{File: name, Msg: fmt.Sprintf("source of more than %d bytes", maxSourceBytes)}
	}
	return data, nil
}

// A hostHasher reads the intermediate: line markers choose the files that count, #if 0 holds what only the device
// compiles, everything else is hashed token by token.
type hostHasher struct {
	*lexer
	recipe   *recipe
	isSystem func(string) bool
	system   map[string]bool // answers of isSystem
	unit     string          // the translation unit, as the first marker names it
	file     string          // of the current token
	skip     bool            // the file is the system's
	closures map[string]int  // nvcc's names of closure types, in the order of appearance
	words    []token         // of the directive being read
	held     []token         // a line number that may stand before the file's name
	after    int             // tokens of `"file" ,` just seen
	closed   bool            // the generated end was seen
}

type token struct {
	kind kind
	text []byte
}

func newHostHasher(data []byte, isSystem func(string) bool) *hostHasher {
	return &hostHasher{
		lexer:    newLexer(data),
		recipe:   newRecipe(hostRecipe),
		isSystem: isSystem,
		system:   map[string]bool{},
		closures: map[string]int{},
	}
}

func (h *hostHasher) run() error {
	for !h.closed {
		if h.skip && h.lineStart {
			h.skipSystem()
		}
		switch k, text := h.next(); k {
		case kindEnd:
			if h.err == nil {
				h.fail("host intermediate without its end")
			}
			return h.err
		case kindHash:
			h.readDirective()
		default:
			if !h.skip {
				h.token(k, text)
			}
		}
		if h.err != nil {
			return h.err
		}
	}
	h.release()
	return nil
}

// skipSystem moves to the next directive that can matter. Most lines of a system header's part are text or a marker
// that gives a line only, so both are passed without being cut into tokens.
func (h *hostHasher) skipSystem() {
	i := h.pos
	for {
		if i >= len(h.data) || h.data[i] != '#' {
			at := bytes.Index(h.data[i:], []byte("\n#"))
			if at < 0 {
				h.moveTo(len(h.data))
				return
			}
			i += at + 1
		}
		j := i + 1
		for j < len(h.data) && (h.data[j] == ' ' || isDigit(h.data[j])) {
			j++
		}
		if j >= len(h.data) || h.data[j] != '\n' {
			h.moveTo(i)
			return
		}
		i = j + 1
	}
}

func (h *hostHasher) moveTo(i int) {
	h.lineStart = true
	h.line += newlines(h.data[h.pos:i])
	h.pos = i
}

// readDirective reads the rest of a directive's line and does what it says.
func (h *hostHasher) readDirective() {
	h.words = h.words[:0]
	for {
		k, text := h.next()
		if k == kindEnd {
			return
		}
		if k == kindDirectiveEnd {
			break
		}
		h.words = append(h.words, token{k, text})
	}
	w := h.words
	switch {
	case isMarker(w):
		h.marker(w)
	case len(w) == 2 && w[0].is("if") && w[1].is("0"):
		h.skipBlock()
	case len(w) >= 2 && w[0].is("pragma") && w[1].is("GCC") && len(w) > 2 && w[2].is("diagnostic"):
	case len(w) == 2 && w[0].is("undef") && w[1].is("_NV_ANON_NAMESPACE") && strings.HasSuffix(h.file, stubSuffix):
		// What follows with -rdc=true are tables of the kernels' names.
		h.closed = true
	case !h.skip:
		h.token(kindHash, nil)
		for _, t := range w {
			h.token(t.kind, t.text)
		}
		h.token(kindDirectiveEnd, nil)
	}
}

func (t token) is(s string) bool { return string(t.text) == s }

// isMarker recognises # N, # N "file" flags, and #line with the same.
func isMarker(w []token) bool {
	if len(w) > 1 && w[0].is("line") {
		w = w[1:]
	}
	return len(w) > 0 && w[0].kind == kindNumber && (len(w) == 1 || w[1].kind == kindString)
}

func (h *hostHasher) marker(w []token) {
	if w[0].is("line") {
		w = w[1:]
	}
	n, err := strconv.Atoi(string(w[0].text))
	if err != nil {
		h.fail("line marker without a line number")
		return
	}
	h.line = n
	if len(w) == 1 {
		return
	}
	file, ok := quotedContent(w[1].text)
	if !ok {
		h.fail("line marker without a file name")
		return
	}
	h.enter(string(file))
}

func (h *hostHasher) enter(file string) {
	known, ok := h.system[file]
	if !ok {
		known = h.isSystem(file)
		h.system[file] = known
	}
	if h.unit == "" {
		h.unit = file
		if known {
			h.fail("the source file itself counts as a system header")
			return
		}
	}
	h.file, h.skip = file, known
}

// quotedContent returns what an ordinary string literal holds, escapes as written.
func quotedContent(literal []byte) ([]byte, bool) {
	if len(literal) < 2 || literal[0] != '"' {
		return nil, false
	}
	return literal[1 : len(literal)-1], true
}

// skipBlock passes the lines of an #if 0 up to its #endif, or to the #else of which the rest counts. The compiler
// does not follow line markers in there, so neither does this.
func (h *hostHasher) skipBlock() {
	depth := 1
	for i := h.pos; i < len(h.data); {
		if h.data[i] != '#' {
			at := bytes.Index(h.data[i:], []byte("\n#"))
			if at < 0 {
				break
			}
			i += at + 1
		}
		switch word := directiveWord(h.data[i:]); {
		case word == "if" || word == "ifdef" || word == "ifndef":
			depth++
		case word == "endif" && depth > 1:
			depth--
		case word == "endif":
			end := bytes.IndexByte(h.data[i:], '\n')
			if end < 0 {
				end = len(h.data) - i - 1
			}
			h.moveTo(i + end + 1)
			return
		case depth == 1 && (word == "else" || word == "elif"):
			h.moveTo(i)
			return
		}
		i++
	}
	h.fail("#if 0 without its #endif")
}

// directiveWord returns the word behind the # at the start of line, at most 8 letters of it.
func directiveWord(line []byte) string {
	i := 1
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	end := i
	for end < len(line) && end < i+8 && 'a' <= line[end] && line[end] <= 'z' {
		end++
	}
	return string(line[i:end])
}
