package project

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Claim is what somebody who is not trusted says of one kernel of a head that
// is not built here.
type Claim struct {
	Name, File, Source, Arch, Op string
	Line                         int
	Head                         plan.Side
	Cases                        []string
	Left                         []plan.Loss
	Brought                      []plan.Case // that no op of the base has
	manifest.Declaration
}

// A Departure is a kernel of the base that somebody says the change retires.
type Departure struct{ Name, File, Reason string }

// A Change is a file of a pull request, as GitHub lists it.
type Change struct{ Name, Status string }

// A Pull is what GitHub says of a change: its commit, its files, nil where they
// are not known, and the texts of kernel.yaml files at its head, nil where GitHub
// was not asked.
type Pull struct {
	Head     string
	Changes  []Change
	Cut      bool // there may be other files
	Texts    map[string]string
	Includes bool // the head has the base among its ancestors
}

// Expected is what is to be judged of a head that is not built here.
type Expected struct {
	Subjects []*plan.Subject
	Ledger   *evidence.Ledger // what the compiler says of the base
	Notes    []string
	Refused  string // why nothing of what is claimed counts
}

// Expect joins what is claimed of a head to the base, which is built here. Which
// kernels, cases and harnesses are judged comes from the base and its policy: a
// claim adds kernels, and takes none away. Refused is why the claims cannot be
// read. Doubt leaves a kernel open that is called unchanged although the files of
// the pull request touch it.
func (p *Project) Expect(ctx context.Context, claims []Claim, gone []Departure, refused string, pull Pull, doubt bool) (*Expected, error) {
	references := slices.Collect(maps.Values(p.references))
	p.builder.OnDone = p.count(slices.Concat(p.base, references))
	base := p.builder.Build(ctx, p.baseRoot, p.base)
	others := p.builder.Build(ctx, p.Root, references)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ledger, err := p.compiled(nil, base)
	if err != nil {
		return nil, err
	}
	if refused == "" {
		refused = p.contradicted(ctx, claims, gone, pull)
	}
	e := &Expected{Ledger: ledger, Refused: refused}
	if refused != "" {
		claims, gone = nil, nil
	}
	if e.Subjects, err = p.joinClaims(claims, gone, base, others, e); err != nil {
		return nil, err
	}
	e.Subjects = append(e.Subjects, p.unclaimed(claims, pull.Changes)...)
	touched := touchedInputs(e.Subjects, base, pull)
	if note, err := p.rebuild(ctx, e.Subjects, pull, touched); err != nil {
		return nil, err
	} else if note != "" {
		e.Notes = append(e.Notes, note)
	}
	if p.Policy.BuildHead == policy.BuildNever {
		e.Notes = append(e.Notes, doubted(e.Subjects, touched, doubt)...)
	}
	if refused != "" {
		for _, s := range e.Subjects {
			*s = plan.Subject{Name: s.Name, File: s.File, Arch: s.Arch, Op: s.Op, State: verdict.NoBase, Head: plan.Side{Why: refused, Absent: true}}
		}
	}
	return e, nil
}

func (p *Project) joinClaims(claims []Claim, gone []Departure, base, others []build.Result, e *Expected) ([]*plan.Subject, error) {
	pairs, built := p.joiner(base, func(at slot) plan.Retired { return claimedGone(claims, gone, base, at) }), map[slot]build.Result{}
	for _, r := range slices.Concat(others, base) {
		built[slot{r.Kernel.Name, r.Arch}] = r
	}
	var subjects []*plan.Subject
	for _, c := range claims {
		before, was := pairs.pair(slot{c.Name, c.Arch}, c.Was)
		if why := p.notJudged(c); why != "" && (before == nil || was != "") {
			e.Notes = append(e.Notes, fmt.Sprintf("%s is in the bundle and is not judged: %s", c.Name, why))
			if was != "" {
				delete(pairs.paired, slot{before.Kernel.Name, before.Arch})
			}
			continue
		}
		s, err := p.claimed(c, before)
		if err != nil {
			return nil, err
		}
		s.Was, s.Former = was, former(before, was)
		s.References = p.referencesOf(s, built)
		subjects = append(subjects, s)
	}
	return append(subjects, pairs.gone(base)...), nil
}

