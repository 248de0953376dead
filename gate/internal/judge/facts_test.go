package judge

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
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
  - {id: growth, metric: check.max_abs_error, max_regression: 10%}
  - {id: occupancy, metric: ncu.achieved_occupancy, max_regression: 5pp}
  - {id: conflicts, metric: ncu.shared_bank_conflicts, max_regression: 1%, floor: 1000}
  - {id: waves, metric: ncu.waves, max_regression: 10%}
  - {id: latency, metric: latency.typical, max_regression: 2%}
  - {id: mean, metric: latency.mean, max_regression: 5%, floor: 50ns}
  - {id: bound, metric: latency.typical, limit: 120us}
  - {id: tail, metric: latency.p99, max_regression: 10%}
  - {id: ratio, metric: latency.typical, relative_to: ref, limit: 1.5, kernels: ["op/k*"]}
`

var (
	h200     = evidence.Machine{GPU: "NVIDIA H200", Driver: "580", CC: "9.0"}
	now      = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	compiled = []string{"ptxas.spill_bytes", "ptxas.registers", "ptxas.stack_bytes"}
	profiled = []string{"ncu.achieved_occupancy", "ncu.shared_bank_conflicts", "ncu.waves"}
)

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), "policies.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// A fact is the record of one tier, or the cause why there is none.
type fact struct {
	*evidence.Record
	why    string
	source evidence.Source // reused, unless it is named
}

// A kase is the evidence of one case.
type kase struct {
	name                                               string
	work                                               roof.Work
	correctness, baseCorrectness, profile, baseProfile fact
	alone, experiment, sessions, calibration           fact
	references                                         []reference
}

// A reference is a kernel in the base's place.
type reference struct {
	name                    string
	correctness, experiment fact
}

// A kernel is one subject with its evidence. Broken and baseBroken say why a
// side was not built.
type kernel struct {
	name               string
	like               string // whose code it has; "" for its own
	state              verdict.State
	forced             bool // times are compared although the code is unchanged
	broken, baseBroken plan.Side
	head, old          evidence.Metrics // of the compiler; nil where it says nothing
	cases              []*kase
	lost               []plan.Loss
}

// facts are everything that a verdict is made of.
type facts struct {
	kernels []*kernel
	options plan.Options
}

// all are the places of the records that a case rests on.
func (c *kase) all() []*fact {
	list := []*fact{&c.correctness, &c.baseCorrectness, &c.profile, &c.baseProfile, &c.alone, &c.experiment, &c.sessions, &c.calibration}
	for i := range c.references {
		list = append(list, &c.references[i].correctness, &c.references[i].experiment)
	}
	return list
}

// subject is the kernel as plain data.
func (k *kernel) subject() *plan.Subject {
	code := func(side string) evidence.Identity {
		name := k.name
		if k.like != "" {
			name = k.like
		}
		return evidence.Identity{Code: side + " of " + name, Host: "h"}
	}
	s := &plan.Subject{Name: k.name, File: "kernels/" + k.name + "/kernel.yaml", Arch: "sm_90", Op: "op", State: k.state, Lost: k.lost,
		Head: plan.Side{Identity: code("head")}, References: map[string]plan.Side{"op/ref": {Identity: code("op/ref")}}}
	switch k.state {
	case verdict.Unchanged:
		s.Base = s.Head
	case verdict.Changed:
		s.Base = plan.Side{Identity: code("base")}
	}
	if k.broken.Why != "" {
		s.Head = k.broken
	}
	if k.baseBroken.Why != "" {
		s.Base = k.baseBroken
	}
	for _, c := range k.cases {
		s.Cases = append(s.Cases, plan.Case{Name: c.name, Harness: "harness of " + c.name, Work: c.work})
		for _, r := range c.references {
			s.References[r.name] = plan.Side{Identity: code(r.name)}
		}
	}
	return s
}

// enter puts a fact under a key.
func enter(l *evidence.Ledger, f fact, k evidence.Key) {
	switch {
	case !k.At.Known(): // that side was not built
	case f.Record != nil:
		r := *f.Record
		r.Tier, r.Address, r.Base = k.Tier, k.At, nil
		if k.Compares() {
			r.Base = &k.Base
		}
		if r.Provenance.Machine == (evidence.Machine{}) && k.Tier != evidence.Static {
			r.Provenance.Machine = h200
			if k.Tier == evidence.Latency {
				r.Capacity = &evidence.Capacity{L2Bytes: 62914560, ColdBytesPerNS: 4400, WarmBytesPerNS: 6600, FlopsPerNS: map[string]float64{"f16": 989000}}
			}
		}
		source := f.source
		if source == "" {
			source = evidence.Reused
		}
		l.Put(&r, source)
	case f.why != "":
		l.Because(f.why, k)
	}
}

// ledger enters everything that is known of a subject.
func (k *kernel) ledger(s *plan.Subject, l *evidence.Ledger) {
	static := func(side plan.Side, m evidence.Metrics) {
		if m != nil {
			enter(l, fact{Record: &evidence.Record{Metrics: m}}, evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: side.Identity}})
		}
	}
	if s.State != verdict.Unchanged {
		static(s.Base, k.old)
	}
	static(s.Head, k.head)
	for i, c := range k.cases {
		key := func(tier evidence.Tier, side plan.Side) evidence.Key {
			return evidence.Key{Tier: tier, At: evidence.Address{Identity: side.Identity, Op: s.Op, Case: c.name, Harness: s.Cases[i].Harness, Machine: h200.Key()}}
		}
		beside := func(side plan.Side) evidence.Key {
			at := key(evidence.Latency, s.Head)
			if side.Identity.Known() {
				at.Base = key(evidence.Latency, side).At
			}
			return at
		}
		enter(l, c.correctness, key(evidence.Correctness, s.Head))
		enter(l, c.profile, key(evidence.Profile, s.Head))
		enter(l, c.alone, key(evidence.Latency, s.Head))
		enter(l, c.calibration, key(evidence.Calibration, s.Head))
		if s.State != verdict.Unchanged { // else both sides have one record
			enter(l, c.baseCorrectness, key(evidence.Correctness, s.Base))
			enter(l, c.baseProfile, key(evidence.Profile, s.Base))
		}
		enter(l, c.sessions, key(evidence.Sessions, s.Base))
		if s.Base.Identity.Known() {
			enter(l, c.experiment, beside(s.Base))
		}
		for _, r := range c.references {
			enter(l, r.correctness, key(evidence.Correctness, s.References[r.name]))
			enter(l, r.experiment, beside(s.References[r.name]))
		}
	}
}

// known is the plan of what a policy asks, bound to the machine of the facts,
// and the ledger of what they say.
func (f facts) known(t testing.TB, p *policy.Policy) (plan.Plan, *evidence.Ledger) {
	t.Helper()
	l := &evidence.Ledger{}
	var subjects []*plan.Subject
	for _, k := range f.kernels {
		s := k.subject()
		k.ledger(s, l)
		subjects = append(subjects, s)
	}
	o := f.options
	o.Now = now
	for _, k := range f.kernels {
		o.Force = o.Force || k.forced
	}
	asked, err := plan.Bound(p, subjects, o, []evidence.Machine{h200}, func(n *evidence.Need) bool { return l.Find(n).Record != nil })
	if err != nil {
		t.Fatal(err)
	}
	return asked, l
}

func units(name string) string {
	m, _ := metric.Lookup(name)
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

func correctRecord() *evidence.Record {
	return &evidence.Record{Checks: []evidence.Check{goodCheck()},
		Metrics: figures([]string{"check.relative_error", "check.max_abs_error", "check.failed_classes"}, 1e-4, 1e-3, 0)}
}

func profile(values ...float64) *evidence.Record {
	return &evidence.Record{Metrics: figures(profiled, values...)}
}

// samples are n processes in both states of the caches around a time in ns,
// each a little off: no timer gives the same figure twice.
func samples(r *rand.Rand, n int, ns float64) []evidence.Sample {
	var out []evidence.Sample
	for range n {
		at := ns * (1 + 0.001*(r.Float64()-0.5))
		for _, state := range []evidence.CacheState{evidence.Cold, evidence.Warm} {
			s := evidence.Sample{CacheState: state, Calls: 4, KernelNodes: 4, Sets: 2}
			for range 6 {
				s.BatchesNS = append(s.BatchesNS, at*(1+0.001*r.Float64()))
			}
			out = append(out, s)
		}
	}
	return out
}

var timed = []string{"latency.typical", "latency.mean", "latency.p99", "latency.cold_typical", "latency.cold_mean", "latency.cold_p99"}

func timedAt(r *rand.Rand, ns float64) *evidence.Record {
	return &evidence.Record{Samples: samples(r, 8, ns), Provenance: evidence.Provenance{Card: "card0"}, Metrics: figures(timed, ns, ns, ns, ns, ns, ns)}
}

// history is so many sessions of a base of 100 µs, 0.3 % apart.
func history(r *rand.Rand, sessions int) *evidence.Record {
	record := &evidence.Record{}
	for i := range sessions {
		s := evidence.Session{Recorded: fmt.Sprintf("2026-11-%02dT10:00:00Z", i+1), Card: "card0"}
		for _, one := range samples(r, 8, 100_000*(1+0.003*r.NormFloat64())) {
			s.Processes = append(s.Processes, evidence.SessionProcess{CacheState: one.CacheState, Typical: one.BatchesNS[0], Mean: one.BatchesNS[1]})
		}
		record.Sessions = append(record.Sessions, s)
	}
	return record
}

// experiment times a base of 100 µs against a head.
func experiment(r *rand.Rand, blocks int, head float64) *evidence.Record {
	return experimentFrom(blocks, func() []evidence.Sample { return samples(r, 4, 100_000) }, func() []evidence.Sample { return samples(r, 4, head) })
}

// experimentFrom reads an experiment as a store would hand it over.
func experimentFrom(blocks int, base, head func() []evidence.Sample) *evidence.Record {
	all := evidence.Experiment{Pilot: base()[:2], Stopped: "resolved"}
	for i := range blocks {
		all.Rounds = append(all.Rounds, evidence.Round{Number: i, Order: "ABBABAAB", Base: base(), Head: head()})
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	r := &evidence.Record{Experiment: &evidence.Experiment{}}
	if err := json.Unmarshal(data, r.Experiment); err != nil {
		panic(err)
	}
	return r
}

func just(r *evidence.Record) fact { return fact{Record: r} }

func none(why string) fact { return fact{why: why} }

// good is one changed kernel that has earned its pass by every rule of
// standard.
func good() facts {
	r := rand.New(rand.NewSource(1))
	return facts{kernels: []*kernel{{name: "op/k", state: verdict.Changed, head: figures(compiled, 0, 40, 110), old: figures(compiled, 0, 40, 100),
		cases: []*kase{{name: "small", correctness: just(correctRecord()), baseCorrectness: just(correctRecord()),
			profile: just(profile(60, 1500, 3)), baseProfile: just(profile(62, 1000, 3)),
			alone: just(timedAt(r, 100_000)), experiment: just(experiment(r, 3, 100_000)), sessions: just(history(r, 12)),
			references: []reference{{name: "op/ref", correctness: just(correctRecord()), experiment: just(experiment(r, 3, 100_000))}},
		}}}}}
}

// change returns good facts with a change to the kernel and its case.
func change(f func(*kernel, *kase)) facts {
	all := good()
	f(all.kernels[0], all.kernels[0].cases[0])
	return all
}

// stopped judges what is left once a failed tier ended the rest.
func stopped(t testing.TB, p *policy.Policy, f facts) *verdict.Verdict {
	t.Helper()
	asked, l := f.known(t, p)
	v, err := Judge(Stop(asked, l), l)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func judged(t testing.TB, p *policy.Policy, f facts) *verdict.Verdict {
	t.Helper()
	asked, l := f.known(t, p)
	v, err := Judge(asked, l)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// summaryOf is a verdict in a few lines, for a message.
func summaryOf(v *verdict.Verdict) string {
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
func findingOf(t testing.TB, v *verdict.Verdict, rule string) verdict.Finding {
	t.Helper()
	for _, f := range v.Kernels[0].Findings {
		if f.Rule == rule {
			return f
		}
	}
	t.Fatalf("no finding of %s in\n%s", rule, summaryOf(v))
	return verdict.Finding{}
}
