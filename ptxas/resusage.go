package ptxas

import "io"

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

// A ResourceReader reads the functions of a text one by one. Its memory does not
// grow with the text.
type ResourceReader struct {
	p     *resourceParser
	lines lineReader
	err   error // to be returned when the function before it is
}

// NewResourceReader returns a reader of what ParseResourceUsage reads. The name
// is for messages only.
func NewResourceReader(r io.Reader, name string) *ResourceReader {
	return &ResourceReader{p: &resourceParser{parser: newParser(name)}, lines: newLineReader(r)}
}

// Next returns the next function, or io.EOF after the last one of a text that
// has any. It is overwritten by the next call; a copy of it stays valid. Its
// Occurrence is 0, because a ResourceReader does not remember earlier functions.
// Other errors are those of [ParseResourceUsage] and are final.
func (r *ResourceReader) Next() (*ResourceFunction, error) {
	for {
		if f, ok := r.p.take(); ok {
			return f, nil
		}
		if r.err != nil {
			return nil, r.err
		}
		r.err = r.line()
	}
}

// line reads one line.
func (r *ResourceReader) line() error {
	line, err := r.lines.next()
	r.p.line = r.lines.number
	switch {
	case err == nil:
		return r.p.parseLine(trimLeft(trimRight(line)), r.lines.torn)
	case err == io.EOF:
		return r.p.finish()
	}
	return r.p.readError(err)
}

// ParseResourceUsage reads the text of cuobjdump -res-usage, also compressed
// with gzip. The name is for messages only. Text in which no function is found
// is a *NoEntriesError, text that cannot be read a *SyntaxError. The result is
// never nil; beside an error it holds the functions that were read before.
func ParseResourceUsage(r io.Reader, name string) (*ResourceUsage, error) {
	rd := NewResourceReader(r, name)
	c := newCollector(rd.p.parser)
	var functions chunked[ResourceFunction]
	for {
		f, err := rd.Next()
		if err == nil {
			err = c.resource(&functions, f)
		}
		if err != nil {
			return &ResourceUsage{Functions: functions.flatten()}, dropEOF(err)
		}
	}
}

// resource keeps a function.
func (c *collector) resource(list *chunked[ResourceFunction], f *ResourceFunction) error {
	sym, err := c.symbol(f.Name, f.Key)
	if err != nil {
		return err
	}
	kept := list.add()
	*kept = *f
	kept.Name, kept.Key, kept.Occurrence = sym.name, sym.key.name, sym.key.next("", f.Arch)
	return c.keep(1, f.Unknown...)
}
