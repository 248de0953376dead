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
