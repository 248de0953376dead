// Package project is what is compared: the policy, the kernels of the working
// tree and of its base, and who judges whom. It builds both sides and joins them
// to the subjects of a plan.
package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/git"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/toolchain"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Options say what to compare and with what to build it.
type Options struct {
	Dir     string              // where the command was started
	Policy  string              // policies.yaml at the root when ""
	Base    string              // a revision; "" for the default branch, NoBase for no comparison
	Kernels []string            // patterns over kernel names; none means all
	Judge   Judge               // whose policy; "" for what the event says
	Store   string              // folder or URL of recorded evidence; "" for the policy's
	NVCC    string              // path of the compiler; "" to look for it
	Cache   string              // folder
	Jobs    int                 // parallel compilers
	Env     func(string) string // the environment

	Built func(kernel string, n, of int) // is told of every kernel that was built
}

// NoBase, given as the base, asks for limits alone.
const NoBase = "none"

// Judge says from which side the policy, its waivers and the ops come.
type Judge string

// The base judges where a change must not choose what it is judged by.
const (
	JudgeBase Judge = "base"
	JudgeHead Judge = "head"
)

// A Project is both sides of a comparison.
type Project struct {
	Root    string
	Policy  *policy.Policy
	Judge   Judge
	Waivers []policy.Waiver // that the change proposes, and that do not count
	Head    verdict.Side
	Base    verdict.Side
	NoBase  string   // why there is no base; "" when there is one
	Notes   []string // for the verdict
	Differs []string // what judges and differs from the base's, line by line
	Tools   *toolchain.Toolchain
	Harness *build.Harness
	Made    *build.Set

	options    Options
	repo       *git.Repo // nil outside of one
	builder    *build.Builder
	head, base []*manifest.Kernel
	baseRoot   string                      // equal to Root when nothing differs
	judging    string                      // the tree that policy, ops and references come from
	retired    map[string]string           // why kernels were retired in the head, by name
	newOps     map[string]*plan.NewPart    // what the base lacks of a kernel's op, by the kernel's name
	unasked    map[string][]string         // cases of a kernel that the base's op lacks, by the kernel's name
	ops        []*manifest.Op              // of both sides, the base's first
	compared   *git.Comparison             // of the working tree with the base; nil where there is none
	references map[string]*manifest.Kernel // what rules with relative_to name
	unknown    map[string]string           // why the base's content of an input is not known, by the input and its content
}

// Open reads both sides and finds the tools to build them.
func Open(ctx context.Context, o Options) (*Project, error) {
	p := &Project{options: o, Made: &build.Set{}}
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	return p, p.tools(ctx)
}

// Look reads the working tree without the tools to build it.
func Look(ctx context.Context, o Options) (*Project, error) {
	p := &Project{options: o}
	return p, p.read(ctx)
}

func (p *Project) tools(ctx context.Context) (err error) {
	o := p.options
	if p.Tools, err = toolchain.Find(ctx, toolchain.Options{NVCC: o.NVCC, Env: o.Env, CacheDir: o.Cache}); err != nil {
		return err
	}
	if p.Harness, err = build.OpenHarness(o.Cache, p.harnessFiles()); err != nil {
		return err
	}
	if p.builder, err = build.New(p.Tools, o.Cache, p.Harness.Include); err != nil {
		return err
	}
	p.builder.Jobs = o.Jobs
	return nil
}