// claimedGone is where a kernel of the base is said to be retired, and why.
func claimedGone(claims []Claim, gone []Departure, base []build.Result, at slot) plan.Retired {
	for _, d := range gone {
		if d.Name == at.name && slices.ContainsFunc(base, func(r build.Result) bool { return r.Kernel.Name == d.Name && r.Kernel.File == d.File }) {
			return plan.Retired{Reason: d.Reason}
		}
	}
	for _, c := range claims {
		if r := archRetired(c.Retired, at.arch, c.File); c.Name == at.name && r.Arch != "" {
			return r
		}
	}
	return plan.Retired{}
}

// notJudged says why a kernel that the base does not have is none of the
// policy's.
func (p *Project) notJudged(c Claim) string {
	name, ok := manifest.NameOf(c.File, p.Policy.Kernels)
	switch {
	case !ok:
		return "the policy does not name " + c.File
	case name != c.Name:
		return "the kernel of " + c.File + " is called " + name
	}
	return ""
}

// claimed is one kernel that a claim describes, with its base, nil where there
// is none. Cases, and what measures them, are those of the base's op.
func (p *Project) claimed(c Claim, base *build.Result) (*plan.Subject, error) {
	s := &plan.Subject{Name: c.Name, File: c.File, Source: c.Source, Line: c.Line, Arch: c.Arch, Op: c.Op, State: verdict.New, Head: c.Head}
	if err := p.claimedCases(s, c); err != nil {
		return nil, err
	}
	if base == nil {
		return s, nil
	}
	s.State = verdict.Changed
	if base.Kernel.Name == c.Name && c.File != base.Kernel.File {
		s.File = base.Kernel.File
		s.Head = plan.Side{Absent: true, Why: "the bundle calls " + c.File + " the file of this kernel, and it is " + s.File}
	}
	s.Lost = slices.Concat(goneNames(base.Kernel, c), exchangedOp(base.Kernel.Op.Name, c.Op), c.Left)
	if base.Err == nil && s.Head.Why == "" && base.Kernel.Name == c.Name {
		s.Lost = append(s.Lost, goneFunctions(base.Artifact, c)...)
	}
	s.Lost = declared(s.Lost, c.Retired, c.File)
	if base.Err != nil {
		s.Base.Why = "the base does not build: " + base.Err.Error()
		return s, nil
	}
	if s.Base = side(*base); s.Head.Identity == s.Base.Identity {
		s.State = verdict.Unchanged
	}
	return s, nil
}

// claimedCases are the base's cases of those names, with what the base measures
// them by. What no op of the base has is judged by what the change brings along,
// as far as the policy lets that be judged.
func (p *Project) claimedCases(s *plan.Subject, c Claim) error {
	op := p.opNamed(c.Op)
	if op == nil && len(c.Brought) > 0 {
		s.NewOp, s.Cases = &plan.NewPart{Op: c.Op}, c.Brought
		return nil
	}
	has := func(name string) *manifest.Case {
		if op == nil {
			return nil
		}
		if i := slices.IndexFunc(op.Cases, func(k manifest.Case) bool { return k.Name == name }); i >= 0 {
			return &op.Cases[i]
		}
		return nil
	}
	for _, b := range c.Brought {
		s.NewOp = &plan.NewPart{Op: c.Op, Case: b.Name}
		if has(b.Name) != nil {
			s.Head = plan.Side{Absent: true, Why: fmt.Sprintf("the bundle calls the case %s new, and the base's op %s has it", b.Name, c.Op)}
		}
	}
	for _, name := range c.Cases {
		one := plan.Case{Name: name}
		if k := has(name); k != nil {
			id, err := p.Harness.ID(op, *k)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			one.Harness, one.CheckOnly, one.Work = id, k.CheckOnly, k.Work
		}
		if one.Harness == "" && s.Head.Why == "" {
			s.Head = plan.Side{Absent: true, Why: fmt.Sprintf("the base has no op %s with a case %s: what it is checked against would be the change's own", c.Op, name)}
		}
		s.Cases = append(s.Cases, one)
	}
	return nil
}

// goneFunctions are those that the base judges and a claim does not have. One
// whose parameters changed is the same one.
func goneFunctions(base *build.Artifact, c Claim) []plan.Loss {
	has := map[string]int{}
	for _, e := range c.Head.Entries {
		has[e.Short]++
	}
	var out []plan.Loss
	for _, e := range base.Entries {
		short, name := build.Name(e), build.Demangle(e)
		left := slices.ContainsFunc(c.Left, func(l plan.Loss) bool { return l.Entry == name })
		if has[short]--; has[short] < 0 && !left {
			out = append(out, plan.Loss{Cause: plan.GoneEntry, Entry: name})
		}
	}
	return out
}

