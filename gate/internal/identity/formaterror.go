package identity

import "fmt"

// A formatError says that a file is not what its name promises: torn, oversized, or written by a tool that is not
// known.
type formatError struct {
	File string // "" when the reader has no name
	Line int    // 1-based; 0 in a binary file
	Msg  string
}

func (e *formatError) Error() string {
	switch {
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
	case e.File != "":
		return e.File + ": " + e.Msg
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return e.Msg
}

// A SourceError is something in a file of the user's that gate refuses, because
// no identity could hold what it does.
type SourceError struct {
	File string // as the compiler named it
	Line int
	Msg  string
}

func (e *SourceError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }
