package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A lab is where checks run: one gate, one cache, one deadline.
type lab struct {
	gate  string
	dir   string
	extra []string // further arguments of every check
}

// A check is one run of gate check, with the records that it left.
type check struct {
	verdict *verdict.Verdict
	seconds float64
	records map[evidence.Identity]*evidence.Record // of the latency tier, by the head's code
}

const maxRecord = 64 << 20

// check runs the gate. Red and inconclusive are results; a missing verdict or a
// tool that failed is an error.
func (l *lab) check(ctx context.Context, r *repository, args ...string) (*check, error) {
	out, err := os.MkdirTemp(l.dir, "verdict-")
	if err != nil {
		return nil, err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, l.gate, append(append([]string{"check", "--out", out}, l.extra...), args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GATE_CACHE="+l.cache())
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 4)) {
		return nil, fmt.Errorf("gate %s: %w: %s", strings.Join(args, " "), err, tail(string(said)))
	}
	c := &check{seconds: time.Since(start).Seconds()}
	if c.verdict, err = verdict.Read(filepath.Join(out, "verdict.json")); err != nil {
		return nil, fmt.Errorf("%w: %s", err, tail(string(said)))
	}
	c.records, err = recordsSince(filepath.Join(l.cache(), "evidence"), start)
	return c, err
}

func (l *lab) cache() string { return filepath.Join(l.dir, "cache") }

// tail keeps the end of a long text.
func tail(s string) string {
	const most = 2000
	if s = strings.TrimSpace(s); len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// recordsSince reads the latency records that were written after a moment.
// Copies of one kernel share an address, and the last one written stays.
func recordsSince(dir string, since time.Time) (map[evidence.Identity]*evidence.Record, error) {
	found := map[evidence.Identity]*evidence.Record{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), "latency") || !strings.HasSuffix(e.Name(), ".json") {
			return err
		}
		info, err := e.Info()
		// File systems keep time in coarse ticks.
		if err != nil || info.ModTime().Before(since.Add(-10*time.Millisecond)) {
			return err
		}
		if info.Size() > maxRecord {
			return fmt.Errorf("%s: %d bytes is not a record", path, info.Size())
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := evidence.Decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found[r.Address.Identity] = r
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	return found, err
}
