// Package selftest proves on the user's own kernels that the gate is closed: it
// plants one violation of every kind that it can judge into copies of the
// evidence, judges each as a check does, and says which was not caught.
package selftest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Planted violation is one kind and what came of it.
type Planted struct {
	Kind   string `json:"kind"`
	Tier   string `json:"tier"` // that has to catch it
	Kernel string `json:"kernel,omitempty"`
	Caught bool   `json:"caught"`
	Said   string `json:"said"` // of it, or what it came to
}

// A Result is what all kinds came to.
type Result struct {
	Planted []Planted `json:"planted"`
	Skipped []string  `json:"skipped,omitempty"` // kernels that prove nothing, and why
	Never   []string  `json:"never,omitempty"`   // rules that can fire on none of the kernels, and why
}

// Caught is the number of kinds that were.
func (r Result) Caught() int {
	n := 0
	for _, p := range r.Planted {
		if p.Caught {
			n++
		}
	}
	return n
}

func (r *Result) add(p Planted) { r.Planted = append(r.Planted, p) }

// Run plants into the evidence of the kernels that a check asks about. Path is
// the policy's file.
func Run(p *policy.Policy, path string, asked plan.Plan, l *evidence.Ledger, now time.Time) (Result, error) {
	var out Result
	strict := *p
	strict.Waivers = nil
	known, scopes := recordedIn(asked, l), []policy.Scope(nil)
	var benches []*bench
	for _, s := range asked.Subjects {
		scopes = append(scopes, policy.Scope{Kernel: s.Name, Arch: []string{s.Arch}})
		if s.Head.Why != "" || s.State == verdict.Gone {
			continue
		}
		b, err := newBench(&strict, s, known, now)
		if err != nil {
			return out, err
		}
		if b.clean.Status != verdict.Pass && b.clean.Status != verdict.Warn {
			out.Skipped = append(out.Skipped, s.Name+" was left out: it does not pass without a violation: "+worst(b.clean))
			continue
		}
		benches = append(benches, b)
	}
	if len(benches) == 0 {
		return out, &exit.Error{Status: exit.Inconclusive, Advice: "gate check says what is wrong with them", Err: errors.New("no kernel passes without a violation, so that planting one proves nothing")}
	}
	for i := range strict.Rules {
		if err := out.rule(&strict.Rules[i], benches); err != nil {
			return out, err
		}
	}
	for _, plant := range []func(*bench) error{out.evidence, out.figures, out.times, out.roof, out.subjects, out.records, out.waivers} {
		if err := plant(richest(benches)); err != nil {
			return out, err
		}
	}
	out.files(p, path, scopes)
	return out, nil
}

// richest is the kernel of which most is asked.
func richest(benches []*bench) *bench {
	return slices.MaxFunc(benches, func(a, b *bench) int { return len(a.rules()) - len(b.rules()) })
}

// rule plants a violation of each kind of question that a rule asks.
func (r *Result) rule(rule *policy.Rule, benches []*bench) error {
	for _, b := range benches {
		kinds := b.ruleKinds(rule)
		if f := of(b.clean, rule.ID); len(kinds) == 0 || f.Status != verdict.Pass {
			continue // what is broken already proves nothing
		}
		for _, q := range kinds {
			l := b.ledger.Clone()
			b.violate(q, l)
			v, err := b.judge(l)
			if err != nil {
				return err
			}
			f := of(v, rule.ID)
			caught := f.Status == verdict.Fail || f.Status == verdict.Warn
			r.add(Planted{Kind: fmt.Sprintf("rule %s: %s", rule.ID, q.Kind), Tier: string(rule.Metric.Tier), Kernel: b.subject.Name, Caught: caught, Said: said(f)})
		}
		return nil
	}
	if rule.Replaces == "" {
		r.Never = append(r.Never, fmt.Sprintf("rule %s can never fire: it asks nothing of these kernels that evidence could answer", rule.ID))
	}
	return nil
}

func said(f verdict.Finding) string { return f.Status.String() + ": " + f.Reason }

// try judges a ledger and adds what came of it.
func (r *Result) try(b *bench, l *evidence.Ledger, kind string, tier evidence.Tier, least verdict.Status) error {
	v, err := b.judge(l)
	if err != nil {
		return err
	}
	caught := v.Status == verdict.Fail || least == verdict.Inconclusive && v.Status == verdict.Inconclusive
	r.add(Planted{Kind: kind, Tier: string(tier), Kernel: b.subject.Name, Caught: caught, Said: v.Status.String() + ": " + worst(v)})
	return nil
}

// worst is the reason of the verdict.
func worst(v *verdict.Verdict) string {
	for _, k := range v.Kernels {
		for _, f := range k.Findings {
			if f.Status == v.Status {
				return f.Rule + ": " + f.Reason
			}
		}
	}
	return "nothing was found"
}

// evidence plants into the first record of each tier that a red question asks
// for.
func (r *Result) evidence(b *bench) error {
	for _, w := range evidenceWays {
		for _, tier := range evidence.Order[1:] {
			n := b.red(tier)
			if n == nil || w.tier != "" && w.tier != tier {
				continue
			}
			l := b.ledger.Clone()
			if w.plant == nil {
				l.Refuse(*n.Key, "")
			} else {
				edit(l, n, w.plant)
			}
			if err := r.try(b, l, w.name, tier, w.least); err != nil {
				return err
			}
		}
	}
	return nil
}

// strict reports whether a question stays open where nothing answers it: the
// policy may say that it only warns.
func strict(q *plan.Question) bool {
	return q.Rule == nil || q.Rule.OnMissing != policy.OnlyWarns && q.Rule.OnUndecided != policy.OnlyWarns
}

