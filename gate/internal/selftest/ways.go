package selftest

import (
	"bytes"
	"math"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A way is one in which gates fail open: a change to the evidence of a kernel
// that must not leave a pass.
type way struct {
	name  string
	tier  evidence.Tier
	least verdict.Status // what the verdict has to be: Fail, or Inconclusive for either
	plant func(*evidence.Record)
}

var evidenceWays = []way{
	{"the record of the head is lost", "", verdict.Inconclusive, nil},
	{"the record is of a tier that hung", "", verdict.Fail, failed(evidence.Hang)},
	{"the record is of a tier that crashed", "", verdict.Fail, failed(evidence.Crash)},
	{"the record is of a tier that ended with a CUDA error", "", verdict.Fail, failed(evidence.CUDA)},
	{"the tool failed", "", verdict.Inconclusive, failed(evidence.Tool)},
	{"the device was lost", "", verdict.Inconclusive, failed(evidence.Device)},
	{"the profiler was not permitted", evidence.Profile, verdict.Inconclusive, failed(evidence.Permission)},
	{"the result is wrong", evidence.Correctness, verdict.Fail, failed(evidence.Wrong)},
	{"no input class was checked", evidence.Correctness, verdict.Inconclusive, func(r *evidence.Record) { r.Checks = nil }},
	{"a check compared no element", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Elements = 0 })},
	{"a check compared no row", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.AllRows = 64 })},
	{"a check compared more rows than there are", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Rows = 64 })},
	{"an element is not finite", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.NonFinite = 1 })},
	{"the error is not finite", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.RelativeError = nil })},
	{"an element was not written", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Unwritten = 1 })},
	{"the kernel wrote outside its output", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Guard = "overwritten" })},
	{"the kernel changed its inputs", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.InputsChanged = true })},
	{"two runs differ", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Repeatable = false })},
	{"a check says that it failed", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Status = "fail" })},
	{"a check has an unknown status", evidence.Correctness, verdict.Fail, checked(func(c *evidence.Check) { c.Status = "skipped" })},
}

// figureWays change the figure of a rule on an exact or counted metric.
var figureWays = []struct {
	name  string
	value func(unit string) evidence.Value
}{
	{"the figure is not there", func(unit string) evidence.Value { return evidence.Absent("the tool named it otherwise", unit) }},
	{"the figure is NaN", func(unit string) evidence.Value { return evidence.Of(math.NaN(), unit) }},
	{"the figure is infinite", func(unit string) evidence.Value { return evidence.Of(math.Inf(-1), unit) }},
	{"the figure is in another unit", func(string) evidence.Value { return evidence.Of(0, "furlong") }},
}

// timeWays change the experiment between head and base.
var timeWays = []struct {
	name  string
	plant func(b *bench, x *evidence.Experiment)
}{
	{"an arm launched nothing", func(_ *bench, x *evidence.Experiment) {
		eachHead(x, func(s *evidence.Sample) { s.KernelNodes, s.BatchesNS = 0, nil })
	}},
	{"an arm took no time", func(_ *bench, x *evidence.Experiment) { eachTime(x, func(float64) float64 { return 0 }) }},
	{"a time is not finite", func(_ *bench, x *evidence.Experiment) { eachTime(x, func(float64) float64 { return math.NaN() }) }},
	{"every time is the same", func(b *bench, x *evidence.Experiment) { eachTime(x, func(float64) float64 { return b.time }) }},
	{"the experiment has no round", func(_ *bench, x *evidence.Experiment) { x.Rounds = nil }},
	{"the experiment has one round", func(_ *bench, x *evidence.Experiment) { x.Rounds = x.Rounds[:1] }},
	{"the experiment was interrupted", func(_ *bench, x *evidence.Experiment) { x.Stopped = "" }},
	{"the device did not come to rest", func(_ *bench, x *evidence.Experiment) { x.Stopped = "the device throttles" }},
	{"a round lacks a process", func(_ *bench, x *evidence.Experiment) { x.Rounds[0].Head = x.Rounds[0].Head[2:] }},
	{"noise as large as the time", func(b *bench, x *evidence.Experiment) {
		eachHead(x, func(s *evidence.Sample) {
			factor := math.Exp(b.random.NormFloat64())
			for i := range s.BatchesNS {
				s.BatchesNS[i] *= factor
			}
		})
	}},
}

