package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// measure collects what find left open, where this machine has a GPU that the
// policy wants. A kernel that failed a tier goes no further.
func (j *job) measure(ctx context.Context) error {
	j.skipAfterStatic()
	open := j.open()
	if len(open) == 0 {
		return nil
	}
	if j.NoGPU {
		j.explain(open, "measuring was switched off")
		return nil
	}
	device, err := j.device(ctx, open)
	if err != nil {
		if errors.Is(err, gpu.ErrNoDriver) || errors.Is(err, gpu.ErrNoDevice) {
			j.explain(open, "this machine has no GPU to measure on")
			return nil // it judges what is recorded
		}
		j.explain(open, err.Error())
		var other *otherGPU
		if errors.As(err, &other) {
			return nil
		}
		return err
	}
	lock, err := gpu.Acquire(ctx, device.UUID, j.Wait)
	if err != nil {
		j.explain(open, err.Error())
		return err
	}
	defer lock.Release()
	if err := j.namedOnce(j.machineOf(*device)); err != nil {
		return err
	}
	c, err := j.collector(ctx, *device)
	if err != nil {
		j.explain(open, err.Error())
		return err
	}
	j.foreign(ctx, *device)
	return j.collect(ctx, c, open)
}

// skipAfterStatic leaves a reason where a kernel's failure makes GPU time a
// waste.
func (j *job) skipAfterStatic() {
	for _, k := range j.kernels {
		if j.tree.policy.AfterFailure == policy.Stop && policy.Fails(j.tree.policy, k.facts, evidence.Static) {
			for _, s := range k.cases {
				s.skip("not measured: the static tier failed")
			}
		}
	}
}

// skip gives a reason to every tier without evidence.
func (s *kase) skip(why string) {
	for _, arm := range s.facts.Arms() {
		if arm.Record == nil && arm.Missing != "" {
			arm.Missing = why
		}
	}
	s.needs = needs{}
	s.skipped = true
}

// open are the cases that lack evidence and may have it.
func (j *job) open() []*kase {
	var out []*kase
	for _, k := range j.kernels {
		for _, s := range k.cases {
			if !s.skipped && !s.complete() {
				out = append(out, s)
			}
		}
	}
	return out
}

func (j *job) explain(open []*kase, why string) {
	for _, s := range open {
		for _, arm := range s.facts.Arms() {
			if arm.Record == nil && arm.Missing != "" {
				arm.Missing += "; " + why
			}
		}
	}
}

type otherGPU struct{ msg string }

func (e *otherGPU) Error() string { return e.msg }

// device chooses the GPU: the one asked for, else the first that the policy
// wants and that runs the code.
func (j *job) device(ctx context.Context, open []*kase) (*gpu.Device, error) {
	devices, err := gpu.List(ctx)
	if err != nil {
		return nil, err
	}
	var have []string
	for i := range devices {
		d := &devices[i]
		have = append(have, d.Name)
		if j.GPU != "" && j.GPU != d.UUID && j.GPU != fmt.Sprint(d.Index) {
			continue
		}
		if !j.wants(*d, open) {
			continue
		}
		if fault := d.Fault(); fault != "" {
			return nil, fmt.Errorf("%w: %s: %s", collect.ErrDevice, d.Name, fault)
		}
		return d, nil
	}
	if j.GPU != "" {
		return nil, &UsageError{Msg: fmt.Sprintf("no GPU %q of this machine is one that the policy wants", j.GPU), Hint: "there are " + strings.Join(have, ", ")}
	}
	return nil, &otherGPU{fmt.Sprintf("this machine has %s, the policy wants %s", strings.Join(have, ", "), strings.Join(j.tree.policy.Machines, ", "))}
}

func (j *job) wants(d gpu.Device, open []*kase) bool {
	return len(here(open, j.machineOf(d))) > 0
}

