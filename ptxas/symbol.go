package ptxas

import (
	"bytes"
	"fmt"
	"hash/maphash"
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

// symbols are the names and keys of a log.
type symbols struct {
	at    map[string]*symbol
	spare []symbol // allocated, not yet used
}

// add keeps a name and its key.
func (s *symbols) add(name, key string) *symbol {
	sym := s.newSymbol(name)
	if key != name {
		if sym.key = s.at[key]; sym.key == nil {
			sym.key = s.newSymbol(key)
		}
	}
	return sym
}

func (s *symbols) newSymbol(name string) *symbol {
	if len(s.spare) == 0 {
		s.spare = make([]symbol, 64)
	}
	sym := &s.spare[0]
	s.spare = s.spare[1:]
	sym.name, sym.key, sym.seen = name, sym, sym.room[:0]
	s.at[name] = sym
	return sym
}

// A label is a function's name and key.
type label struct{ name, key string }

// label returns a copy of a name, and its key.
func (p *parser) label(name []byte) (label, error) {
	if len(name) == 0 || len(name) > maxName {
		return label{}, p.syntaxError(fmt.Sprintf("name of a function has %d bytes", len(name)), "")
	}
	if bytes.HasPrefix(name, []byte("_Z")) && bytes.IndexByte(name, ' ') >= 0 {
		return label{}, p.scrambled("a mangled name holds a blank")
	}
	if len(name) > maxCached {
		s := string(name)
		return label{s, Key(s)}, p.keep(s)
	}
	slot := &p.labels.slots[maphash.Bytes(p.labels.seed, name)%uint64(len(p.labels.slots))]
	if slot.name != string(name) {
		slot.name = p.labels.names.add(name)
		slot.key = Key(slot.name)
	}
	return *slot, p.keep(slot.name)
}

// A labelCache remembers the labels of recent names, because compilers repeat
// them: for each architecture, and for each entry that calls a function.
type labelCache struct {
	seed  maphash.Seed
	slots [1 << 10]label
	names namePool
}

const maxCached = 4 << 10 // bytes of a name that is remembered

// A namePool copies short strings into few allocations.
type namePool struct{ b strings.Builder }

func (p *namePool) add(s []byte) string {
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
		name = s[1 : len(s)-1]
		return name, nil, bytes.IndexByte(name, '\'') < 0 // a quote is of an architecture that has lost something
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