func failed(kind evidence.FailureKind) func(*evidence.Record) {
	return func(r *evidence.Record) {
		r.Failure = &evidence.Failure{Kind: kind, Message: "planted: " + string(kind)}
	}
}

func checked(change func(*evidence.Check)) func(*evidence.Record) {
	return func(r *evidence.Record) { change(&r.Checks[len(r.Checks)-1]) }
}

func eachHead(x *evidence.Experiment, change func(*evidence.Sample)) {
	for i := range x.Rounds {
		for j := range x.Rounds[i].Head {
			change(&x.Rounds[i].Head[j])
		}
	}
}

func eachTime(x *evidence.Experiment, change func(float64) float64) {
	eachHead(x, func(s *evidence.Sample) {
		for i, t := range s.BatchesNS {
			s.BatchesNS[i] = change(t)
		}
	})
}

// subjectWays change what is known of the kernel itself.
var subjectWays = []struct {
	name  string
	least verdict.Status
	plant func(*plan.Subject)
}{
	{"the kernel is gone", verdict.Fail, func(s *plan.Subject) { s.State = verdict.Gone }},
	{"a case is gone", verdict.Fail, func(s *plan.Subject) { s.Lost = []plan.Loss{{Cause: plan.GoneCase, Case: "planted"}} }},
	{"a __global__ function is gone", verdict.Fail, func(s *plan.Subject) { s.Lost = []plan.Loss{{Cause: plan.GoneEntry, Entry: "planted"}} }},
	{"no case is left", verdict.Inconclusive, func(s *plan.Subject) { s.Cases = nil }},
	{"it does not build", verdict.Fail, func(s *plan.Subject) { s.Head = plan.Side{Why: "planted", Blame: true} }},
	{"the compiler failed", verdict.Inconclusive, func(s *plan.Subject) { s.Head = plan.Side{Why: "planted"} }},
	{"the base does not build", verdict.Inconclusive, func(s *plan.Subject) { s.Base = plan.Side{Why: "planted"} }},
	{"there is no base", verdict.Inconclusive, func(s *plan.Subject) { s.State, s.Base = verdict.NoBase, plan.Side{} }},
	{"nobody judges its op yet", verdict.Inconclusive, func(s *plan.Subject) { s.NewOp = &plan.NewPart{Op: "planted"} }},
	{"its code is another than any that was measured", verdict.Inconclusive, func(s *plan.Subject) { s.Head.Identity.Code += "x" }},
	{"its host code is another than any that was measured", verdict.Inconclusive, func(s *plan.Subject) { s.Head.Identity.Host += "x" }},
	{"its cases are measured otherwise", verdict.Inconclusive, func(s *plan.Subject) {
		for i := range s.Cases {
			s.Cases[i].Harness += "x"
		}
	}},
}

// recordWays damage the text of a record; none may be read.
var recordWays = []struct {
	name   string
	damage func([]byte) []byte
}{
	{"a record is cut short", func(d []byte) []byte { return d[:len(d)/2] }},
	{"a record is empty", func([]byte) []byte { return nil }},
	{"a record has an unknown key", func(d []byte) []byte { return bytes.Replace(d, []byte("{"), []byte(`{"planted":1,`), 1) }},
	{"a record has a key twice", func(d []byte) []byte { return bytes.Replace(d, []byte("{"), []byte(`{"tier":"profile",`), 1) }},
	{"a record is followed by another", func(d []byte) []byte { return append(bytes.Clone(d), d...) }},
	{"a record has another schema", func(d []byte) []byte { return bytes.Replace(d, []byte(evidence.Schema), []byte("gate/evidence/v0"), 1) }},
	{"a figure of a record is not a number", func(d []byte) []byte {
		return bytes.Replace(d, []byte(`"metrics": {`), []byte(`"metrics": {"planted": {"value": NaN},`), 1)
	}},
}

// policyWays damage the text of the policy; none may be read.
var policyWays = []struct{ name, more string }{
	{"the policy has an unknown key", "\nplanted: 1\n"},
	{"the policy has a key twice", "\nversion: 1\n"},
	{"the policy has a second document", "\n---\nversion: 1\n"},
}

// refusesIdle reports whether a rule that matches none of the kernels is refused.
func refusesIdle(p *policy.Policy, kernels []policy.Scope) bool {
	c := *p
	c.Rules = []policy.Rule{p.Rules[0]}
	c.Rules[0].Kernels = []string{"planted/nowhere"}
	return c.Idle(kernels) != nil
}
