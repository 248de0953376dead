package policy

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// standard is a policy with a rule of every tier and kind.
const standard = `version: 1
kernels: kernels/**/kernel.yaml
store: kernels/evidence
rules:
  - {id: spills, metric: ptxas.spill_bytes, limit: 0}
  - {id: registers, metric: ptxas.registers, max_regression: 8}
  - {id: stack, metric: ptxas.stack_bytes, max_regression: 10%}
  - {id: error, metric: check.relative_error, limit: 1e-3}
  - {id: occupancy, metric: ncu.achieved_occupancy, max_regression: 5pp}
  - {id: conflicts, metric: ncu.shared_bank_conflicts, max_regression: 1%, floor: 1000}
  - {id: waves, metric: ncu.waves, max_regression: 10%}
  - {id: latency, metric: latency.typical, max_regression: 2%}
  - {id: mean, metric: latency.mean, max_regression: 5%, floor: 50ns}
  - {id: bound, metric: latency.typical, limit: 120us}
  - {id: tail, metric: latency.p99, max_regression: 10%}
  - {id: ratio, metric: latency.typical, relative_to: ref, limit: 1.5, kernels: ["op/k*"]}
`

var static = []string{"ptxas.spill_bytes", "ptxas.registers", "ptxas.stack_bytes"}
var profiled = []string{"ncu.achieved_occupancy", "ncu.shared_bank_conflicts", "ncu.waves"}

func units(name string) string {
	m, _ := LookupMetric(name)
	return m.Unit
}

// figures gives each of the names its value.
func figures(names []string, values ...float64) evidence.Metrics {
	m := evidence.Metrics{}
	for i, n := range names {
		m[n] = evidence.Of(values[i], units(n))
	}
	return m
}

func number(x float64) *float64 { return &x }

func goodCheck() evidence.Check {
	return evidence.Check{Class: "normal", Elements: 8, RelativeError: number(1e-4), MaxAbsError: number(1e-3), Guard: "ok", Repeatable: true, Status: "pass"}
}

func correct() *evidence.Record {
	return &evidence.Record{Tier: evidence.Correctness, Checks: []evidence.Check{goodCheck()},
		Metrics: figures([]string{"check.relative_error", "check.max_abs_error", "check.failed_classes"}, 1e-4, 1e-3, 0)}
}

func profile(values ...float64) *evidence.Record {
	return &evidence.Record{Tier: evidence.Profile, Metrics: figures(profiled, values...)}
}

// launches are n launches of both regimes around a time in ns, each a little
// off: no timer gives the same figure twice.
func launches(r *rand.Rand, n int, ns float64) []evidence.Sample {
	var out []evidence.Sample
	for range n {
		at := ns * (1 + 0.001*(r.Float64()-0.5))
		for _, regime := range []string{"cold", "warm"} {
			s := evidence.Sample{Regime: regime, Calls: 4, KernelNodes: 4, Sets: 2}
			for range 6 {
				s.BatchesNS = append(s.BatchesNS, at*(1+0.001*r.Float64()))
			}
			out = append(out, s)
		}
	}
	return out
}

func timed(r *rand.Rand, ns float64) *evidence.Record {
	return &evidence.Record{Tier: evidence.Latency, Samples: launches(r, 8, ns), Provenance: evidence.Provenance{Card: "card0"},
		Metrics: figures([]string{"latency.typical", "latency.mean", "latency.cold_typical", "latency.cold_mean"}, ns, ns, ns, ns)}
}

// history is so many sessions of a base of 100 µs, 0.3 % apart.
func history(r *rand.Rand, sessions int) *evidence.Record {
	record := &evidence.Record{Tier: evidence.Sessions}
	for i := range sessions {
		s := evidence.Session{Recorded: fmt.Sprintf("2026-11-%02dT10:00:00Z", i+1), Card: "card0"}
		samples := launches(r, 8, 100_000*(1+0.003*r.NormFloat64()))
		for _, one := range samples {
			s.Launches = append(s.Launches, evidence.SessionLaunch{Regime: one.Regime, Typical: one.BatchesNS[0], Mean: one.BatchesNS[1]})
		}
		record.Sessions = append(record.Sessions, s)
	}
	return record
}

