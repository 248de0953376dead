package ptxas

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
)

// A parser is the state between two lines. Records of one compiler process
// come in a fixed order: an entry, its properties, its frame, its usage. What
// breaks the order is refused, because mixed output breaks it.
type parser struct {
	file string
	line int

	unit      []Entry // of the unit that is read; the next one overwrites them
	unitFuncs []Function
	open      int  // index of the entry that waits for its usage, or -1
	last      int  // index of the entry that callees belong to, or -1
	failed    bool // an error was printed since the entry was opened
	apart     bool // the latest record is a function's frame: a compile time after it means that it was compiled separately
	props     target

	message  Diagnostic // to be taken, if said
	said     bool
	released bool // the unit is to be taken
	taken    int  // of its entries, or of its functions when it has none

	units    int
	entries  int              // taken so far
	library  bool             // a function of a unit without entries was taken
	messages [numLists]string // the first of each list

	labels   labelCache
	archs    map[string]string
	lastArch string // most lines repeat it
	records  int    // of the unit
	text     int    // of the unit
}

// A target is what the next frame (ptxas) or usage (linkers) belongs to.
type target struct {
	source Source // empty when there is none
	label
	arch string // that the linker prints after the name
	own  bool   // the open entry itself
	line int
}

func newParser(file string) *parser {
	return &parser{file: file, open: -1, last: -1, archs: map[string]string{}, labels: labelCache{seed: maphash.MakeSeed()}}
}

// take returns the next record that is complete.
func (p *parser) take() (Record, bool) {
	if p.said {
		p.said = false
		return Record{Diagnostic: &p.message}, true
	}
	if !p.released {
		return Record{}, false
	}
	i := p.taken
	p.taken++
	switch {
	case i < len(p.unit):
		p.entries++
		return Record{Entry: &p.unit[i]}, true
	case len(p.unit) == 0 && i < len(p.unitFuncs):
		p.library = true
		return Record{Function: &p.unitFuncs[i]}, true
	}
	p.released, p.taken, p.unit, p.unitFuncs, p.records, p.text = false, 0, p.unit[:0], nil, 0, 0
	return Record{}, false
}

// release lets the records of the unit be taken.
func (p *parser) release() {
	for i := range p.unit {
		if e := &p.unit[i]; e.Source == SourcePtxas {
			e.UnitFunctions = p.unitFuncs
		}
	}
	p.released, p.open, p.last, p.apart = true, -1, -1, false
}

// abandon releases what is complete before an error.
func (p *parser) abandon() {
	if p.open >= 0 {
		p.unit = p.unit[:p.open]
	}
	p.release()
}

func (p *parser) syntaxError(msg, hint string) error {
	return &SyntaxError{File: p.file, Line: p.line, Msg: msg, Hint: hint}
}

func (p *parser) scrambled(what string) error {
	return p.syntaxError("output of several compilers is mixed, or lines are missing: "+what,
		"let each compiler write its output in one piece: make -Otarget, ninja, or a single job; nvcc without --threads")
}

// openEntry handles "Compiling entry function 'NAME' for 'ARCH'".
func (p *parser) openEntry(source Source, body []byte) error {
	name, arch, ok := splitEntry(body)
	if !ok {
		return p.syntaxError("unreadable entry function", "")
	}
	if err := p.waiting("an entry function begins"); err != nil {
		return err
	}
	l, err := p.label(name)
	if err != nil {
		return err
	}
	kept, err := p.arch(arch)
	if err != nil {
		return err
	}
	if _, err := p.push(source, l, kept); err != nil {
		return err
	}
	p.open, p.last, p.failed, p.apart = len(p.unit)-1, -1, false, false
	return nil
}

// push appends an entry. It is valid until the next one is.
func (p *parser) push(source Source, l label, arch string) (*Entry, error) {
	if err := p.count(); err != nil {
		return nil, err
	}
	p.unit = slices.Grow(p.unit, 1)[:len(p.unit)+1]
	e := &p.unit[len(p.unit)-1]
	*e = Entry{}
	e.Source, e.Arch, e.Name, e.Key, e.Line = source, arch, l.name, l.key, p.line
	return e, nil
}

