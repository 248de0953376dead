package ptxas

import (
	"bytes"
	"fmt"
	"io"
)

// A resourceParser is the state between two lines of cuobjdump -res-usage.
type resourceParser struct {
	*parser
	function  ResourceFunction // the latest
	banks     []ConstantBank   // room for those of the next functions
	current   []byte           // architecture of the section
	used      bool             // it has had its section
	pending   bool             // the function waits for its figures
	complete  bool             // it is to be taken
	inside    bool             // "Resource usage:" was seen since the last section began
	sections  int              // how many "Resource usage:" were seen
	functions int              // so far
	loose     []byte           // name of the function that the line before named outside a section
}

// take returns the latest function once it is complete.
func (p *resourceParser) take() (*ResourceFunction, bool) {
	if !p.complete {
		return nil, false
	}
	p.complete = false
	return &p.function, true
}

func (p *resourceParser) parseLine(line []byte, torn bool) error {
	before := p.loose
	p.loose = p.loose[:0]
	if len(line) == 0 {
		return nil
	}
	switch line[0] { // most lines are of functions and figures
	case 'F':
		if rest, ok := cutWord(line, "Function "); ok && p.inside {
			return p.begun(rest)
		}
		if _, ok := cutWord(line, "Fatbin "); ok {
			p.inside, p.current = false, nil
			return p.settled()
		}
	case 'R':
		if _, ok := cutWord(line, "REG:"); ok && p.inside {
			return p.figures(line, torn)
		}
		if string(line) == "Resource usage:" {
			return p.begin()
		}
	case 'a':
		if rest, ok := cutWord(line, "arch = "); ok {
			return p.arch(rest)
		}
	}
	if p.inside {
		return nil
	}
	return p.outside(line, before, torn)
}

// outside handles a line before "Resource usage:". Texts are passed on without
// that heading; a line of figures right after a function's begins the section,
// since other programs print lines like one of the two.
func (p *resourceParser) outside(line, name []byte, torn bool) error {
	if rest, ok := cutWord(line, "Function "); ok && rest[len(rest)-1] == ':' {
		p.loose = append(p.loose, rest...)
	}
	if _, ok := cutWord(line, "REG:"); !ok || len(name) == 0 {
		return nil
	}
	p.inside, p.used = true, true
	p.line-- // of the function
	err := p.begun(name)
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
	return p.syntaxError(fmt.Sprintf("function %s (line %d) has no figures", shorten(p.function.Name), p.function.Line), "")
}

func (p *resourceParser) arch(name []byte) error {
	if !isArch(name) {
		return p.syntaxError("unreadable architecture", "")
	}
	p.current, p.used = append(p.current[:0], name...), false
	return p.settled()
}

// begun handles "Function NAME:".
func (p *resourceParser) begun(s []byte) error {
	if err := p.settled(); err != nil {
		return err
	}
	if len(s) < 2 || s[len(s)-1] != ':' {
		return p.syntaxError("unreadable function", "")
	}
	p.text = 0
	l, err := p.label(s[:len(s)-1])
	if err != nil {
		return err
	}
	arch, err := p.parser.arch(p.current)
	p.function = ResourceFunction{Arch: arch, Name: l.name, Key: l.key, Line: p.line}
	p.pending = true
	return err
}

// figures handles "REG:48 STACK:0 SHARED:5120 … CONSTANT[0]:548 …".
func (p *resourceParser) figures(s []byte, torn bool) error {
	if !p.pending {
		return p.syntaxError("figures without a function", "")
	}
	f := &p.function
	for len(s) > 0 {
		rest, ok := p.field(f, s)
		if !ok {
			if i := bytes.IndexAny(s, " \t"); i >= 0 {
				s = s[:i]
			}
			return p.syntaxError(fmt.Sprintf("unreadable field %q", shorten(string(s))), "")
		}
		s = rest
	}
	if !f.Registers.Known {
		return p.syntaxError("figures without registers", "")
	}
	if torn {
		if err := p.torn(f); err != nil {
			return err
		}
	}
	p.pending, p.complete = false, true
	p.functions++
	return p.keep(f.Unknown...)
}

