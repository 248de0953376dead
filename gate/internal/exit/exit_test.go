package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"
)

// advised is an error of another package that says its status and hint.
type advised struct{}

func (advised) Error() string { return "it is not here" }
func (advised) ExitCode() int { return Usage }
func (advised) Hint() string  { return "look elsewhere" }

func TestOf(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", "exit 2").Run() // has ExitCode, which is the child's own
	for _, c := range []struct {
		name string
		err  error
		want int
		hint string
	}{
		{"usage", Usagef("run it at the root", "there is no %s", "policy"), Usage, "run it at the root"},
		{"usage, wrapped", fmt.Errorf("reading: %w", Usagef("a hint", "no")), Usage, "a hint"},
		{"another package's", fmt.Errorf("finding: %w", advised{}), Usage, "look elsewhere"},
		{"one of several", errors.Join(io.EOF, advised{}), Usage, "look elsewhere"},
		{"explained by a report", Quiet(Inconclusive), Inconclusive, ""},
		{"of a tool", &Error{Status: Tool, Err: io.EOF, Advice: "again"}, Tool, "again"},
		{"that does not say", io.EOF, Tool, ""},
		{"a child's status", fmt.Errorf("git: %w", child), Tool, ""},
		{"interrupted", fmt.Errorf("checking: %w", context.Canceled), interrupted, ""},
		{"interrupted, and the file may be kept", errors.Join(context.Canceled, io.EOF), interrupted, ""},
		{"a tool that was interrupted", &Error{Status: Tool, Err: context.Canceled, Advice: "install it"}, interrupted, ""},
		{"out of time", context.DeadlineExceeded, Tool, ""},
	} {
		if got, hint := Of(c.err); got != c.want || hint != c.hint {
			t.Errorf("%s: %d, hint %q; want %d, %q", c.name, got, hint, c.want, c.hint)
		}
	}
}

// TestErrorsStayThemselves: a status does not hide what went wrong.
func TestErrorsStayThemselves(t *testing.T) {
	err := Usagef("", "reading it: %w", io.EOF)
	if err.Error() != "reading it: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if q := fmt.Errorf("judged: %w", Quiet(Fail)); !errors.As(q, new(Quiet)) || errors.As(err, new(Quiet)) {
		t.Error("what a report explained cannot be told from what it did not")
	}
}