// red is the first record of a tier of the head without which a question that
// can turn a verdict red stays open.
func (b *bench) red(tier evidence.Tier) *evidence.Need {
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Weight != verdict.Red || q.Kind == plan.Condition || !strict(q) {
			continue
		}
		for _, n := range q.Needs {
			if n.Tier == tier && n.Use == evidence.Answers && n.At.Identity == b.subject.Head.Identity {
				return n
			}
		}
	}
	return nil
}

// figures plants figures that are none, on the head and on the base.
func (r *Result) figures(b *bench) error {
	done := map[evidence.Tier]bool{}
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Kind != plan.Regression || q.Weight != verdict.Red || done[q.Tier] || !strict(q) || q.Entry != "" {
			continue
		}
		done[q.Tier] = true
		for at, side := range []string{"head", "base"} {
			for _, w := range figureWays {
				l := b.ledger.Clone()
				edit(l, q.Needs[at], func(x *evidence.Record) { x.Metrics[q.Rule.Metric.Name] = w.value(q.Rule.Metric.Unit) })
				if err := r.try(b, l, w.name+", "+side, q.Tier, verdict.Inconclusive); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// times plants experiments that measured nothing.
func (r *Result) times(b *bench) error {
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Kind != plan.Experiment || q.Weight != verdict.Red || !strict(q) {
			continue
		}
		for _, w := range timeWays {
			l := b.ledger.Clone()
			edit(l, q.Needs[0], func(x *evidence.Record) { w.plant(b, x.Experiment) })
			if err := r.try(b, l, w.name, evidence.Latency, verdict.Inconclusive); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// roof plants work that a card which does one operation a nanosecond cannot do in the
// time that is recorded.
func (r *Result) roof(b *bench) error {
	n := b.red(evidence.Latency)
	if n == nil {
		return nil
	}
	c, s, l := *b, *b.subject, b.ledger.Clone()
	s.Cases = withWork(s.Cases, roof.Work{Flops: math.MaxInt64, Unit: "f16"})
	c.subject = &s
	if err := c.ask(); err != nil {
		return err
	}
	edit(l, n, func(x *evidence.Record) {
		x.Capacity = &evidence.Capacity{L2Bytes: 1, ColdBytesPerNS: 1, WarmBytesPerNS: 1, FlopsPerNS: map[string]float64{"f16": 1}}
	})
	return r.try(&c, l, "a time that the card cannot reach", evidence.Latency, verdict.Fail)
}

// subjects plants what no evidence can mend.
func (r *Result) subjects(b *bench) error {
	for _, w := range subjectWays {
		c := *b
		s := *b.subject
		s.Cases = slices.Clone(s.Cases)
		w.plant(&s)
		c.subject = &s
		if err := c.ask(); err != nil {
			return err
		}
		if err := r.try(&c, b.ledger, w.name, "build", w.least); err != nil {
			return err
		}
	}
	none := *b
	none.plan.Subjects, none.plan.Questions = nil, nil
	return r.try(&none, b.ledger, "no kernel is judged", "build", verdict.Inconclusive)
}

// waivers plants a violation that a waiver must not hide: an expired one, one
// that is exceeded, and one of correctness.
func (r *Result) waivers(b *bench) error {
	for i := range b.plan.Questions {
		q := &b.plan.Questions[i]
		if q.Weight != verdict.Red || q.Kind != plan.Limit && q.Kind != plan.Regression || len(q.Trades) > 0 {
			continue
		}
		for _, w := range []struct {
			kind    string
			ceiling float64
			days    int
		}{{"a waiver that expired", 1e12, -2}, {"a waiver that is exceeded", 0, 30}} {
			c, p := *b, *b.policy
			p.Waivers = []policy.Waiver{{Rule: q.Name, Kernel: q.Subject.Name, Ceiling: policy.Amount{Number: w.ceiling, Text: "planted", Set: true},
				Until: b.options.Now.AddDate(0, 0, w.days).UTC().Truncate(24 * time.Hour), Owner: "planted", Reason: "planted"}}
			c.policy = &p
			if err := c.ask(); err != nil {
				return err
			}
			l := b.ledger.Clone()
			b.violate(q, l)
			if err := r.try(&c, l, w.kind, q.Tier, verdict.Fail); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// records damages the text of a record.
func (r *Result) records(b *bench) error {
	n := b.red(evidence.Correctness)
	if n == nil {
		return nil
	}
	record := clone(b.ledger.Find(n).Record)
	record.Metrics["check.relative_error"] = evidence.Of(0, "")
	data, err := evidence.Encode(record)
	if err != nil {
		return err
	}
	if _, err := evidence.Decode(data); err != nil {
		return fmt.Errorf("a record that nobody damaged is refused: %w", err)
	}
	for _, w := range recordWays {
		_, err := evidence.Decode(w.damage(data))
		r.refused(w.name, "store", err)
	}
	return nil
}

// files damages the policy.
func (r *Result) files(p *policy.Policy, path string, kernels []policy.Scope) {
	text, err := os.ReadFile(path)
	if err == nil {
		for _, w := range policyWays {
			_, err := policy.Parse(append(slices.Clone(text), w.more...), p.File)
			r.refused(w.name, "policy", err)
		}
	}
	r.add(Planted{Kind: "a rule matches nothing", Tier: "policy", Caught: refusesIdle(p, kernels), Said: "refused"})
}

func (r *Result) refused(kind, tier string, err error) {
	said := "it was accepted"
	if err != nil {
		said = err.Error()
	}
	r.add(Planted{Kind: kind, Tier: tier, Caught: err != nil, Said: said})
}
