package ptxas

import (
	"bytes"
	"fmt"
	"io"
)

// A ResourceUsage is the text of cuobjdump -res-usage (or
// --dump-resource-usage) for an object file, a library or a cubin. It needs no
// new compilation, and knows nothing of spills.
type ResourceUsage struct {
	Functions []ResourceFunction // in text order
}

// A ResourceFunction is one kernel or separately compiled device function.
// Sizes are bytes.
type ResourceFunction struct {
	Arch       string // "sm_90"; empty for a bare cubin, whose text does not say
	Name       string // as printed, usually mangled
	Key        string // Name as [Key] normalises it
	Occurrence int    // 1 for the first function with this Arch and Key
	Line       int

	Registers  Count
	StackBytes Count
	// SharedBytes is the SHARED figure as printed. From sm_90 on it can
	// contain the kilobyte that the driver reserves; see
	// [ResourceFunction.StaticSharedBytes].
	SharedBytes Count
	LocalBytes  Count
	Textures    Count
	Surfaces    Count
	Samplers    Count
	Constant    []ConstantBank

	Unknown []string // fields that this package does not know, as text
}

// ConstantBytes returns the use of a constant bank.
func (f *ResourceFunction) ConstantBytes(bank int) Count { return bankBytes(f.Constant, bank) }

// StaticSharedBytes returns the shared memory that the kernel declares, which
// is what ptxas -v prints as smem. From sm_90 on cuobjdump adds the 1,024
// reserved bytes, in some builds only to kernels that use shared memory: 0 is
// printed as 0 or 1,024, and n > 0 as n + 1,024. Without an architecture the
// figure is unknown unless it is 0.
func (f *ResourceFunction) StaticSharedBytes() Count {
	s := f.SharedBytes
	if !s.Known || s.N == 0 {
		return s
	}
	d, err := Device(f.Arch)
	switch {
	case err != nil:
		return Count{}
	case d.ClusterBlocks == 0: // below sm_90
		return s
	case s.N < int64(d.SharedReservedBytes):
		return Count{}
	}
	return known(s.N - int64(d.SharedReservedBytes))
}

// ParseResourceUsage reads the text of cuobjdump -res-usage. The name is for
// messages only. Text in which no function is found is a *NoEntriesError, text
// that cannot be read a *SyntaxError.
func ParseResourceUsage(r io.Reader, name string) (*ResourceUsage, error) {
	p := resourceParser{parser: newParser(name)}
	lines := newLineReader(r)
	for {
		line, err := lines.next()
		p.line = lines.number
		if err == io.EOF {
			return p.finish()
		}
		if err != nil {
			return nil, p.readError(err)
		}
		if err := p.parseLine(trimLeft(trimRight(line)), lines.torn); err != nil {
			return nil, err
		}
	}
}

type resourceParser struct {
	*parser
	functions chunked[ResourceFunction]
	current   []byte // architecture of the section
	pending   bool   // the last function waits for its figures
	inside    bool   // "Resource usage:" was seen since the last section began
	section   bool   // any "Resource usage:" was seen
}

func (p *resourceParser) parseLine(line []byte, torn bool) error {
	if rest, ok := cutWord(line, "arch = "); ok {
		return p.arch(rest)
	}
	if string(line) == "Resource usage:" {
		p.inside, p.section = true, true
		return p.settled()
	}
	if bytes.HasPrefix(line, []byte("Fatbin ")) {
		p.inside = false
		return p.settled()
	}
	if !p.inside {
		return nil
	}
	if rest, ok := cutWord(line, "Function "); ok {
		return p.function(rest)
	}
	if _, ok := cutWord(line, "REG:"); ok {
		return p.figures(line, torn)
	}
	return nil
}

// settled refuses a function without figures.
func (p *resourceParser) settled() error {
	if !p.pending {
		return nil
	}
	f := p.functions.at(p.functions.n - 1)
	return p.syntaxError(fmt.Sprintf("function %s (line %d) has no figures", shorten(f.Name), f.Line), "")
}

func (p *resourceParser) arch(name []byte) error {
	if !isArch(name) {
		return p.syntaxError("unreadable architecture", "")
	}
	p.current = append(p.current[:0], name...)
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
	f := p.functions.add()
	f.Arch, f.Name, f.Key, f.Line = p.parser.arch(p.current), sym.name, sym.key, p.line
	f.Occurrence = sym.seen.next("", f.Arch)
	p.pending = true
	return nil
}

// figures handles "REG:48 STACK:0 SHARED:5120 … CONSTANT[0]:548 …".
func (p *resourceParser) figures(s []byte, torn bool) error {
	if !p.pending {
		return p.syntaxError("figures without a function", "")
	}
	p.pending = false
	f := p.functions.at(p.functions.n - 1)
	for field := range bytes.FieldsSeq(s) {
		if !f.add(field) {
			return p.syntaxError(fmt.Sprintf("unreadable field %q", shorten(string(field))), "")
		}
	}
	if !f.Registers.Known {
		return p.syntaxError("figures without registers", "")
	}
	if !f.Samplers.Known && torn {
		return p.syntaxError("the text ends inside a line of figures", "")
	}
	return nil
}

// add reads one NAME:NUMBER field; a number that is not one, or a field that
// is there twice, is refused.
func (f *ResourceFunction) add(field []byte) bool {
	i := bytes.IndexByte(field, ':')
	if i <= 0 {
		return false
	}
	n, rest, ok := cutInt(field[i+1:])
	if !ok || len(rest) > 0 {
		return false
	}
	name := field[:i]
	if c := f.field(string(name)); c != nil {
		if c.Known {
			return false
		}
		*c = known(n)
		return true
	}
	if rest, ok := cutWord(name, "CONSTANT["); ok {
		bank, rest, ok := cutInt(rest)
		if !ok || string(rest) != "]" || bank >= 1000 || f.ConstantBytes(int(bank)).Known {
			return false
		}
		f.Constant = append(f.Constant, ConstantBank{Bank: int(bank), Bytes: n})
		return true
	}
	f.Unknown = append(f.Unknown, string(field))
	return len(f.Unknown) <= maxUnknown
}

func (f *ResourceFunction) field(name string) *Count {
	switch name {
	case "REG":
		return &f.Registers
	case "STACK":
		return &f.StackBytes
	case "SHARED":
		return &f.SharedBytes
	case "LOCAL":
		return &f.LocalBytes
	case "TEXTURE":
		return &f.Textures
	case "SURFACE":
		return &f.Surfaces
	case "SAMPLER":
		return &f.Samplers
	}
	return nil
}

func (p *resourceParser) finish() (*ResourceUsage, error) {
	if err := p.settled(); err != nil {
		return nil, err
	}
	if p.functions.n > 0 {
		return &ResourceUsage{Functions: p.functions.flatten()}, nil
	}
	e := &NoEntriesError{File: p.file, Reason: NoResourceUsage}
	if p.section {
		e.Reason = NoKernels
	}
	return nil, e
}
