package gpu

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/printable"
)

const (
	smiTimeout = 60 * time.Second // without persistence mode each GPU is initialised first, seconds apiece
	smiOutput  = 1 << 20          // bytes
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
	return fmt.Sprintf("nvidia-smi ended with %d: %s", e.code, printable.First(e.said))
}

// smi runs nvidia-smi and returns what it printed on standard output. One that
// is stuck in the driver cannot be killed and is left running.
func smi(ctx context.Context, args ...string) (string, error) {
	path, err := smiPath()
	if err != nil {
		return "", err
	}
	r, err := command.Command{Path: path, Args: args, Limit: smiTimeout, Most: smiOutput}.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNoDriver, err)
	case r.Over:
		return "", fmt.Errorf("nvidia-smi: %w", r.Err())
	case r.Stopped != "":
		return "", fmt.Errorf("%w: nvidia-smi gave no answer: %w", ErrNoDriver, r.Err())
	}
	return string(r.Stdout), smiFailure(r)
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
func smiFailure(r command.Result) error {
	said := r.Stderr + "\n" + string(r.Stdout)
	for _, sign := range []string{"couldn't communicate with the NVIDIA driver", "Failed to initialize NVML", "Driver/library version mismatch"} {
		if strings.Contains(said, sign) {
			return fmt.Errorf("%w: %s", ErrNoDriver, printable.First(said))
		}
	}
	if strings.Contains(said, "No devices were found") {
		return ErrNoDevice
	}
	if r.Err() != nil {
		return &smiError{code: r.Code, said: said}
	}
	return nil
}
