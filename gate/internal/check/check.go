// Package check is the main job: it builds head and base, finds or collects
// the evidence that a policy asks for, and judges it.
package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/judge"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/toolchain"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Options say what to check and how.
type Options struct {
	project.Options
	Record   bool                 // write evidence into the store rather than beside the cache
	Moves    bool                 // with Record: say how the compiler's figures moved since another toolchain
	NoGPU    bool                 // judge what is recorded, measure nothing
	Force    bool                 // time again, unchanged kernels too: what the others measure is exact
	Tiers    []evidence.Tier      // that are asked for; none: all
	GPU      string               // UUID or index, which alone is used; "" for all that are free and that the policy asks for
	Wait     time.Duration        // how long to wait for a GPU that another run holds
	Idle     time.Duration        // a harness that is silent for longer hangs
	Progress func(string)         // one line of what is being done
	Announce func(notes []string) // what a reader must know first
	Share    Share                // what of the change this run measures
	Attempt  int                  // how often it was measured, with this time; 0 at a desk
	Timeline func(lines []string) // what took how long, at the end; may be nil
	Now      func() time.Time     // the clock, for the evidence's date
}

// Prepare fills in what an option leaves open, and makes the cache.
func (o *Options) Prepare() error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Cache == "" {
		dir, err := toolchain.CacheDir(o.Env)
		if err != nil {
			return err
		}
		o.Cache = dir
	}
	if err := os.MkdirAll(o.Cache, 0o755); err != nil {
		return fmt.Errorf("making the cache: %w", err)
	}
	command.EndLeftovers(o.Cache)
	return nil
}

// A run is one check: what is compared, what is asked, and what is known.
type run struct {
	Options
	project *project.Project
	shelf   *store.Shelf
	audits  *disk.Answers // which records were found consistent
	asked   plan.Plan
	ledger  *evidence.Ledger
	notes   []string
	start   time.Time
	spans   []collect.Span
	keeping sync.Mutex // of what the workers of several GPUs share
}

// Run checks and returns the verdict. An error means that there is none: a
// file of the user's is invalid, or a tool is missing.
func Run(ctx context.Context, o Options) (*verdict.Verdict, error) {
	_, v, err := carryOut(ctx, o)
	return v, err
}

func carryOut(ctx context.Context, o Options) (*run, *verdict.Verdict, error) {
	r, err := open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	r.spans = []collect.Span{{What: "building, reading what is recorded", Seconds: time.Since(r.start).Seconds()}}
	r.forget()
	broke := r.measure(ctx)
	r.timeline()
	if status, _ := exit.Of(broke); broke != nil && (ctx.Err() != nil || status == exit.Usage) {
		return nil, nil, broke
	}
	v, err := judge.Judge(r.asked, r.ledger)
	if err != nil {
		return nil, nil, err
	}
	if r.Record && broke == nil {
		broke = r.record(ctx, v)
	}
	r.audits.Save()
	r.describe(v, broke)
	return r, v, nil
}

// timeline says what took how long.
func (r *run) timeline() {
	if r.Timeline == nil {
		return
	}
	lines, known := []string{}, 0.0
	for _, s := range r.spans {
		lines, known = append(lines, s.String()), known+s.Seconds
	}
	rest := collect.Span{What: "everything else: finding the GPU, building the harness, keeping records", Seconds: time.Since(r.start).Seconds() - known}
	r.Timeline(append(lines, rest.String()))
}

// Preview says what Run would ask and measure, and measures nothing.
func Preview(ctx context.Context, o Options) (plan.Preview, error) {
	r, err := open(ctx, o)
	if err != nil {
		return plan.Preview{}, err
	}
	return r.asked.Preview(r.ledger), nil
}

// open builds both sides, asks the policy's questions, and reads what is
// recorded.
func open(ctx context.Context, o Options) (*run, error) {
	start := time.Now()
	if err := o.Prepare(); err != nil {
		return nil, err
	}
	p, err := project.Open(ctx, o.Options)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, project: p, start: start}
	return r, r.ask(ctx)
}

func (r *run) ask(ctx context.Context) error {
	if r.Announce != nil && len(r.project.Differs) > 0 {
		r.Announce(r.project.Differs)
	}
	subjects, ledger, err := r.project.Build(ctx)
	if err != nil {
		return err
	}
	r.ledger = ledger
	if err := r.openShelf(ctx); err != nil {
		return err
	}
	known, err := r.shelf.Machines()
	if err != nil {
		return err
	}
	if err := r.machinesExist(ctx, known); err != nil {
		return err
	}
	o := plan.Options{NoBase: r.project.NoBase, LimitsOnly: r.Base == project.NoBase, Force: r.Force, Attempt: r.Attempt, Now: r.Now(), Tiers: r.Tiers}
	if r.asked, err = plan.Bound(r.project.Policy, subjects, o, known, r.shelf.Holds); err != nil {
		return err
	}
	if r.Share.Of > 0 {
		r.asked = r.asked.Only(r.Share.Kernels)
	}
	r.shelf.Load(r.asked.Needs(ledger), ledger)
	r.asked = judge.Stop(r.asked, ledger)
	return nil
}

