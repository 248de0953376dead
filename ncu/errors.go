package ncu

import (
	"errors"
	"fmt"
	"strings"
)

// A SyntaxError says where and why a file is refused. The message names what
// was read; the hint, when there is one, says what to do about it.
type SyntaxError struct {
	File string // as given by the caller
	Line int    // from 1; 0 when the whole file is meant
	Msg  string // one lower-case sentence
	Hint string // "" or one sentence
	Err  error  // the cause, or nil
}

// Error returns the message with file and line, without the hint.
func (e *SyntaxError) Error() string {
	switch {
	case e.File == "":
		return e.Msg
	case e.Line == 0:
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ErrNoTable is wrapped by the error for a file in which no kernel was
// profiled. It is never the same as a run without regressions.
var ErrNoTable = errors.New("no profiled kernel")

// ErrPermission is wrapped by a ToolError when the driver keeps the performance
// counters from the user (ERR_NVGPUCTRPERM).
var ErrPermission = errors.New("no permission to read GPU performance counters")

// A ToolError carries what ncu itself reported as an error. The values in such
// a file are not usable, even where a table follows.
type ToolError struct {
	File  string
	Line  int      // of the first message
	Lines []string // the texts after ==ERROR==, at most 16
}

// Error quotes the first message and counts the others.
func (e *ToolError) Error() string {
	s := "ncu reported: " + e.Lines[0]
	if n := len(e.Lines) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	if e.File == "" {
		return s
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, s)
}

// PermissionDenied reports whether the driver refused access to the counters.
// The cure is a driver option or CAP_SYS_ADMIN, not a change to the kernel.
func (e *ToolError) PermissionDenied() bool {
	for _, l := range e.Lines {
		if strings.Contains(l, "ERR_NVGPUCTRPERM") {
			return true
		}
	}
	return false
}

// Unwrap makes errors.Is(err, ErrPermission) true for a refused access.
func (e *ToolError) Unwrap() error {
	if e.PermissionDenied() {
		return ErrPermission
	}
	return nil
}
