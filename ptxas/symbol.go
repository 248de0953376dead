package ptxas

import (
	"bytes"
	"fmt"
)

// A symbol is a name and its key, kept once.
type symbol struct {
	name, key string
	seen      *occurrences // of the key
}

// occurrences count the entries of one key. A key has few of them.
type occurrences []struct {
	source Source
	arch   string
	n      int
}

// next counts one more entry and returns its number.
func (o *occurrences) next(source Source, arch string) int {
	for i := range *o {
		if x := &(*o)[i]; x.source == source && x.arch == arch {
			x.n++
			return x.n
		}
	}
	*o = append(*o, struct {
		source Source
		arch   string
		n      int
	}{source, arch, 1})
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
	s := &symbol{name: string(name)}
	s.key = Key(s.name)
	if s.seen = p.keys[s.key]; s.seen == nil {
		s.seen = new(occurrences)
		p.keys[s.key] = s.seen
	}
	p.symbols[s.name] = s
	return s, p.keep(len(s.name))
}

func (p *parser) arch(name []byte) string {
	a, ok := p.archs[string(name)]
	if !ok {
		a = string(name)
		p.archs[a] = a
	}
	return a
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
func linkerName(s []byte) ([]byte, bool) {
	s, _, ok := cutTarget(trimTail(s))
	if !ok || len(s) < 4 || s[0] != '\'' || !bytes.HasSuffix(s, []byte("':")) {
		return nil, false
	}
	return s[1 : len(s)-2], true
}

func isLinkerName(s []byte) bool {
	_, ok := linkerName(s)
	return ok
}

// shorten cuts a name for a message.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