// goneNames are the base's cases that a claim does not have. Those of another op
// are not the base's.
func goneNames(base *manifest.Kernel, c Claim) []plan.Loss {
	var cases []manifest.Case
	for _, name := range c.Cases {
		if c.Op == base.Op.Name {
			cases = append(cases, manifest.Case{Name: name})
		}
	}
	return goneCases(base, &manifest.Kernel{Cases: cases})
}

func (p *Project) opNamed(name string) *manifest.Op {
	if i := slices.IndexFunc(p.ops, func(o *manifest.Op) bool { return o.Name == name }); i >= 0 {
		return p.ops[i]
	}
	return nil
}

// unclaimed are kernels that the pull request adds by its files, of which
// nothing is claimed.
func (p *Project) unclaimed(claims []Claim, changes []Change) []*plan.Subject {
	var out []*plan.Subject
	for _, f := range changes {
		name, ok := manifest.NameOf(f.Name, p.Policy.Kernels)
		known := slices.ContainsFunc(claims, func(c Claim) bool { return c.Name == name }) ||
			slices.ContainsFunc(p.base, func(k *manifest.Kernel) bool { return k.Name == name })
		if !ok || known || f.Status == "removed" {
			continue
		}
		out = append(out, &plan.Subject{Name: printable.Line(name), File: printable.Line(f.Name), State: verdict.New,
			Head: plan.Side{Absent: true, Why: "the pull request has " + printable.Line(f.Name) + ", and the bundle does not hold this kernel"}})
	}
	return out
}

// touchedInputs are the kernels that are called unchanged although the pull
// request changes a file that goes into them, with those files. A comment changes
// nothing; whether it was one cannot be told without building the head.
func touchedInputs(subjects []*plan.Subject, base []build.Result, pull Pull) map[*plan.Subject][]string {
	touched := map[*plan.Subject][]string{}
	for _, s := range subjects {
		i := slices.IndexFunc(base, func(r build.Result) bool {
			same := r.Kernel.Name == s.Name && r.Arch == s.Arch && s.Was == ""
			return (same || s.Was != "" && r.Kernel.Name == s.Former.Name && r.Arch == s.Former.Arch) && r.Artifact != nil
		})
		if s.State != verdict.Unchanged || i < 0 {
			continue
		}
		for _, c := range pull.Changes {
			if goesInto(c.Name, base[i]) {
				touched[s] = append(touched[s], printable.Line(c.Name))
			}
		}
		if len(touched[s]) == 0 && pull.Cut {
			touched[s] = []string{"perhaps, since GitHub does not list all files of this commit"}
		}
	}
	return touched
}

// doubted says of the kernels that are called unchanged what was not checked, and
// leaves them open if that is asked for.
func doubted(subjects []*plan.Subject, touched map[*plan.Subject][]string, doubt bool) []string {
	var notes []string
	for _, s := range subjects {
		files := touched[s]
		if len(files) == 0 {
			continue
		}
		note := fmt.Sprintf("%s is called unchanged, and the pull request changes what it is built from: %s. That it compiles to the same code was not checked: nothing of the head is built here",
			s.Name, strings.Join(files[:min(mostNamed, len(files))], ", "))
		if notes = append(notes, note); doubt {
			s.Head = plan.Side{Absent: true, Why: note}
		}
	}
	return notes
}

// goesInto reports whether a file of the repository was read when a kernel was
// built. Below the kernel's folder, a file that is new may be read as well.
func goesInto(file string, r build.Result) bool {
	if strings.HasPrefix(file, filepath.ToSlash(filepath.Dir(r.Kernel.File))+"/") {
		return true
	}
	for name := range r.Artifact.Inputs {
		if name = filepath.ToSlash(name); name == file || strings.HasSuffix(name, "/"+file) {
			return true
		}
	}
	return false
}

// Touched says where a pull request changes what judges it, by its files.
func (p *Project) Touched(changes []Change) []string {
	var notes []string
	for _, c := range changes {
		switch what := p.judgedBy(c.Name, p.Policy.File); {
		case what != "":
			notes = append(notes, "the pull request changes "+printable.Line(c.Name)+": "+what)
		case p.recorded(c.Name):
			notes = append(notes, "the pull request changes "+printable.Line(c.Name)+": recorded evidence is read from the branch that it goes to")
		case strings.HasPrefix(c.Name, ".github/workflows/"):
			notes = append(notes, "the pull request changes "+printable.Line(c.Name)+": the workflow that judges is that of the default branch")
		}
	}
	return notes
}
