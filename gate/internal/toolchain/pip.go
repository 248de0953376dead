package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	pipTail     = 4 << 10 // bytes of pip's output kept for an error
	pipLine     = 4 << 10 // bytes of one line passed on as progress
	pythonHint  = "apt-get install python3 python3-pip"
	pipHint     = "apt-get install python3-pip (or python3-venv)"
	networkHint = "pip reads its own configuration: check PIP_INDEX_URL, proxy and certificates with `python3 -m pip config list`"
)

// A PipError says how pip failed.
type PipError struct {
	Command []string
	Output  string // the end of what it printed
	Err     error
	Hint    string
}

func (e *PipError) Error() string {
	msg := fmt.Sprintf("pip failed: %v", e.Err)
	if why := e.why(); why != "" {
		msg += ": " + why
	}
	return msg
}

// why is pip's last line that calls itself an error, else its last line.
func (e *PipError) why() string {
	rows := strings.Split(strings.TrimSpace(e.Output), "\n")
	for _, row := range slices.Backward(rows) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(row), "ERROR: "); ok {
			return why
		}
	}
	return strings.TrimSpace(rows[len(rows)-1])
}

func (e *PipError) Unwrap() error { return e.Err }

// pip fills target with the wheels of the lock file. It uses the user's own
// pip, so that a configured index, proxy or certificate holds. --target also
// works where the system's Python is marked as externally managed (PEP 668).
func (o InstallOptions) pip(ctx context.Context, temp, target string) error {
	requirements := filepath.Join(temp, "toolchain.lock")
	if err := os.WriteFile(requirements, lock, 0o644); err != nil {
		return err
	}
	scratch := filepath.Join(temp, "scratch")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	python, err := o.pythonWithPip(ctx, temp)
	if err != nil {
		return err
	}
	o.say("fetching CUDA %s with %s -m pip", Version, python)
	env := append(o.childEnv(),
		// pip unpacks here first: on the same file system moving is a rename,
		// and what a killed pip leaves is cleaned with the rest.
		"TMPDIR="+scratch,
		"PIP_REQUIRE_VIRTUALENV=false", "PIP_ROOT_USER_ACTION=ignore", // no environment is touched
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
	return o.run(ctx, env, python, "-m", "pip", "install",
		"--no-deps", "--require-hashes", "--only-binary=:all:", "--no-user", "--no-compile", "--no-input",
		"--disable-pip-version-check", "--no-warn-script-location", "--progress-bar", "off",
		"--target", target, "-r", requirements)
}

// pythonWithPip returns a Python that has pip: the user's, else one in a
// throw-away virtual environment.
func (o InstallOptions) pythonWithPip(ctx context.Context, temp string) (string, error) {
	python := o.Python
	if python == "" {
		python = lookPath("python3", o.pathList())
	} else if !strings.Contains(python, "/") {
		python = lookPath(python, o.pathList())
	}
	if python == "" {
		return "", &NotFoundError{What: "python3, which fetches the compiler,", Searched: []string{"PATH"}, Hint: pythonHint}
	}
	if err := executable(python); err != nil {
		return "", &UnusableError{What: "python", Source: SourceFlag, Path: python, Err: err, Hint: pythonHint}
	}
	if with, err := withPip(ctx, python); err == nil || ctx.Err() != nil {
		return with, err
	}
	quiet := o
	quiet.Progress = nil
	venv := filepath.Join(temp, "venv")
	if err := quiet.run(ctx, o.childEnv(), python, "-m", "venv", venv); err != nil {
		return "", &UnusableError{What: "python", Source: SourcePath, Path: python, Err: errors.New("it has neither pip nor venv"), Hint: pipHint}
	}
	return withPip(ctx, filepath.Join(venv, "bin", "python3"))
}

// withPip returns the interpreter behind python if it has pip. Behind, because
// a version manager's python3 is a script that starts the interpreter as its
// child, and a child's child does not die with gate.
func withPip(ctx context.Context, python string) (string, error) {
	out, err := ask(ctx, python, "-c", "import sys, pip; print(sys.executable)")
	if err != nil {
		return "", err
	}
	if behind := firstLine(out); filepath.IsAbs(behind) && executable(behind) == nil {
		return behind, nil
	}
	return python, nil
}

func (o InstallOptions) pathList() string { return Options{Env: o.Env}.env("PATH") }

// childEnv is the process's environment with the caller's PATH.
func (o InstallOptions) childEnv() []string {
	return append(os.Environ(), "PATH="+o.pathList(), "LC_ALL=C.UTF-8")
}

// run runs a command in its own process group, passes its lines on as
// progress and keeps the last of them for the error.
func (o InstallOptions) run(ctx context.Context, env []string, name string, args ...string) error {
	out := &lines{emit: func(s string) { o.say("%s", s) }}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	// The death signal follows the thread that started the child, so that
	// thread must live as long as the child does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	out.flush()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &PipError{Command: append([]string{name}, args...), Output: out.last(), Err: err, Hint: networkHint}
}

// lines cuts a stream into lines and keeps the end of it. One line is never
// longer than pipLine.
type lines struct {
	emit    func(string)
	partial bytes.Buffer
	tail    []byte
}

var _ io.Writer = (*lines)(nil)

func (l *lines) Write(p []byte) (int, error) {
	l.tail = append(l.tail, p[max(0, len(p)-pipTail):]...)
	l.tail = l.tail[max(0, len(l.tail)-pipTail):]
	for _, b := range p {
		switch {
		case b == '\n':
			l.flush()
		case l.partial.Len() < pipLine:
			l.partial.WriteByte(b)
		}
	}
	return len(p), nil
}

func (l *lines) flush() {
	if s := strings.TrimRight(l.partial.String(), "\r \t"); s != "" {
		l.emit(s)
	}
	l.partial.Reset()
}

func (l *lines) last() string { return strings.TrimSpace(string(l.tail)) }
