package ptxas

import (
	"bytes"
	"fmt"
)

// A resourceParser is the state between two lines of cuobjdump -res-usage.
type resourceParser struct {
	*parser
	records  chunked[resourceRecord]
	banks    chunked[ConstantBank] // of all records, in their order
	unknown  []string              // fields of all records, in their order
	current  []byte                // architecture of the section
	used     bool                  // it has had its section
	pending  bool                  // the last record waits for its figures
	inside   bool                  // "Resource usage:" was seen since the last section began
	sections int                   // how many "Resource usage:" were seen
	loose    []byte                // name of the function that the line before named outside a section
}

// A resourceRecord is a function as it is read. A ResourceFunction is larger
// than its text; the functions are made once their number is known, and until
// then they are kept in half the size.
type resourceRecord struct {
	symbol         *symbol
	arch           string
	line           int
	occurrence     int32
	banks, unknown uint16            // how many of the parser's are this function's
	figures        [numFigures]int64 // one more than printed; 0 is unknown
}

// The figures that have a field of their own, in the order of print.
const (
	figureRegisters = iota
	figureStack
	figureShared
	figureLocal
	figureTextures
	figureSurfaces
	figureSamplers
	numFigures
)

func (p *resourceParser) parseLine(line []byte, torn bool) error {
	if rest, ok := cutWord(line, "arch = "); ok {
		return p.arch(rest)
	}
	if string(line) == "Resource usage:" {
		return p.begin()
	}
	if bytes.HasPrefix(line, []byte("Fatbin ")) {
		p.inside, p.current = false, nil
		return p.settled()
	}
	if !p.inside {
		return p.outside(line, torn)
	}
	if rest, ok := cutWord(line, "Function "); ok {
		return p.function(rest)
	}
	if _, ok := cutWord(line, "REG:"); ok {
		return p.figures(line, torn)
	}
	return nil
}

// outside handles a line before "Resource usage:". Texts are passed on without
// that heading; a line of figures right after a function's begins the section,
// since other programs print lines like one of the two.
func (p *resourceParser) outside(line []byte, torn bool) error {
	name := p.loose
	p.loose = p.loose[:0]
	if rest, ok := cutWord(line, "Function "); ok && rest[len(rest)-1] == ':' {
		p.loose = append(p.loose, rest...)
	}
	if _, ok := cutWord(line, "REG:"); !ok || len(name) == 0 {
		return nil
	}
	p.inside, p.used = true, true
	p.line-- // of the function
	err := p.function(name)
	p.line++
	if err != nil {
		return err
	}
	return p.figures(line, torn)
}

// begin begins a section. Without a line of its own it does not have the
// architecture of the section before: the text of a bare cubin does not say.
func (p *resourceParser) begin() error {
	if p.used {
		p.current = nil
	}
	p.inside, p.used = true, true
	p.sections++
	return p.settled()
}

// settled refuses a function without figures.
func (p *resourceParser) settled() error {
	if !p.pending {
		return nil
	}
	r := p.records.at(p.records.n - 1)
	return p.syntaxError(fmt.Sprintf("function %s (line %d) has no figures", shorten(r.symbol.name), r.line), "")
}

func (p *resourceParser) arch(name []byte) error {
	if !isArch(name) {
		return p.syntaxError("unreadable architecture", "")
	}
	p.current, p.used = append(p.current[:0], name...), false
	return p.settled()
}

// function handles "Function NAME:".
func (p *resourceParser) function(s []byte) error {
	if err := p.settled(); err != nil {
		return err
	}
	if len(s) < 2 || s[len(s)-1] != ':' {
		return p.syntaxError("unreadable function", "")
	}
	sym, err := p.symbol(s[:len(s)-1])
	if err != nil {
		return err
	}
	if err := p.count(); err != nil {
		return err
	}
	arch, err := p.parser.arch(p.current)
	if err != nil {
		return err
	}
	r := p.records.add()
	r.symbol, r.arch, r.line = sym, arch, p.line
	r.occurrence = int32(sym.key.next("", arch))
	p.pending = true
	return nil
}

