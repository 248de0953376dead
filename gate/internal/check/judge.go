package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/bundle"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/judge"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Matter is what GitHub says of the change that bundles are about. Without
// GitHub it is empty.
type Matter struct {
	Doubt bool // leave a kernel open that is called unchanged although the pull request touches what it is built from
	project.Pull
}

// Judge judges what untrusted runs collected. What is asked comes from the
// policy and the base, as this checkout has them; of the bundles, records are
// taken by their keys alone. Refused is why the bundles could not be read.
func Judge(ctx context.Context, o Options, bundles []*bundle.Bundle, refused string, m Matter) (*verdict.Verdict, error) {
	if refused == "" {
		refused = contradiction(bundles, m)
	}
	r, refused, err := openTrusted(ctx, o, bundles, refused)
	if err != nil {
		return nil, err
	}
	var said []project.Claim
	var gone []project.Departure
	if refused == "" {
		said, gone = claimed(bundles[0].Kernels), departed(bundles[0].Gone)
		m.Head = bundles[0].Head // which is GitHub's, where that was asked
	}
	expected, err := r.project.Expect(ctx, said, gone, refused, m.Pull, m.Doubt)
	if err != nil {
		return nil, err
	}
	r.ledger, r.notes = expected.Ledger, append(expected.Notes, r.project.Touched(m.Changes)...)
	if expected.Refused != "" {
		bundles = nil
	}
	if err := r.take(ctx, expected.Subjects, bundles); err != nil {
		return nil, err
	}
	v, err := judge.Judge(r.asked, r.ledger)
	if err != nil {
		return nil, err
	}
	r.audits.Save()
	r.describe(v, nil)
	v.JudgedBy = string(project.JudgeBase)
	r.describeBundles(v, bundles, m)
	return v, nil
}

// openTrusted opens this checkout with the base that the bundles were measured
// against, if that is a commit of the branch that is checked out.
func openTrusted(ctx context.Context, o Options, bundles []*bundle.Bundle, refused string) (*run, string, error) {
	o.NoGPU, o.Record, o.Judge = true, false, project.JudgeHead // this checkout is the branch
	o.Options.Judge = project.JudgeHead                         // this checkout is the side that judges
	if err := o.Prepare(); err != nil {
		return nil, "", err
	}
	asked := o.Base
	if o.Base = "HEAD"; refused == "" {
		o.Base = bundles[0].Base
	}
	p, err := project.Open(ctx, o.Options)
	status, _ := exit.Of(err)
	if unknown := err != nil && status == exit.Usage; refused == "" && (unknown || err == nil && p.Base.Commit != o.Base) {
		refused = fmt.Sprintf("the bundle was measured against %.12s, which is not a commit of this branch", o.Base)
		o.Base = "HEAD"
		p, err = project.Open(ctx, o.Options)
	}
	switch {
	case err != nil:
		return nil, "", err
	case refused != "":
	case asked != "" && !strings.HasPrefix(bundles[0].Base, asked):
		refused = fmt.Sprintf("the bundle was measured against %.12s, and not against %s", bundles[0].Base, printable.Cut(asked, 100))
	}
	return &run{Options: o, project: p}, refused, nil
}

// contradiction says why bundles are not those of one change, or "".
func contradiction(bundles []*bundle.Bundle, m Matter) string {
	if len(bundles) == 0 {
		return "there is no bundle"
	}
	first := bundles[0]
	if m.Head != "" && first.Head != m.Head {
		return fmt.Sprintf("the bundle says that it is of %.12s, and GitHub that it is of %.12s", first.Head, m.Head)
	}
	seen := map[int]bool{}
	for _, b := range bundles {
		switch {
		case b.Head != first.Head || b.Base != first.Base || b.Shard.Of != first.Shard.Of:
			return "the bundles are not of one change"
		case !reflect.DeepEqual(b.Kernels, first.Kernels) || !slices.Equal(b.Gone, first.Gone):
			return "the bundles do not agree on the kernels of the change"
		case seen[b.Shard.Number]:
			return fmt.Sprintf("part %d of the change is there twice", b.Shard.Number)
		}
		seen[b.Shard.Number] = true
	}
	if len(bundles) < first.Shard.Of {
		return fmt.Sprintf("%d of %d bundles of the change are missing", first.Shard.Of-len(bundles), first.Shard.Of)
	}
	return ""
}

func claimed(kernels []bundle.Kernel) []project.Claim {
	var out []project.Claim
	for _, k := range kernels {
		c := project.Claim{Name: k.Name, File: k.File, Source: k.Source, Line: k.Line, Arch: k.Arch, Op: k.Op, Cases: k.Cases,
			Head: plan.Side{Identity: evidence.Identity{Code: k.Code, Host: k.Host}, Why: k.Why, Detail: k.Detail, Blame: k.Blame}}
		c.Declaration = declaration(k)
		for _, b := range k.Brought {
			c.Brought = append(c.Brought, plan.Case{Name: b.Case, Harness: b.Harness, CheckOnly: b.CheckOnly})
		}
		for _, f := range k.Funcs {
			c.Head.Entries = append(c.Head.Entries, policy.Entry{Name: f.Name, Short: f.Short})
		}
		for _, l := range k.Left {
			c.Left = append(c.Left, plan.Loss{Cause: plan.LeftOut, Entry: l})
		}
		out = append(out, c)
	}
	return out
}

func declaration(k bundle.Kernel) (d manifest.Declaration) {
	if k.Was != nil {
		d.Was = manifest.Predecessor(*k.Was)
	}
	for _, r := range k.Retired {
		d.Retired = append(d.Retired, manifest.Retirement(r))
	}
	return d
}

