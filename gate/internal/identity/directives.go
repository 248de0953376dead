package identity

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Source is what the preprocessor's directives of one file say. They decide
// what the headers of the system turn into, which no identity holds otherwise.
type Source struct {
	Directives string   // hash over their tokens, in their order
	Looks      []string // names that #include and __has_include look for
	Computed   bool     // a macro makes such a name
}

// ReadSource reads one file. The name is for messages only.
func ReadSource(data []byte, name string) (*Source, error) {
	x := newLexer(data)
	x.lenient = true
	s, out := &Source{}, newRecipe(directiveRecipe)
	var words []token
	for {
		k, text := x.next()
		switch {
		case k == kindEnd && x.err != nil:
			e := x.err.(*formatError)
			e.File = name
			return nil, e
		case k == kindEnd:
			s.Directives = out.hex()
			return s, nil
		case k == kindHash:
			words = words[:0]
		case k == kindDirectiveEnd:
			s.look(words)
			words = append(words, token{k, nil})
			for _, w := range words {
				out.token(w.kind, w.text)
			}
		case x.directive:
			words = append(words, token{k, text})
		}
	}
}

// look takes the names out of one directive.
func (s *Source) look(words []token) {
	for i, w := range words {
		switch {
		case w.kind != kindIdentifier:
		case i == 0 && (w.is("include") || w.is("include_next") || w.is("import")):
			s.name(words[1:])
		case i > 0 && strings.HasPrefix(string(w.text), "__has_include") && i+1 < len(words) && words[i+1].is("("):
			s.name(words[i+2:])
		}
	}
}

func (s *Source) name(words []token) {
	if len(words) > 0 && words[0].kind == kindString {
		if name, ok := quotedContent(words[0].text); ok {
			s.Looks = append(s.Looks, string(name))
			return
		}
	}
	end := slices.IndexFunc(words, func(w token) bool { return strings.HasPrefix(string(w.text), ">") })
	if len(words) == 0 || !words[0].is("<") || end < 0 {
		s.Computed = true
		return
	}
	var name strings.Builder
	for _, w := range words[1:end] {
		name.Write(w.text)
	}
	s.Looks = append(s.Looks, name.String())
}

const blank = `(?:[ \t\r\v\f]|/\*(?s:.*?)\*/)*`

var (
	// lineDirective finds #line and the compiler's own form of it wherever a
	// line could be one, in a comment too.
	lineDirective = regexp.MustCompile(`(?m)^(?:.*\*/)?` + blank + `(?:#|%:)` + blank + `(line\b|[0-9]+` + blank + `")(.*)$`)
	lineOperand   = regexp.MustCompile(`^` + blank + `[0-9']+` + blank + `(?:"([^"\\]*)"` + blank + `)?(?://.*)?$`)
)

// CheckLines refuses what would make tokens of a project's file count as those
// of another: a #line that names a file of the system, or that a macro makes,
// the compiler's own line markers, and trigraphs, with which both can be spelled.
func CheckLines(data []byte, name string, isSystem func(file string) bool) error {
	if !bytes.ContainsAny(data, "#%?") {
		return nil
	}
	refuse := func(text []byte, at int, msg string) error {
		return &SourceError{File: name, Line: 1 + newlines(text[:at]), Msg: msg}
	}
	for _, trigraph := range []string{"??=", "??/"} {
		if at := bytes.Index(data, []byte(trigraph)); at >= 0 {
			return refuse(data, at, "the trigraph "+trigraph+" can hide a directive")
		}
	}
	joined := joinLines(data)
	for _, m := range lineDirective.FindAllSubmatchIndex(joined, -1) {
		word, rest := joined[m[2]:m[3]], joined[m[4]:m[5]]
		operand := lineOperand.FindSubmatch(rest)
		switch {
		case !bytes.Equal(word, []byte("line")):
			return refuse(joined, m[2], "a line marker of the compiler's own is not for sources")
		case operand == nil:
			return refuse(joined, m[2], "#line takes a number and a name here, without macros")
		case len(operand[1]) > 0 && isSystem(string(operand[1])):
			return refuse(joined, m[2], fmt.Sprintf("#line moves what follows into %s, a file of the system, which no identity holds", operand[1]))
		}
	}
	return nil
}

// joinLines removes splices, and puts the line ends that they hold after the
// line, so that what follows keeps its number.
func joinLines(data []byte) []byte {
	out, owed := make([]byte, 0, len(data)), 0
	x := lexer{data: data}
	for i := 0; i < len(data); i++ {
		if n := x.splice(i); n > 0 {
			owed++
			i += n - 1
			continue
		}
		out = append(out, data[i])
		for ; data[i] == '\n' && owed > 0; owed-- {
			out = append(out, '\n')
		}
	}
	return out
}
