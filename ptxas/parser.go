package ptxas

import (
	"bytes"
	"fmt"
)

// A parser is the state between two lines. Records of one compiler process
// come in a fixed order: an entry, its properties, its frame, its usage. What
// breaks the order is refused, because mixed output breaks it.
type parser struct {
	file    string
	line    int
	log     *Log
	entries chunked[Entry]

	open      int     // index of the entry that waits for its usage, or -1
	last      int     // index of the entry that callees belong to, or -1
	entry     *symbol // of the latest entry
	failed    bool    // an error was printed since the entry was opened
	unitStart int     // index of the unit's first entry
	unitFuncs []Function
	apart     bool // the latest record is a function's frame: a compile time behind it means that it was compiled separately
	props     target

	symbols  map[string]*symbol
	spare    []symbol // allocated, not yet used
	names    stringPool
	archs    map[string]string
	lastArch string // most lines repeat it
	at       map[mergeKey]int
	records  int
	text     int
}

// A target is what the next frame (ptxas) or usage (linkers) belongs to.
type target struct {
	source Source // empty when there is none
	*symbol
	arch string // that the linker prints behind the name
	own  bool   // the open entry itself
	line int
}

func newParser(file string) *parser {
	return &parser{
		file: file, log: &Log{}, open: -1, last: -1,
		symbols: map[string]*symbol{}, archs: map[string]string{}, at: map[mergeKey]int{},
	}
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
	if err := p.complete("an entry function begins"); err != nil {
		return err
	}
	sym, err := p.symbol(name)
	if err != nil {
		return err
	}
	if err := p.count(); err != nil {
		return err
	}
	kept, err := p.arch(arch)
	if err != nil {
		return err
	}
	p.push(source, sym, kept)
	p.open, p.entry, p.last, p.failed, p.apart = p.entries.n-1, sym, -1, false, false
	return nil
}

// push appends an entry.
func (p *parser) push(source Source, sym *symbol, arch string) *Entry {
	e := p.entries.add()
	e.Source, e.Arch, e.Name, e.Key, e.Line = source, arch, sym.name, sym.key.name, p.line
	e.Occurrence = sym.key.next(source, arch)
	return e
}