// read opens the tree, its policy and its base.
func (p *Project) read(ctx context.Context) error {
	o := p.options
	repo, err := git.Open(ctx, o.Dir, o.Cache)
	switch {
	case errors.Is(err, git.ErrNoRepo) && o.Base == NoBase:
		p.Root = o.Dir
	case errors.Is(err, git.ErrNoRepo):
		return exit.Usagef("gate check --base none judges limits only", "this folder is not in a git repository, so there is no base to compare with")
	case err != nil:
		return err
	default:
		p.Root, p.repo = repo.Root, repo
	}
	if p.Judge, err = whoJudges(o); err != nil {
		return err
	}
	p.baseRoot = p.Root
	if repo == nil {
		p.NoBase = "--base none was given"
	} else if err := p.openBase(ctx, repo); err != nil {
		return err
	}
	path, name := policyPath(o, p.Root)
	if err := p.readPolicy(path, name); err != nil {
		return err
	}
	all, err := p.loadKernels(name)
	if err != nil {
		return err
	}
	if o.Base == NoBase {
		p.Notes = append(p.Notes, p.limitsOnly()...)
	}
	if p.compared != nil {
		if err := p.announce(ctx, repo, name); err != nil {
			return err
		}
	}
	if len(p.head) < all {
		p.Notes = append(p.Notes, fmt.Sprintf("%d of %d kernels are checked, as asked", len(p.head), all))
	}
	return nil
}

// limitsOnly says which rules stay open without a base.
func (p *Project) limitsOnly() []string {
	var compare []string
	for _, r := range p.Policy.Rules {
		if r.Compares() && !r.Beside() {
			compare = append(compare, r.ID)
		}
	}
	if len(compare) == 0 {
		return nil
	}
	return []string{"--base none judges limits only: " + strings.Join(compare, ", ") + " compare with a base and stay undecided; --base REVISION names one"}
}

// Find is the policy that a command started in a folder means, with the root of
// its repository.
func Find(ctx context.Context, o Options) (root, path, name string, err error) {
	root = o.Dir
	repo, err := git.Open(ctx, o.Dir, "") // nothing of the base is read
	switch {
	case err == nil:
		root = repo.Root
	case !errors.Is(err, git.ErrNoRepo):
		return "", "", "", err
	}
	path, name = policyPath(o, root)
	return root, path, name, nil
}

// StoreOf is the store of recorded evidence that a policy names: a folder or a
// URL.
func StoreOf(root string, p *policy.Policy) string {
	if filepath.IsAbs(p.Store) || strings.Contains(p.Store, "://") {
		return p.Store
	}
	return filepath.Join(root, filepath.FromSlash(p.Store))
}

// Store is where the repository's evidence is recorded.
func (p *Project) Store() string {
	if p.options.Store != "" {
		return p.options.Store
	}
	return StoreOf(p.Root, p.Policy)
}

func policyPath(o Options, root string) (path, name string) {
	path = o.Policy
	if path == "" {
		path = filepath.Join(root, "policies.yaml")
	} else if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return path, filepath.ToSlash(rel)
	}
	return path, path
}

func names(kernels []*manifest.Kernel) []string {
	var out []string
	for _, k := range kernels {
		out = append(out, k.Name)
	}
	return out
}

// scopes are what rules may select of kernels.
func scopes(kernels []*manifest.Kernel) []policy.Scope {
	var out []policy.Scope
	for _, k := range kernels {
		s := policy.Scope{Kernel: k.Name, Arch: k.Arch}
		for _, c := range k.Cases {
			s.Cases = append(s.Cases, c.Name)
		}
		out = append(out, s)
	}
	return out
}

// filter keeps the kernels that the command line names.
func filter(kernels []*manifest.Kernel, patterns []string) ([]*manifest.Kernel, error) {
	kept, used := choose(kernels, patterns)
	for _, p := range patterns {
		if !used[p] {
			return nil, exit.Usagef("there are "+strings.Join(names(kernels), ", "), "no kernel is called %q", p)
		}
	}
	return kept, nil
}

// choose also says which patterns named something.
func choose(kernels []*manifest.Kernel, patterns []string) (kept []*manifest.Kernel, used map[string]bool) {
	used = map[string]bool{}
	if len(patterns) == 0 {
		return kernels, used
	}
	for _, k := range kernels {
		for _, p := range patterns {
			if ok, _ := doublestar.Match(p, k.Name); ok || p == k.Name {
				used[p] = true
				if !slices.Contains(kept, k) {
					kept = append(kept, k)
				}
			}
		}
	}
	return kept, used
}

