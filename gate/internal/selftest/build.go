package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A buildWay is one change of a build.
type buildWay struct {
	name  string
	flags []string
	more  string // code that is compiled with the kernel
	shows func(was, is evidence.Metrics) bool
}

// buildWays change the build of a kernel without its kernel.yaml. The compiler's
// own figure has to show it.
var buildWays = []buildWay{
	{"built with -maxrregcount=32", []string{"-maxrregcount=32"}, "", func(was, is evidence.Metrics) bool {
		return is.Get("ptxas.registers").Number <= 32 && was.Get("ptxas.registers").Number >= is.Get("ptxas.registers").Number
	}},
	{"built with 32 KiB more of static shared memory", nil, sharedMemory, func(was, is evidence.Metrics) bool {
		return is.Get("ptxas.shared_bytes").Number >= 32<<10
	}},
	{"built with -G", []string{"-G"}, "", func(was, is evidence.Metrics) bool { return is.Get("ptxas.registers").Known() }},
}

const sharedMemory = `#pragma once
extern "C" __global__ void gate_planted(float* out) {
  __shared__ float planted[8192];
  planted[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = planted[8191 - threadIdx.x];
}
`

// mostBuilt bounds the kernels that one way is tried on: with launch bounds the
// compiler does not follow -maxrregcount.
const mostBuilt = 4

// Build plants into builds of the kernels that use most registers, each way into
// the first one where it shows.
func (r *Result) Build(ctx context.Context, p *project.Project, asked plan.Plan, l *evidence.Ledger, now time.Time) error {
	candidates := byRegisters(asked, l)
	if len(candidates) == 0 {
		return nil
	}
	for _, w := range buildWays {
		var last Planted
		for _, c := range candidates[:min(mostBuilt, len(candidates))] {
			planted, acts, err := built(ctx, p, w, c, now)
			if err != nil {
				return err
			}
			if last = planted; acts {
				break
			}
		}
		r.add(last)
	}
	return nil
}

// built plants one way into the build of one kernel, and reports whether the
// code and the compiler's figure show it.
func built(ctx context.Context, p *project.Project, w buildWay, c candidate, now time.Time) (planted Planted, acts bool, err error) {
	s := c.subject
	planted = Planted{Kind: w.name, Tier: string(evidence.Static), Kernel: s.Name}
	r, err := p.Altered(ctx, s.Name, s.Arch, w.flags, w.more)
	var refused *build.CompileError
	if errors.As(err, &refused) { // so would a check say of it
		planted.Caught, planted.Said = true, "fail: builds: "+refused.Error()
		return planted, true, nil
	}
	if err != nil {
		return planted, false, fmt.Errorf("%s, %s: %w", s.Name, w.name, err)
	}
	strict := *p.Policy
	strict.Waivers = nil
	b := &bench{policy: &strict, subject: changed(s), options: plan.Options{Now: now}}
	b.subject.Head.Identity = r.Address.Identity
	if err := b.ask(); err != nil {
		return planted, false, err
	}
	known := &evidence.Ledger{}
	known.Put(r, evidence.Measured)
	known.Put(clone(c.record), evidence.Measured)
	v, err := b.judge(known)
	if err != nil {
		return planted, false, err
	}
	acts = r.Address.Identity.Code != s.Head.Identity.Code && w.shows(c.record.Metrics, r.Metrics)
	planted.Caught = acts && (v.Status == verdict.Fail || v.Status == verdict.Inconclusive)
	planted.Said = v.Status.String() + ": " + worst(v)
	return planted, acts, nil
}

// A candidate is a kernel with what the compiler said of it.
type candidate struct {
	subject *plan.Subject
	record  *evidence.Record
}

func (c candidate) registers() float64 { return c.record.Metrics.Get("ptxas.registers").Number }

// byRegisters are the kernels that build, those first of which the compiler can
// take most.
func byRegisters(asked plan.Plan, l *evidence.Ledger) []candidate {
	var out []candidate
	for _, s := range asked.Subjects {
		if s.Head.Why != "" || s.State == verdict.Gone {
			continue
		}
		e := l.Find(evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: s.Head.Identity}}))
		if e.Measured() && e.Record.Metrics.Get("ptxas.registers").Known() {
			out = append(out, candidate{s, e.Record})
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.registers(), a.registers()) })
	return out
}
