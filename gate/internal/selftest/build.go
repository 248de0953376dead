package selftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// buildWays change the build of a kernel behind its kernel.yaml. The compiler's
// own figure has to show it.
var buildWays = []struct {
	name  string
	flags []string
	more  string // code that is compiled with the kernel
	shows func(was, is evidence.Metrics) bool
}{
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

// Build plants into builds of the kernel that uses most registers.
func (r *Result) Build(ctx context.Context, p *project.Project, asked plan.Plan, l *evidence.Ledger, now time.Time) error {
	s, was := mostRegisters(asked, l)
	if s == nil {
		return nil
	}
	for _, w := range buildWays {
		built, err := p.Altered(ctx, s.Name, s.Arch, w.flags, w.more)
		var refused *build.CompileError
		if errors.As(err, &refused) { // so would a check say of it
			r.add(Planted{Kind: w.name, Tier: string(evidence.Static), Kernel: s.Name, Caught: true, Said: "fail: builds: " + refused.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.Name, w.name, err)
		}
		strict := *p.Policy
		strict.Waivers = nil
		b := &bench{policy: &strict, subject: changed(s), options: plan.Options{Now: now}}
		b.subject.Head.Identity = built.Address.Identity
		if err := b.ask(); err != nil {
			return err
		}
		known := &evidence.Ledger{}
		known.Put(built, evidence.Measured)
		base := clone(was)
		known.Put(base, evidence.Measured)
		v, err := b.judge(known)
		if err != nil {
			return err
		}
		other := built.Address.Identity.Code != s.Head.Identity.Code
		r.add(Planted{Kind: w.name, Tier: string(evidence.Static), Kernel: s.Name,
			Caught: other && w.shows(was.Metrics, built.Metrics) && (v.Status == verdict.Fail || v.Status == verdict.Inconclusive),
			Said:   v.Status.String() + ": " + worst(v)})
	}
	return nil
}

// mostRegisters is the kernel of which the compiler can take most.
func mostRegisters(asked plan.Plan, l *evidence.Ledger) (of *plan.Subject, record *evidence.Record) {
	most := 0.0
	for _, s := range asked.Subjects {
		if s.Head.Why != "" || s.State == verdict.Gone {
			continue
		}
		e := l.Find(&evidence.Need{Key: evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: s.Head.Identity}}})
		if !e.Measured() {
			continue
		}
		if v := e.Record.Metrics.Get("ptxas.registers"); v.Known() && v.Number > most {
			most, of, record = v.Number, s, e.Record
		}
	}
	return of, record
}
