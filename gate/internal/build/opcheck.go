package build

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

//go:embed opcheck/main.cc
var opCheckSource []byte

// opCheckLimit ends an op that does not end on its smallest case.
const opCheckLimit = 5 * time.Minute

// CheckOp builds an op and looks at it without a GPU: it has to load, to
// describe what op.yaml says, and to make inputs and a result of its smallest
// case. An op that was found to be right is not looked at again.
func (h *Harness) CheckOp(ctx context.Context, tc *toolchain.Toolchain, op *manifest.Op) error {
	key, err := h.opKey(tc, op)
	if err != nil {
		return err
	}
	args := []string{op.Name}
	for _, d := range smallest(op.Cases).Dims {
		args = append(args, fmt.Sprintf("%s=%d", d.Name, d.Size))
	}
	seen := filepath.Join(h.cache, "op-"+keyOf(append([]string{key, string(opCheckSource)}, args...)...)+".right")
	if data, err := os.ReadFile(seen); err == nil && string(data) == key {
		return nil
	}
	library, err := h.Op(ctx, tc, op)
	if err != nil {
		return err
	}
	program, err := h.opChecker(ctx, tc)
	if err != nil {
		return err
	}
	if err := h.lookAt(ctx, op, program, library, args); err != nil {
		return err
	}
	if err := disk.WriteFile(seen, []byte(key)); err != nil {
		return fmt.Errorf("keeping what was found about op %s: %w", op.Name, err)
	}
	return nil
}

// smallest is the case of the fewest elements, as far as its dims tell.
func smallest(cases []manifest.Case) manifest.Case {
	size := func(c manifest.Case) float64 {
		log := 0.0
		for _, d := range c.Dims {
			log += math.Log(float64(d.Size))
		}
		return log
	}
	return slices.MinFunc(cases, func(a, b manifest.Case) int { return cmp.Compare(size(a), size(b)) })
}

// opChecker is the program that looks at ops.
func (h *Harness) opChecker(ctx context.Context, tc *toolchain.Toolchain) (string, error) {
	name := "gate-op-check-" + keyOf("op check", string(opCheckSource), filepath.Base(h.Include), tc.Fingerprint())
	made, err := h.make(name, func(out string) error {
		source := out + ".cc"
		if err := os.WriteFile(source, opCheckSource, 0o644); err != nil {
			return err
		}
		return h.compile(ctx, tc, tc.HostCompiler, filepath.Dir(out), []string{"-O1", "-std=c++17", "-I", h.Include, source, "-ldl", "-o", out})
	})
	if err != nil {
		return "", fmt.Errorf("building what looks at ops: %w", err)
	}
	return made, nil
}

// lookAt runs the program on one op and puts what it says into an error.
func (h *Harness) lookAt(ctx context.Context, op *manifest.Op, program, library string, args []string) error {
	tmp, err := disk.TempDir(h.shared, "op")
	if err != nil {
		return err
	}
	defer disk.RemoveTemp(tmp)
	r, err := command.Command{Path: program, Args: append([]string{library}, args...), Dir: tmp, Limit: opCheckLimit, Most: 1 << 20,
		Confine: &command.Confinement{Temp: tmp, Read: []string{program, library}}}.Run(ctx)
	if err != nil {
		return fmt.Errorf("looking at op %s: %w", op.Name, err)
	}
	lines := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	last := lines[len(lines)-1]
	step := printable.Line(strings.TrimPrefix(last, "at "))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("looking at op %s: %w", op.Name, ctx.Err())
	case r.Err() == nil && last == "ok":
		return nil
	case r.Err() == nil && strings.HasPrefix(last, "wrong "):
		return broken(op, printable.Line(strings.TrimPrefix(last, "wrong ")))
	case r.Err() == nil && last == "short of memory", r.Signal == "killed":
		return fmt.Errorf("looking at op %s: this machine has too little memory for its smallest case", op.Name)
	case r.Stopped != "":
		return broken(op, "does not end: "+r.Stopped+" in "+step)
	case r.Signal != "":
		return broken(op, fmt.Sprintf("crashes (%s) in %s", r.Signal, step))
	}
	return broken(op, fmt.Sprintf("fails (%v) in %s", r.Err(), step))
}

// broken points at the line of op.yaml that an op contradicts, or at its code.
func broken(op *manifest.Op, why string) error {
	file := path.Join(path.Dir(op.File), op.Sources[0])
	for prefix, key := range map[string]string{"has the dims ": "dims", "is called ": "op"} {
		if strings.HasPrefix(why, prefix) {
			file = fmt.Sprintf("%s:%d", op.File, op.Lines[key])
		}
	}
	return &InputError{file, "the op " + why}
}
