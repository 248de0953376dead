// Package check is the main job: it builds head and base, finds or collects
// the evidence that a policy asks for, and judges it.
package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/git"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// Options say what to check and how.
type Options struct {
	Dir      string               // where the command was started
	Policy   string               // policies.yaml at the root when ""
	Base     string               // a revision; "" for the default branch, "none" for no comparison
	Kernels  []string             // patterns over kernel names; none means all
	NVCC     string               // path of the compiler; "" to look for it
	Cache    string               // folder; "" for the user's
	Store    string               // folder; "" for the policy's
	Record   bool                 // write evidence into the store rather than beside the cache
	NoGPU    bool                 // judge what is recorded, measure nothing
	Force    bool                 // time again, unchanged kernels too: what the others measure is exact
	GPU      string               // UUID or index; "" for the first that the policy wants
	Wait     time.Duration        // how long to wait for a GPU that another run holds
	Idle     time.Duration        // a harness that is silent for longer hangs
	Jobs     int                  // parallel compilers
	Env      func(string) string  // the environment
	Progress func(string)         // one line of what is being done
	Built    func(build.Result)   // every kernel that was built
	Now      func() time.Time     // the clock, for the evidence's date
	Announce func(notes []string) // what a reader must know first
}

// A UsageError is a request that cannot be meant: exit 2.
type UsageError struct{ Msg, Hint string }

func (e *UsageError) Error() string { return e.Msg }

// job is one run of check.
type job struct {
	Options
	tree    *tree
	tools   *toolchain.Toolchain
	harness *collect.Harness
	builder *build.Builder
	stores  stores
	built   map[slot]build.Result // the head's kernels and the references
	kernels []*kernel
	notes   []string
}

// Run checks and returns the verdict. An error means that there is none: a
// file of the user's is invalid, or a tool is missing.
func Run(ctx context.Context, o Options) (*policy.Verdict, error) {
	j := &job{Options: o}
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	defer j.tree.close()
	if err := j.build(ctx); err != nil {
		return nil, err
	}
	if err := j.static(); err != nil {
		return nil, err
	}
	machines, err := j.machines()
	if err != nil {
		return nil, err
	}
	if err := j.find(machines); err != nil {
		return nil, err
	}
	measureErr := j.measure(ctx)
	var asked *UsageError
	if measureErr != nil && (ctx.Err() != nil || errors.As(measureErr, &asked)) {
		return nil, measureErr
	}
	v, err := policy.Judge(j.tree.policy, j.facts())
	if err != nil {
		return nil, err
	}
	j.describe(v)
	if measureErr != nil {
		// What was measured before the tool failed is judged all the same.
		v.ToolFailure = true
		v.Notes = append(v.Notes, measureErr.Error())
	}
	return v, nil
}

func (j *job) prepare(ctx context.Context) error {
	if j.Now == nil {
		j.Now = time.Now
	}
	if j.Cache == "" {
		dir, err := toolchain.CacheDir(j.Env)
		if err != nil {
			return err
		}
		j.Cache = dir
	}
	if err := os.MkdirAll(j.Cache, 0o755); err != nil {
		return fmt.Errorf("making the cache: %w", err)
	}
	var err error
	if j.tree, err = openTree(ctx, j.Options); err != nil {
		return err
	}
	if j.Announce != nil && len(j.tree.differ) > 0 {
		j.Announce(j.tree.differ)
	}
	j.notes = append(j.notes, j.tree.notes...)
	if j.tools, err = toolchain.Find(ctx, toolchain.Options{NVCC: j.NVCC, Env: j.Env, CacheDir: j.Cache}); err != nil {
		j.tree.close()
		return err
	}
	if j.harness, err = collect.OpenHarness(j.Cache); err != nil {
		j.tree.close()
		return err
	}
	if j.builder, err = build.New(j.tools, j.Cache, j.harness.Include); err != nil {
		j.tree.close()
		return err
	}
	j.builder.Jobs, j.builder.OnDone = j.Jobs, j.Built
	j.stores = openStores(j.Options, j.tree)
	return nil
}

// StoreDir is the folder of recorded evidence that the policy of the
// repository around dir names.
func StoreDir(ctx context.Context, o Options) (string, error) {
	root := o.Dir
	repo, err := git.Open(ctx, o.Dir)
	switch {
	case err == nil:
		root = repo.Root
	case !errors.Is(err, git.ErrNoRepo):
		return "", err
	}
	p, err := policy.Read(policyPath(o, root))
	if err != nil {
		return "", err
	}
	return storeDir(root, p), nil
}

func storeDir(root string, p *policy.Policy) string {
	if filepath.IsAbs(p.Store) {
		return p.Store
	}
	return filepath.Join(root, filepath.FromSlash(p.Store))
}

func openStores(o Options, t *tree) stores {
	dir := o.Store
	if dir == "" {
		dir = storeDir(t.root, t.policy)
	}
	s := stores{shared: store.Open(dir), local: store.Open(filepath.Join(o.Cache, "evidence"))}
	s.write = s.local
	if o.Record {
		s.write = s.shared
	}
	return s
}

// build builds both trees. An error in a kernel.yaml is the user's to mend
// before anything is judged; a kernel that does not compile is a finding.
func (j *job) build(ctx context.Context) error {
	head := j.builder.Build(ctx, j.tree.root, j.tree.head)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range head {
		var entry *build.EntryError
		if errors.As(r.Err, &entry) {
			return r.Err
		}
	}
	j.built = map[slot]build.Result{}
	for _, r := range slices.Concat(head, j.builder.Build(ctx, j.tree.root, j.tree.unbuilt())) {
		j.built[slot{r.Kernel.Name, r.Arch}] = r
	}
	base := head
	if j.tree.baseRoot != j.tree.root {
		base = j.builder.Build(ctx, j.tree.baseRoot, j.tree.base)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.kernels = join(head, base, j.tree)
	return nil
}

func (j *job) static() error {
	for _, k := range j.kernels {
		if k.head != nil {
			m, err := collect.Static(k.head)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			k.facts.Head = m
		}
		if k.base != nil {
			m, err := collect.Static(k.base)
			if err != nil {
				k.facts.BaseProblem = "the base's compiler log cannot be read: " + err.Error()
				continue
			}
			k.facts.Old = m
		}
	}
	return nil
}
