package collect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// Options say on what to measure and with what.
type Options struct {
	GPU      string        // UUID or index; "" for the first that is wanted, and others like it
	Wait     time.Duration // how long to wait for a GPU that another run holds
	Idle     time.Duration // a harness that is silent for longer hangs
	Cache    string
	Env      func(string) string
	Tools    *toolchain.Toolchain
	Harness  *build.Harness
	Made     *build.Set
	Complete func(context.Context, *build.Artifact) error // makes an artifact ready to be loaded
	Commit   string                                       // of the head
	Metrics  []string                                     // of the profiler
	Budget   compare.Budget
	Force    bool // measure anew
	Keep     func(r *evidence.Record, against string, raw map[string][]byte) error
	Open     *store.Unfinished                                 // where records lie while they are measured; may be nil
	Inputs   func(*evidence.Record) (map[string][]byte, error) // of a record that is stored
	Progress Progress                                          // may be nil
	Now      func() time.Time
}

// A Bench measures on one GPU, which it has locked. Every record is handed to
// keep as soon as it is made.
type Bench struct {
	Machine evidence.Machine
	Notes   []string // for the verdict
	Spans   []Span   // what was measured when

	cache     string
	data      string // folder of inputs and their exact results; "" for none
	program   string // the harness
	op        func(*manifest.Op) (string, error)
	ncu       string // "" when it is not installed
	ncuWhy    string // what to say then
	profiler  string // ncu's version
	sanitizer string // "" when compute-sanitizer is not installed

	sanitizerWhy, sanitizerVersion string

	device    gpu.Device
	commit    string
	metrics   []string
	made      *build.Set
	complete  func(context.Context, *build.Artifact) error
	budget    compare.Budget
	force     bool
	keep      func(r *evidence.Record, against string, raw map[string][]byte) error
	open      *store.Unfinished
	stored    func(*evidence.Record) (map[string][]byte, error)
	progress  Progress
	work      work
	now       func() time.Time
	limit     time.Duration // a harness that is silent for longer hangs
	lock      *gpu.Lock
	apart     bool                                         // a process starts only when the one before is gone
	most      int                                          // units of a process
	processes func(context.Context) ([]gpu.Process, error) // on all devices; nil asks the driver
}

// A NoGPUError says that nothing can be measured here, which is nobody's fault.
type NoGPUError struct{ Why string }

func (e *NoGPUError) Error() string { return e.Why }

