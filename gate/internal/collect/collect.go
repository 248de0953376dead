// Package collect turns artifacts into evidence: it runs the harness and the
// profiler under time limits, translates what they and the compiler say into
// records, and hands every record over as soon as it exists, so that nothing
// measured is lost because something later failed.
package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// A unit is one kernel on one case: what a record is about. Role tells apart
// artifacts of one kernel that share a process: builds for two architectures,
// or a reference that is a kernel of the change as well.
type unit struct {
	kernel   string
	role     string
	tool     string // of compute-sanitizer, where one watches it
	op       *manifest.Op
	on       manifest.Case
	artifact *build.Artifact
	address  evidence.Address
	pdl      bool                        // it launches programmatically
	calls    map[evidence.CacheState]int // in a batch; the harness chooses where there is none
}

// name is what the harness calls the kernel.
func (u unit) name() string {
	if u.role == "" {
		return u.kernel
	}
	return u.kernel + ":" + u.role
}

func (u unit) run() string { return u.name() + "@" + u.on.Name }

// defaultIdle is far above the longest silence of a kernel that works: one
// input class of one case, the CPU's reference included.
const defaultIdle = 30 * time.Second

// errDevice is returned when the device no longer answers: nothing that
// follows on it can be trusted.
var errDevice = errors.New("the device does not answer")

func (c *Bench) idle() time.Duration {
	if c.limit > 0 {
		return c.limit
	}
	return defaultIdle
}

func (c *Bench) record(tier evidence.Tier, u unit) *evidence.Record {
	return &evidence.Record{Schema: evidence.Schema, Tier: tier, Tool: u.tool, Address: u.address,
		Provenance: evidence.Provenance{Recorded: c.now().UTC().Format(time.RFC3339), Kernel: u.kernel,
			Commit: c.commit, Compiler: u.artifact.Compiler, Machine: c.Machine, Card: evidence.CardOf(c.device.UUID)}}
}

// failed is a record of a tier that ended without its measurement. It is
// handed back and not kept: the next run asks again.
func (c *Bench) failed(tier evidence.Tier, u unit, f *evidence.Failure) *evidence.Record {
	r := c.record(tier, u)
	r.Failure = f
	return r
}

// probe asks the device for a sign of life after a kernel hung or crashed.
func (c *Bench) probe(ctx context.Context) error {
	r, err := c.run(ctx, c.asked([]string{"device"}, time.Minute))
	if err != nil {
		return err
	}
	if s := parseStream(r.Stdout); s.ended && r.Err() == nil && len(s.errors) == 0 {
		return nil
	}
	why := ending("the harness", r)
	if xid := gpu.LastXid(); xid != "" {
		why += "; the driver's last Xid is " + xid
	}
	return fmt.Errorf("%w: %s", errDevice, why)
}

// harnessLimit ends a process that is never silent and never done.
const harnessLimit = 30 * time.Minute

// maxHarnessOutput is far above what all units of a process can have to say.
const maxHarnessOutput = 64 << 20

// asked is the measuring program with its arguments in standard input. Another process
// that runs at the same time could read them in its command line, which Linux also bounds.
func (c *Bench) asked(args []string, limit time.Duration) command.Command {
	return command.Command{Path: c.program, Args: []string{"-"}, In: asInput(args), Limit: limit}
}

// asInput is what the measuring program reads as these arguments: each ends with a zero
// byte.
func asInput(args []string) io.Reader {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(a)
		b.WriteByte(0)
	}
	return strings.NewReader(b.String())
}

// run lets a program see the one GPU that the caller has locked, and the files
// of these units. Its temporary folder is new, so that no process leaves
// anything to the next.
func (c *Bench) run(ctx context.Context, program command.Command, files ...string) (command.Result, error) {
	tmp, err := disk.TempDir(c.cache, "harness")
	if err != nil {
		return command.Result{}, err
	}
	defer disk.RemoveTemp(tmp)
	return c.runIn(ctx, tmp, program, files...)
}

func (c *Bench) runIn(ctx context.Context, tmp string, program command.Command, files ...string) (command.Result, error) {
	began := time.Now()
	r, err := c.confined(tmp, program, files...).Run(ctx)
	c.ran(began, time.Now())
	return r, err
}

// confined is a program as it runs in a temporary folder.
func (c *Bench) confined(tmp string, program command.Command, files ...string) command.Command {
	program.Most, program.Dir = maxHarnessOutput, tmp
	program.Env = []string{"CUDA_VISIBLE_DEVICES=" + c.device.UUID, "CUDA_DEVICE_ORDER=PCI_BUS_ID"}
	program.Confine = &command.Confinement{Temp: tmp, Read: append([]string{c.program}, files...), Device: true, Counters: program.Path == c.ncu}
	return program
}

// harness runs one process of the measuring program.
func (c *Bench) harness(ctx context.Context, mode string, units []unit) (*stream, command.Result, error) {
	p, err := c.launch(ctx, mode, units, nil, nil)
	if err != nil {
		return nil, command.Result{}, err
	}
	return p.finish()
}

// ask is what the harness is asked for about these units, and what it reads then. A
// profile takes one input of each case, for which the whole folder is not made.
func (c *Bench) ask(ctx context.Context, mode string, units []unit) (args, reads []string, err error) {
	op, err := c.op(units[0].op)
	if err != nil {
		return nil, nil, err
	}
	args, reads = harnessArgs(mode, op, units), files(op, units)
	if mode != "profile" {
		if err := c.makeInputs(ctx, op, units); err != nil {
			return nil, nil, err
		}
	}
	if data := c.inputs(op); data != "" {
		args, reads = append(args, "--data", data), append(reads, data)
	}
	return args, reads, nil
}

