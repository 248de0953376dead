package check

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A reference is a kernel in the base's place for one kernel and case. Without
// an artifact, problem says why.
type reference struct {
	manifest *manifest.Kernel
	artifact *build.Artifact
	at       evidence.Address
	problem  string
}

// findReferences resolves the kernels that rules with relative_to name. One
// that cannot be compared with is a mistake in the policy.
func (t *tree) findReferences(set *manifest.Set) error {
	t.references = map[string]*manifest.Kernel{}
	for _, r := range t.policy.Rules {
		for _, k := range t.head {
			if r.RelativeTo == "" || !r.Matches(k.Name) {
				continue
			}
			ref, err := set.Named(r.Reference(k.Name))
			if err == nil {
				err = compatible(ref, k)
			}
			if err != nil {
				return t.badReference(r, err)
			}
			t.references[ref.Name] = ref
		}
	}
	return nil
}

// badReference points at the rule, or at the reference's own invalid file.
func (t *tree) badReference(r policy.Rule, err error) error {
	var invalid *yamlfile.Error
	if errors.As(err, &invalid) {
		return err
	}
	bad := &yamlfile.Error{File: t.policy.File, Line: r.Line, Msg: fmt.Sprintf("rule %q: relative_to: %v", r.ID, err)}
	var missing *manifest.NoKernelError
	if errors.As(err, &missing) {
		bad.Hint = missing.Hint
	}
	return bad
}

// compatible says what keeps a reference from being timed beside a kernel.
func compatible(ref, k *manifest.Kernel) error {
	if ref.Op != k.Op {
		return fmt.Errorf("%s computes %s, and %s computes %s", ref.Name, ref.Op.Name, k.Name, k.Op.Name)
	}
	for _, c := range k.Cases {
		if !slices.ContainsFunc(ref.Cases, func(other manifest.Case) bool { return other.Name == c.Name }) {
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
		if slices.Contains(ref.Arch, a) && runs(a, capability) {
			return a
		}
	}
	return ""
}

// ofReference reports whether a file belongs to a reference.
func (t *tree) ofReference(file string) bool {
	for _, ref := range t.references {
		if strings.HasPrefix(file, path.Dir(ref.File)+"/") {
			return true
		}
	}
	return false
}

// unbuilt are the references that are no kernels of the check themselves.
func (t *tree) unbuilt() []*manifest.Kernel {
	var out []*manifest.Kernel
	for _, ref := range t.references {
		if !slices.Contains(t.head, ref) {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, func(a, b *manifest.Kernel) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// referencesOf are the kernels that the policy compares a kernel with.
func (j *job) referencesOf(k *kernel) []*reference {
	var out []*reference
	for _, r := range j.tree.policy.Rules {
		name := r.Reference(k.name)
		if name == "" || !r.Matches(k.name) || slices.ContainsFunc(out, func(x *reference) bool { return x.manifest.Name == name }) {
			continue
		}
		ref := &reference{manifest: j.tree.references[name]}
		built := j.built[slot{name, archBeside(ref.manifest, k.arch)}]
		ref.artifact = built.Artifact
		if ref.artifact == nil {
			ref.problem = fmt.Sprintf("the reference %s does not build: %v", name, built.Err)
		}
		out = append(out, ref)
	}
	return out
}

// recallReferences fills in what the stores hold, and returns how many records
// that is.
func (j *job) recallReferences(s *kase) int {
	found := 0
	s.facts.Latency.References = nil
	for _, ref := range s.references {
		f := policy.ReferenceFacts{Name: ref.manifest.Name}
		if ref.artifact == nil {
			f.Correctness.Missing, f.Experiment.Missing = ref.problem, ref.problem
		} else {
			f.Correctness = j.arm(evidence.Correctness, ref.at, nil)
			f.Experiment = j.armOr(evidence.Latency, s.head, &ref.at, "it was never timed beside "+f.Name)
		}
		for _, a := range []policy.Arm{f.Correctness, f.Experiment} {
			if a.Record != nil {
				found++
			}
		}
		s.facts.Latency.References = append(s.facts.Latency.References, f)
	}
	return found
}

// lacksReference reports whether something of a reference can be measured.
func (s *kase) lacksReference() bool {
	for i, ref := range s.references {
		f := s.facts.Latency.References[i]
		if ref.artifact != nil && (f.Correctness.Record == nil || f.Experiment.Record == nil) {
			return true
		}
	}
	return false
}
