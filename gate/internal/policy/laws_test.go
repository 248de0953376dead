package policy

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// rounds of every law; each starts from a seed that a failure prints.
const rounds = 150

func laws(t *testing.T, law func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	seed := time.Now().UnixNano()
	for i := range rounds {
		s := seed + int64(i)
		law(t, rand.New(rand.NewSource(s)))
		if t.Failed() {
			t.Fatalf("seed %d", s)
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.Intn(len(from))] }

// ruleText is a random rule.
func ruleText(r *rand.Rand, id string) string {
	metric := pick(r, append(append(slices.Clone(static), profiled...), "check.relative_error", "latency.typical", "latency.mean", "latency.cold_typical")...)
	m, _ := LookupMetric(metric)
	accepted := "max_regression: " + pick(r, "0", "1", "8")
	switch {
	case isLatency(m):
		accepted = pick(r, "max_regression: 2%", "max_regression: 5%", "max_regression: 2%, floor: 50ns", "limit: 101us")
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

func policyOf(t *testing.T, rules []string) *Policy {
	t.Helper()
	head, _, _ := strings.Cut(standard, "  - ")
	return parse(t, head+"  - "+strings.Join(rules, "\n  - ")+"\n")
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
	c.Latency = LatencyFacts{maybe(r, timed(r, head)), maybe(r, experiment(r, pick(r, 1, 3, 3, 3), head))}
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

// earned is how much a status lets through.
func earned(s Status) int {
	switch s {
	case Pass:
		return 2
	case Warn:
		return 1
	}
	return 0
}

// arms are the places of a case's records.
func arms(c *CaseFacts) []*Arm {
	return []*Arm{&c.Correctness, &c.Profile.Head, &c.Profile.Base, &c.Latency.Head, &c.Latency.Experiment}
}

// remove takes one piece of evidence away: a record, a metric, the checks or
// the samples of a record, the last block of an experiment.
func remove(r *rand.Rand, f *Facts) string {
	k := &f.Kernels[r.Intn(len(f.Kernels))]
	if r.Intn(4) == 0 {
		side := pick(r, &k.Head, &k.Old)
		*side = without(r, *side)
		return k.Name + ": a static figure"
	}
	c := &k.Cases[r.Intn(len(k.Cases))]
	at := r.Intn(5)
	a := arms(c)[at]
	where := fmt.Sprintf("%s, %s, arm %d: ", k.Name, c.Name, at)
	if a.Record == nil || r.Intn(3) == 0 {
		*a = Arm{Missing: pick(r, "", "deleted")}
		return where + "the record"
	}
	record := *a.Record
	a.Record = &record
	if r.Intn(2) == 0 {
		record.Metrics = without(r, record.Metrics)
		return where + "a figure"
	}
	record.Checks, record.Samples = nil, nil
	if e := record.Experiment; e != nil {
		cut := *e
		cut.Blocks = cut.Blocks[:max(0, len(cut.Blocks)-1)]
		record.Experiment = &cut
	}
	return where + "checks, samples and the last block"
}

func without(r *rand.Rand, m evidence.Metrics) evidence.Metrics {
	out := evidence.Metrics{}
	for name, v := range m {
		if r.Intn(2) == 0 {
			out[name] = v
		}
	}
	return out
}

func TestDeletingEvidenceNeverImproves(t *testing.T) {
	passes := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := policyOf(t, randomRules(r)), randomFacts(r)
		before := judged(t, p, f)
		was := map[string]Status{}
		for _, k := range before.Kernels {
			was[k.Name] = k.Status
		}
		if before.ExitCode() == 0 {
			passes++
		}
		for range 3 {
			what := remove(r, &f)
			after := judged(t, p, f)
			if earned(after.Status) > earned(before.Status) {
				t.Errorf("%s is deleted: before\n%safter\n%s", what, summaryOf(before), summaryOf(after))
			}
			for _, k := range after.Kernels {
				if earned(k.Status) > earned(was[k.Name]) {
					t.Errorf("%s is deleted: %s improves from %s to %s\n%s", what, k.Name, was[k.Name], k.Status, summaryOf(after))
				}
			}
		}
	})
	if passes < rounds/20 {
		t.Errorf("only %d of %d verdicts passed: the law was hardly put to a test", passes, rounds)
	}
}

func TestAddingARuleNeverTurnsFailIntoPass(t *testing.T) {
	fails := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r)
		before := judged(t, policyOf(t, rules), f)
		more := slices.Insert(slices.Clone(rules), r.Intn(len(rules)+1), ruleText(r, "more"))
		after := judged(t, policyOf(t, more), f)
		if earned(after.Status) > earned(before.Status) {
			t.Errorf("%s is added: before\n%safter\n%s", more, summaryOf(before), summaryOf(after))
		}
		if before.Status == Fail {
			fails++
		}
	})
	if fails < rounds/20 {
		t.Errorf("only %d of %d verdicts failed", fails, rounds)
	}
}

