// Package exit is the table of gate's exit statuses, and errors that carry one.
package exit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// The exit statuses. They are the same whatever the output format.
const (
	Pass         = 0
	Fail         = 1 // a policy is broken
	Usage        = 2 // usage, or a file of the user's is invalid
	Tool         = 3 // a tool failed
	Inconclusive = 4 // evidence is missing or too weak to decide
	interrupted  = 130
	Unread       = 141 // who reads the output went away
)

// Table says what each status means.
var Table = [][2]string{
	{"0", "pass"},
	{"1", "a policy is broken"},
	{"2", "usage, or a file of the user's is invalid"},
	{"3", "a tool failed"},
	{"4", "inconclusive: evidence is missing or too weak to decide"},
	{"130, 143, 129, 141", "ended by INT, TERM, HUP, PIPE"},
}

// An Error says what is wrong, with which status gate ends, and what was
// probably meant.
type Error struct {
	Status int
	Err    error
	Advice string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap is the error itself.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the status with which gate ends.
func (e *Error) ExitCode() int { return e.Status }

// Hint says what was probably meant; "" where nothing can be said.
func (e *Error) Hint() string { return e.Advice }

// A Quiet error is a status that was explained already, by a report.
type Quiet int

func (q Quiet) Error() string { return fmt.Sprintf("exit status %d", int(q)) }

// ExitCode is the status.
func (q Quiet) ExitCode() int { return int(q) }

// Hint is empty.
func (q Quiet) Hint() string { return "" }

// A Signal is the signal that ended gate, as the cause why its context ended.
type Signal syscall.Signal

func (s Signal) Error() string {
	switch syscall.Signal(s) {
	case syscall.SIGINT:
		return "interrupted"
	case syscall.SIGTERM:
		return "terminated"
	}
	return "ended by signal: " + syscall.Signal(s).String()
}

// ExitCode is what a shell says of a process that the signal ended.
func (s Signal) ExitCode() int { return 128 + int(s) }

// Hint is empty.
func (s Signal) Hint() string { return "" }

// Usagef is a request that cannot be meant.
func Usagef(hint, format string, args ...any) error {
	return &Error{Status: Usage, Err: fmt.Errorf(format, args...), Advice: hint}
}

// Of is the status and the hint of an error. One that does not say is a tool's.
func Of(err error) (status int, hint string) {
	var known interface {
		ExitCode() int
		Hint() string
	}
	var signal Signal
	switch {
	case errors.As(err, &signal): // what a tool did then is its consequence
		return signal.ExitCode(), ""
	case errors.Is(err, context.Canceled): // what a tool did then is its consequence
		return interrupted, ""
	case errors.As(err, &known):
		return known.ExitCode(), known.Hint()
	}
	return Tool, ""
}