// experiment times a base of 100 µs against a head.
func experiment(r *rand.Rand, blocks int, head float64) *evidence.Record {
	return experimentFrom(blocks, func() []evidence.Sample { return launches(r, 4, 100_000) }, func() []evidence.Sample { return launches(r, 4, head) })
}

// experimentFrom reads an experiment as a store would hand it over.
func experimentFrom(blocks int, base, head func() []evidence.Sample) *evidence.Record {
	type block struct {
		Number int               `json:"number"`
		Order  string            `json:"order"`
		Base   []evidence.Sample `json:"base"`
		Head   []evidence.Sample `json:"head"`
	}
	var all struct {
		Pilot   []evidence.Sample `json:"pilot"`
		Blocks  []block           `json:"blocks"`
		Stopped string            `json:"stopped"`
	}
	all.Pilot, all.Stopped = base()[:2], "resolved"
	for i := range blocks {
		all.Blocks = append(all.Blocks, block{i, "ABBABAAB", base(), head()})
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	r := &evidence.Record{Tier: evidence.Latency, Experiment: &evidence.Experiment{}}
	if err := json.Unmarshal(data, r.Experiment); err != nil {
		panic(err)
	}
	return r
}

func reused(r *evidence.Record) Arm { return Arm{Record: r, Source: Reused} }

// good is one changed kernel that has earned its pass by every rule of
// standard.
func good() Facts {
	r := rand.New(rand.NewSource(1))
	return Facts{Kernels: []KernelFacts{{
		Name: "op/k", File: "kernels/op/k/kernel.yaml", Arch: "sm_90", State: Changed,
		Identity: evidence.Identity{Code: "c2", Host: "h"}, Base: evidence.Identity{Code: "c1", Host: "h"},
		Head: figures(static, 0, 40, 110), Old: figures(static, 0, 40, 100),
		Cases: []CaseFacts{{Name: "small", Machine: "h200-00000000", Correctness: reused(correct()),
			Profile: Pair{reused(profile(60, 1500, 3)), reused(profile(62, 1000, 3))},
			Latency: LatencyFacts{Head: reused(timed(r, 100_000)), Experiment: reused(experiment(r, 3, 100_000)), Sessions: reused(history(r, 12)),
				References: []ReferenceFacts{{Name: "op/ref", Correctness: reused(correct()), Experiment: reused(experiment(r, 3, 100_000))}}},
		}},
	}}}
}

// change returns good facts with a change to the kernel and its case.
func change(f func(*KernelFacts, *CaseFacts)) Facts {
	facts := good()
	f(&facts.Kernels[0], &facts.Kernels[0].Cases[0])
	return facts
}

func judged(t testing.TB, p *Policy, f Facts) *Verdict {
	t.Helper()
	v, err := Judge(p, f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// summaryOf is a verdict in a few lines, for a message.
func summaryOf(v *Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (exit %d)\n", v.Status, v.ExitCode())
	for _, k := range v.Kernels {
		fmt.Fprintf(&b, " %s %s %s\n", k.Name, k.State, k.Status)
		for _, f := range k.Findings {
			fmt.Fprintf(&b, "  %s %s %s %s: %s\n", f.Rule, f.Case, f.Severity, f.Status, f.Reason)
		}
	}
	return b.String()
}

// findingOf is a rule's finding on the only kernel.
func findingOf(t testing.TB, v *Verdict, rule string) Finding {
	t.Helper()
	for _, f := range v.Kernels[0].Findings {
		if f.Rule == rule {
			return f
		}
	}
	t.Fatalf("no finding of %s in\n%s", rule, summaryOf(v))
	return Finding{}
}
