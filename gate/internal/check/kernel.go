package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// A kernel is one kernel on one architecture, on both sides.
type kernel struct {
	name     string
	arch     string
	manifest *manifest.Kernel
	head     *build.Artifact
	base     *build.Artifact
	facts    policy.KernelFacts
	cases    []*kase
}

// A kase is one case of a kernel on one machine, with what the policy needs.
type kase struct {
	kernel  *kernel
	of      manifest.Case
	machine string // the policy's name, "" for any
	key     string // the machine whose evidence is used
	needs   needs
	head    evidence.Address
	base    evidence.Address
	facts   policy.CaseFacts
	skipped bool // a tier that failed makes the later ones a waste

	references []*reference
}

type needs struct{ profile, latency, experiment, baseProfile, references, sessions, calibration bool }

type slot struct{ name, arch string }

// join pairs what both trees built, by name and architecture.
func join(head, base []build.Result, t *tree) []*kernel {
	bases := map[slot]build.Result{}
	hasBase := t.noBase == ""
	if hasBase {
		for _, r := range base {
			bases[slot{r.Kernel.Name, r.Arch}] = r
		}
	}
	var kernels []*kernel
	seen := map[slot]bool{}
	for _, r := range head {
		at := slot{r.Kernel.Name, r.Arch}
		seen[at] = true
		b, ok := bases[at]
		kernels = append(kernels, pair(r, b, ok, hasBase))
	}
	for _, r := range base {
		at := slot{r.Kernel.Name, r.Arch}
		if !hasBase || seen[at] {
			continue
		}
		k := &kernel{name: r.Kernel.Name, arch: r.Arch, manifest: r.Kernel}
		k.facts = policy.KernelFacts{Name: k.name, File: r.Kernel.File, Arch: k.arch, State: policy.Gone}
		kernels = append(kernels, k)
	}
	return kernels
}

func pair(head, base build.Result, found, hasBase bool) *kernel {
	k := &kernel{name: head.Kernel.Name, arch: head.Arch, manifest: head.Kernel, head: head.Artifact}
	k.facts = policy.KernelFacts{Name: k.name, File: head.Kernel.File, Arch: k.arch, State: policy.Changed}
	if head.Err != nil {
		k.facts.Broken = problem(head.Err)
	} else {
		k.facts.Identity = head.Artifact.Identity
	}
	if hasBase && found {
		k.facts.GoneCases = goneCases(base.Kernel, head.Kernel)
	}
	switch {
	case !hasBase:
		k.facts.State = policy.NoBase
	case !found:
		k.facts.State = policy.New
	case base.Err != nil:
		k.facts.BaseProblem = "the base does not build: " + base.Err.Error()
	default:
		k.base = base.Artifact
		k.facts.Unselected = unselected(base.Artifact, head.Artifact)
		k.facts.Base = base.Artifact.Identity
		if k.facts.Identity == k.facts.Base {
			k.facts.State = policy.Unchanged
		}
	}
	return k
}

// goneCases are those that the base measures and the head does not.
func goneCases(base, head *manifest.Kernel) []string {
	var gone []string
	for _, c := range base.Cases {
		same := func(other manifest.Case) bool { return other.Name == c.Name }
		if !slices.ContainsFunc(head.Cases, same) {
			gone = append(gone, c.Name)
		}
	}
	return gone
}

// unselected are the functions that the base judges and the head's patterns
// leave out, although its sources still hold them. Names are compared as
// written, because the mangled ones hold a hash of the file.
func unselected(base, head *build.Artifact) []string {
	if head == nil {
		return nil
	}
	left := map[string]bool{}
	for _, e := range head.Rest {
		left[build.Demangle(e)] = true
	}
	var out []string
	for _, e := range base.Entries {
		if name := build.Demangle(e); left[name] {
			out = append(out, name)
		}
	}
	return out
}

func problem(err error) *policy.Problem {
	var compile *build.CompileError
	if errors.As(err, &compile) {
		return &policy.Problem{Message: compile.Error(), Detail: compile.Output, Blame: true}
	}
	return &policy.Problem{Message: err.Error(), Tool: true}
}

// needed says what the policy asks of one kernel. Correctness is always asked.
func (j *job) needed(k *kernel) needs {
	var n needs
	for _, r := range j.tree.policy.Rules {
		if !r.Matches(k.name) {
			continue
		}
		compares := r.Compares() && (k.facts.State == policy.Changed || j.Force && k.facts.State == policy.Unchanged)
		switch r.Metric.Tier {
		case evidence.Profile:
			n.profile = true
			n.baseProfile = n.baseProfile || compares && k.facts.State == policy.Changed
		case evidence.Latency:
			n.time(r, compares, j.tree.policy.Stored)
		}
	}
	return n
}

// time adds what one rule asks of times. Advice asks for nothing: it is read
// from what the other rules ask for.
func (n *needs) time(r policy.Rule, compares, stored bool) {
	switch {
	case r.RelativeTo != "":
		n.references = true
	case compares && r.Severity == policy.Advice:
	case compares && stored:
		n.latency, n.sessions = true, true
	case compares:
		n.experiment, n.calibration = true, true
	default:
		n.latency = true
		n.calibration = n.calibration || r.Limit.Set
	}
}

// profileMetrics are the profiler's figures that the policy names beside
// gate's own list.
func (j *job) profileMetrics() []string {
	var out []string
	seen := map[string]bool{}
	for _, m := range policy.Metrics() {
		if m.Tier == evidence.Profile {
			out = append(out, m.Name)
			seen[m.Name] = true
		}
	}
	for _, r := range j.tree.policy.Rules {
		if r.Metric.Tier == evidence.Profile && !seen[r.Metric.Name] {
			out = append(out, r.Metric.Name)
			seen[r.Metric.Name] = true
		}
	}
	return out
}

// address is where evidence of one side of a case lies on one machine.
func (j *job) address(a *build.Artifact, k *kernel, c manifest.Case, machine string) (evidence.Address, error) {
	id, err := j.harness.ID(k.manifest.Op, c)
	if err != nil {
		return evidence.Address{}, fmt.Errorf("%s: %w", k.name, err)
	}
	return evidence.Address{Identity: a.Identity, Op: k.manifest.Op.Name, Case: c.Name, Harness: id, Machine: machine}, nil
}
