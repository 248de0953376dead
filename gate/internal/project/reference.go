package project

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// findReferences resolves the kernels that rules with relative_to name. One
// that cannot be compared with is a mistake in the policy.
func (p *Project) findReferences(set *manifest.Set) error {
	p.references = map[string]*manifest.Kernel{}
	for _, r := range p.Policy.Rules {
		for _, k := range p.head {
			if err := p.findReferencesOf(set, r, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// findReferencesOf resolves them for one kernel. Of the name that it says it had,
// what is not there is no mistake: without it, a question stays open.
func (p *Project) findReferencesOf(set *manifest.Set, r policy.Rule, k *manifest.Kernel) error {
	for _, as := range []string{k.Name, k.Was.Kernel} {
		if as == "" || !r.Matches(as) {
			continue
		}
		for _, name := range r.References(as) {
			ref, err := set.Named(name)
			if err == nil {
				err = compatible(ref, k)
			}
			switch {
			case err == nil:
				p.references[ref.Name] = ref
			case as == k.Name:
				return p.badReference(r, err)
			}
		}
	}
	return nil
}

// badReference points at the rule, or at the reference's own invalid file.
func (p *Project) badReference(r policy.Rule, err error) error {
	var invalid *yamlfile.Error
	if errors.As(err, &invalid) {
		return err
	}
	bad := &yamlfile.Error{File: p.Policy.File, Line: r.Line, Msg: fmt.Sprintf("rule %q: relative_to: %v", r.ID, err)}
	var missing *manifest.NoKernelError
	if errors.As(err, &missing) {
		bad.Advice = missing.Hint
	}
	return bad
}

// compatible says what keeps a reference from being timed beside a kernel.
func compatible(ref, k *manifest.Kernel) error {
	if ref.Op != k.Op {
		return fmt.Errorf("%s computes %s, and %s computes %s", ref.Name, ref.Op.Name, k.Name, k.Op.Name)
	}
	for _, c := range k.Cases {
		if !c.CheckOnly && !slices.ContainsFunc(ref.Cases, func(other manifest.Case) bool { return other.Name == c.Name }) {
			return fmt.Errorf("%s has no case %q, on which %s is timed", ref.Name, c.Name, k.Name)
		}
	}
	for _, arch := range k.Arch {
		if archBeside(ref, arch) == "" {
			return fmt.Errorf("%s is not built for %s, as %s is", ref.Name, arch, k.Name)
		}
	}
	return nil
}

// archBeside is the architecture of a reference that runs where code for an
// architecture does; "" when there is none.
func archBeside(ref *manifest.Kernel, arch string) string {
	number := strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "af")
	capability := number[:len(number)-1] + "." + number[len(number)-1:]
	for _, a := range append([]string{arch}, ref.Arch...) {
		if slices.Contains(ref.Arch, a) && (evidence.Machine{CC: capability}).Runs(a) {
			return a
		}
	}
	return ""
}

// ofReference reports whether a file belongs to a reference.
func (p *Project) ofReference(file string) bool {
	for _, ref := range p.references {
		if strings.HasPrefix(file, path.Dir(ref.File)+"/") {
			return true
		}
	}
	return false
}

// unbuilt are the references that are not kernels of the check themselves.
func (p *Project) unbuilt() []*manifest.Kernel {
	var out []*manifest.Kernel
	for _, ref := range p.references {
		if !slices.Contains(p.head, ref) {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, func(a, b *manifest.Kernel) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// referencesOf are the kernels that the policy compares a kernel with.
func (p *Project) referencesOf(s *plan.Subject, built map[slot]build.Result) map[string]plan.Side {
	out := map[string]plan.Side{}
	for _, r := range p.Policy.Rules {
		as := s.RuledAs(&r)
		if as == "" {
			continue
		}
		for _, name := range r.References(as) {
			out[name] = p.reference(name, s.Arch, built)
		}
	}
	return out
}

// reference is a reference as it is built to run beside an architecture.
func (p *Project) reference(name, arch string, built map[slot]build.Result) plan.Side {
	ref := p.references[name]
	if ref == nil {
		return plan.Side{Why: fmt.Sprintf("there is no reference %s beside which it can be timed", name)}
	}
	result, ok := built[slot{name, archBeside(ref, arch)}]
	if !ok {
		return plan.Side{Why: fmt.Sprintf("the reference %s is not built for %s", name, arch)}
	}
	s := side(result)
	if s.Why != "" {
		return plan.Side{Why: fmt.Sprintf("the reference %s does not build: %s", name, s.Why)}
	}
	return s
}

// Complete makes what was built ready to be loaded.
func (p *Project) Complete(ctx context.Context, a *build.Artifact) error {
	return p.builder.Complete(ctx, a)
}
