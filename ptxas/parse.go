package ptxas

import (
	"fmt"
	"io"
)

// Bounds of what Parse returns, and of what a Reader keeps of one unit; text
// beyond them is a SyntaxError.
const (
	maxName    = 64 << 10  // bytes of a function's name
	maxRecords = 1 << 20   // entries, functions and messages
	maxText    = 256 << 20 // bytes of distinct names, messages and unknown fields
	maxArchs   = 256       // architectures
)

var (
	tooManyRecords = fmt.Sprintf("more than %d records", maxRecords)
	tooMuchText    = fmt.Sprintf("more than %d bytes of names, messages and unknown fields", maxText)
)

// Parse reads the output of ptxas -v, nvlink -v and the driver's linker, alone
// or inside a build log, also compressed with gzip. The name is for messages
// only.
//
// A text in which no kernel was compiled is a *NoEntriesError, one that cannot
// be read is a *SyntaxError; any other error is the reader's. The Log is never
// nil. Beside an error it holds what was read before, such as the advisories of
// a build without -v, and is not the whole of any build. Memory grows with what
// is returned, not with the text around it.
func Parse(r io.Reader, name string) (*Log, error) {
	rd := NewReader(r, name)
	c := newCollector(rd.p)
	for {
		rec, err := rd.Next()
		if err == nil {
			err = c.add(rec)
		}
		if err != nil {
			c.log.Entries, c.log.Units = c.entries.flatten(), rd.Units()
			return &c.log, dropEOF(err)
		}
	}
}

func dropEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// A collector puts the records of a text together: it numbers the entries of
// one key, merges equal messages and keeps each name once.
type collector struct {
	p       *parser // for its place
	log     Log
	entries chunked[Entry]
	symbols symbols
	at      map[mergeKey]int
	unit    *Function // the first one of the latest unit
	records int
	text    int
}

func newCollector(p *parser) *collector {
	return &collector{p: p, symbols: symbols{at: map[string]*symbol{}}, at: map[mergeKey]int{}}
}

func (c *collector) add(rec Record) error {
	switch {
	case rec.Entry != nil:
		return c.entry(rec.Entry)
	case rec.Function != nil:
		c.log.Functions = append(c.log.Functions, *rec.Function)
		return c.function(&c.log.Functions[len(c.log.Functions)-1])
	}
	return c.message(rec.Diagnostic)
}

func (c *collector) entry(e *Entry) error {
	sym, err := c.symbol(e.Name, e.Key)
	if err != nil {
		return err
	}
	kept := c.entries.add()
	*kept = *e
	kept.Name, kept.Key, kept.Occurrence = sym.name, sym.key.name, sym.key.next(e.Source, e.Arch)
	for i := range kept.Callees {
		if err := c.function(&kept.Callees[i]); err != nil {
			return err
		}
	}
	if u := kept.UnitFunctions; len(u) > 0 && &u[0] != c.unit { // they are the same for all entries of a unit
		c.unit = &u[0]
		for i := range u {
			if err := c.function(&u[i]); err != nil {
				return err
			}
		}
	}
	return c.keep(1, e.Unknown...)
}

func (c *collector) function(f *Function) error {
	sym, err := c.symbol(f.Name, f.Key)
	if err != nil {
		return err
	}
	f.Name, f.Key = sym.name, sym.key.name
	return c.keep(1)
}

// symbol returns the kept copies of a name and its key.
func (c *collector) symbol(name, key string) (*symbol, error) {
	if s, ok := c.symbols.at[name]; ok {
		return s, nil
	}
	return c.symbols.add(name, key), c.keep(0, name)
}

// keep counts records and text that stay in memory.
func (c *collector) keep(records int, texts ...string) error {
	for _, s := range texts {
		c.text += len(s)
	}
	switch c.records += records; {
	case c.records > maxRecords:
		return c.p.syntaxError(tooManyRecords, "")
	case c.text > maxText:
		return c.p.syntaxError(tooMuchText, "")
	}
	return nil
}
