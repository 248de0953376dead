package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	probeTimeout = 20 * time.Second // a cold start over a network file system takes seconds
	probeOutput  = 16 << 10         // bytes kept of a --version text
)

// askVersion runs `path --version` and returns what it printed.
func askVersion(ctx context.Context, path string) (string, error) {
	return ask(ctx, path, "--version")
}

// ask runs a program that answers at once and returns what it printed.
func ask(ctx context.Context, path string, args ...string) (string, error) {
	question := strings.Join(args, " ")
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out := &head{limit: probeOutput}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s gave no answer in %v", question, probeTimeout)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && out.String() != "":
		return "", fmt.Errorf("%s failed: %w: %s", question, err, firstLine(out.String()))
	case err != nil:
		return "", fmt.Errorf("%s failed: %w", question, err)
	}
	return out.String(), nil
}

// fileSHA256 is the content hash of a file, in hex.
func fileSHA256(_ context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A head keeps the first bytes written to it and drops the rest, so that a
// program that never stops printing costs no memory. The buffer is no embedded
// field: its ReadFrom would pass the limit by.
type head struct {
	kept  bytes.Buffer
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(h.limit-h.kept.Len(), len(p))])
	return len(p), nil
}

func (h *head) String() string { return h.kept.String() }
