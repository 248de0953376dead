package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
	"github.com/kernelgate/gate/kernels/harness"
)

// whoJudges is the side that was asked for, else the one that the event of a
// workflow calls for: a change that asks to be merged does not judge itself.
func whoJudges(o Options) (Judge, error) {
	switch o.Judge {
	case JudgeHead:
		return JudgeHead, nil
	case JudgeBase:
		if o.Base == NoBase {
			return "", exit.Usagef("", "--judge base needs a base, and --base none leaves it out")
		}
		return JudgeBase, nil
	case "":
	default:
		return "", exit.Usagef("base or head", "--judge cannot be %q", o.Judge)
	}
	if o.Base == NoBase {
		return JudgeHead, nil
	}
	switch o.Env("GITHUB_EVENT_NAME") {
	case "pull_request", "pull_request_target", "merge_group":
		return JudgeBase, nil
	}
	return JudgeHead, nil
}

func inconclusive(hint, format string, args ...any) error {
	return &exit.Error{Status: exit.Inconclusive, Err: fmt.Errorf(format, args...), Advice: hint}
}

// readPolicy reads the policy that judges, and holds the change's own, which may
// judge the next one, to be readable.
func (p *Project) readPolicy(path, name string) (err error) {
	p.judging = p.Root
	if p.Judge == JudgeHead {
		p.Policy, err = policy.Read(path, name)
		return err
	}
	const desk = "gate check --judge head judges by the working tree's"
	if p.NoBase != "" {
		return inconclusive(desk, "there is no base whose policy could judge this change: %s", p.NoBase)
	}
	if filepath.IsAbs(name) {
		return exit.Usagef(desk, "--policy %s lies outside the repository, so the base has no such policy", name)
	}
	p.judging = p.baseRoot
	file := filepath.Join(p.baseRoot, filepath.FromSlash(name))
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || !p.baseHolds(name) {
		return inconclusive(desk, "this change introduces the policy: the base %.12s has no %s, and a change is not judged by its own", p.Base.Commit, name)
	}
	if p.Policy, err = policy.Read(file, name); err != nil {
		return inconclusive(desk, "the base %.12s has no policy that could judge this change: %w", p.Base.Commit, err)
	}
	if p.baseRoot == p.Root {
		return nil
	}
	own, err := policy.Read(path, name)
	if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) {
		p.Notes = append(p.Notes, "this change removes "+name+": without one, nothing judges the next")
		return nil
	}
	if err != nil {
		return err
	}
	for _, w := range own.Waivers {
		if !slices.ContainsFunc(p.Policy.Waivers, func(x policy.Waiver) bool { x.Line = w.Line; return x == w }) {
			p.Waivers = append(p.Waivers, w)
		}
	}
	return nil
}

// loadKernels reads the kernels of both sides, and returns the number of the
// head's before the command line chose.
func (p *Project) loadKernels(policyName string) (int, error) {
	head, err := manifest.Load(p.Root, p.Policy.Kernels)
	if err != nil {
		return 0, err
	}
	p.Notes, p.retired = append(p.Notes, head.Notes...), head.Retired
	base, err := p.loadBase(head, policyName)
	if err != nil {
		return 0, err
	}
	scope := head.Kernels
	if p.Judge == JudgeBase {
		scope = slices.Concat(head.Kernels, base.Kernels) // what is gone from the head keeps the base's rules busy
	}
	if len(scope) == 0 {
		return 0, p.Policy.Unmatched()
	}
	if err := p.Policy.Idle(scopes(scope)); err != nil {
		return 0, err
	}
	p.Notes = append(p.Notes, p.strayWaivers(slices.Concat(head.Kernels, base.Kernels))...)
	p.ops = slices.Concat(base.Ops, head.Ops)
	p.base, _ = choose(base.Kernels, p.options.Kernels) // a name that the base lacks is new
	if p.head, err = filter(head.Kernels, p.options.Kernels); err != nil {
		return 0, err
	}
	references := head
	if p.judging != p.Root {
		p.takeOps(base.Ops)
		references = base
	}
	return len(head.Kernels), p.findReferences(references)
}

