package check

import (
	"context"
	"errors"
	"slices"

	"github.com/kernelgate/gate/gate/internal/bundle"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Share is the part of a change's measurements that one run makes, from 1. The
// zero Share is all of it.
type Share struct {
	bundle.Shard
	Kernels []string
}

// Collect checks, and returns beside the verdict, which nobody has to believe, a
// bundle for whoever judges. Head is the commit that the change is known by, the
// one that is checked out when "".
func Collect(ctx context.Context, o Options, head string) ([]byte, *verdict.Verdict, error) {
	o.Judge = project.JudgeBase // what the change brings along does not judge it
	r, v, err := carryOut(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if r.project.Base.Commit == "" {
		return nil, nil, &exit.Error{Status: exit.Inconclusive, Err: errors.New("there is no base to measure against: " + r.project.NoBase)}
	}
	if head == "" {
		head = r.project.Head.Commit
	}
	m := bundle.Manifest{Head: head, Base: r.project.Base.Commit, Shard: o.Share.Shard, Why: printable.Cut(r.why(), 200), Kernels: r.claims(), Gone: r.departures()}
	if m.Shard.Of == 0 {
		m.Shard = bundle.Shard{Number: 1, Of: 1}
	}
	data, err := bundle.Write(m, r.sealed())
	return data, v, err
}

// claims are the kernels of the head as a bundle holds them.
func (r *run) claims() []bundle.Kernel {
	out, says := []bundle.Kernel{}, r.project.Declarations()
	for _, s := range r.asked.Subjects {
		if s.State == verdict.Gone {
			continue
		}
		k := bundle.Kernel{Name: s.Name, File: s.File, Source: s.Source, Line: s.Line, Arch: s.Arch, Op: s.Op, Code: s.Head.Identity.Code, Host: s.Head.Identity.Host,
			Cases: []string{}, Why: printable.Cut(s.Head.Why, 200), Blame: s.Head.Blame}
		k.Detail = printable.Text(s.Head.Detail[:min(len(s.Head.Detail), 8<<10)])
		declare(&k, says[s.Name])
		for _, c := range r.project.Brought(s) {
			k.Brought = append(k.Brought, bundle.Brought{Case: c.Name, Harness: c.Harness, CheckOnly: c.CheckOnly})
		}
		for _, c := range s.Cases {
			k.Cases = append(k.Cases, c.Name)
		}
		for _, e := range s.Head.Entries {
			k.Funcs = append(k.Funcs, bundle.Func{Name: printable.Line(e.Name), Short: printable.Line(e.Short)})
		}
		for _, l := range s.Lost {
			if l.Cause == plan.LeftOut {
				k.Left = append(k.Left, printable.Line(l.Entry))
			}
		}
		out = append(out, k)
	}
	return out
}

// declare hands on what a kernel.yaml says of the base, letter by letter: whoever
// judges holds it against the file.
func declare(k *bundle.Kernel, d manifest.Declaration) {
	if d.Was != (manifest.Predecessor{}) {
		k.Was = &bundle.Was{Kernel: d.Was.Kernel, Arch: d.Was.Arch}
	}
	for _, r := range d.Retired {
		k.Retired = append(k.Retired, bundle.Part(r))
	}
}

// departures are the kernels of the base that the head declares retired.
func (r *run) departures() []bundle.Gone {
	says := r.project.Declarations()
	var out []bundle.Gone
	for _, s := range r.asked.Subjects {
		twice := slices.ContainsFunc(out, func(g bundle.Gone) bool { return g.Name == s.Name })
		if d := says[s.Name]; s.State == verdict.Gone && d.Gone != "" && !twice {
			out = append(out, bundle.Gone{Name: s.Name, File: s.File, Reason: d.Gone})
		}
	}
	return out
}

// sealed are the records that answer what is asked, as a store keeps them. What
// failed is in no store, and is handed on as a failure alone.
func (r *run) sealed() []bundle.Entry {
	var out []bundle.Entry
	done := map[evidence.Key]bool{}
	for _, n := range r.asked.Needs(r.ledger) {
		e := r.ledger.Find(n)
		if done[*n.Key] || e.Record == nil || n.Tier == evidence.Sessions || n.Tier == evidence.Calibration {
			continue
		}
		done[*n.Key] = true
		if e.Measured() && n.Tier != evidence.Static {
			if data, raw, err := r.shelf.Sealed(*n.Key); err == nil {
				out = append(out, bundle.Entry{Record: data, Raw: raw})
			}
			continue
		}
		if data, err := evidence.Encode(bare(e.Record)); err == nil {
			out = append(out, bundle.Entry{Record: data})
		}
	}
	return out
}

// bare is a record without raw inputs: what the compiler says, or a failure.
func bare(r *evidence.Record) *evidence.Record {
	b := evidence.Record{Schema: evidence.Schema, Tier: r.Tier, Tool: r.Tool, Address: r.Address, Base: r.Base, Provenance: r.Provenance}
	if r.Failure == nil {
		b.Metrics, b.Entries = r.Metrics, r.Entries
		return &b
	}
	b.Failure = &evidence.Failure{Kind: r.Failure.Kind, Message: printable.Cut(r.Failure.Message, mostSaid), OtherArm: r.Failure.OtherArm}
	return &b
}

// mostSaid bounds what a failure in a bundle says.
const mostSaid = 1000