// torn handles a line of figures without its end: its last number may lack
// digits, unless it is 0.
func (p *resourceParser) torn(f *ResourceFunction) error {
	if !f.Samplers.Known {
		return p.syntaxError("the text ends inside a line of figures", "")
	}
	if f.Samplers.N > 0 {
		f.Samplers = Count{}
	}
	return nil
}

// field reads one NAME:NUMBER field and the blanks after it; a number that is
// not one, or a field that is there twice, is refused.
func (p *resourceParser) field(f *ResourceFunction, s []byte) (rest []byte, ok bool) {
	c, number := f.figure(s)
	if c == nil {
		return p.otherField(f, s)
	}
	n, rest, ok := cutValue(number)
	if !ok || c.Known {
		return nil, false
	}
	*c = known(n)
	return rest, true
}

// figure returns the Count that a field begins, and what follows its colon; it
// returns nil for the other fields.
func (f *ResourceFunction) figure(s []byte) (c *Count, rest []byte) {
	ok := false
	switch {
	case len(s) < 2:
	case s[0] == 'R':
		rest, ok = cutWord(s, "REG:")
		c = &f.Registers
	case s[0] == 'L':
		rest, ok = cutWord(s, "LOCAL:")
		c = &f.LocalBytes
	case s[0] == 'T':
		rest, ok = cutWord(s, "TEXTURE:")
		c = &f.Textures
	case s[1] == 'T':
		rest, ok = cutWord(s, "STACK:")
		c = &f.StackBytes
	case s[1] == 'H':
		rest, ok = cutWord(s, "SHARED:")
		c = &f.SharedBytes
	case s[1] == 'U':
		rest, ok = cutWord(s, "SURFACE:")
		c = &f.Surfaces
	case s[1] == 'A':
		rest, ok = cutWord(s, "SAMPLER:")
		c = &f.Samplers
	}
	if !ok {
		return nil, nil
	}
	return c, rest
}

// cutValue reads the number of a field and the blanks after it.
func cutValue(s []byte) (n int64, rest []byte, ok bool) {
	n, rest, ok = cutInt(s)
	if len(rest) > 0 {
		ok = ok && (rest[0] == ' ' || rest[0] == '\t')
		rest = trimLeft(rest)
	}
	return n, rest, ok
}

// otherField reads a constant bank or keeps a field as text.
func (p *resourceParser) otherField(f *ResourceFunction, s []byte) (rest []byte, ok bool) {
	if bank, ok := cutWord(s, "CONSTANT["); ok {
		return p.bank(f, bank)
	}
	end := bytes.IndexAny(s, ": \t")
	if end <= 0 || s[end] != ':' {
		return nil, false
	}
	_, rest, ok = cutValue(s[end+1:])
	f.Unknown = append(f.Unknown, string(trimRight(s[:len(s)-len(rest)])))
	return rest, ok && len(f.Unknown) <= maxUnknown
}

// bank keeps the size of a constant bank; s is what follows "CONSTANT[". The
// banks of many functions share one allocation.
func (p *resourceParser) bank(f *ResourceFunction, s []byte) (rest []byte, ok bool) {
	bank, s, ok := cutFigure(s, "]:")
	if !ok || bank >= 1000 || f.ConstantBytes(int(bank)).Known {
		return nil, false
	}
	size, rest, ok := cutValue(s)
	if f.Constant == nil {
		const room = 2
		if len(p.banks) < room {
			p.banks = make([]ConstantBank, 128*room)
		}
		f.Constant, p.banks = p.banks[:0:room], p.banks[room:]
	}
	f.Constant = append(f.Constant, ConstantBank{Bank: int(bank), Bytes: size})
	return rest, ok
}

// finish ends the text.
func (p *resourceParser) finish() error {
	if err := p.settled(); err != nil {
		return err
	}
	if p.functions > 0 {
		return io.EOF
	}
	e := &NoEntriesError{File: p.file, Reason: NoResourceUsage, Units: p.sections}
	if p.sections > 0 {
		e.Reason = NoKernels
	}
	return e
}