// Open chooses and locks a GPU that is wanted, and builds the harness for it.
func Open(ctx context.Context, o Options, wants func(evidence.Machine) bool) (*Bench, error) {
	device, err := choose(ctx, o, wants)
	if err != nil {
		return nil, err
	}
	b := &Bench{most: mostUnits, cache: o.Cache, data: filepath.Join(o.Cache, "data"), device: *device, Machine: machineOf(*device, o.Tools), commit: o.Commit, metrics: o.Metrics, made: o.Made, complete: o.Complete, budget: o.Budget,
		force: o.Force, keep: o.Keep, open: o.Open, stored: o.Inputs, progress: o.Progress, now: o.Now, limit: o.Idle}
	if b.lock, err = gpu.Acquire(ctx, device.UUID, o.Wait); err != nil {
		return nil, err
	}
	if err := b.fit(ctx, o); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Others are more benches, on GPUs that are the same machine as this one's and
// that nobody uses now, at most so many. All of them share the budget of time on
// the GPU.
func (c *Bench) Others(ctx context.Context, o Options, most int) []*Bench {
	devices, err := gpu.List(ctx)
	if err != nil {
		return nil
	}
	var out []*Bench
	for _, d := range devices {
		if len(out) == most || d.UUID == c.device.UUID || d.Fault() != "" || machineOf(d, o.Tools).Key() != c.Machine.Key() {
			continue
		}
		b := *c
		b.device, b.Notes, b.Spans = d, nil, nil
		if len(b.neighbours(ctx)) > 0 {
			continue
		}
		if b.lock, err = gpu.Acquire(ctx, d.UUID, 0); err != nil {
			continue
		}
		out = append(out, &b)
	}
	for _, b := range append(out, c) {
		b.budget.GPUSeconds /= float64(len(out) + 1)
		if index := b.device.Index; len(out) > 0 && o.Progress != nil {
			b.progress = func(more float64, what string) {
				if what != "" {
					what = fmt.Sprintf("GPU %d: %s", index, what)
				}
				o.Progress(more, what)
			}
		}
	}
	return out
}

// fit builds the harness for the GPU and finds the programs that watch a kernel.
func (b *Bench) fit(ctx context.Context, o Options) (err error) {
	if b.program, err = o.Harness.Program(ctx, o.Tools, b.device.ComputeCapability); err != nil {
		return err
	}
	var one sync.Mutex // the benches of several GPUs share the function
	ops := map[string]string{}
	b.op = func(op *manifest.Op) (path string, err error) {
		one.Lock()
		defer one.Unlock()
		if ops[op.Name] == "" {
			ops[op.Name], err = o.Harness.Op(ctx, o.Tools, op)
		}
		return ops[op.Name], err
	}
	tool, err := toolchain.FindTool(ctx, "ncu", toolchain.Options{Env: o.Env, CacheDir: o.Cache})
	if err != nil {
		b.ncuWhy = "Nsight Compute is missing: " + err.Error()
	} else {
		b.ncu, b.profiler = tool.Path, "ncu "+tool.Version
	}
	tool, err = toolchain.FindTool(ctx, "compute-sanitizer", toolchain.Options{Env: o.Env, CacheDir: o.Cache})
	if err != nil {
		b.sanitizerWhy = "compute-sanitizer is missing: " + err.Error()
	} else {
		b.sanitizer, b.sanitizerVersion = tool.Path, "compute-sanitizer "+tool.Version
	}
	b.foreign(ctx)
	if b.open != nil {
		if err := b.open.Sweep(b.now()); err != nil {
			b.Notes = append(b.Notes, "what was not finished long ago could not be removed: "+err.Error())
		}
	}
	return nil
}

// Close gives the GPU back.
func (c *Bench) Close() { c.lock.Release() }

// choose finds the GPU: the one asked for, else the first that is wanted and that
// nobody measures on, else the first that is wanted.
func choose(ctx context.Context, o Options, wants func(evidence.Machine) bool) (*gpu.Device, error) {
	devices, err := gpu.List(ctx)
	if errors.Is(err, gpu.ErrNoDriver) || errors.Is(err, gpu.ErrNoDevice) {
		return nil, &NoGPUError{"this machine has no GPU to measure on"}
	}
	if err != nil {
		return nil, err
	}
	var have []string
	var held *gpu.Device
	for i := range devices {
		d := &devices[i]
		have = append(have, d.Name)
		if o.GPU != "" && o.GPU != d.UUID && o.GPU != fmt.Sprint(d.Index) || !wants(machineOf(*d, o.Tools)) {
			continue
		}
		if fault := d.Fault(); fault != "" {
			return nil, fmt.Errorf("%w: %s: %s", errDevice, d.Name, fault)
		}
		if _, busy, err := gpu.HeldIn(gpu.LockDir, d.UUID); err != nil || !busy {
			return d, nil
		}
		if held == nil {
			held = d
		}
	}
	if held != nil {
		return held, nil
	}
	if o.GPU != "" {
		return nil, exit.Usagef("there are "+strings.Join(have, ", "), "no GPU %q of this machine is one that the policy asks for", o.GPU)
	}
	return nil, &NoGPUError{fmt.Sprintf("this machine has %s, which is not what the policy asks for", strings.Join(have, ", "))}
}

// Machines are those that this host's GPUs make; none where there is no GPU.
func Machines(ctx context.Context, tools *toolchain.Toolchain) ([]evidence.Machine, error) {
	devices, err := gpu.List(ctx)
	if errors.Is(err, gpu.ErrNoDriver) || errors.Is(err, gpu.ErrNoDevice) {
		return nil, nil
	}
	var out []evidence.Machine
	for _, d := range devices {
		out = append(out, machineOf(d, tools))
	}
	return out, err
}

func machineOf(d gpu.Device, tools *toolchain.Toolchain) evidence.Machine {
	power := "unknown"
	if d.PowerLimit.Known {
		power = fmt.Sprintf("%g", d.PowerLimit.Value)
	}
	runtime := tools.Version
	if parts := strings.SplitN(runtime, ".", 3); len(parts) == 3 {
		runtime = parts[0] + "." + parts[1]
	}
	return evidence.Machine{GPU: d.Name, Driver: d.Driver, Runtime: runtime, PowerLimitW: power,
		MIG: string(d.MIG), CC: d.ComputeCapability, Clocks: "unlocked"}
}

// foreign reports who else uses the GPU: evidence of interference.
func (c *Bench) foreign(ctx context.Context) {
	processes, err := gpu.Processes(ctx)
	if err != nil {
		c.Notes = append(c.Notes, "it is not known who else uses the GPU: "+err.Error())
		return
	}
	for _, p := range processes {
		if p.UUID == c.device.UUID {
			c.Notes = append(c.Notes, fmt.Sprintf("another process uses the GPU: %s (pid %d)", p.Name, p.PID))
		}
	}
}

// Fill measures the tasks of a step and enters what came of them. After it,
// every task has been tried.
func (c *Bench) Fill(ctx context.Context, s plan.Step, l *evidence.Ledger) error {
	defer l.Try(s.Keys()...)
	defer c.span(s)()
	defer c.begin(len(s.Tasks))()
	s, err := c.without(ctx, s, l)
	if err != nil || len(s.Tasks) == 0 {
		return err
	}
	measure := tiers[s.Tier].measure
	if measure == nil {
		return fmt.Errorf("nothing here measures the tier %q", s.Tier)
	}
	return measure(c, ctx, s, l)
}

// eachContender measures kernel after kernel, all cases of one in one process.
func (c *Bench) eachContender(ctx context.Context, s plan.Step, l *evidence.Ledger, measure func(context.Context, []unit) ([]*evidence.Record, error)) error {
	done := 0
	for _, group := range byContender(c.units(s.Tasks)) {
		if err := enter(l)(measure(ctx, group)); err != nil {
			return err
		}
		done += len(group)
		c.reach(float64(done) / float64(len(s.Tasks)))
	}
	return nil
}

// without is a step without the tasks that need a library which cannot be had
// here; the ledger is told why.
func (c *Bench) without(ctx context.Context, s plan.Step, l *evidence.Ledger) (plan.Step, error) {
	kept, place := s, map[int]int{}
	kept.Tasks, kept.Tests = nil, nil
	for i, t := range s.Tasks {
		err := c.prepare(ctx, t)
		var missing *build.UnavailableError
		if errors.As(err, &missing) {
			l.Because(missing.Why, t.Key)
			continue
		}
		if err != nil {
			return kept, err
		}
		place[i] = len(kept.Tasks)
		kept.Tasks = append(kept.Tasks, t)
	}
	for _, test := range s.Tests {
		if at, ok := place[test.Task]; ok {
			test.Task = at
			kept.Tests = append(kept.Tests, test)
		}
	}
	return kept, nil
}

// prepare makes ready what a task loads. A library that is built where it is
// measured is built for tasks that name it alone.
func (c *Bench) prepare(ctx context.Context, t plan.Task) error {
	for _, at := range []evidence.Address{t.At, t.Base} {
		a := c.made.Artifact(at.Identity)
		if a == nil || a.Of != nil && t.Reference == "" {
			continue
		}
		if err := c.complete(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// enter puts what was measured into a ledger, before the error that ended it is
// looked at.
func enter(l *evidence.Ledger) func([]*evidence.Record, error) error {
	return func(records []*evidence.Record, err error) error {
		for _, r := range records {
			if r != nil {
				l.Put(r, evidence.Measured)
			}
		}
		return err
	}
}

// byContender groups the units of one artifact, whose cases share a process.
func byContender(units []unit) [][]unit {
	var groups [][]unit
	for _, u := range units {
		i := slices.IndexFunc(groups, func(g []unit) bool { return g[0].name() == u.name() && g[0].artifact == u.artifact })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], u)
	}
	return groups
}

func (c *Bench) units(tasks []plan.Task) []unit {
	var out []unit
	for _, t := range tasks {
		out = append(out, c.unitOf(t, t.At, t.Reference))
	}
	return out
}

// pairOf is the task of two arms: the head, and the base or a reference.
func (c *Bench) pairOf(t plan.Task) pair {
	return pair{Head: c.unitOf(t, t.At, ""), Base: c.unitOf(t, t.Base, t.Reference), Reference: t.Reference != ""}
}

// unitOf is one contender of a task. The architecture is named where a kernel
// is built for several.
func (c *Bench) unitOf(t plan.Task, at evidence.Address, reference string) unit {
	k := c.made.Kernel(t.Subject.Name)
	u := unit{kernel: k.Name, tool: t.Tool, pdl: k.PDL, op: k.Op, artifact: c.made.Artifact(at.Identity), address: at}
	u.on = k.Cases[slices.IndexFunc(k.Cases, func(x manifest.Case) bool { return x.Name == at.Case })]
	switch {
	case reference != "":
		u.kernel, u.role = reference, "reference:"+u.artifact.Arch
	case len(k.Arch) > 1:
		u.role = t.Subject.Arch
	}
	return u
}