func (j *job) machineOf(d gpu.Device) evidence.Machine {
	power := "unknown"
	if d.PowerLimit.Known {
		power = fmt.Sprintf("%g", d.PowerLimit.Value)
	}
	runtime := j.tools.Version
	if parts := strings.SplitN(runtime, ".", 3); len(parts) == 3 {
		runtime = parts[0] + "." + parts[1]
	}
	return evidence.Machine{GPU: d.Name, Driver: d.Driver, Runtime: runtime, PowerLimitW: power,
		MIG: string(d.MIG), CC: d.ComputeCapability, Clocks: "unlocked"}
}

func (j *job) collector(ctx context.Context, d gpu.Device) (*collect.Collector, error) {
	program, err := j.harness.Program(ctx, j.tools, d.ComputeCapability)
	if err != nil {
		return nil, err
	}
	ops := map[string]string{}
	c := &collect.Collector{Program: program, Device: d, Machine: j.machineOf(d), Metrics: j.profileMetrics(),
		Commit: j.tree.headSide.Commit, Progress: j.Progress, Now: j.Now, Idle: j.Idle,
		Keep: j.keep,
		Op: func(op *manifest.Op) (string, error) {
			if path, ok := ops[op.Name]; ok {
				return path, nil
			}
			path, err := j.harness.Op(ctx, j.tools, op)
			ops[op.Name] = path
			return path, err
		}}
	tool, err := toolchain.FindTool(ctx, "ncu", toolchain.Options{Env: j.Env, CacheDir: j.Cache})
	if err != nil {
		c.NCUWhy = "Nsight Compute is missing: " + err.Error()
	} else {
		c.NCU, c.Profiler = tool.Path, "ncu "+tool.Version
	}
	return c, nil
}

// foreign reports who else uses the GPU: evidence of interference.
func (j *job) foreign(ctx context.Context, d gpu.Device) {
	processes, err := gpu.Processes(ctx)
	if err != nil {
		j.notes = append(j.notes, "it is not known who else uses the GPU: "+err.Error())
		return
	}
	for _, p := range processes {
		if p.UUID == d.UUID {
			j.notes = append(j.notes, fmt.Sprintf("another process uses the GPU: %s (pid %d)", p.Name, p.PID))
		}
	}
}

// collect runs the tiers in order over all open cases of this machine.
func (j *job) collect(ctx context.Context, c *collect.Collector, open []*kase) error {
	mine := here(open, c.Machine)
	for _, s := range open {
		if !slices.Contains(mine, s) {
			j.explain([]*kase{s}, fmt.Sprintf("this machine is %s", c.Machine.Model()))
		}
	}
	if err := j.move(mine, c.Machine); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *collect.Collector, []*kase) error{j.check, j.profile, j.time, j.experiment} {
		if err := step(ctx, c, mine); err != nil {
			j.explain(j.open(), err.Error())
			return err
		}
	}
	return nil
}

// here are the cases that a machine may measure.
func here(open []*kase, m evidence.Machine) []*kase {
	var mine []*kase
	for _, s := range open {
		if (s.machine == "" || m.Is(s.machine)) && runs(s.kernel.arch, m.CC) {
			mine = append(mine, s)
		}
	}
	return mine
}

// move turns cases to the machine that measures: figures of one kernel come
// from one machine, so evidence of another is set aside for all its cases.
func (j *job) move(mine []*kase, m evidence.Machine) error {
	key := m.Key()
	moved := map[*kernel]bool{}
	for _, s := range mine {
		moved[s.kernel] = true
	}
	for k := range moved {
		for i, s := range k.cases {
			if s.machine != "" && !m.Is(s.machine) {
				continue
			}
			if s.key == key {
				if !s.skipped {
					j.recall(s) // another run may have measured while this one waited
				}
				continue
			}
			fresh := &kase{kernel: k, of: s.of, machine: s.machine, key: key, needs: s.needs, references: s.references}
			fresh.facts = policy.CaseFacts{Name: s.of.Name, Machine: key}
			if err := j.addresses(fresh); err != nil {
				return err
			}
			j.recall(fresh)
			*k.cases[i] = *fresh
		}
	}
	return nil
}
