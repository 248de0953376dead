package judge

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.Intn(len(from))] }

// ruleText is a random rule.
func ruleText(r *rand.Rand, id string) string {
	names := slices.Concat(compiled, profiled, []string{"check.relative_error", "check.max_abs_error", "latency.typical", "latency.mean", "latency.cold_typical"})
	name := names[r.Intn(len(names))]
	m, _ := metric.Lookup(name)
	accepted := "max_regression: " + pick(r, "0", "1", "8")
	switch {
	case m.Time():
		accepted = pick(r, "max_regression: 2%", "max_regression: 5%", "max_regression: 2%, floor: 50ns", "limit: 101us", "relative_to: op/ref, limit: 1.2")
	case m.Unit == "%":
		accepted = pick(r, "max_regression: 5pp", "max_regression: 10%", "limit: 61%")
	case m.Better == metric.Neither:
		accepted = pick(r, "max_regression: 10%", "max_regression: 1", "max_regression: 0, floor: 1")
	case r.Intn(3) == 0:
		accepted = "limit: " + pick(r, "0", "1e-3", "40")
	case r.Intn(2) == 0:
		accepted = pick(r, "max_regression: 10%", "max_regression: 1%, floor: 10")
	}
	text := fmt.Sprintf("{id: %s, metric: %s, %s", id, name, accepted)
	if r.Intn(4) == 0 {
		text += pick(r, ", severity: warn", ", on_missing: fail", ", on_inconclusive: fail", `, arch: ["sm_9*"]`)
	}
	if !m.Time() && m.Better != metric.Neither && m.Unit != "%" && !strings.Contains(text, "limit") && r.Intn(3) == 0 {
		text += ", limit: 60"
	}
	if m.Better != metric.Neither && strings.Contains(text, "max_regression") && r.Intn(4) == 0 {
		text += ", unexplained_gain: 30%"
	}
	if r.Intn(4) == 0 {
		text += pick(r, `, kernels: ["op/k0"]`, `, kernels: ["!op/k1"]`, `, kernels: ["op/*"]`)
	}
	return text + "}"
}

// rulesOf are the rules of a policy's text.
func rulesOf(text string) []string {
	_, rules, _ := strings.Cut(text, "  - ")
	return strings.Split(strings.TrimSuffix(rules, "\n"), "\n  - ")
}

func policyOf(t *testing.T, stored bool, rules []string) *policy.Policy {
	t.Helper()
	head, _, _ := strings.Cut(standard, "  - ")
	if stored {
		head = strings.Replace(head, "rules:", "latency: {base: stored}\nrules:", 1)
	}
	return parse(t, head+"  - "+strings.Join(rules, "\n  - ")+"\n")
}

// randomPolicy runs the base or holds times against sessions.
func randomPolicy(t *testing.T, r *rand.Rand) *policy.Policy {
	t.Helper()
	rules, stored := randomRules(r), r.Intn(3) == 0
	if stored {
		rules = slices.DeleteFunc(rules, func(text string) bool { return strings.Contains(text, "p99") })
	}
	return policyOf(t, stored, rules)
}

func randomRules(r *rand.Rand) []string {
	if r.Intn(2) == 0 {
		return rulesOf(standard)
	}
	var rules []string
	for i := range 1 + r.Intn(5) {
		rules = append(rules, ruleText(r, fmt.Sprintf("r%d", i)))
	}
	return rules
}

// maybe leaves something out now and then.
func maybe(r *rand.Rand, record *evidence.Record) fact {
	switch r.Intn(12) {
	case 0:
		return none("it is not there")
	case 1:
		return fact{Record: broke(pick(r, evidence.Hang, evidence.Crash, evidence.CUDA, evidence.Wrong, evidence.Permission, evidence.Device, evidence.Tool)), source: evidence.Measured}
	}
	return just(record)
}

func some(r *rand.Rand, m evidence.Metrics) evidence.Metrics {
	for name := range m {
		if r.Intn(15) == 0 {
			m[name] = evidence.Absent("this one is missing", "")
		}
	}
	return m
}

// The times of a head whose base takes 100 µs. Between a rule's tolerance and
// what it has to find, a time may be called either way, and which way depends on
// the number of tests that share the error rate. No time of clearTime is one of those.
var (
	anyTime   = []float64{5_000, 97_000, 100_000, 100_000, 101_000, 103_000, 107_000, 130_000}
	clearTime = []float64{5_000, 97_000, 100_000, 100_000, 107_000, 130_000}
)

