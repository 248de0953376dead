package ptxas

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A symbol is a name or a key, kept once.
type symbol struct {
	name string
	key  *symbol        // itself when the name is its own key
	seen []occurrences  // of entries with this key: of keys only
	room [1]occurrences // for seen; most keys have one kind of entry
}

// occurrences count the entries of one key and source for one architecture.
type occurrences struct {
	source Source
	arch   string
	n      int
}

// next counts one more entry of a key and returns its number.
func (s *symbol) next(source Source, arch string) int {
	for i := range s.seen {
		if o := &s.seen[i]; o.source == source && o.arch == arch {
			o.n++
			return o.n
		}
	}
	s.seen = append(s.seen, occurrences{source, arch, 1})
	return 1
}

// symbol returns the kept copy of a name and its key.
func (p *parser) symbol(name []byte) (*symbol, error) {
	if s, ok := p.symbols[string(name)]; ok {
		return s, nil
	}
	if len(name) == 0 || len(name) > maxName {
		return nil, p.syntaxError(fmt.Sprintf("name of a function has %d bytes", len(name)), "")
	}
	s := p.addSymbol(p.names.add(name))
	if key := Key(s.name); key != s.name {
		if s.key = p.symbols[key]; s.key == nil {
			s.key = p.addSymbol(key)
		}
	}
	return s, p.keep(s.name)
}

func (p *parser) addSymbol(name string) *symbol {
	if len(p.spare) == 0 {
		p.spare = make([]symbol, 64)
	}
	s := &p.spare[0]
	p.spare = p.spare[1:]
	s.name, s.key, s.seen = name, s, s.room[:0]
	p.symbols[name] = s
	return s
}

// A stringPool copies short strings into few allocations.
type stringPool struct{ b strings.Builder }

func (p *stringPool) add(s []byte) string {
	const size = 4 << 10
	if p.b.Cap()-p.b.Len() < len(s) {
		p.b.Reset()
		p.b.Grow(max(size, len(s)))
	}
	start := p.b.Len()
	p.b.Write(s)
	return p.b.String()[start:]
}

// arch returns the kept copy of an architecture's name.
func (p *parser) arch(name []byte) (string, error) {
	if string(name) == p.lastArch {
		return p.lastArch, nil
	}
	a, ok := p.archs[string(name)]
	if !ok {
		if len(p.archs) == maxArchs {
			return "", p.syntaxError(fmt.Sprintf("more than %d architectures", maxArchs), "")
		}
		a = string(name)
		p.archs[a] = a
	}
	p.lastArch = a
	return a, nil
}

// splitEntry takes 'NAME' for 'ARCH' apart. A name can hold quotes. Very old
// compilers do not print the architecture.
func splitEntry(s []byte) (name, arch []byte, ok bool) {
	s = trimTail(s)
	if len(s) < 3 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return nil, nil, false
	}
	mark := []byte("' for '")
	i := bytes.LastIndex(s, mark)
	if i < 0 {
		return s[1 : len(s)-1], nil, true
	}
	if i == 0 || i+len(mark) >= len(s) {
		return nil, nil, false
	}
	name, arch = s[1:i], s[i+len(mark):len(s)-1]
	return name, arch, isArch(arch)
}

// linkerName takes "'NAME':" with an optional target apart.
func linkerName(s []byte) (name, arch []byte, ok bool) {
	s, arch, ok = cutTarget(trimTail(s))
	if !ok || len(s) < 4 || s[0] != '\'' || !bytes.HasSuffix(s, []byte("':")) {
		return nil, nil, false
	}
	return s[1 : len(s)-2], arch, true
}

func isLinkerName(s []byte) bool {
	_, _, ok := linkerName(s)
	return ok
}

// shorten makes text of a log fit for a message: short, and without what a
// terminal would obey.
func shorten(s string) string {
	const most = 120
	tail := ""
	if len(s) > most {
		s, tail = s[:most], "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s) + tail
}