// files are what a process over these units loads.
func files(op string, units []unit) []string {
	list := []string{op}
	for _, u := range units {
		list = append(append(list, u.artifact.Library), u.artifact.Loads...)
	}
	return list
}

func harnessArgs(mode, op string, units []unit) []string {
	args := []string{mode, "--op", op}
	cases, kernels := map[string]bool{}, map[string]bool{}
	for _, u := range units {
		if !cases[u.on.Name] {
			cases[u.on.Name] = true
			args = append(args, "--case", u.on.String())
		}
	}
	for _, u := range units {
		if !kernels[u.name()] {
			kernels[u.name()] = true
			args = append(args, "--kernel", u.name()+"="+u.artifact.Library)
		}
	}
	for _, u := range units {
		args = append(args, "--run", u.run())
	}
	return append(args, declared(units)...)
}

// declared is what op.yaml and kernel.yaml say of tensors, results and launches.
func declared(units []unit) []string {
	op := units[0].op
	var args, limits []string
	for _, name := range slices.Sorted(maps.Keys(op.Tolerance)) {
		limits = append(limits, fmt.Sprintf("%s=%g", name, op.Tolerance[name]))
	}
	if len(limits) > 0 {
		args = append(args, "--tolerance", strings.Join(limits, ","))
	}
	for _, name := range op.Exact {
		args = append(args, "--exact", name)
	}
	for _, name := range op.InOut {
		args = append(args, "--inout", name)
	}
	if op.Alignment > 0 {
		args = append(args, "--alignment", fmt.Sprint(op.Alignment))
	}
	if op.Workspace > 0 {
		args = append(args, "--workspace", fmt.Sprint(op.Workspace))
	}
	if op.Varies {
		args = append(args, "--varies")
	}
	if unit := op.WorkUnit(); unit != "" {
		args = append(args, "--work-unit", unit)
	}
	cases := map[string]bool{}
	for _, u := range units {
		if u.on.Rows > 0 && !cases[u.on.Name] {
			cases[u.on.Name] = true
			args = append(args, "--rows", fmt.Sprintf("%s=%d", u.on.Name, u.on.Rows))
		}
	}
	named := func(flag string, holds func(unit) bool) {
		seen := map[string]bool{}
		for _, u := range units {
			if holds(u) && !seen[u.name()] {
				seen[u.name()] = true
				args = append(args, flag, u.name())
			}
		}
	}
	named("--pdl", func(u unit) bool { return u.pdl })
	// A library alone: another kernel that serves as a reference is judged as well.
	named("--reference", func(u unit) bool { return u.artifact.Of != nil })
	return args
}

// failure words how a harness process broke, blaming the kernel only for what
// is a kernel's doing. It is nil for a stream that ended well.
func failure(s *stream, r command.Result, during string) *evidence.Failure {
	switch {
	case r.Stopped != "":
		return &evidence.Failure{Kind: evidence.Hang, Message: fmt.Sprintf("the kernel hangs%s: %s, and was killed", during, r.Stopped)}
	case r.Signal != "":
		return &evidence.Failure{Kind: evidence.Crash, Message: fmt.Sprintf("the process died%s: %s", during, r.Signal)}
	case s.garbled != nil:
		return &evidence.Failure{Kind: evidence.Tool, Message: s.garbled.Error()}
	case !s.ended:
		kind := evidence.Tool
		if s.last != nil {
			kind = evidence.Crash
		}
		return &evidence.Failure{Kind: kind, Message: fmt.Sprintf("the harness ended%s with status %d and without its end record: %s", during, r.Code, printable.Last(r.Stderr))}
	case r.Code > 1:
		return &evidence.Failure{Kind: evidence.Tool, Message: ending("the harness", r)}
	}
	return nil
}

// ending words how a program ended, and the last that it said.
func ending(program string, r command.Result) string {
	how := fmt.Sprintf("%s ended with status %d", program, r.Code)
	switch {
	case r.Stopped != "":
		how = program + " was killed: " + r.Stopped
	case r.Signal != "":
		how = program + " was ended by a signal: " + r.Signal
	}
	if said := printable.Last(r.Stderr); said != "" {
		how += ": " + said
	}
	return how
}

// fault words an error record of the harness.
func (m errorMsg) fault() *evidence.Failure {
	f := &evidence.Failure{Message: m.Message}
	if m.Name != "" {
		f.Message = fmt.Sprintf("%s (%d): %s", m.Name, m.Code, m.Message)
	}
	if m.Class != "" {
		f.Message = fmt.Sprintf("inputs %q: %s", m.Class, f.Message)
	}
	switch m.Kind {
	case "cuda", "capture":
		f.Kind = evidence.CUDA
	case "empty_graph", "output_changed", "unsupported", "symbol", "load", "exception",
		"not_a_chain", "not_alone", "wrong_when_timed", "too_fast", "forged":
		f.Kind = evidence.Wrong
	default:
		f.Kind = evidence.Tool
	}
	return f
}

// unsettles reports whether the failure can have left the device in a bad state.
func unsettles(f *evidence.Failure) bool {
	return f.Kind == evidence.Hang || f.Kind == evidence.Crash || f.Kind == evidence.CUDA
}

func (s *stream) during() string {
	if s.last == nil {
		return ""
	}
	where := s.last.Case
	if s.last.Class != "" {
		where += fmt.Sprintf(", inputs %q", s.last.Class)
	}
	if s.last.Regime != "" {
		where += ", " + s.last.Regime
	}
	return " (" + where + ")"
}
