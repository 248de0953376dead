package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

type slot struct{ name, arch string }

// Build builds both trees and joins them to subjects. The ledger holds what the
// compiler reports of them. An error in a kernel.yaml is the user's to mend
// before anything is judged; a kernel that does not compile is a finding.
func (p *Project) Build(ctx context.Context) ([]*plan.Subject, *evidence.Ledger, error) {
	if err := p.checkOps(ctx); err != nil {
		return nil, nil, err
	}
	expected := slices.Concat(p.head, p.unbuilt())
	if p.baseRoot != p.Root {
		expected = append(expected, p.base...)
	}
	p.builder.OnDone = p.count(expected)
	head := p.builder.Build(ctx, p.Root, p.head)
	for _, r := range head {
		var entry *build.InputError
		if errors.As(r.Err, &entry) {
			return nil, nil, r.Err
		}
	}
	others := p.builder.Build(ctx, p.judging, p.unbuilt())
	base := head
	if p.baseRoot != p.Root {
		base = p.builder.Build(ctx, p.baseRoot, p.base)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p.Made.Add(slices.Concat(head, others, base)...)
	subjects, err := p.join(head, others, base)
	if err == nil {
		err = p.idleEntries(subjects)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := p.warnings(head); err != nil {
		return nil, nil, err
	}
	ledger, err := p.compiled(head, base)
	return subjects, ledger, err
}

// mostWarnings are noted of a check.
const mostWarnings = 20

// warnings notes what the compiler warned of in the head.
func (p *Project) warnings(head []build.Result) error {
	var all []string
	for _, r := range head {
		if r.Artifact == nil {
			continue
		}
		found, err := build.Warnings(r.Kernel, r.Artifact)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Kernel.Name, err)
		}
		for _, w := range found {
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	if more := len(all) - mostWarnings; more > 0 {
		all = append(all[:mostWarnings], fmt.Sprintf("the compiler gave %d more warnings", more))
	}
	p.Notes = append(p.Notes, all...)
	return nil
}

// idleEntries is the error for a rule whose entries: name no function of what was
// built, on either side: it would never fail.
func (p *Project) idleEntries(subjects []*plan.Subject) error {
	for _, r := range p.Policy.Rules {
		var all []policy.Entry
		unknown := len(r.Entries) == 0
		for _, s := range subjects {
			if s.RuledAs(&r) != "" {
				all = slices.Concat(all, s.Head.Entries, s.Base.Entries)
				unknown = unknown || len(s.Head.Entries) == 0
			}
		}
		if unknown || len(all) == 0 || slices.ContainsFunc(all, r.Of) {
			continue
		}
		return &yamlfile.Error{File: p.Policy.File, Line: r.Line, Msg: fmt.Sprintf("rule %q names no function of the kernels that it matches, so it can never fail", r.ID),
			Advice: "entries: patterns match names such as " + all[0].Short + " or " + all[0].Name}
	}
	return nil
}

// count tells of every kernel that was built, by its number among those that are
// built together.
func (p *Project) count(kernels []*manifest.Kernel) func(build.Result) {
	if p.options.Built == nil {
		return nil
	}
	of := 0
	for _, k := range kernels {
		of += len(k.Arch)
	}
	var one sync.Mutex // kernels are told of in the order of their numbers
	n := 0
	return func(r build.Result) {
		one.Lock()
		defer one.Unlock()
		n++
		p.options.Built(r.Kernel.Name, n, of)
	}
}

// compiled reads the compiler's reports. That of the head has to be readable.
func (p *Project) compiled(head, base []build.Result) (*evidence.Ledger, error) {
	ledger := &evidence.Ledger{}
	for _, r := range base {
		if r.Artifact == nil {
			continue
		}
		m, err := static(r.Artifact)
		if err != nil {
			ledger.Refuse(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: r.Artifact.Identity}},
				"the base's compiler log cannot be read: "+err.Error())
			continue
		}
		ledger.Put(m, evidence.Measured)
	}
	for _, r := range head {
		if r.Artifact == nil {
			continue
		}
		m, err := static(r.Artifact)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Kernel.Name, err)
		}
		ledger.Put(m, evidence.Measured)
	}
	return ledger, nil
}

// join pairs what both trees built, by name and architecture.
func (p *Project) join(head, others, base []build.Result) ([]*plan.Subject, error) {
	pairs, built := p.joiner(base, p.retiredAs), map[slot]build.Result{}
	for _, r := range slices.Concat(head, others) {
		built[slot{r.Kernel.Name, r.Arch}] = r
	}
	var subjects []*plan.Subject
	for _, r := range head {
		was, name := pairs.pair(slot{r.Kernel.Name, r.Arch}, r.Kernel.Was)
		s, err := p.subject(r, was, name)
		if err != nil {
			return nil, err
		}
		s.Former = former(was, name)
		s.References = p.referencesOf(s, built)
		subjects = append(subjects, s)
	}
	return append(subjects, pairs.gone(base)...), nil
}

// former is what a base is called, where that is declared to be another name.
func former(base *build.Result, was string) plan.Former {
	if was == "" {
		return plan.Former{}
	}
	return plan.Former{Name: base.Kernel.Name, Arch: base.Arch}
}

// subject is one kernel of the head with its base, nil where there is none.
func (p *Project) subject(head build.Result, base *build.Result, was string) (*plan.Subject, error) {
	k := head.Kernel
	s := &plan.Subject{Name: k.Name, File: k.File, Arch: head.Arch, Op: k.Op.Name, State: verdict.Changed, Head: side(head), Was: was, NewOp: p.newOps[k.Name]}
	s.Source, s.Line = p.source(k, head.Artifact)
	for _, c := range k.Cases {
		id, err := p.Harness.ID(k.Op, c)
		if errors.As(err, new(*build.PointerError)) {
			s.Head = plan.Side{Why: err.Error(), Absent: true}
			return s, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		s.Cases = append(s.Cases, plan.Case{Name: c.Name, Harness: id, CheckOnly: c.CheckOnly, Work: c.Work})
	}
	switch {
	case p.NoBase != "":
		s.State = verdict.NoBase
		return s, nil
	}
	why, err := p.unknownBase(head, base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	case why != "":
		s.Base.Why = why
		return s, nil
	case base == nil:
		s.State = verdict.New
		return s, nil
	}
	s.Lost = lost(*base, head, base.Kernel.Name != k.Name)
	if base.Err != nil {
		s.Base.Why = "the base does not build: " + base.Err.Error()
		return s, nil
	}
	s.Base = side(*base)
	if s.Head.Identity == s.Base.Identity {
		s.State = verdict.Unchanged
	}
	return s, nil
}

// side is what building a kernel came to.
func side(r build.Result) plan.Side {
	var compile *build.CompileError
	switch {
	case r.Err == nil:
		return plan.Side{Identity: r.Artifact.Identity, Entries: entriesOf(r.Artifact)}
	case errors.As(r.Err, &compile):
		return plan.Side{Why: compile.Error(), Detail: compile.Output, Blame: true}
	}
	return plan.Side{Why: r.Err.Error(), Absent: errors.As(r.Err, new(*build.PointerError))}
}

// entriesOf are all functions that an artifact holds, those that entries: leaves
// out included, by name and each once.
func entriesOf(a *build.Artifact) []policy.Entry {
	var out []policy.Entry
	for _, e := range slices.Concat(a.Entries, a.Rest) {
		out = append(out, policy.Entry{Name: build.Demangle(e), Short: build.Name(e)})
	}
	slices.SortFunc(out, func(a, b policy.Entry) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out)
}