// machinesExist refuses a policy that waits for a machine of a name that nothing
// has. The compiler's figures belong to no machine.
func (r *run) machinesExist(ctx context.Context, known []evidence.Machine) error {
	if len(r.Tiers) == 1 && r.Tiers[0] == evidence.Static || r.project.Policy.Strange(known) == nil {
		return nil
	}
	here, err := collect.Machines(ctx, r.project.Tools)
	if err != nil {
		return err
	}
	return r.project.Policy.Strange(slices.Concat(known, here))
}

// offered makes the base's store the one that is read. What the change has in its
// own is taken where the base has nothing: it replaces no record that the change is
// compared with, and tells no history.
func offered(s *store.Shelf, base, change *store.Store) (err error) {
	s.Read[0] = base
	if s.Elsewhere, err = change.Machines(); err != nil {
		return err
	}
	s.Beside = func(k evidence.Key) (*evidence.Record, error) {
		if k.Tier == evidence.Sessions || k.Tier == evidence.Calibration {
			return nil, nil
		}
		r, err := change.Get(k)
		if store.Absent(err) {
			return nil, nil
		}
		return r, err
	}
	return nil
}

// openShelf opens the repository's store and the user's.
func (r *run) openShelf(ctx context.Context) error {
	r.audits = disk.OpenAnswers(filepath.Join(r.Cache, "consistent.json"))
	a := Audit(r.project, r.audits, r.Now)
	own := store.Open(filepath.Join(r.Cache, "evidence")).Audited(a)
	a.Added = r.project.Added(ctx)
	at, err := store.At(r.project.Store(), r.Cache)
	if err != nil {
		return err
	}
	shared := at.Audited(a)
	s := &store.Shelf{Read: []*store.Store{shared, own}, Write: own, Near: r.project.Near(ctx)}
	if s.Notes, err = shared.Fetch(ctx); err != nil {
		return err
	}
	if dir := r.project.BaseStore(); dir != "" {
		if err := offered(s, store.Open(dir).Audited(Audit(r.project, r.audits, r.Now)), shared); err != nil {
			return err
		}
	}
	if n := shared.Outdated(); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d records use the identities of an older gate; run gate baseline record on a machine with the GPU", n))
	}
	if r.Record {
		s.Write = shared
	}
	if again := r.Attempt > 1; (r.Force || again) && !r.NoGPU {
		s.Aside = func(k evidence.Key) string {
			if k.Tier != evidence.Latency || again && !r.Force && !k.Compares() {
				return ""
			}
			return "recorded times are set aside, as asked"
		}
	}
	r.shelf = s
	return nil
}

// Audit is how the stores of a project find records that contradict themselves.
func Audit(p *project.Project, answers *disk.Answers, now func() time.Time) store.Audit {
	a := collect.Auditor{Ops: p.Ops()}
	return store.Audit{Check: a.Audit, Knows: a.Knows(), Answers: answers, Now: now}
}

// measure fills what the ledger lacks, where this machine has a GPU that the
// policy asks for. What was measured before an error is judged all the same.
func (r *run) measure(ctx context.Context) error {
	undecided, err := judge.Undecided(r.asked, r.ledger)
	if err != nil || r.asked.Next(r.ledger) == nil && len(undecided) == 0 {
		return err
	}
	if r.NoGPU {
		return r.because("measuring was switched off", nil)
	}
	wants := func(m evidence.Machine) bool {
		return r.asked.Wants(m, r.ledger) || slices.ContainsFunc(undecided, func(k evidence.Key) bool { return k.At.Machine == m.Key() })
	}
	var t tally
	o := r.counted(r.Bench(r.project, r.shelf), &t)
	bench, err := collect.Open(ctx, o, wants)
	var none *collect.NoGPUError
	if errors.As(err, &none) {
		return r.because(none.Why, nil) // it judges what is recorded
	}
	if err != nil {
		return r.because(err.Error(), err)
	}
	defer bench.Close()
	if r.asked, err = r.asked.Move(bench.Machine, r.ledger); err != nil {
		return err
	}
	r.reopen(undecided, bench)
	t.of = r.asked.Preview(r.ledger).Measured
	err = r.fill(ctx, bench, o)
	r.ledger.Settle()
	if err != nil {
		return r.because(err.Error(), err)
	}
	elsewhere := slices.DeleteFunc(r.asked.Lacks(r.ledger), func(k evidence.Key) bool { return k.At.Machine == bench.Machine.Key() })
	r.ledger.Because("this machine is "+bench.Machine.Model(), elsewhere...)
	return nil
}

// reopen lets experiments be continued that decide too little, as far as this
// machine can go on with them.
func (r *run) reopen(undecided []evidence.Key, bench *collect.Bench) {
	for _, k := range undecided {
		e := r.ledger.Find(evidence.NeedOf(k))
		if e.Source == evidence.Reused && e.Measured() && bench.Continues(e.Record, r.asked.States()) {
			r.ledger.Reopen(k)
		}
	}
}

