package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
)

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
	if c.out == nil {
		c.out = io.Discard
	}
	safe := []string{"--no-pager", "--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.ignoreCase=false",
		"-c", "core.askPass=", "-c", "fetch.negotiationAlgorithm=noop"}
	env := []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}
	r, err := command.Command{Path: "git", Args: slices.Concat(safe, c.repo, c.args), Dir: c.dir, Env: append(env, c.env...),
		Pass: append([]string{"SUDO_UID"}, c.pass...), In: c.in, Out: c.out, Limit: c.limit}.Run(ctx)
	switch {
	case err == nil && r.Err() == nil:
		return nil
	case err == nil && r.Stopped == "":
		return &failedCall{Args: c.args, Output: r.Stderr, Err: r.Err(), status: r.Code}
	case err == nil:
		err = r.Err()
	}
	return &failedCall{Args: c.args, Output: r.Stderr, Err: err}
}

// text is the output of git, less the line break that ends it.
func text(ctx context.Context, dir string, args ...string) (string, error) {
	var out strings.Builder
	err := call{dir: dir, out: &out, args: args}.run(ctx)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// answered reports whether git ran to its end and did not succeed. A git that
// was killed or never started has said nothing about the repository.
func answered(err error) bool { return status(err) > 0 }

// saidNo is the status by which git answers a question with no, while others
// say that it could not tell.
func saidNo(err error) bool { return status(err) == 1 }

func status(err error) int {
	var failed *failedCall
	if !errors.As(err, &failed) {
		return 0
	}
	return failed.status
}

// A failedCall is a git command that failed.
type failedCall struct {
	Args   []string
	Output string
	Err    error
	status int // 0 where git did not end by itself
}

func (e *failedCall) Error() string {
	msg, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	if msg == "" {
		msg = e.Err.Error()
	}
	return fmt.Sprintf("git %s: %s", e.Args[0], msg)
}

func (e *failedCall) Unwrap() error { return e.Err }
