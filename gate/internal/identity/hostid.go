package identity

import (
	"bytes"
	"strconv"
	"strings"
)

// stubSuffix ends the name of the file that holds the launch stubs; the host intermediate includes it at its end.
const stubSuffix = ".cudafe1.stub.c"

// A Unit is what nvcc leaves of one translation unit (--keep).
type Unit struct {
	Host []byte // x.cudafe1.cpp
	Stub []byte // x.cudafe1.stub.c, the functions that launch kernels
}

// HostID returns the identity of a unit's host code: of every token outside the files that isSystem names, as the
// compiler named them, and of the launch stubs.
//
// An intermediate without its generated end is a *formatError: half of a file never has an id. What gate refuses in
// the code is a *SourceError.
func (u Unit) HostID(modules Modules, isSystem func(file string) bool) (string, error) {
	h := newHostHasher(u.Host, modules, isSystem)
	if err := h.run(); err != nil {
		return "", err
	}
	h.lexer = newLexer(u.Stub)
	if err := h.runStub(); err != nil {
		return "", err
	}
	if h.placed {
		h.recipe.bytes(h.places.sum())
	}
	return h.recipe.hex(), nil
}

// A hostHasher reads the intermediate: line markers choose the files that count, #if 0 holds what only the device
// compiles, everything else is hashed token by token.
type hostHasher struct {
	*lexer
	recipe   *recipe
	modules  Modules
	isSystem func(string) bool
	system   map[string]bool // answers of isSystem
	unit     string          // the translation unit, as the first marker names it
	file     string          // of the current token
	skip     bool            // the file is the system's
	closures map[string]int  // nvcc's names of closure types, in the order of appearance
	words    []token         // of the directive being read
	closed   bool            // the generated end was seen
	places   *recipe         // where each token stands
	placed   bool            // the code asks where it stands
	text     strings.Builder // of the string literals just seen, which the compiler joins
	asm      bool            // they are an assembler's template
}

type token struct {
	kind kind
	text []byte
}

func newHostHasher(data []byte, modules Modules, isSystem func(string) bool) *hostHasher {
	return &hostHasher{
		lexer:    newLexer(data),
		recipe:   newRecipe(hostRecipe),
		places:   newRecipe("places"),
		modules:  modules,
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
	return nil
}

// runStub hashes all of the launch stubs but their line markers.
func (h *hostHasher) runStub() error {
	h.skip = false
	for {
		switch k, text := h.next(); k {
		case kindEnd:
			return h.err
		case kindHash:
			h.readWords()
			if !isMarker(h.words) {
				h.directive()
			}
		default:
			h.token(k, text)
		}
	}
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

func (h *hostHasher) readWords() {
	h.words = h.words[:0]
	for {
		k, text := h.next()
		if k == kindEnd || k == kindDirectiveEnd {
			return
		}
		h.words = append(h.words, token{k, text})
	}
}

// readDirective reads the rest of a directive's line and does what it says.
func (h *hostHasher) readDirective() {
	h.readWords()
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
		h.directive()
	}
}

func (h *hostHasher) directive() {
	h.token(kindHash, nil)
	for _, t := range h.words {
		h.token(t.kind, t.text)
	}
	h.token(kindDirectiveEnd, nil)
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

// directiveWord returns the word after the # at the start of line, at most 8 letters of it.
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

// token hashes one token of the project.
func (h *hostHasher) token(k kind, text []byte) {
	h.checkStrings(k, text)
	switch {
	case k == kindString && h.isStub(text):
		text = []byte(stubSuffix)
	case k == kindIdentifier:
		h.placed = h.placed || asksForPlace(text)
		text = h.identifier(text)
	}
	h.recipe.token(k, text)
	h.places.number(uint64(h.line))
	h.places.text(h.file)
}

// isStub recognises the name that nvcc makes of the source's, where the stubs are included.
func (h *hostHasher) isStub(literal []byte) bool {
	content, ok := quotedContent(literal)
	return ok && strings.HasSuffix(h.file, stubSuffix) && string(content) == h.file
}

// asksForPlace recognises what the compiler turns into a line or a file only after this intermediate.
func asksForPlace(name []byte) bool {
	switch string(name) {
	case "__builtin_LINE", "__builtin_FILE", "__builtin_COLUMN", "__builtin_source_location", "source_location":
		return true
	}
	return false
}

// identifier takes the names of modules and a counter of the compiler out of a name. __T<n>, the type of a closure,
// counts the closures of the system's headers too; each keeps a name of its own.
func (h *hostHasher) identifier(text []byte) []byte {
	if text[0] != '_' {
		return text
	}
	if number, ok := bytes.CutPrefix(text, []byte("__T")); ok && isNumber(number) {
		n, seen := h.closures[string(number)]
		if !seen {
			n = len(h.closures)
			h.closures[string(number)] = n
		}
		return strconv.AppendInt([]byte("<closure>"), int64(n), 10)
	}
	return []byte(h.modules.normalise(string(text)))
}

func isNumber(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