// A tally is how many records' worth of work is done, of all that is known.
type tally struct {
	done float64
	of   int
}

// add counts more work, and numbers the record that is worked at. An answer may
// ask for more than was known at first; the whole then grows with the work.
func (t *tally) add(more float64) (n, of int) {
	const rounding = 1e-6
	t.done += more
	t.of = max(1, t.of, int(math.Ceil(t.done-rounding)))
	return min(int(t.done+rounding)+1, t.of), t.of
}

// counted says with what is being done which record it is, of those that were
// missing, and lets the benches of several GPUs share what they hand over.
func (r *run) counted(o collect.Options, t *tally) collect.Options {
	keep, complete, say := o.Keep, o.Complete, r.Progress
	o.Keep = func(record *evidence.Record, against string, raw map[string][]byte) error {
		r.keeping.Lock()
		defer r.keeping.Unlock()
		return keep(record, against, raw)
	}
	o.Complete = func(ctx context.Context, a *build.Artifact) error {
		r.keeping.Lock()
		defer r.keeping.Unlock()
		return complete(ctx, a)
	}
	inputs := o.Inputs
	o.Inputs = func(record *evidence.Record) (map[string][]byte, error) {
		r.keeping.Lock()
		defer r.keeping.Unlock()
		return inputs(record)
	}
	o.Progress = func(more float64, what string) {
		r.keeping.Lock()
		defer r.keeping.Unlock()
		if n, of := t.add(more); what != "" {
			say(fmt.Sprintf("%d of %d: %s", n, of, what))
		}
	}
	if say == nil {
		o.Progress = nil
	}
	return o
}

// because gives a cause to everything that was not measured.
func (r *run) because(why string, err error) error {
	r.ledger.Because(why, r.asked.Lacks(r.ledger)...)
	return err
}

// Bench says on what to measure a project, and where its evidence is kept.
func (o Options) Bench(p *project.Project, s *store.Shelf) collect.Options {
	return collect.Options{GPU: o.GPU, Wait: o.Wait, Idle: o.Idle, Cache: o.Cache, Env: o.Env, Tools: p.Tools, Harness: p.Harness, Made: p.Made, Complete: p.Complete,
		Commit: p.Head.Commit, Metrics: p.Policy.ProfileMetrics(), Force: o.Force, Keep: s.Keep, Inputs: s.Inputs,
		Open: o.unfinished(p), Progress: o.saying(), Now: o.Now,
		Budget: compare.Budget{WallSeconds: p.Policy.Budget.Seconds(), GPUSeconds: p.Policy.GPUBudget.Seconds()}}
}

// saying is the progress of work that is not counted.
func (o Options) saying() collect.Progress {
	if o.Progress == nil {
		return nil
	}
	return func(_ float64, what string) {
		if what != "" {
			o.Progress(what)
		}
	}
}

// describe adds to the verdict what was compared, and what broke.
func (r *run) describe(v *verdict.Verdict, broke error) {
	v.JudgedBy = string(r.project.Judge)
	for _, w := range r.project.Waivers {
		v.Waivers = append(v.Waivers, verdict.Waiver{Rule: w.Rule, Kernel: w.Kernel, Ceiling: w.Ceiling.Text, Until: w.Until.Format(policy.Day), Owner: w.Owner,
			Reason: w.Reason, State: verdict.Proposed, DaysLeft: w.DaysLeft(r.Now())})
	}
	v.Head, v.Base, v.Reproduce = r.project.Head, r.project.Base, r.reproduce()
	if r.project.NoBase != "" {
		v.Base.Why = r.project.NoBase
	}
	for _, notes := range [][]string{r.project.Notes, r.notes, r.shelf.Notes, command.Openings()} {
		v.Notes = append(v.Notes, notes...)
	}
	if remedy := r.remedy(); remedy != "" && !r.Record && v.Counts.Missing > 0 {
		v.Notes = append(v.Notes, remedy)
	}
	if broke != nil {
		v.ToolFailure = true
		v.Notes = append(v.Notes, broke.Error())
	}
}

// reproduce is the command that leads to this verdict again.
func (r *run) reproduce() string {
	words := []string{"gate", "check"}
	if r.project.Policy.File != "policies.yaml" {
		words = append(words, "--policy", quote(r.project.Policy.File))
	}
	switch {
	case r.Base == project.NoBase:
		words = append(words, "--base", project.NoBase)
	case r.project.Base.Commit != "":
		words = append(words, "--base", r.project.Base.Commit[:12])
	}
	if r.project.Judge == project.JudgeBase {
		words = append(words, "--judge", string(project.JudgeBase))
	}
	if len(r.Tiers) > 0 {
		var names []string
		for _, t := range r.Tiers {
			names = append(names, string(t))
		}
		words = append(words, "--tiers", strings.Join(names, ","))
	}
	for _, k := range r.Kernels {
		words = append(words, quote(k))
	}
	return strings.Join(words, " ")
}

// quote writes a word as a shell reads it back.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-@:=+,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