func departed(gone []bundle.Gone) []project.Departure {
	var out []project.Departure
	for _, g := range gone {
		out = append(out, project.Departure(g))
	}
	return out
}

// take asks the policy's questions and answers them from the stores, and from
// the bundles where no store does.
func (r *run) take(ctx context.Context, subjects []*plan.Subject, bundles []*bundle.Bundle) error {
	if err := r.openShelf(ctx); err != nil {
		return err
	}
	audit := Audit(r.project, disk.OpenAnswers(""), r.Now)
	r.shelf.Beside = func(k evidence.Key) (*evidence.Record, error) { return unseal(audit, bundles, k) }
	for _, b := range bundles {
		r.shelf.Elsewhere = append(r.shelf.Elsewhere, b.Machines()...)
	}
	known, err := r.shelf.Machines()
	if err != nil {
		return err
	}
	if r.asked, err = plan.Bound(r.project.Policy, subjects, plan.Options{Attempt: r.Attempt, Now: r.Now()}, known, r.shelf.Holds); err != nil {
		return err
	}
	needs := r.asked.Needs(r.ledger)
	r.takeStatic(needs, bundles)
	r.shelf.Load(needs, r.ledger)
	r.shelf.Load(r.asked.Needs(r.ledger), r.ledger) // what stands in for an arm that failed
	r.asked = judge.Stop(r.asked, r.ledger)
	for _, b := range bundles {
		if b.Why != "" {
			r.ledger.Because("the run that collected says: "+b.Why, r.asked.Lacks(r.ledger)...)
		}
	}
	return nil
}

// unseal is the record that bundles hold under a key, nil where none does.
func unseal(audit store.Audit, bundles []*bundle.Bundle, k evidence.Key) (*evidence.Record, error) {
	if k.Tier == evidence.Sessions || k.Tier == evidence.Calibration {
		return nil, nil // a change does not tell the history of a machine
	}
	for _, b := range bundles {
		e, ok := b.Entry(k)
		if !ok {
			continue
		}
		r, err := evidence.Decode(e.Record)
		if err != nil {
			return nil, fmt.Errorf("in the bundle: %w", err)
		}
		if r.Failure != nil {
			return failed(r)
		}
		if r, err = audit.Unseal(k, e.Record, e.Raw); err != nil {
			return nil, fmt.Errorf("in the bundle: %w", err)
		}
		return r, nil
	}
	return nil, nil
}

// failed takes a failure from a bundle where it speaks against the head. That
// the other arm or a tool failed would open another way to pass.
func failed(r *evidence.Record) (*evidence.Record, error) {
	f := r.Failure
	if f.OtherArm || !f.Blames() || len(f.Message) > 2*mostSaid || r.Provenance.Machine.Key() != r.Address.Machine {
		return nil, errors.New("the run that collected says that it failed: " + printable.Cut(f.Message, mostSaid))
	}
	return &evidence.Record{Schema: r.Schema, Tier: r.Tier, Tool: r.Tool, Address: r.Address, Base: r.Base, Provenance: r.Provenance, Failure: f}, nil
}

// takeStatic takes what the compiler is said to report of the heads. It is not
// measured, so there are no raw inputs to hold it against.
func (r *run) takeStatic(needs []*evidence.Need, bundles []*bundle.Bundle) {
	for _, n := range needs {
		if n.Tier != evidence.Static || n.Never != "" || r.ledger.Find(n).Record != nil {
			continue
		}
		for _, b := range bundles {
			e, ok := b.Entry(*n.Key)
			if !ok {
				continue
			}
			record, err := evidence.Decode(e.Record)
			if err == nil {
				err = plainStatic(record)
			}
			if err != nil {
				r.ledger.Refuse(*n.Key, "in the bundle: "+err.Error())
				break
			}
			r.ledger.Put(record, evidence.Reused)
			break
		}
	}
}

// mostCount is more than any figure of the compiler's.
const mostCount = 1 << 40

func plainStatic(r *evidence.Record) error {
	if r.Failure != nil || r.Base != nil || len(r.Raw)+len(r.Checks)+len(r.Launches)+len(r.Samples)+len(r.Sessions) > 0 || r.Experiment != nil || r.AA != nil {
		return errors.New("what the compiler reports holds something else")
	}
	for _, m := range r.Entries {
		if err := counts(m); err != nil {
			return err
		}
	}
	return counts(r.Metrics)
}

func counts(m evidence.Metrics) error {
	for name, v := range m {
		if !strings.HasPrefix(name, "ptxas.") || v.Known() && !(v.Number >= 0 && v.Number <= mostCount && v.Number == float64(int64(v.Number))) {
			return fmt.Errorf("the compiler reports no %s of that kind", printable.Quote(name, 60))
		}
	}
	return nil
}

// describeBundles says on what the verdict rests, and how to come to it again.
func (r *run) describeBundles(v *verdict.Verdict, bundles []*bundle.Bundle, m Matter) {
	v.Head, v.JudgedBy = verdict.Side{Commit: m.Head}, "base"
	var files []string
	for _, b := range bundles {
		if v.Head.Commit == "" {
			v.Head.Commit = b.Head
		}
		files = append(files, b.SHA256[:12])
	}
	slices.Sort(files)
	judged := "judged by the policy of this branch"
	if len(files) > 0 {
		judged = fmt.Sprintf("judged by the policy of this branch, from the bundle %s: what was measured is the word of the run that measured it", strings.Join(files, ", "))
	}
	v.Notes = append([]string{judged}, v.Notes...)
	v.Reproduce, v.Base.How = "gate judge BUNDLE", "of this branch"
	if len(bundles) > 0 {
		v.Base.How = "what the bundle was measured against, a commit of this branch"
		v.Reproduce = "gate judge --base " + bundles[0].Base[:12] + " BUNDLE"
	}
}
