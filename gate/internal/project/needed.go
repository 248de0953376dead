package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// Ops are the computations of the kernels that are checked.
func (p *Project) Ops() []*manifest.Op {
	var out []*manifest.Op
	seen := map[*manifest.Op]bool{}
	for _, k := range p.head {
		if !seen[k.Op] {
			seen[k.Op] = true
			out = append(out, k.Op)
		}
	}
	return out
}

// Needed are the addresses of evidence, without a machine, of every kernel of
// the working tree and of the base. Those that the policy leaves out count,
// since another policy may judge them by the same store. Code that does not
// compile needs no evidence; where it is not known what was built, the error
// says so.
func (p *Project) Needed(ctx context.Context) ([]evidence.Address, error) {
	if p.NoBase != "" && p.options.Base != NoBase {
		return nil, &exit.Error{Status: exit.Inconclusive, Err: errors.New("it is not known what the base needs: " + p.NoBase)}
	}
	roots := []string{p.Root}
	if p.baseRoot != p.Root {
		roots = append(roots, p.baseRoot)
	}
	var sets []*manifest.Set
	var all []*manifest.Kernel
	for _, root := range roots {
		set, err := manifest.LoadAll(root, p.Policy.Kernels)
		if err != nil {
			return nil, err
		}
		sets, all = append(sets, set), append(all, set.Kernels...)
	}
	p.builder.OnDone = p.count(all)
	var built []build.Result
	for i, set := range sets {
		built = append(built, p.builder.Build(ctx, roots[i], set.Kernels)...)
	}
	cases, err := p.cases(built)
	if err != nil {
		return nil, err
	}
	var out []evidence.Address
	for _, r := range built {
		var compile *build.CompileError
		var entry *build.InputError
		if errors.As(r.Err, &compile) || errors.As(r.Err, &entry) {
			continue
		}
		if r.Err != nil {
			return nil, fmt.Errorf("%s: %w", r.Kernel.Name, r.Err)
		}
		for _, c := range cases[r.Kernel.Op.Name] {
			out = append(out, evidence.Address{Identity: r.Artifact.Identity, Op: r.Kernel.Op.Name, Case: c.Name, Harness: c.Harness})
		}
	}
	return out, nil
}

// cases are those of each op, on either side: both sides are measured by the
// head's op, and by the base's where that judges.
func (p *Project) cases(built []build.Result) (map[string][]plan.Case, error) {
	type measured struct{ file, name string }
	seen := map[measured]bool{}
	out := map[string][]plan.Case{}
	for _, r := range built {
		op := r.Kernel.Op
		for _, c := range r.Kernel.Cases {
			at := measured{filepath.Join(op.Dir, op.File), c.Name}
			if seen[at] {
				continue
			}
			seen[at] = true
			id, err := p.Harness.ID(op, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Kernel.Name, err)
			}
			out[op.Name] = append(out[op.Name], plan.Case{Name: c.Name, Harness: id, CheckOnly: c.CheckOnly})
		}
	}
	return out, nil
}
