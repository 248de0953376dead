package selftest

import (
	"encoding/json"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/judge"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A bench is one kernel with evidence that is equal on both sides: a copy of
// what is recorded of it, and made up where nothing is. Its head has an identity
// of its own, so that every rule has something to compare.
type bench struct {
	policy  *policy.Policy
	subject *plan.Subject
	plan    plan.Plan
	ledger  *evidence.Ledger
	clean   *verdict.Verdict
	time    float64 // of a call of the base, in ns
	random  *rand.Rand
	options plan.Options
}

// recorded is what a run knows of the kernels, by the code that was measured.
type recorded map[recordOf]*evidence.Record

type recordOf struct {
	tier evidence.Tier
	id   evidence.Identity
	name string // of the case
}

func recordedIn(asked plan.Plan, l *evidence.Ledger) recorded {
	known := recorded{}
	for _, n := range asked.Needs(l) {
		if e := l.Find(n); e.Measured() && !n.Compares() {
			known[recordOf{n.Tier, n.At.Identity, n.At.Case}] = e.Record
		}
	}
	return known
}

// newBench makes a kernel's bench.
func newBench(p *policy.Policy, s *plan.Subject, known recorded, now time.Time) (*bench, error) {
	b := &bench{policy: p, subject: changed(s), random: rand.New(rand.NewSource(1)), options: plan.Options{Now: now}}
	if err := b.ask(); err != nil {
		return nil, err
	}
	b.time = b.callTime(known)
	b.ledger = &evidence.Ledger{}
	for i := range b.plan.Questions {
		for _, n := range b.plan.Questions[i].Needs {
			if r := b.record(n, known); r != nil {
				b.ledger.Put(r, evidence.Reused)
			}
		}
	}
	var err error
	b.clean, err = b.judge(b.ledger)
	return b, err
}

// changed is a kernel whose head is a copy of its base under another identity. Its
// times are made up, so they are not held against the work that its op states.
func changed(s *plan.Subject) *plan.Subject {
	c := *s
	c.State, c.Base, c.Lost, c.Was, c.NewOp = verdict.Changed, s.Head, nil, "", nil
	c.Head.Identity.Code = "planted-" + s.Head.Identity.Code
	c.Cases = withWork(s.Cases, roof.Work{})
	return &c
}

func withWork(cases []plan.Case, work roof.Work) []plan.Case {
	out := slices.Clone(cases)
	for i := range out {
		out[i].Work = work
	}
	return out
}

// ask makes the plan of one kernel, on one machine of each name.
func (b *bench) ask() error {
	var machines []evidence.Machine
	for _, m := range b.policy.Machines {
		gpu := m.Match
		if gpu == "" {
			gpu = "NVIDIA " + strings.ToUpper(m.Name)
		}
		machines = append(machines, machine(gpu, b.subject.Arch))
	}
	if len(machines) == 0 {
		machines = append(machines, machine("NVIDIA GPU", b.subject.Arch))
	}
	var err error
	b.plan, err = plan.Bound(b.policy, []*plan.Subject{b.subject}, b.options, machines, func(*evidence.Need) bool { return true })
	return err
}

// machine is one that runs an architecture.
func machine(gpu, arch string) evidence.Machine {
	number := strings.TrimRight(strings.TrimPrefix(arch, "sm_"), "af")
	cut := max(len(number)-1, 0)
	return evidence.Machine{GPU: gpu, Driver: "1", Runtime: "1", PowerLimitW: "1", MIG: "Disabled", Clocks: "unlocked", CC: number[:cut] + "." + number[cut:]}
}

// judge goes the way of a check.
func (b *bench) judge(l *evidence.Ledger) (*verdict.Verdict, error) {
	return judge.Judge(judge.Stop(b.plan, l), l)
}

// callTime is a time that every limit on times accepts, the recorded one where
// it does.
func (b *bench) callTime(known recorded) float64 {
	t := 100_000.0
	for of, r := range known {
		if v := r.Metrics.Get("latency.typical"); of.tier == evidence.Latency && of.id == b.subject.Base.Identity && v.Known() && v.Number > 0 {
			t = v.Number
		}
	}
	for _, r := range b.rules() {
		if r.Metric.Time() && r.Limit.Set && !r.Beside() {
			t = min(t, r.Limit.Number/2)
		}
	}
	return t
}

// rules are those that ask something of the kernel.
func (b *bench) rules() []*policy.Rule {
	var out []*policy.Rule
	for i := range b.plan.Questions {
		if r := b.plan.Questions[i].Rule; r != nil && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// record is what a need asks for, the same on both sides.
func (b *bench) record(n *evidence.Need, known recorded) *evidence.Record {
	of := recordOf{n.Tier, n.At.Identity, n.At.Case}
	if of.id == b.subject.Head.Identity {
		of.id = b.subject.Base.Identity
	}
	r := &evidence.Record{}
	if old := known[of]; old != nil {
		r = clone(old)
	}
	r.Schema, r.Tier, r.Tool, r.Address, r.Base = evidence.Schema, n.Tier, n.Tool, n.At, nil
	r.Provenance.Recorded, r.Provenance.Card = b.options.Now.UTC().Format(time.RFC3339), "card"
	if n.Compares() {
		r.Base = &n.Base
	}
	switch {
	case n.Tier == evidence.Static:
		return r
	case n.Tier == evidence.Calibration || n.At.Machine == "":
		return nil
	case n.Tier == evidence.Correctness && len(r.Checks) == 0:
		r.Checks = []evidence.Check{goodCheck()}
	case n.Tier == evidence.Latency && n.Compares():
		r.Metrics, r.Samples, r.Experiment = nil, nil, b.experiment(b.share(n))
	case n.Tier == evidence.Latency:
		r.Samples = b.samples(16, b.time)
	case n.Tier == evidence.Sessions:
		r.Sessions = b.sessions()
	}
	return b.accepted(r)
}

// clone copies a record as a store does.
func clone(r *evidence.Record) *evidence.Record {
	data, err := json.Marshal(r)
	if err == nil {
		out := &evidence.Record{}
		if err = json.Unmarshal(data, out); err == nil {
			return out
		}
	}
	panic("a record cannot be copied: " + err.Error())
}

// accepted fills in the figures that rules name, each within its limit.
func (b *bench) accepted(r *evidence.Record) *evidence.Record {
	if r.Metrics == nil {
		r.Metrics = evidence.Metrics{}
	}
	for _, rule := range b.rules() {
		m := rule.Metric
		if m.Tier != r.Tier {
			continue
		}
		v := r.Metrics.Get(m.Name)
		switch {
		case m.Time():
			r.Metrics[m.Name] = evidence.Of(b.time, m.Unit)
		case !v.Known() || rule.Limit.Set && breaks(rule, v.Number):
			r.Metrics[m.Name] = evidence.Of(within(rule, m), m.Unit)
		}
	}
	return r
}

// breaks reports whether a figure lies beyond a rule's limit.
func breaks(r *policy.Rule, figure float64) bool {
	if r.Metric.Better == metric.Higher {
		return figure < r.Limit.InPercent()
	}
	return figure > r.Limit.InPercent()
}

// within is a figure that a rule accepts.
func within(r *policy.Rule, m metric.Metric) float64 {
	switch limit := r.Limit.InPercent(); {
	case !r.Limit.Set:
		return 50
	case m.Better == metric.Higher:
		return limit * 1.1
	default:
		return limit / 2
	}
}

// share is the head's time as a share of the other arm's, such that the rules
// with a reference hold.
func (b *bench) share(n *evidence.Need) float64 {
	share := 1.0
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Kind == plan.Ratio && slices.Contains(q.Needs, n) {
			share = min(share, q.Rule.Limit.Number/2)
		}
	}
	return share
}

func number(x float64) *float64 { return &x }

func goodCheck() evidence.Check {
	return evidence.Check{Class: "normal", Elements: 64, RelativeError: number(0), MaxAbsError: number(0), Guard: "ok", Repeatable: true, Status: "pass"}
}

// samples are processes around a time, each a little off, in both states of the
// caches.
func (b *bench) samples(processes int, ns float64) []evidence.Sample {
	var out []evidence.Sample
	for range processes {
		at := ns * (1 + 0.002*(b.random.Float64()-0.5))
		for _, state := range []evidence.CacheState{evidence.Cold, evidence.Warm} {
			s := evidence.Sample{CacheState: state, Calls: 4, KernelNodes: 4, Sets: 2}
			for range 6 {
				s.BatchesNS = append(s.BatchesNS, at*(1+0.001*b.random.Float64()))
			}
			out = append(out, s)
		}
	}
	return out
}

const rounds = 8

// experiment has a head that takes a share of the other arm's time.
func (b *bench) experiment(share float64) *evidence.Experiment {
	x := &evidence.Experiment{Pilot: b.samples(1, b.time), Stopped: "resolved"}
	for i := range rounds {
		x.Rounds = append(x.Rounds, evidence.Round{Number: i, Order: "ABBABAAB", Base: b.samples(4, b.time), Head: b.samples(4, share*b.time)})
	}
	return x
}

// sessions are a history of the base, of one card.
func (b *bench) sessions() []evidence.Session {
	var out []evidence.Session
	for i := range 12 {
		s := evidence.Session{Recorded: b.options.Now.AddDate(0, 0, -1-i).UTC().Format(time.RFC3339), Card: "card"}
		for _, one := range b.samples(8, b.time*(1+0.003*b.random.NormFloat64())) {
			s.Processes = append(s.Processes, evidence.SessionProcess{CacheState: one.CacheState, Typical: one.BatchesNS[0], Mean: one.BatchesNS[0]})
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	return out
}
