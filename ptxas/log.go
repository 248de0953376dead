package ptxas

import "strconv"

// A Count is a figure of the log. The zero Count is unknown.
type Count struct {
	N     int64
	Known bool
}

// known returns the Count for a figure that the log gives.
func known(n int64) Count { return Count{N: n, Known: true} }

// Plus returns the sum, which is unknown if either side is.
func (c Count) Plus(d Count) Count {
	if !c.Known || !d.Known {
		return Count{}
	}
	return known(c.N + d.N)
}

// String returns the figure in decimal, or "unknown".
func (c Count) String() string {
	if !c.Known {
		return "unknown"
	}
	return strconv.FormatInt(c.N, 10)
}

// A Source is the tool that printed a record.
type Source string

// The tools. The driver's linker (cuLink, nvJitLink) prints "info" without a
// tool name.
const (
	SourcePtxas  Source = "ptxas"
	SourceNvlink Source = "nvlink"
	SourceInfo   Source = "info"
)

// A Log is what one text of compiler output says. Slices are in log order.
type Log struct {
	Entries    []Entry
	Functions  []Function   // device functions of units without an entry, such as relocatable libraries
	Advisories []Diagnostic // C75xx, distinct by (Code, Key)
	Warnings   []Diagnostic // warnings, and register limits overridden by -maxrregcount
	Errors     []Diagnostic // errors and fatal errors
	Notes      []Diagnostic // other info lines
	Units      int          // compilation and link units seen ("bytes gmem" lines)
}

// An Entry is one kernel (__global__ function) compiled for one architecture.
// Sizes are bytes; registers are per thread; the rest are numbers of objects.
type Entry struct {
	Source     Source
	Arch       string // "sm_90a"; empty when the log does not say
	Name       string // as printed, usually mangled
	Key        string // Name as [Key] normalises it
	Occurrence int    // 1 for the first entry with this Source, Arch and Key
	Line       int    // of the line that opens the entry

	Registers            Count
	Barriers             Count
	SharedBytes          Count // static shared memory, without what the driver reserves
	StackBytes           Count // stack frame of the entry itself; the linkers do not print it
	CumulativeStackBytes Count // of the entry and the deepest chain of calls; the linkers' "stack"; ptxas prints it only when it is not zero and can be determined
	SpillStoreBytes      Count // of the entry itself, without callees; unknown when ptxas prints a negative figure
	SpillLoadBytes       Count
	LocalBytes           Count
	Textures             Count
	Surfaces             Count
	Samplers             Count
	Constant             []ConstantBank // banks that are printed; absent is unknown

	Unknown []string // fields of the "Used" line that this package does not know, as text

	// Callees are device functions printed with this entry: those that it
	// reaches by calls. One that several entries reach is repeated by ptxas.
	// A compiler that prints no compile times (CUDA 12.1 prints none) does not
	// tell a function that it compiled separately from a callee; behind an
	// entry it is taken for a callee.
	Callees []Function
	// UnitFunctions are device functions of the same compilation unit that
	// the log does not place with one entry (compiled separately, as with
	// -rdc=true, or printed before the first entry): any entry of the unit
	// may reach them. The slice is shared between the entries of a unit and
	// must not be modified.
	UnitFunctions []Function
}

// A ConstantBank is the use of one bank of constant memory.
type ConstantBank struct {
	Bank  int
	Bytes int64
}

// ConstantBytes returns the use of a constant bank.
func (e *Entry) ConstantBytes(bank int) Count { return bankBytes(e.Constant, bank) }

func bankBytes(banks []ConstantBank, bank int) Count {
	for _, b := range banks {
		if b.Bank == bank {
			return known(b.Bytes)
		}
	}
	return Count{}
}

// SpillBytes returns the entry's own spill stores and loads, added.
func (e *Entry) SpillBytes() Count { return e.SpillStoreBytes.Plus(e.SpillLoadBytes) }

// CalleeSpillBytes returns the spill stores and loads of Callees and
// UnitFunctions, added; zero when there are none. Callees of other units
// (-rdc=true) are not among them. The linkers do not speak of spills, so that
// it is unknown for their entries.
func (e *Entry) CalleeSpillBytes() Count {
	if e.Source != SourcePtxas {
		return Count{}
	}
	sum := known(0)
	for _, list := range [][]Function{e.Callees, e.UnitFunctions} {
		for i := range list {
			sum = sum.Plus(list[i].SpillStoreBytes).Plus(list[i].SpillLoadBytes)
		}
	}
	return sum
}

// A Function is a device function that was not inlined. Sizes are bytes.
type Function struct {
	Name            string
	Key             string
	StackBytes      Count
	SpillStoreBytes Count
	SpillLoadBytes  Count
	Line            int
}

// A Severity is the word behind the tool's name.
type Severity string

// The severities that the tools print.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
	SeverityFatal   Severity = "fatal"
)

// A Kind says what a Diagnostic is about. The same cause can be a warning in
// one release and an error in another.
type Kind string

// The kinds that the package tells apart.
const (
	KindPerformanceLoss       Kind = "performance-loss"        // C75xx, "Potential Performance Loss"
	KindStackSizeUnknown      Kind = "stack-size-unknown"      // recursion or indirect calls
	KindRegisterLimitOverride Kind = "register-limit-override" // -maxrregcount and the kernel's own limit differ
	KindMaxRegistersIgnored   Kind = "maxrregcount-ignored"    // too big
	KindSpills                Kind = "spills"                  // --warn-on-spills
	KindLocalMemory           Kind = "local-memory"            // --warn-on-local-memory-usage
	KindMinBlocksIgnored      Kind = "minnctapersm-ignored"    // __launch_bounds__ out of range
	KindRegisterAllocation    Kind = "register-allocation"     // C76xx: too few registers
	KindCalleeRegisters       Kind = "callee-registers"        // an entry calls a function that needs more registers than its limit
	KindAborted               Kind = "aborted"
	KindOther                 Kind = "other"
)

// A Diagnostic is a message of a tool. Equal messages are merged.
type Diagnostic struct {
	Severity Severity
	Kind     Kind
	Source   Source
	Code     string // "C7510", or empty
	Text     string // the message without tool, severity and code
	Function string // that the message names, or empty
	Key      string // Function as [Key] normalises it
	Place    string // in the assembly, of the first: "k.ptx, line 894", or empty
	Line     int    // of the first
	Repeats  int    // how often it was printed, at least 1

	// Figures of the text, where it has them.
	StackBytes      Count
	SpillStoreBytes Count
	SpillLoadBytes  Count
	RegisterLimit   Count
}
