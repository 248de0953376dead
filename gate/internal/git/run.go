package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// passed are the variables of gate's own that git sees: none that names a
// repository, an index, an object store or configuration of a single command.
// Git's configuration files stay, since safe.directory stands in them.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME", "LD_LIBRARY_PATH", "SUDO_UID",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
}

// toFetch are variables that fetching needs besides.
var toFetch = []string{
	"SSH_AUTH_SOCK", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "GIT_SSL_CAINFO", "SSL_CERT_FILE",
}

// A call is one run of git.
type call struct {
	dir   string
	repo  []string // --git-dir and --work-tree; none lets git find the repository from dir
	env   []string // NAME=value, beside what every call has
	pass  []string // variables of gate's own, beside what passes to every call
	in    io.Reader
	out   io.Writer
	limit time.Duration // two minutes when 0
	args  []string
}

// run is the one place that starts git. What the repository configures is code
// of a stranger, so nothing of it runs: no hook, monitor, pager or prompt.
// Nothing is refreshed in passing, no object is fetched unasked (which older
// versions of git understand by the list of protocols only), and no reference
// replaces an object by another.
func (c call) run(ctx context.Context) error {
	if c.limit == 0 {
		c.limit = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	safe := []string{"--no-pager", "--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.ignoreCase=false",
		"-c", "core.askPass=", "-c", "fetch.negotiationAlgorithm=noop"}
	cmd := exec.CommandContext(ctx, "git", slices.Concat(safe, c.repo, c.args)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.WaitDelay = c.dir, c.in, c.out, 5*time.Second
	cmd.Env = []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(passed, name) || slices.Contains(c.pass, name) {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, c.env...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &Error{Args: c.args, Output: errOut.String(), Err: err}
	}
	return nil
}

// text is the output of git, less the line break that ends it.
func text(ctx context.Context, dir string, args ...string) (string, error) {
	var out strings.Builder
	err := call{dir: dir, out: &out, args: args}.run(ctx)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// answered reports whether git ran to its end and did not succeed. A git that
// was killed or never started has said nothing about the repository.
func answered(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() > 0
}

// saidNo is the status by which git answers a question with no, while others
// say that it could not tell.
func saidNo(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// An Error is a git command that failed.
type Error struct {
	Args   []string
	Output string
	Err    error
}

func (e *Error) Error() string {
	msg, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	if msg == "" {
		msg = e.Err.Error()
	}
	return fmt.Sprintf("git %s: %s", e.Args[0], msg)
}

func (e *Error) Unwrap() error { return e.Err }
