package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// inputs is the folder of an op's inputs and their exact results, from which the
// harness chooses at random. Where the folder is missing the path is empty, and the
// harness computes what it needs.
func (c *Bench) inputs(op string) string {
	folder := c.inputsPath(op)
	if _, err := os.Stat(folder); c.data == "" || err != nil {
		return ""
	}
	return folder
}

func (c *Bench) inputsPath(op string) string {
	return filepath.Join(c.data, strings.TrimSuffix(filepath.Base(op), ".so"))
}

// makeInputs makes what a case lacks, once for an op, a case and a cache.
func (c *Bench) makeInputs(ctx context.Context, op string, units []unit) error {
	if c.data == "" {
		return nil
	}
	for _, u := range units {
		to := filepath.Join(c.inputsPath(op), inputsOf(u.on))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		c.say("making inputs of %s on %s", u.op.Name, u.on.Name)
		if err := c.makeCase(ctx, op, u, to); err != nil {
			return fmt.Errorf("making inputs of %s on %s: %w", u.op.Name, u.on.Name, err)
		}
	}
	return nil
}

// inputsOf is the harness's name for the folder of a case: "mission-1x8x512x64", with what
// is compared of it where that is not all.
func inputsOf(c manifest.Case) string {
	var sizes []string
	for _, d := range c.Dims {
		sizes = append(sizes, fmt.Sprint(d.Size))
	}
	name := c.Name + "-" + strings.Join(sizes, "x")
	if c.Rows > 0 {
		name += fmt.Sprintf("-rows%d", c.Rows)
	}
	return name
}

// makeCase lets the op fill a new folder, which is then put into its place: a
// folder that is there is whole.
func (c *Bench) makeCase(ctx context.Context, op string, u unit, to string) error {
	tmp, err := disk.TempDir(c.cache, "inputs")
	if err != nil {
		return err
	}
	defer disk.RemoveTemp(tmp)
	args := append([]string{"prepare", "--op", op, "--case", u.on.String(), "--data", tmp}, declared([]unit{u})...)
	program := c.asked(args, harnessLimit)
	program.Idle = c.idle()
	r, err := c.runIn(ctx, tmp, program, op)
	if err != nil {
		return err
	}
	if s := parseStream(r.Stdout); !s.ended || r.Err() != nil {
		if len(s.errors) > 0 {
			return s.errors[0].fault()
		}
		return errors.New(ending("the harness", r))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	there := func() bool { _, err := os.Stat(to); return err == nil }
	return disk.PublishFolder(filepath.Join(tmp, inputsOf(u.on)), to, there)
}
