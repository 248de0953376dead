package toolchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
)

const (
	pipTail     = 4 << 10  // bytes of pip's output kept for an error
	pipOutput   = 16 << 20 // bytes
	pythonHint  = "apt-get install python3 python3-pip"
	pipHint     = "apt-get install python3-pip (or python3-venv)"
	networkHint = "pip reads its own configuration: check PIP_INDEX_URL, proxy and certificates with `python3 -m pip config list`"
)

// A pipError says how pip failed.
type pipError struct {
	Output string // the end of what it printed
	Err    error
	Advice string
}

func (e *pipError) Error() string {
	msg := fmt.Sprintf("pip failed: %v", e.Err)
	if why := e.why(); why != "" {
		msg += ": " + why
	}
	return msg
}

// ExitCode is that of a tool that failed.
func (e *pipError) ExitCode() int { return exit.Tool }

// Hint says how to get it.
func (e *pipError) Hint() string { return e.Advice }

// why is pip's last line that calls itself an error, else its last line.
func (e *pipError) why() string {
	rows := strings.Split(e.Output, "\n")
	for _, row := range slices.Backward(rows) {
		if why, ok := strings.CutPrefix(strings.TrimSpace(row), "ERROR: "); ok {
			return printable.Line(why)
		}
	}
	return printable.Last(e.Output)
}

func (e *pipError) Unwrap() error { return e.Err }

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
	env := []string{
		// pip unpacks here first: on the same file system moving is a rename,
		// and what a killed pip leaves is cleaned with the rest.
		"TMPDIR=" + scratch,
		"PIP_REQUIRE_VIRTUALENV=false", "PIP_ROOT_USER_ACTION=ignore", // no environment is touched
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"}
	return o.run(ctx, env, python, "-m", "pip", "install",
		"--no-deps", "--require-hashes", "--only-binary=:all:", "--no-user", "--no-compile", "--no-input",
		"--disable-pip-version-check", "--no-warn-script-location", "--progress-bar", "off",
		"--target", target, "-r", requirements)
}

// pythonWithPip returns a Python that has pip: the user's, else one in a
// throw-away virtual environment.
func (o InstallOptions) pythonWithPip(ctx context.Context, temp string) (string, error) {
	python := o.lookNamed(cmp.Or(o.Python, "python3"))
	if python == "" {
		return "", &NotFoundError{What: "python3, which fetches the compiler,", Searched: []string{"PATH"}, Advice: pythonHint}
	}
	if err := executable(python); err != nil {
		return "", &UnusableError{What: "python", Source: sourceFlag, Path: python, Err: err, Advice: pythonHint}
	}
	if with, err := withPip(ctx, python); err == nil || ctx.Err() != nil {
		return with, err
	}
	quiet := o
	quiet.Progress = nil
	venv := filepath.Join(temp, "venv")
	if err := quiet.run(ctx, nil, python, "-m", "venv", venv); err != nil {
		return "", &UnusableError{What: "python", Source: sourcePath, Path: python, Err: errors.New("it has neither pip nor venv"), Advice: pipHint}
	}
	return withPip(ctx, filepath.Join(venv, "bin", "python3"))
}

// withPip returns the interpreter behind python if it has pip. Behind, because
// a version manager's python3 is a script that starts the interpreter as its
// child, and a child's child does not die with gate.
func withPip(ctx context.Context, python string) (string, error) {
	out, err := ask(ctx, command.Command{Path: python, Args: []string{"-c", "import sys, pip; print(sys.executable)"}, Pass: pipReads})
	if err != nil {
		return "", err
	}
	if behind := printable.First(out); filepath.IsAbs(behind) && executable(behind) == nil {
		return behind, nil
	}
	return python, nil
}

// pipReads are the variables that pip's configuration consists of.
var pipReads = []string{
	"PIP_*", "PYTHON*", "NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"XDG_DATA_HOME", "XDG_CONFIG_DIRS",
}

// run runs Python, passes its lines on as progress and keeps the last of them
// for the error.
func (o InstallOptions) run(ctx context.Context, env []string, python string, args ...string) error {
	env = append([]string{"PATH=" + o.env("PATH"), "LC_ALL=C.UTF-8"}, env...)
	r, err := command.Command{Path: python, Args: args, Env: env, Pass: pipReads, Limit: installTimeout, Most: pipOutput, Merge: true,
		Lines: func(s string) { o.say("%s", printable.Line(s)) }}.Run(ctx)
	if err == nil {
		err = r.Err()
	}
	if err == nil {
		return nil
	}
	end := string(r.Stdout[max(0, len(r.Stdout)-pipTail):])
	return &pipError{Output: end, Err: err, Advice: networkHint}
}