func randomCase(r *rand.Rand, name string, times []float64) *kase {
	c := &kase{name: name}
	check := correctRecord()
	if r.Intn(6) == 0 {
		check.Checks[0].Status, check.Checks[0].Reasons = "fail", []string{"too far off"}
		check.Metrics["check.relative_error"] = evidence.Of(0.5, "")
	}
	occupancy := func() *evidence.Record {
		return &evidence.Record{Metrics: some(r, figures(profiled, pick(r, 50.0, 60, 61, 62), pick(r, 0.0, 1000, 1500), pick(r, 2.0, 3, 3.1)))}
	}
	c.correctness, c.baseCorrectness = maybe(r, check), maybe(r, correctRecord())
	c.profile, c.baseProfile = maybe(r, occupancy()), maybe(r, occupancy())
	head := pick(r, times...)
	c.alone, c.experiment, c.sessions = maybe(r, timedAt(r, head)), maybe(r, experiment(r, pick(r, 1, 3, 3, 3), head)), maybe(r, history(r, pick(r, 1, 7, 9, 12)))
	if r.Intn(3) == 0 {
		c.experiment = fact{Record: baseBroke(), source: evidence.Measured}
	}
	if r.Intn(6) == 0 && c.experiment.Record != nil && c.experiment.Experiment != nil {
		c.experiment.Experiment.Stopped = pick(r, "", "wall", "gpu", "the device is too warm")
	}
	if r.Intn(6) == 0 {
		c.calibration = just(selfTimed(r, evidence.Warm, 80))
	}
	for _, name := range []string{"op/ref", "op/other"}[:r.Intn(3)] {
		c.references = append(c.references, reference{name: name, correctness: maybe(r, correctRecord()), experiment: maybe(r, experiment(r, 3, head))})
	}
	return c
}

func randomKernel(r *rand.Rand, name string, times []float64) *kernel {
	k := &kernel{name: name, state: pick(r, verdict.Changed, verdict.Changed, verdict.Changed, verdict.Unchanged, verdict.New, verdict.Gone, verdict.NoBase), forced: r.Intn(6) == 0}
	values := func() evidence.Metrics {
		return some(r, figures(compiled, pick(r, 0.0, 0, 8), pick(r, 32.0, 40, 48), pick(r, 0.0, 100, 110)))
	}
	k.head, k.old = values(), values()
	switch r.Intn(20) {
	case 0:
		k.broken = plan.Side{Why: "it does not build", Blame: r.Intn(2) == 0}
	case 1:
		k.baseBroken = plan.Side{Why: "the base does not build"}
	}
	for i := range 1 + r.Intn(2) {
		k.cases = append(k.cases, randomCase(r, fmt.Sprintf("case%d", i), times))
	}
	return k
}

// defects are what one kernel can have against it: a regression by each kind
// of rule, and whatever is not allowed to pass.
func defects() []func(*kernel, *kase) {
	all := []func(*kernel, *kase){
		set(headStatic, "ptxas.spill_bytes", 8), set(headStatic, "ptxas.registers", 60), set(headStatic, "ptxas.stack_bytes", 200),
		set(headProfile, "ncu.achieved_occupancy", 40), set(headProfile, "ncu.shared_bank_conflicts", 9000), set(headProfile, "ncu.waves", 9),
		func(_ *kernel, c *kase) { c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 110_000) },
		func(_ *kernel, c *kase) { c.alone.Record = timedAt(rand.New(rand.NewSource(1)), 130_000) },
		func(_ *kernel, c *kase) { c.correctness.Record.Metrics["check.relative_error"] = evidence.Of(1, "") },
		func(_ *kernel, c *kase) { c.correctness.Record.Metrics["check.max_abs_error"] = evidence.Of(1, "") },
	}
	for _, c := range failsOpen {
		if c.exit >= 0 && c.name != "no case" && c.name != "slower" { // 4 % is not a clear time
			all = append(all, c.change)
		}
	}
	return all
}

// randomFacts holds kernels that are well or have one defect beside random
// ones, so that the laws have passes to take away and failures to hide.
func randomFacts(r *rand.Rand, times []float64) facts {
	f := facts{options: plan.Options{NoBase: "it is shallow", LimitsOnly: r.Intn(2) == 0}}
	for i := range 1 + r.Intn(3) {
		k := randomKernel(r, fmt.Sprintf("op/k%d", i), times)
		if r.Intn(5) > 0 {
			fine := good()
			if r.Intn(3) == 0 {
				fine = change(pick(r, defects()...))
			} else {
				fine.kernels[0].state = pick(r, verdict.Changed, verdict.Changed, verdict.Unchanged, verdict.New)
			}
			fine.kernels[0].name = k.name
			k = fine.kernels[0]
		}
		f.kernels = append(f.kernels, k)
	}
	if r.Intn(3) == 0 { // one more kernel of the same code, and so of the same records
		twin := *f.kernels[0]
		twin.name, twin.like = "op/twin", twin.name
		f.kernels = append(f.kernels, &twin)
	}
	return f
}