// waiting reports an entry or properties that still wait for figures.
func (p *parser) waiting(event string) error {
	if p.props.source != "" {
		return p.scrambled(fmt.Sprintf("%s, but the properties of %s (line %d) have no figures", event, shorten(p.props.name), p.props.line))
	}
	if p.open >= 0 && !p.failed {
		e := &p.unit[p.open]
		return p.scrambled(fmt.Sprintf("%s, but entry %s (line %d) has no register count", event, shorten(e.Name), e.Line))
	}
	p.open = -1
	return nil
}

// properties handles "Function properties for NAME" and the linkers'
// "Function properties for 'NAME': (target: sm_52)".
func (p *parser) properties(source Source, body []byte) error {
	if p.props.source != "" {
		return p.scrambled(fmt.Sprintf("properties begin, but those of %s (line %d) have no figures", shorten(p.props.name), p.props.line))
	}
	if source != SourcePtxas {
		return p.linkerProperties(source, body)
	}
	name := trimTail(body)
	if p.open >= 0 && p.unit[p.open].Name == string(name) {
		p.props = target{source: source, label: label{name: p.unit[p.open].Name}, own: true, line: p.line}
		return nil
	}
	l, err := p.label(name)
	p.props = target{source: source, label: l, line: p.line}
	return err
}

func (p *parser) linkerProperties(source Source, body []byte) error {
	if err := p.waiting("the linker begins a function"); err != nil {
		return err
	}
	name, arch, ok := linkerName(body)
	if !ok {
		return p.syntaxError("unreadable function properties", "")
	}
	l, err := p.label(name)
	if err != nil {
		return err
	}
	kept, err := p.arch(arch)
	p.props = target{source: source, label: l, arch: kept, line: p.line}
	return err
}

// beforeFigures are the bytes that can stand before a figure. A sign, a letter
// or a decimal point makes it another figure.
var beforeFigures = []byte(" \t>]|:")

// frame handles a line with stack and spill figures; blanks and job prefixes
// can stand before it.
func (p *parser) frame(line []byte) error {
	at := bytes.Index(line, wordStackFrame)
	for at > 0 && line[at-1] >= '0' && line[at-1] <= '9' {
		at--
	}
	f, ok := parseFrame(line[at:])
	if !ok || !beginsFigure(line[:at]) {
		return p.syntaxError("unreadable stack and spill figures", "")
	}
	return p.figures(f)
}

// beginsFigure reports whether what stands before a figure cannot be its
// beginning: "1 024" is one figure, "17     24" is a line number and one.
func beginsFigure(before []byte) bool {
	n := len(before)
	if n == 0 {
		return true
	}
	if n > 1 && before[n-1] == ' ' && bytes.IndexByte([]byte("0123456789-+,"), before[n-2]) >= 0 {
		return false
	}
	return bytes.IndexByte(beforeFigures, before[n-1]) >= 0
}

// figures gives a frame to the function whose properties were announced.
func (p *parser) figures(f frame) error {
	if p.props.source != SourcePtxas {
		return p.scrambled("stack and spill figures without a function")
	}
	t := p.props
	p.props = target{}
	if !t.own {
		return p.keepFunction(t, f)
	}
	e := &p.unit[p.open]
	if e.StackBytes.Known {
		return p.scrambled("properties of " + shorten(e.Name) + " are there twice")
	}
	e.StackBytes, e.SpillStoreBytes, e.SpillLoadBytes = known(f.stack), f.stores, f.loads
	p.apart = false
	return nil
}

// keepFunction keeps the figures of a device function: with the entry that it is
// printed in or after, else with the unit.
func (p *parser) keepFunction(t target, f frame) error {
	if err := p.count(); err != nil {
		return err
	}
	fn := Function{
		Name: t.name, Key: t.key, Line: t.line,
		StackBytes: known(f.stack), SpillStoreBytes: f.stores, SpillLoadBytes: f.loads,
	}
	owner := p.open
	if owner < 0 {
		owner = p.last
	}
	if owner < 0 {
		p.unitFuncs = append(p.unitFuncs, fn)
	} else {
		e := &p.unit[owner]
		e.Callees = append(e.Callees, fn)
	}
	p.apart = p.open < 0
	return nil
}

