package policy

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.Intn(len(from))] }

// ruleText is a random rule.
func ruleText(r *rand.Rand, id string) string {
	metric := pick(r, append(append(slices.Clone(static), profiled...), "check.relative_error", "latency.typical", "latency.mean", "latency.cold_typical")...)
	m, _ := LookupMetric(metric)
	accepted := "max_regression: " + pick(r, "0", "1", "8")
	switch {
	case isLatency(m):
		accepted = pick(r, "max_regression: 2%", "max_regression: 5%", "max_regression: 2%, floor: 50ns", "limit: 101us", "relative_to: op/ref, limit: 1.2")
	case m.Unit == "%":
		accepted = pick(r, "max_regression: 5pp", "max_regression: 10%", "limit: 61%")
	case m.Either:
		accepted = pick(r, "max_regression: 10%", "max_regression: 1", "max_regression: 0, floor: 1")
	case r.Intn(3) == 0:
		accepted = "limit: " + pick(r, "0", "1e-3", "40")
	case r.Intn(2) == 0:
		accepted = pick(r, "max_regression: 10%", "max_regression: 1%, floor: 10")
	}
	text := fmt.Sprintf("{id: %s, metric: %s, %s", id, metric, accepted)
	if r.Intn(4) == 0 {
		text += ", severity: warn"
	}
	if r.Intn(4) == 0 {
		text += pick(r, `, kernels: ["op/k0"]`, `, kernels: ["!op/k1"]`, `, kernels: ["op/*"]`)
	}
	return text + "}"
}

func policyOf(t *testing.T, stored bool, rules []string) *Policy {
	t.Helper()
	head, _, _ := strings.Cut(standard, "  - ")
	if stored {
		head = strings.Replace(head, "rules:", "latency: {base: stored}\nrules:", 1)
	}
	return parse(t, head+"  - "+strings.Join(rules, "\n  - ")+"\n")
}

// randomPolicy runs the base or holds times against sessions.
func randomPolicy(t *testing.T, r *rand.Rand) *Policy {
	t.Helper()
	rules, stored := randomRules(r), r.Intn(3) == 0
	if stored {
		rules = slices.DeleteFunc(rules, func(text string) bool { return strings.Contains(text, "p99") })
	}
	return policyOf(t, stored, rules)
}

func randomRules(r *rand.Rand) []string {
	if r.Intn(2) == 0 {
		_, rules, _ := strings.Cut(standard, "  - ")
		return strings.Split(strings.TrimSuffix(rules, "\n"), "\n  - ")
	}
	var rules []string
	for i := range 1 + r.Intn(5) {
		rules = append(rules, ruleText(r, fmt.Sprintf("r%d", i)))
	}
	return rules
}

// maybe leaves something out now and then.
func maybe(r *rand.Rand, record *evidence.Record) Arm {
	switch r.Intn(12) {
	case 0:
		return Arm{Missing: "it is not there"}
	case 1:
		return Arm{Record: broke(pick(r, evidence.Hang, evidence.Crash, evidence.CUDA, evidence.Wrong, evidence.Permission, evidence.Device, evidence.Tool)), Source: Measured}
	}
	return reused(record)
}

func some(r *rand.Rand, m evidence.Metrics) evidence.Metrics {
	for name := range m {
		if r.Intn(15) == 0 {
			m[name] = evidence.Absent("this one is missing", "")
		}
	}
	return m
}

