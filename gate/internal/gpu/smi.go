package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	smiTimeout = 60 * time.Second // without persistence mode each GPU is initialised first, seconds apiece
	smiGrace   = 2 * time.Second
	smiOutput  = 1 << 20 // bytes
)

// usualSMI is where container runtimes mount the driver's programs when PATH
// does not say so.
var usualSMI = []string{"/usr/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}

// A smiError is an nvidia-smi that ran and failed.
type smiError struct {
	code int
	said string // all of it, bounded
}

func (e *smiError) Error() string {
	return fmt.Sprintf("nvidia-smi ended with %d: %s", e.code, firstLine(e.said))
}

// smi runs nvidia-smi and returns what it printed on standard output.
func smi(ctx context.Context, args ...string) (string, error) {
	path, err := smiPath()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	out, errs := &capped{limit: smiOutput}, &capped{limit: smiOutput}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = smiGrace
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		// A process stuck in the driver cannot be killed; it is left behind.
		select {
		case <-done:
		case <-time.After(2 * smiGrace):
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", fmt.Errorf("%w: nvidia-smi gave no answer in %v", ErrNoDriver, smiTimeout)
		}
		return "", ctx.Err()
	}
	if out.over {
		return "", fmt.Errorf("nvidia-smi printed more than %d bytes", smiOutput)
	}
	return out.String(), smiFailure(err, out.String(), errs.String())
}

func smiPath() (string, error) {
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		return path, nil
	}
	for _, path := range usualSMI {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: nvidia-smi is not on PATH", ErrNoDriver)
}

// smiFailure turns the ways in which nvidia-smi fails into errors; a sign of
// failure in the text counts whatever the exit code.
func smiFailure(err error, out, errs string) error {
	said := errs + "\n" + out
	for _, sign := range []string{"couldn't communicate with the NVIDIA driver", "Failed to initialize NVML", "Driver/library version mismatch"} {
		if strings.Contains(said, sign) {
			return fmt.Errorf("%w: %s", ErrNoDriver, firstLine(said))
		}
	}
	if strings.Contains(said, "No devices were found") {
		return ErrNoDevice
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return &smiError{code: exit.ExitCode(), said: said}
	default:
		return fmt.Errorf("%w: run nvidia-smi: %w", ErrNoDriver, err)
	}
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return printable(line, 300)
		}
	}
	return ""
}

// printable replaces control characters and cuts a text that comes from
// elsewhere to at most limit runes.
func printable(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		if r < ' ' || (r >= 0x7f && r < 0xa0) || r == 0x2028 || r == 0x2029 || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			r = '\uFFFD'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A capped keeps the first bytes written to it and notes that there were more.
// The buffer is no embedded field: its ReadFrom would pass the limit by.
type capped struct {
	kept  bytes.Buffer
	limit int
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.limit - c.kept.Len()
	if len(p) > room {
		c.over = true
	}
	c.kept.Write(p[:min(room, len(p))])
	return len(p), nil
}

func (c *capped) String() string { return c.kept.String() }