// compileTime ends one compilation. After a function's frame it says that this
// function was compiled separately (-rdc=true): it belongs to the unit, and so
// do its own callees after it.
func (p *parser) compileTime() error {
	if !p.apart {
		return nil
	}
	p.apart = false
	if p.last < 0 {
		return nil
	}
	e := &p.unit[p.last]
	n := len(e.Callees) - 1
	p.unitFuncs = append(p.unitFuncs, e.Callees[n])
	e.Callees = e.Callees[:n:n]
	p.last = -1
	return nil
}

// used handles the usage line: of the open entry (ptxas) or of the properties
// before it (linkers).
func (p *parser) used(source Source, body []byte, torn bool) error {
	body, arch, ok := cutTarget(trimTail(body))
	if !ok {
		return p.syntaxError("unreadable register and memory use: unreadable target", "")
	}
	if source != SourcePtxas {
		return p.linkerUsed(source, body, arch)
	}
	if p.props.source != "" {
		return p.scrambled(fmt.Sprintf("register use, but the properties of %s (line %d) have no figures", shorten(p.props.name), p.props.line))
	}
	if p.open < 0 {
		return p.scrambled("register use without an entry function")
	}
	e := &p.unit[p.open]
	if err := p.usage(e, body); err != nil {
		return err
	}
	if !torn { // a line without its end may lack fields, too
		e.absentIsZero()
	}
	p.open, p.last, p.apart = -1, p.open, false
	return nil
}

// linkerUsed makes an entry of the linker's properties and usage.
func (p *parser) linkerUsed(source Source, body, arch []byte) error {
	if p.props.source != source {
		return p.scrambled("register use of the linker without a function")
	}
	if len(arch) > 0 && p.props.arch != "" && p.props.arch != string(arch) {
		return p.scrambled(fmt.Sprintf("register use for %s, but the properties of %s (line %d) are for %s", arch, shorten(p.props.name), p.props.line, p.props.arch))
	}
	kept, err := p.arch(arch)
	if err != nil {
		return err
	}
	if kept == "" {
		kept = p.props.arch
	}
	e, err := p.push(source, p.props.label, kept)
	if err != nil {
		return err
	}
	e.Line = p.props.line
	if err := p.usage(e, body); err != nil {
		p.unit = p.unit[:len(p.unit)-1]
		return err
	}
	p.props, p.last = target{}, -1
	if len(p.unit) == 1 && len(p.unitFuncs) == 0 {
		p.release() // a link has no end, and nothing of it is still to come
	}
	return nil
}

// usage reads the figures of an entry.
func (p *parser) usage(e *Entry, body []byte) error {
	if msg := e.readUsage(body); msg != "" {
		return p.syntaxError("unreadable register and memory use: "+msg, "")
	}
	return p.keep(e.Unknown...)
}

// beginUnit handles the "bytes gmem" line, with which every unit begins.
func (p *parser) beginUnit(whole bool) error {
	if !whole {
		return p.syntaxError("unreadable global memory figures", "")
	}
	if err := p.waiting("a unit begins"); err != nil {
		return err
	}
	p.units++
	p.release()
	return nil
}

// finish ends the text.
func (p *parser) finish() error {
	if err := p.waiting("the text ends"); err != nil {
		p.abandon()
		return err
	}
	p.release()
	if p.entries+len(p.unit) == 0 {
		return p.noEntries()
	}
	return io.EOF
}

func (p *parser) noEntries() error {
	e := &NoEntriesError{File: p.file, Units: p.units, Reason: NoCompilerOutput}
	for _, first := range p.messages {
		if e.Message == "" {
			e.Message = first
		}
	}
	switch {
	case p.messages[listErrors] != "":
		e.Reason = CompilationFailed
	case p.units > 0 || p.library || len(p.unitFuncs) > 0:
		e.Reason, e.Message = NoKernels, ""
	case e.Message != "":
		e.Reason = OnlyMessages
	}
	return e
}

// keep bounds the text that a unit keeps in memory.
func (p *parser) keep(texts ...string) error {
	for _, s := range texts {
		p.text += len(s)
	}
	if p.text > maxText {
		return p.syntaxError(tooMuchText, "")
	}
	return nil
}

// count bounds the records of a unit.
func (p *parser) count() error {
	if p.records++; p.records > maxRecords {
		return p.syntaxError(tooManyRecords, "")
	}
	return nil
}