// worsen makes every figure and every time of the head worse.
func worsen(r *rand.Rand, f Facts) {
	by := 1 + r.Float64()
	metrics := func(head, base evidence.Metrics) {
		for name, v := range head {
			m, ok := LookupMetric(name)
			if !ok || !v.Known() {
				continue
			}
			x := v.Number*by + 1
			if m.Better == compare.HigherBetter && !m.Either {
				x = v.Number / by
			}
			if b := base.Get(name); m.Either && b.Known() && v.Number < b.Number {
				x = v.Number - by
			}
			head[name] = evidence.Of(x, v.Unit)
		}
	}
	slower := func(samples []evidence.Sample) {
		for _, s := range samples {
			for i := range s.BatchesNS {
				s.BatchesNS[i] *= by
			}
		}
	}
	for i := range f.Kernels {
		k := &f.Kernels[i]
		metrics(k.Head, k.Old)
		for j := range k.Cases {
			c := &k.Cases[j]
			for _, a := range []Arm{c.Correctness, c.Profile.Head, c.Latency.Head} {
				if a.Record == nil {
					continue
				}
				var base evidence.Metrics
				if c.Profile.Base.Record != nil {
					base = c.Profile.Base.Record.Metrics
				}
				metrics(a.Record.Metrics, base)
				slower(a.Record.Samples)
			}
			if e := c.Latency.Experiment.Record; e != nil && e.Experiment != nil {
				for _, b := range e.Experiment.Blocks {
					slower(b.Head)
				}
			}
		}
	}
}

func TestWorseNeverTurnsFailIntoPass(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := policyOf(t, randomRules(r)), randomFacts(r)
		before := judged(t, p, f)
		worsen(r, f)
		if after := judged(t, p, f); before.Status == Fail && after.ExitCode() == 0 {
			t.Errorf("everything got worse: before\n%safter\n%s", summaryOf(before), summaryOf(after))
		}
	})
}

// TestEqualSidesNeverRegress: no rule that compares finds a change between a
// kernel and itself.
func TestEqualSidesNeverRegress(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := policyOf(t, randomRules(r)), randomFacts(r)
		for i := range f.Kernels {
			k := &f.Kernels[i]
			k.State, k.Broken, k.BaseProblem, k.Old = Changed, nil, "", k.Head
			for j := range k.Cases {
				c := &k.Cases[j]
				c.Profile.Base = c.Profile.Head
				c.Latency.Experiment = reused(experiment(r, 3, 100_000))
				if r.Intn(2) == 0 {
					for b := range c.Latency.Experiment.Record.Experiment.Blocks {
						block := &c.Latency.Experiment.Record.Experiment.Blocks[b]
						block.Head = block.Base
					}
				}
			}
		}
		for _, k := range judged(t, p, f).Kernels {
			for _, finding := range k.Findings {
				failed := finding.Status == Fail && strings.HasPrefix(finding.Accepts, "max_regression")
				if failed && (finding.Base != nil || isTime(finding)) {
					t.Errorf("%s: %+v", k.Name, finding)
				}
			}
		}
	})
}

func isTime(f Finding) bool { return f.Tier == evidence.Latency && f.Interval != nil }

// sortFindings puts findings where the order of rules and cases cannot reach.
func sortFindings(v *Verdict) {
	for i := range v.Kernels {
		k := &v.Kernels[i]
		slices.SortFunc(k.Findings, func(a, b Finding) int {
			return strings.Compare(a.Rule+"\x00"+a.Case+"\x00"+a.Machine, b.Rule+"\x00"+b.Case+"\x00"+b.Machine)
		})
		slices.SortFunc(k.Figures, func(a, b CaseFigures) int { return strings.Compare(a.Case+"\x00"+a.Machine, b.Case+"\x00"+b.Machine) })
	}
}

func encoded(t *testing.T, v *Verdict) string {
	t.Helper()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOrderLeavesTheBytes(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r)
		first := judged(t, policyOf(t, rules), f)
		shuffled := Facts{Kernels: slices.Clone(f.Kernels)}
		r.Shuffle(len(shuffled.Kernels), func(i, j int) {
			shuffled.Kernels[i], shuffled.Kernels[j] = shuffled.Kernels[j], shuffled.Kernels[i]
		})
		if again := judged(t, policyOf(t, rules), shuffled); encoded(t, again) != encoded(t, first) {
			t.Errorf("kernels in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		for i := range shuffled.Kernels {
			k := &shuffled.Kernels[i]
			k.Cases = slices.Clone(k.Cases)
			slices.Reverse(k.Cases)
		}
		again := judged(t, policyOf(t, rules), shuffled)
		sortFindings(first)
		sortFindings(again)
		if encoded(t, again) != encoded(t, first) {
			t.Errorf("rules and cases in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
	})
}

// TestExitFollowsTheWorstKernel: the whole is no better than its worst part,
// and the counts are those of the parts.
func TestExitFollowsTheWorstKernel(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		v := judged(t, policyOf(t, randomRules(r)), randomFacts(r))
		least := 2
		for i, k := range v.Kernels {
			least = min(least, earned(k.Status))
			if i > 0 && worse(k.Status, v.Kernels[i-1].Status) {
				t.Errorf("%s stands behind %s", k.Name, v.Kernels[i-1].Name)
			}
		}
		if earned(v.Status) != least || (v.ExitCode() == 0) != (least > 0) {
			t.Errorf("%s", summaryOf(v))
		}
		c := v.Counts
		if c.Passed+c.Failed+c.Undecided != c.Kernels || c.Kernels != len(v.Kernels) {
			t.Errorf("%+v", c)
		}
	})
}