// openBase resolves the base and makes its files available. A repository in
// which no base can be told has none, which is inconclusive and not an error.
func (p *Project) openBase(ctx context.Context, repo *git.Repo) error {
	commit, dirty, err := repo.Head(ctx)
	var none *git.NoBaseError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	p.Head = verdict.Side{Commit: commit, Dirty: dirty}
	if p.options.Base == NoBase {
		p.NoBase = "--base none was given"
		return nil
	}
	base, err := repo.Base(ctx, p.options.Base, p.options.Env)
	if errors.As(err, &none) {
		p.NoBase = none.Msg
		if none.Hint != "" {
			p.NoBase += " (" + none.Hint + ")"
		}
		p.Base.Why = p.NoBase
		return nil
	}
	if err != nil {
		return err
	}
	p.Base = verdict.Side{Commit: base.Commit, How: base.How}
	if p.compared, err = repo.Compare(ctx, base.Commit); err != nil || len(p.compared.Changed) == 0 {
		return err
	}
	files, err := repo.Tree(ctx, base.Commit)
	if err != nil {
		return err
	}
	for _, g := range files.Gaps {
		p.Notes = append(p.Notes, "base: "+g.Why+" ("+g.Hint+")")
	}
	p.baseRoot = files.Dir
	return nil
}

// announce says what a reader must know of the change before anything is judged.
func (p *Project) announce(ctx context.Context, repo *git.Repo, policyName string) error {
	notes, err := p.evidenceTouched(ctx, repo, p.Base.Commit, p.compared.Changed)
	if err != nil {
		return err
	}
	p.Notes = append(p.Notes, notes...)
	p.judges(ctx, repo, p.Base.Commit, p.compared.Changed, policyName)
	return nil
}

// recorded reports whether a file is one that the store writes. Its folder
// alone does not say so: a policy may keep evidence where the kernels are.
func (p *Project) recorded(file string) bool {
	below, ok := strings.CutPrefix(file, strings.TrimSuffix(filepath.ToSlash(p.Policy.Store), "/")+"/")
	return ok && strings.Count(below, "/") == 3 && (strings.HasSuffix(below, ".json") || strings.HasSuffix(below, ".gz"))
}

// judges announces, line by line, where what judges differs from the base's.
func (p *Project) judges(ctx context.Context, repo *git.Repo, base string, changed []string, policyName string) {
	if !p.holds(policyName) {
		note := policyName + " is not held by git: a pull request is judged by the base's (commit the file to have it judge)"
		p.Notes, p.Differs = append(p.Notes, note), append(p.Differs, note)
	}
	for _, f := range changed {
		what := p.judgedBy(f, policyName)
		if what == "" {
			continue
		}
		note := f + " differs from the base: " + what
		p.Notes = append(p.Notes, note)
		p.Differs = append(append(p.Differs, note), repo.DiffLines(ctx, base, f, 20)...)
	}
}

// judgedBy says in whose place a changed file does not step, or "" where it
// judges nothing.
func (p *Project) judgedBy(f, policyName string) string {
	who := "a pull request"
	if p.Judge == JudgeBase {
		who = "this change"
	}
	switch {
	case f == policyName:
		return who + " is judged by the base's"
	case p.ofOp(f):
		return who + " is measured with the base's op"
	case strings.HasPrefix(f, "kernels/harness/"):
		return who + " is measured with the base's harness"
	case p.ofReference(f):
		return who + " is timed against the base's"
	}
	return ""
}

func (p *Project) ofOp(file string) bool {
	for _, k := range p.head {
		dir, err := filepath.Rel(p.judging, k.Op.Dir)
		if err != nil {
			continue
		}
		dir = filepath.ToSlash(dir)
		if file == k.Op.File {
			return true
		}
		for _, s := range k.Op.Sources {
			if file == dir+"/"+s {
				return true
			}
		}
	}
	return false
}