// figures handles "REG:48 STACK:0 SHARED:5120 … CONSTANT[0]:548 …".
func (p *resourceParser) figures(s []byte, torn bool) error {
	if !p.pending {
		return p.syntaxError("figures without a function", "")
	}
	p.pending = false
	r := p.records.at(p.records.n - 1)
	for len(s) > 0 {
		rest, ok := p.field(r, s)
		if !ok {
			if i := bytes.IndexAny(s, " \t"); i >= 0 {
				s = s[:i]
			}
			return p.syntaxError(fmt.Sprintf("unreadable field %q", shorten(string(s))), "")
		}
		s = rest
	}
	if r.figures[figureRegisters] == 0 {
		return p.syntaxError("figures without registers", "")
	}
	if torn {
		if err := p.torn(r); err != nil {
			return err
		}
	}
	return p.keep(p.unknown[len(p.unknown)-int(r.unknown):]...)
}

// torn handles a line of figures without its end: its last number may lack
// digits, unless it is 0.
func (p *resourceParser) torn(r *resourceRecord) error {
	last := &r.figures[figureSamplers]
	if *last == 0 {
		return p.syntaxError("the text ends inside a line of figures", "")
	}
	if *last > 1 {
		*last = 0
	}
	return nil
}

// field reads one NAME:NUMBER field and the blanks behind it; a number that is
// not one, or a field that is there twice, is refused.
func (p *resourceParser) field(r *resourceRecord, s []byte) (rest []byte, ok bool) {
	end := 0
	for end < len(s) && s[end] != ':' && s[end] > ' ' {
		end++
	}
	if end == 0 || end == len(s) || s[end] != ':' {
		return nil, false
	}
	name := s[:end]
	n, rest, ok := cutInt(s[end+1:])
	field := s[:len(s)-len(rest)]
	if rest = trimLeft(rest); !ok || (len(rest) > 0 && len(field)+len(rest) == len(s)) {
		return nil, false
	}
	if i := figureIndex(name); i < numFigures {
		twice := r.figures[i] != 0
		r.figures[i] = n + 1
		return rest, !twice
	}
	if bank, ok := cutWord(name, "CONSTANT["); ok {
		return rest, p.bank(r, bank, n)
	}
	p.unknown = append(p.unknown, string(field))
	r.unknown++
	return rest, r.unknown <= maxUnknown
}

// figureIndex returns numFigures for a name that is none of the figures'.
func figureIndex(name []byte) int {
	switch string(name) {
	case "REG":
		return figureRegisters
	case "STACK":
		return figureStack
	case "SHARED":
		return figureShared
	case "LOCAL":
		return figureLocal
	case "TEXTURE":
		return figureTextures
	case "SURFACE":
		return figureSurfaces
	case "SAMPLER":
		return figureSamplers
	}
	return numFigures
}

// bank keeps the size of a constant bank; s is what follows "CONSTANT[".
func (p *resourceParser) bank(r *resourceRecord, s []byte, size int64) bool {
	bank, s, ok := cutInt(s)
	if !ok || string(s) != "]" || bank >= 1000 {
		return false
	}
	for i := range int(r.banks) {
		if p.banks.at(p.banks.n-1-i).Bank == int(bank) {
			return false
		}
	}
	*p.banks.add() = ConstantBank{Bank: int(bank), Bytes: size}
	r.banks++
	return true
}

// functions makes the functions of the records.
func (p *resourceParser) functions() []ResourceFunction {
	list := make([]ResourceFunction, p.records.n)
	banks, unknown := p.banks.flatten(), p.unknown
	for i := range list {
		f, r := &list[i], p.records.at(i)
		f.Arch, f.Name, f.Key, f.Occurrence, f.Line = r.arch, r.symbol.name, r.symbol.key.name, int(r.occurrence), r.line
		for i, c := range []*Count{&f.Registers, &f.StackBytes, &f.SharedBytes, &f.LocalBytes, &f.Textures, &f.Surfaces, &f.Samplers} {
			if n := r.figures[i]; n > 0 {
				*c = known(n - 1)
			}
		}
		if n := r.banks; n > 0 {
			f.Constant, banks = banks[:n:n], banks[n:]
		}
		if n := r.unknown; n > 0 {
			f.Unknown, unknown = unknown[:n:n], unknown[n:]
		}
	}
	return list
}

func (p *resourceParser) finish() (*ResourceUsage, error) {
	if err := p.settled(); err != nil {
		return nil, err
	}
	if p.records.n > 0 {
		return &ResourceUsage{Functions: p.functions()}, nil
	}
	e := &NoEntriesError{File: p.file, Reason: NoResourceUsage, Units: p.sections}
	if p.sections > 0 {
		e.Reason = NoKernels
	}
	return nil, e
}
