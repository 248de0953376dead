package ptxas

import "fmt"

// A SyntaxError is text that looks like compiler output and cannot be read as
// such: torn, mixed or oversized.
type SyntaxError struct {
	File string
	Line int
	Msg  string
	Hint string // what to do about it, or empty; not part of Error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// A Reason says why a text holds no entry.
type Reason string

// The reasons.
const (
	NoCompilerOutput  Reason = "no-compiler-output" // not one line of ptxas or nvlink
	NoKernels         Reason = "no-kernels"         // units were compiled, none has a kernel
	OnlyMessages      Reason = "only-messages"      // messages, but not the figures of -v
	CompilationFailed Reason = "compilation-failed"
	NoResourceUsage   Reason = "no-resource-usage" // not the output of cuobjdump -res-usage
)

// A NoEntriesError is a text in which no kernel was found.
type NoEntriesError struct {
	File    string
	Reason  Reason
	Units   int    // units seen, for NoKernels
	Message string // the first message, for OnlyMessages and CompilationFailed
}

func (e *NoEntriesError) Error() string {
	switch e.Reason {
	case NoKernels:
		return fmt.Sprintf("%s: no kernel: no unit (%d seen) holds a __global__ function", e.File, e.Units)
	case NoResourceUsage:
		return fmt.Sprintf("%s: no resource usage: want the output of cuobjdump -res-usage", e.File)
	case OnlyMessages:
		return fmt.Sprintf("%s: messages of the compiler, but no kernel figures (first message: %s): pass -Xptxas -v or --resource-usage to nvcc", e.File, e.Message)
	case CompilationFailed:
		return fmt.Sprintf("%s: no kernel, the compilation failed: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s: no output of ptxas: pass -Xptxas -v or --resource-usage to nvcc", e.File)
}

// Hint says how to get a log with entries.
func (e *NoEntriesError) Hint() string {
	switch e.Reason {
	case NoKernels:
		return "only units with a __global__ function (or an instantiated template of one) have figures"
	case CompilationFailed:
		return "mend the compilation first"
	case NoResourceUsage:
		return "run cuobjdump -res-usage on an object file, a shared library or a cubin that holds machine code (PTX has no resource usage)"
	}
	return "pass -Xptxas -v or --resource-usage to nvcc and capture its standard error; an incremental build prints only what it rebuilds"
}
