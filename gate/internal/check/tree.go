package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/git"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// A tree is what stands on both sides of the comparison.
type tree struct {
	root     string
	policy   *policy.Policy
	head     []*manifest.Kernel
	headSide policy.Side

	references map[string]*manifest.Kernel // what rules with relative_to name

	baseRoot string // equal to root when nothing differs
	base     []*manifest.Kernel
	baseSide policy.Side
	noBase   string // why there is no base

	notes  []string // for the verdict
	differ []string // what judges and differs from the base's, line by line
	close  func()
}

func openTree(ctx context.Context, o Options) (*tree, error) {
	t := &tree{close: func() {}}
	repo, err := git.Open(ctx, o.Dir)
	switch {
	case errors.Is(err, git.ErrNoRepo) && o.Base == "none":
		t.root = o.Dir
	case errors.Is(err, git.ErrNoRepo):
		return nil, &UsageError{Msg: "this folder is not in a git repository, so there is no base to compare with", Hint: "gate check --base none judges limits only"}
	case err != nil:
		return nil, err
	default:
		t.root = repo.Root
	}
	path, name := policyPath(o, t.root)
	all, err := t.load(o, path, name)
	if err != nil {
		return nil, err
	}
	if repo != nil {
		if err := t.openBase(ctx, repo, o, name); err != nil {
			t.close()
			return nil, err
		}
	} else {
		t.noBase = "--base none was given"
		t.baseRoot = t.root
	}
	if len(t.head) < all {
		t.notes = append(t.notes, fmt.Sprintf("%d of %d kernels are checked, as asked", len(t.head), all))
	}
	return t, nil
}

// load reads the policy and the head's kernels, of which it returns the number
// before the command line chose.
func (t *tree) load(o Options, path, name string) (all int, err error) {
	if t.policy, err = policy.Read(path, name); err != nil {
		return 0, err
	}
	set, err := manifest.Load(t.root, t.policy.Kernels)
	if err != nil {
		return 0, err
	}
	if len(set.Kernels) == 0 {
		return 0, &UsageError{Msg: fmt.Sprintf("no kernel matches %s", strings.Join(t.policy.Kernels, ", ")),
			Hint: "kernels: in " + name + " names kernel.yaml files from the root of the repository"}
	}
	if err := t.policy.Idle(names(set.Kernels)); err != nil {
		return 0, err
	}
	if t.head, err = filter(set.Kernels, o.Kernels); err != nil {
		return 0, err
	}
	return len(set.Kernels), t.findReferences(set)
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

// filter keeps the kernels that the command line names.
func filter(kernels []*manifest.Kernel, patterns []string) ([]*manifest.Kernel, error) {
	kept, used := choose(kernels, patterns)
	for _, p := range patterns {
		if !used[p] {
			return nil, &UsageError{Msg: fmt.Sprintf("no kernel is called %q", p), Hint: "there are " + strings.Join(names(kernels), ", ")}
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
			if ok, _ := doublestar.Match(p, k.Name); ok {
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
func (t *tree) openBase(ctx context.Context, repo *git.Repo, o Options, policyName string) error {
	commit, dirty, err := repo.Head(ctx)
	var none *git.NoBaseError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	t.headSide = policy.Side{Commit: commit, Dirty: dirty}
	t.baseRoot = t.root
	if o.Base == "none" {
		t.noBase = "--base none was given"
		return nil
	}
	base, err := repo.Base(ctx, o.Base)
	if errors.As(err, &none) {
		t.noBase = none.Msg
		if none.Hint != "" {
			t.noBase += " (" + none.Hint + ")"
		}
		t.baseSide.Why = t.noBase
		return nil
	}
	if err != nil {
		return err
	}
	t.baseSide = policy.Side{Commit: base.Commit, How: base.How}
	changed, err := repo.Changed(ctx, base.Commit)
	if err != nil {
		return err
	}
	if !t.relevant(changed, policyName) {
		t.base = t.head
		return nil
	}
	t.judges(ctx, repo, base.Commit, changed, policyName)
	return t.checkOut(ctx, repo, base, o, policyName)
}

// relevant reports whether a change can reach a build or a judgement. Records
// of evidence are neither.
func (t *tree) relevant(changed []string, policyName string) bool {
	return slices.ContainsFunc(changed, func(f string) bool { return f == policyName || !t.recorded(f) })
}

// recorded reports whether a file is one that the store writes. Its folder
// alone does not say so: a policy may keep evidence where the kernels are.
func (t *tree) recorded(file string) bool {
	below, ok := strings.CutPrefix(file, strings.TrimSuffix(filepath.ToSlash(t.policy.Store), "/")+"/")
	return ok && strings.Count(below, "/") == 3 && (strings.HasSuffix(below, ".json") || strings.HasSuffix(below, ".gz"))
}

// judges announces, line by line, where what judges differs from the base's.
func (t *tree) judges(ctx context.Context, repo *git.Repo, base string, changed []string, policyName string) {
	for _, f := range changed {
		what := ""
		switch {
		case f == policyName:
			what = "a pull request is judged by the base's"
		case t.ofOp(f):
			what = "a pull request is measured with the base's op"
		case strings.HasPrefix(f, "kernels/harness/"):
			what = "a pull request is measured with the base's harness"
		case t.ofReference(f):
			what = "a pull request is timed against the base's"
		}
		if what == "" {
			continue
		}
		note := f + " differs from the base: " + what
		t.notes = append(t.notes, note)
		t.differ = append(append(t.differ, note), repo.DiffLines(ctx, base, f, 20)...)
	}
}

func (t *tree) ofOp(file string) bool {
	for _, k := range t.head {
		dir, err := filepath.Rel(t.root, k.Op.Dir)
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

func (t *tree) checkOut(ctx context.Context, repo *git.Repo, base git.Base, o Options, policyName string) error {
	dir, remove, err := repo.Worktree(ctx, base.Commit)
	if err != nil {
		return err
	}
	t.close, t.baseRoot = remove, dir
	patterns := t.policy.Kernels
	if _, err := os.Stat(filepath.Join(dir, policyName)); err == nil {
		// A pattern that the change narrows must not hide a kernel.
		if p, err := policy.Read(filepath.Join(dir, policyName), policyName); err == nil {
			patterns = p.Kernels
		}
	}
	set, err := manifest.Load(dir, patterns)
	if err != nil {
		t.noBase = "the base cannot be read: " + err.Error()
		t.baseSide.Why = t.noBase
		return nil
	}
	t.base, _ = choose(set.Kernels, o.Kernels) // a name that the base lacks is new
	return nil
}
