package project

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// rebuild builds kernels of the head here, where the policy asks for it, and
// leaves open what is not the code that was claimed. The compiler reads hostile
// files, so it runs confined or not at all; nothing that it makes is run. Touched
// are the kernels that are called unchanged although the pull request changes what
// goes into them.
func (p *Project) rebuild(ctx context.Context, subjects []*plan.Subject, pull Pull, touched map[*plan.Subject][]string) (string, error) {
	var asked []*plan.Subject
	for _, s := range subjects {
		known := s.State != verdict.Gone && s.Head.Identity.Known()
		if known && (p.Policy.BuildHead == policy.BuildAlways || len(touched[s]) > 0 || s.State == verdict.Unchanged && pull.Changes == nil) {
			asked = append(asked, s)
		}
	}
	if p.Policy.BuildHead == policy.BuildNever || len(asked) == 0 {
		return "", nil
	}
	built, err := p.buildHead(ctx, asked, pull)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	same := 0
	for _, s := range asked {
		i := slices.IndexFunc(built, func(r build.Result) bool { return r.Kernel.Name == s.Name && r.Arch == s.Arch })
		switch {
		case err != nil:
			s.Head = plan.Side{Absent: true, Why: "the policy asks that whoever judges builds this kernel, and here that cannot be: " + err.Error()}
		case i < 0:
			s.Head = plan.Side{Absent: true, Why: fmt.Sprintf("the bundle has this kernel, and the commit %.12s does not", pull.Head)}
		case built[i].Artifact == nil:
			s.Head = side(built[i])
		case built[i].Artifact.Identity != s.Head.Identity:
			s.Head = plan.Side{Absent: true, Why: fmt.Sprintf("the bundle says that its code is %.12s, and what is built here of the commit %.12s is %.12s", s.Head.Identity.Code, pull.Head, built[i].Artifact.Identity.Code)}
		default:
			same++
		}
	}
	return fmt.Sprintf("kernels whose head was built here: %d; that are what the bundle says: %d", len(asked), same), nil
}

// buildHead builds kernels of the commit that GitHub knows the change by. That is
// what was measured if it has the base among its ancestors; a merge of the two is
// not made here.
func (p *Project) buildHead(ctx context.Context, asked []*plan.Subject, pull Pull) ([]build.Result, error) {
	if version, why := command.Landlock(); version == 0 {
		return nil, errors.New("the compiler cannot be confined: " + why)
	}
	dir, err := p.headTree(ctx, pull.Head)
	if err != nil {
		return nil, err
	}
	includes := pull.Includes
	if pull.Texts == nil { // GitHub was not asked
		if includes, err = p.repo.Includes(ctx, pull.Head, p.Base.Commit); err != nil {
			return nil, err
		}
	}
	if !includes {
		return nil, fmt.Errorf("the branch has gone on since the change began, so that a merge was measured (bring the change up to date with %.12s)", p.Base.Commit)
	}
	set, err := manifest.Load(dir, p.Policy.Kernels)
	if err != nil {
		return nil, err
	}
	kernels := slices.DeleteFunc(set.Kernels, func(k *manifest.Kernel) bool {
		return !slices.ContainsFunc(asked, func(s *plan.Subject) bool { return s.Name == k.Name })
	})
	p.builder.OnDone = p.count(kernels)
	return p.builder.Build(ctx, dir, kernels), nil
}

// headTree is a folder with the files of a head that is not checked out.
func (p *Project) headTree(ctx context.Context, commit string) (string, error) {
	if p.repo == nil || commit == "" {
		return "", errors.New("it is not known which commit the change is")
	}
	tree, err := p.repo.Tree(ctx, commit)
	if err != nil {
		return "", fmt.Errorf("the commit %.12s of the change cannot be read: %w", commit, err)
	}
	return tree.Dir, nil
}