// loadBase reads the kernels of the base. One that cannot be read is not a base.
func (p *Project) loadBase(head *manifest.Set, policyName string) (*manifest.Set, error) {
	if p.NoBase != "" || p.baseRoot == p.Root {
		return head, nil
	}
	base := &manifest.Set{}
	patterns, err := p.basePatterns(policyName)
	if err == nil {
		base, err = manifest.Load(p.baseRoot, patterns)
	}
	if err == nil {
		return base, nil
	}
	p.NoBase = "the base cannot be read: " + err.Error()
	p.Base.Why = p.NoBase
	if p.Judge == JudgeBase {
		return nil, inconclusive("", "%s", p.NoBase)
	}
	return &manifest.Set{}, nil
}

// strayWaivers are notes on waivers of kernels that neither side has: a misspelt
// one lets nothing pass, and its owner looks for the reason.
func (p *Project) strayWaivers(kernels []*manifest.Kernel) []string {
	var names, notes []string
	for _, k := range kernels {
		names = append(names, k.Name)
	}
	for _, w := range p.Policy.Waivers {
		if slices.Contains(names, w.Kernel) {
			continue
		}
		note := fmt.Sprintf("%s:%d: the waiver of rule %q is of %q, and no kernel is called that", p.Policy.File, w.Line, w.Rule, w.Kernel)
		if meant := yamlfile.Nearest(w.Kernel, names); meant != "" {
			note += fmt.Sprintf("; did you mean %q?", meant)
		}
		notes = append(notes, note)
	}
	return notes
}

// basePatterns are the base's own, where it has a policy: one that the change
// narrows must not hide a kernel.
func (p *Project) basePatterns(policyName string) ([]string, error) {
	file := filepath.Join(p.baseRoot, filepath.FromSlash(policyName))
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return p.Policy.Kernels, nil
	}
	own, err := policy.Read(file, policyName)
	if err != nil {
		return nil, err
	}
	return own.Kernels, nil
}

// takeOps gives the head's kernels the base's ops: their inputs, references,
// tolerances and shapes. What the base does not have is judged by nobody yet.
func (p *Project) takeOps(ops []*manifest.Op) {
	p.newOps, p.unasked = map[string]*plan.NewPart{}, map[string][]string{}
	for _, k := range p.head {
		at := slices.IndexFunc(ops, func(o *manifest.Op) bool { return o.Name == k.Op.Name })
		if at < 0 {
			p.newOps[k.Name] = &plan.NewPart{Op: k.Op.Name}
			continue
		}
		var cases []manifest.Case
		for _, c := range k.Cases {
			same := slices.IndexFunc(ops[at].Cases, func(x manifest.Case) bool { return x.Name == c.Name })
			if same < 0 {
				p.newOps[k.Name] = &plan.NewPart{Op: k.Op.Name, Case: c.Name}
				p.unasked[k.Name] = append(p.unasked[k.Name], c.Name)
				continue
			}
			cases = append(cases, ops[at].Cases[same])
		}
		k.Op, k.Cases = ops[at], cases
	}
}

// Brought are the cases of a kernel that no op of the base has: all of them where
// the op is the change's, and otherwise by name alone, since they are not measured.
func (p *Project) Brought(s *plan.Subject) []plan.Case {
	if s.NewOp == nil {
		return nil
	}
	var out []plan.Case
	for _, name := range p.unasked[s.Name] {
		out = append(out, plan.Case{Name: name})
	}
	if len(out) == 0 {
		return s.Cases
	}
	return out
}

// BaseStore is the folder of evidence in the base's tree, where the base judges and
// keeps its evidence in the repository; else "".
func (p *Project) BaseStore() string {
	dir := filepath.FromSlash(p.Policy.Store)
	if p.Judge != JudgeBase || p.baseRoot == p.Root || p.options.Store != "" || strings.Contains(p.Policy.Store, "://") || !filepath.IsLocal(dir) {
		return ""
	}
	return filepath.Join(p.baseRoot, dir)
}

var ownModule = regexp.MustCompile(`(?m)^module github\.com/kernelgate/gate$`)

// harnessFiles are gate's own. A change to gate's repository is measured with the
// harness that the base has there.
func (p *Project) harnessFiles() fs.FS {
	module, err := os.ReadFile(filepath.Join(p.judging, "go.mod"))
	if p.Judge != JudgeBase || err != nil || !ownModule.Match(module) {
		return harness.Files
	}
	return os.DirFS(filepath.Join(p.judging, "kernels", "harness"))
}