// complete reports an entry or properties that still wait for figures.
func (p *parser) complete(event string) error {
	if p.props.source != "" {
		return p.scrambled(fmt.Sprintf("%s, but the properties of %s (line %d) have no figures", event, shorten(p.props.name), p.props.line))
	}
	if p.open >= 0 && !p.failed {
		e := p.entries.at(p.open)
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
	p.props = target{source: source, line: p.line}
	name := trimTail(body)
	if p.open >= 0 && p.entry.name == string(name) {
		p.props.symbol, p.props.own = p.entry, true
		return nil
	}
	var err error
	p.props.symbol, err = p.symbol(name)
	return err
}

func (p *parser) linkerProperties(source Source, body []byte) error {
	if err := p.complete("the linker begins a function"); err != nil {
		return err
	}
	name, arch, ok := linkerName(body)
	if !ok {
		return p.syntaxError("unreadable function properties", "")
	}
	sym, err := p.symbol(name)
	if err != nil {
		return err
	}
	kept, err := p.arch(arch)
	p.props = target{source: source, symbol: sym, arch: kept, line: p.line}
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
	if !ok || (at > 0 && bytes.IndexByte(beforeFigures, line[at-1]) < 0) {
		return p.syntaxError("unreadable stack and spill figures", "")
	}
	return p.figures(f)
}

// figures gives a frame to the function whose properties were announced.
func (p *parser) figures(f frame) error {
	if p.props.source != SourcePtxas {
		return p.scrambled("stack and spill figures without a function")
	}
	t := p.props
	p.props = target{}
	if !t.own {
		return p.function(t, f)
	}
	e := p.entries.at(p.open)
	if e.StackBytes.Known {
		return p.scrambled("properties of " + shorten(e.Name) + " are there twice")
	}
	e.StackBytes, e.SpillStoreBytes, e.SpillLoadBytes = known(f.stack), f.stores, f.loads
	p.apart = false
	return nil
}

// function keeps the figures of a device function: with the entry that it is
// printed in or behind, else with the unit.
func (p *parser) function(t target, f frame) error {
	if err := p.count(); err != nil {
		return err
	}
	fn := Function{
		Name: t.name, Key: t.key.name, Line: t.line,
		StackBytes: known(f.stack), SpillStoreBytes: f.stores, SpillLoadBytes: f.loads,
	}
	owner := p.open
	if owner < 0 {
		owner = p.last
	}
	if owner < 0 {
		p.unitFuncs = append(p.unitFuncs, fn)
	} else {
		e := p.entries.at(owner)
		e.Callees = append(e.Callees, fn)
	}
	p.apart = p.open < 0
	return nil
}

// compileTime ends one compilation. Behind a function's frame it says that
// this function was compiled separately (-rdc=true): it belongs to the unit,
// and so do its own callees behind it.
func (p *parser) compileTime() error {
	if !p.apart {
		return nil
	}
	p.apart = false
	if p.last < 0 {
		return nil
	}
	e := p.entries.at(p.last)
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
	e := p.entries.at(p.open)
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
	if err := p.count(); err != nil {
		return err
	}
	kept, err := p.arch(arch)
	if err != nil {
		return err
	}
	if kept == "" {
		kept = p.props.arch
	}
	e := p.push(source, p.props.symbol, kept)
	e.Line = p.props.line
	p.props, p.last = target{}, -1
	return p.usage(e, body)
}

// usage reads the figures of an entry.
func (p *parser) usage(e *Entry, body []byte) error {
	if msg := e.readUsage(body); msg != "" {
		return p.syntaxError("unreadable register and memory use: "+msg, "")
	}
	return p.keep(e.Unknown...)
}

// unit handles the "bytes gmem" line, with which every unit begins.
func (p *parser) unit(whole bool) error {
	if !whole {
		return p.syntaxError("unreadable global memory figures", "")
	}
	p.log.Units++
	return p.endUnit("a unit begins")
}

// endUnit gives the functions of a unit to its entries.
func (p *parser) endUnit(event string) error {
	if err := p.complete(event); err != nil {
		return err
	}
	for i := p.unitStart; i < p.entries.n; i++ {
		if e := p.entries.at(i); e.Source == SourcePtxas {
			e.UnitFunctions = p.unitFuncs
		}
	}
	if p.unitStart == p.entries.n {
		p.log.Functions = append(p.log.Functions, p.unitFuncs...)
	}
	p.unitStart, p.unitFuncs, p.last, p.apart = p.entries.n, nil, -1, false
	return nil
}

// finish ends the text.
func (p *parser) finish() (*Log, error) {
	if err := p.endUnit("the text ends"); err != nil {
		return nil, err
	}
	if p.entries.n == 0 {
		return nil, p.noEntries()
	}
	p.log.Entries = p.entries.flatten()
	return p.log, nil
}

func (p *parser) noEntries() error {
	e := &NoEntriesError{File: p.file, Units: p.log.Units, Reason: NoCompilerOutput}
	for _, list := range [][]Diagnostic{p.log.Errors, p.log.Warnings, p.log.Advisories, p.log.Notes} {
		if len(list) > 0 && e.Message == "" {
			e.Message = shorten(list[0].Text)
		}
	}
	switch {
	case len(p.log.Errors) > 0:
		e.Reason = CompilationFailed
	case p.log.Units > 0 || len(p.log.Functions) > 0:
		e.Reason, e.Message = NoKernels, ""
	case e.Message != "":
		e.Reason = OnlyMessages
	}
	return e
}

// keep counts text that stays in memory.
func (p *parser) keep(texts ...string) error {
	for _, s := range texts {
		p.text += len(s)
	}
	if p.text > maxText {
		return p.syntaxError(fmt.Sprintf("more than %d bytes of names, messages and unknown fields", maxText), "")
	}
	return nil
}

// count counts records.
func (p *parser) count() error {
	if p.records++; p.records > maxRecords {
		return p.syntaxError(fmt.Sprintf("more than %d records", maxRecords), "")
	}
	return nil
}