func randomCase(r *rand.Rand, name string) CaseFacts {
	c := CaseFacts{Name: name, Machine: "h200-00000000"}
	check := correct()
	if r.Intn(6) == 0 {
		check.Checks[0].Status, check.Checks[0].Reasons = "fail", []string{"too far off"}
		check.Metrics["check.relative_error"] = evidence.Of(0.5, "")
	}
	occupancy := func() *evidence.Record {
		return &evidence.Record{Metrics: some(r, figures(profiled, pick(r, 50.0, 60, 61, 62), pick(r, 0.0, 1000, 1500), pick(r, 2.0, 3, 3.1)))}
	}
	c.Correctness = maybe(r, check)
	c.Profile = Pair{maybe(r, occupancy()), maybe(r, occupancy())}
	head := pick(r, 5_000.0, 97_000, 100_000, 100_000, 101_000, 103_000, 130_000)
	c.Latency = LatencyFacts{Head: maybe(r, timed(r, head)), Experiment: maybe(r, experiment(r, pick(r, 1, 3, 3, 3), head)), Sessions: maybe(r, history(r, pick(r, 1, 7, 9, 12)))}
	if r.Intn(3) == 0 {
		c.Latency.Experiment = Arm{Record: baseBroke(), Source: Measured}
	}
	for _, name := range []string{"op/ref", "op/other"}[:r.Intn(3)] {
		c.Latency.References = append(c.Latency.References, ReferenceFacts{Name: name, Correctness: maybe(r, correct()), Experiment: maybe(r, experiment(r, 3, head))})
	}
	return c
}

func randomKernel(r *rand.Rand, name string) KernelFacts {
	k := KernelFacts{Name: name, File: name + "/kernel.yaml", Arch: "sm_90", State: pick(r, Changed, Changed, Changed, Unchanged, New, Gone, NoBase), Forced: r.Intn(6) == 0}
	values := func() evidence.Metrics {
		return some(r, figures(static, pick(r, 0.0, 0, 8), pick(r, 32.0, 40, 48), pick(r, 0.0, 100, 110)))
	}
	k.Head, k.Old = values(), values()
	switch r.Intn(20) {
	case 0:
		k.Broken = &Problem{Message: "it does not build", Blame: r.Intn(2) == 0, Tool: r.Intn(2) == 0}
	case 1:
		k.BaseProblem = "the base does not build"
	}
	for i := range 1 + r.Intn(2) {
		k.Cases = append(k.Cases, randomCase(r, fmt.Sprintf("case%d", i)))
	}
	return k
}

// defects are what one kernel can have against it: a regression by each kind
// of rule, and whatever is not allowed to pass.
func defects() []func(*KernelFacts, *CaseFacts) {
	all := []func(*KernelFacts, *CaseFacts){
		set(headStatic, "ptxas.spill_bytes", 8), set(headStatic, "ptxas.registers", 60), set(headStatic, "ptxas.stack_bytes", 200),
		set(headProfile, "ncu.achieved_occupancy", 40), set(headProfile, "ncu.shared_bank_conflicts", 9000), set(headProfile, "ncu.waves", 9),
		func(_ *KernelFacts, c *CaseFacts) {
			c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 110_000)
		},
		func(_ *KernelFacts, c *CaseFacts) {
			c.Latency.Head.Record = timed(rand.New(rand.NewSource(1)), 130_000)
		},
		func(_ *KernelFacts, c *CaseFacts) {
			c.Correctness.Record.Metrics["check.relative_error"] = evidence.Of(1, "")
		},
	}
	for _, c := range failsOpen {
		if c.exit >= 0 && c.name != "no case" {
			all = append(all, c.change)
		}
	}
	return all
}

// randomFacts holds kernels that are well or have one defect beside random
// ones, so that the laws have passes to take away and failures to hide.
func randomFacts(r *rand.Rand) Facts {
	var f Facts
	for i := range 1 + r.Intn(3) {
		k := randomKernel(r, fmt.Sprintf("op/k%d", i))
		if r.Intn(5) > 0 {
			fine := good()
			if r.Intn(3) == 0 {
				fine = change(pick(r, defects()...))
			} else {
				fine.Kernels[0].State = pick(r, Changed, Changed, Unchanged, New)
			}
			fine.Kernels[0].Name = k.Name
			k = fine.Kernels[0]
		}
		f.Kernels = append(f.Kernels, k)
	}
	return f
}
