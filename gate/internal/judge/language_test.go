package judge

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// languageOf is a policy of rules and further keys.
func languageOf(t testing.TB, rules, more string) *policy.Policy {
	t.Helper()
	return parse(t, "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\n"+more+"rules:\n  - "+strings.ReplaceAll(rules, ";", "\n  - ")+"\n")
}

func faster(ns float64) func(*kernel, *kase) {
	return func(_ *kernel, c *kase) { c.experiment = just(experiment(rand.New(rand.NewSource(1)), 3, ns)) }
}

func nothing(*kernel, *kase) {}

// TestWhatTheLanguageComesTo is one rule under test, "a", with what is found.
func TestWhatTheLanguageComesTo(t *testing.T) {
	const (
		spills = "{id: a, metric: ptxas.spill_bytes, limit: 0}"
		pay    = ";{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}"
		regs   = "{id: a, metric: ptxas.registers, max_regression: 8}"
		time   = "{id: a, metric: latency.typical, max_regression: 2%}"
		held   = "waivers:\n  - {rule: a, kernel: op/k, ceiling: CEILING, until: UNTIL, owner: '@k', reason: known}\n"
	)
	waiver := func(ceiling, until string) string {
		return strings.NewReplacer("CEILING", ceiling, "UNTIL", until).Replace(held)
	}
	const ratio = "{id: a, metric: latency.typical, relative_to: ref, limit: 1.5}"
	impossible := func(_ *kernel, c *kase) {
		c.experiment.Record = never(c.experiment.Record)
		c.references[0].experiment.Record = never(c.references[0].experiment.Record)
	}
	spilling := set(headStatic, "ptxas.spill_bytes", 32)
	for _, c := range []struct {
		name, rules, more string
		change            func(*kernel, *kase)
		status            verdict.Status
		severity          verdict.Severity
		exit              int
		reason            string
	}{
		{"a trade that pays", spills + pay, "", both(spilling, faster(95_000)), verdict.Pass, verdict.Red, 0, "32 B is above the limit of 0 B; traded by pay: latency.typical min_improvement 3%: proven below 0.97 ×"},
		{"a trade that does not pay", spills + pay, "", both(spilling, faster(99_000)), verdict.Fail, verdict.Red, 1, "not traded by pay: latency.typical min_improvement 3%: above the limit of 0.97 ×"},
		{"a trade beyond its own limit", spills + pay, "", both(set(headStatic, "ptxas.spill_bytes", 65), faster(90_000)), verdict.Fail, verdict.Red, 1, "not traded by pay: 65 B is above the limit of 64 B"},
		{"a trade that nobody measured", spills + pay, "", both(spilling, func(_ *kernel, c *kase) { c.experiment = fact{} }), verdict.Inconclusive, verdict.Red, 4, "head and base were never timed against each other"},
		{"a trade made before", spills + pay, "", both(spilling, set(baseStatic, "ptxas.spill_bytes", 32)), verdict.Pass, verdict.Red, 0, "traded by pay: the base has as much"},
		{"a trade made before, for less", spills + pay, "", both(spilling, set(baseStatic, "ptxas.spill_bytes", 31)), verdict.Fail, verdict.Red, 1, "not traded by pay"},
		{"a trade of the unchanged", spills + pay, "", func(k *kernel, _ *kase) {
			k.state = verdict.Unchanged
			k.head["ptxas.spill_bytes"] = evidence.Of(32, "byte")
		}, verdict.Pass, verdict.Red, 0, "the base has as much"},
		{"a trade of the new", spills + pay, "", func(k *kernel, _ *kase) {
			k.state = verdict.New
			k.head["ptxas.spill_bytes"] = evidence.Of(32, "byte")
		}, verdict.Fail, verdict.Red, 1, "the trade has no base to compare with"},
		{"a trade by registers", spills + ";{id: pay, replaces: a, metric: ptxas.spill_bytes, max_regression: 32, when: {metric: ptxas.registers, min_improvement: 8}}", "",
			both(spilling, set(headStatic, "ptxas.registers", 32)), verdict.Pass, verdict.Red, 0, "ptxas.registers min_improvement 8: better: 40 → 32"},
		{"a trade by too few registers", spills + ";{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, when: {metric: ptxas.registers, min_improvement: 8}}", "",
			both(spilling, set(headStatic, "ptxas.registers", 33)), verdict.Fail, verdict.Red, 1, "40 → 33 is not an improvement of 8"},

		{"a gain within", "{id: a, metric: ptxas.registers, max_regression: 8, unexplained_gain: 25%}", "", set(headStatic, "ptxas.registers", 30), verdict.Pass, verdict.Red, 0, "better"},
		{"a gain beyond", "{id: a, metric: ptxas.registers, max_regression: 8, unexplained_gain: 25%}", "", set(headStatic, "ptxas.registers", 29), verdict.Inconclusive, verdict.Red, 4, "a gain of more than 25% needs an explanation"},
		{"a gain beyond, explained", "{id: a, metric: ptxas.registers, max_regression: 8, unexplained_gain: 25%}", waiver("60", "2026-11-25"), set(headStatic, "ptxas.registers", 29), verdict.Inconclusive, verdict.Warns, 0, "waived by @k until 2026-11-25: known"},
		{"a gain of the base's nothing", "{id: a, metric: ptxas.registers, max_regression: 8, unexplained_gain: 25%}", "", both(set(headStatic, "ptxas.registers", 0), set(baseStatic, "ptxas.registers", 0)), verdict.Pass, verdict.Red, 0, "equal"},
		{"a gain of a time", "{id: a, metric: latency.typical, max_regression: 2%, unexplained_gain: 10%}", "", faster(80_000), verdict.Inconclusive, verdict.Red, 4, "a gain of more than 10% needs an explanation"},
		{"a gain of a time within", "{id: a, metric: latency.typical, max_regression: 2%, unexplained_gain: 10%}", "", faster(95_000), verdict.Pass, verdict.Red, 0, ""},
		{"a collapse is not waived as a gain", time, waiver("100us", "2026-11-25"), faster(5_000), verdict.Inconclusive, verdict.Red, 4, "without an explanation"},

		{"missing, and a failure", "{id: a, metric: ncu.waves, max_regression: 10%, on_missing: fail}", "", drop("ncu.waves"), verdict.Fail, verdict.Red, 1, "(on_missing: fail)"},
		{"missing, and a warning", "{id: a, metric: ncu.waves, max_regression: 10%, on_missing: warn}", "", drop("ncu.waves"), verdict.Inconclusive, verdict.Warns, 0, "(on_missing: warn)"},
		{"missing, and undecided is a warning", "{id: a, metric: ncu.waves, max_regression: 10%, on_inconclusive: warn}", "", drop("ncu.waves"), verdict.Inconclusive, verdict.Red, 4, ""},
		{"undecided, and a warning", time[:len(time)-1] + ", on_inconclusive: warn}", "", func(_ *kernel, c *kase) { c.experiment = just(noisy()) }, verdict.Inconclusive, verdict.Warns, 0, "(on_inconclusive: warn)"},
		{"undecided, and missing is a warning", time[:len(time)-1] + ", on_missing: warn}", "", func(_ *kernel, c *kase) { c.experiment = just(noisy()) }, verdict.Inconclusive, verdict.Red, 4, ""},
		{"a time that cannot be, and missing is a warning", time[:len(time)-1] + ", on_missing: warn}", "", impossible, verdict.Inconclusive, verdict.Warns, 0, "it has no warm time: it is too large (on_missing: warn)"},
		{"a time that cannot be, and undecided is a warning", time[:len(time)-1] + ", on_inconclusive: warn}", "", impossible, verdict.Inconclusive, verdict.Red, 4, "it has no warm time"},
		{"a ratio that cannot be, and missing is a warning", ratio[:len(ratio)-1] + ", on_missing: warn}", "", impossible, verdict.Inconclusive, verdict.Warns, 0, "(on_missing: warn)"},
		{"a ratio that cannot be, and undecided is a warning", ratio[:len(ratio)-1] + ", on_inconclusive: warn}", "", impossible, verdict.Inconclusive, verdict.Red, 4, "it has no warm time"},
		{"a condition that cannot be, and undecided is a warning", spills[:len(spills)-1] + ", on_missing: warn, on_inconclusive: warn}" + pay, "", both(spilling, impossible), verdict.Inconclusive, verdict.Red, 4, "it has no warm time"},
		{"a tool failed, and missing is a warning", "{id: a, metric: ncu.waves, max_regression: 10%, on_missing: warn}", "", func(_ *kernel, c *kase) { c.profile.Record = broke(evidence.Permission) }, verdict.Inconclusive, verdict.Red, 3, ""},
		{"a broken limit whose trade is missing is not a warning", "{id: a, metric: ptxas.spill_bytes, limit: 0, on_missing: warn, on_inconclusive: warn}" + pay, "", both(spilling, func(_ *kernel, c *kase) { c.experiment = fact{} }), verdict.Inconclusive, verdict.Red, 4, ""},

		{"waived", regs, waiver("60", "2026-11-25"), set(headStatic, "ptxas.registers", 60), verdict.Fail, verdict.Warns, 0, "40 → 60 (20 worse, 8 accepted); waived by @k until 2026-11-25: known"},
		{"beyond the ceiling", regs, waiver("59", "2026-11-25"), set(headStatic, "ptxas.registers", 60), verdict.Fail, verdict.Red, 1, "60 is beyond the ceiling of its waiver, 59"},
		{"expired yesterday", regs, waiver("60", "2026-11-24"), set(headStatic, "ptxas.registers", 60), verdict.Fail, verdict.Red, 1, "its waiver by @k expired 1 day ago, on 2026-11-24"},
		{"expired and not needed", regs, waiver("60", "2026-11-01"), nothing, verdict.Pass, verdict.Red, 0, ""},
		{"a share as the ceiling", regs, waiver("50%", "2026-12-25"), set(headStatic, "ptxas.registers", 60), verdict.Fail, verdict.Warns, 0, "waived"},
		{"beyond a share", regs, waiver("49%", "2026-12-25"), set(headStatic, "ptxas.registers", 60), verdict.Fail, verdict.Red, 1, "+50.00 % is beyond the ceiling of its waiver, 49%"},
		{"a ceiling below, where higher is better", "{id: a, metric: ncu.achieved_occupancy, limit: 70%}", waiver("60%", "2026-12-25"), nothing, verdict.Fail, verdict.Warns, 0, "waived"},
		{"below that ceiling", "{id: a, metric: ncu.achieved_occupancy, limit: 70%}", waiver("61%", "2026-12-25"), nothing, verdict.Fail, verdict.Red, 1, "beyond the ceiling"},
		{"a waived time", time, waiver("111us", "2026-12-25"), faster(110_000), verdict.Fail, verdict.Warns, 0, "waived"},
		{"a time beyond", time, waiver("5%", "2026-12-25"), faster(110_000), verdict.Fail, verdict.Red, 1, "beyond the ceiling of its waiver, 5%"},
		{"a waived ratio", "{id: a, metric: latency.typical, relative_to: ref, limit: 0.9}", waiver("1.1", "2026-12-25"), nothing, verdict.Fail, verdict.Warns, 0, "waived"},
		{"a ratio beyond", "{id: a, metric: latency.typical, relative_to: ref, limit: 0.9}", waiver("95%", "2026-12-25"), nothing, verdict.Fail, verdict.Red, 1, "beyond the ceiling of its waiver, 95%"},
		{"a hang is not waived", time, waiver("1s", "2026-12-25"), func(_ *kernel, c *kase) { c.experiment = fact{Record: broke(evidence.Hang)} }, verdict.Fail, verdict.Red, 1, "a waiver needs a figure"},
		{"what is missing is not waived", time, waiver("1s", "2026-12-25"), func(_ *kernel, c *kase) { c.experiment = fact{} }, verdict.Inconclusive, verdict.Red, 4, ""},

		{"info weighs nothing", "{id: a, metric: ptxas.registers, limit: 8, severity: info};{id: b, metric: ptxas.registers, limit: 60}", "", nothing, verdict.Fail, verdict.Info, 0, "above the limit"},
		{"too old", "{id: a, metric: ncu.waves, max_regression: 10%}", "max_age: 1d\n", func(_ *kernel, c *kase) {
			for _, f := range c.all() {
				if f.Record != nil {
					f.Record.Provenance.Recorded = "2026-11-24T10:00:01Z"
				}
			}
			c.profile.Record.Provenance.Recorded = "2026-11-24T09:59:59Z"
		}, verdict.Inconclusive, verdict.Red, 4, "was recorded on 2026-11-24T09:59:59Z, before the oldest that is asked for"},
	} {
		v := judged(t, languageOf(t, c.rules, c.more), change(c.change))
		f := findingOf(t, v, "a")
		if f.Status != c.status || f.Severity != c.severity || v.ExitCode() != c.exit || !strings.Contains(f.Reason, c.reason) {
			t.Errorf("%s: %s %s, exit %d, %q; want %s %s, exit %d, %q", c.name, f.Status, f.Severity, v.ExitCode(), f.Reason, c.status, c.severity, c.exit, c.reason)
		}
	}
}

func TestEachFunctionIsJudged(t *testing.T) {
	p := languageOf(t, `{id: a, metric: ptxas.registers, max_regression: 8, entries: ["*"]};{id: b, metric: ptxas.registers, max_regression: 8}`, "")
	asked, l := change(nothing).known(t, p)
	s := asked.Subjects[0]
	for _, side := range []struct {
		of   evidence.Identity
		f, g float64
	}{{s.Head.Identity, 64, 96}, {s.Base.Identity, 32, 96}} {
		l.Put(&evidence.Record{Tier: evidence.Static, Address: evidence.Address{Identity: side.of}, Metrics: figures(compiled, 0, 96, 0),
			Entries: map[string]evidence.Metrics{"f()": figures(compiled, 0, side.f, 0), "g()": figures(compiled, 0, side.g, 0)}}, evidence.Measured)
	}
	s.Head.Entries = []policy.Entry{{Name: "f()", Short: "f"}, {Name: "g()", Short: "g"}}
	s.Base.Entries = s.Head.Entries
	asked, err := plan.Bound(p, asked.Subjects, plan.Options{Now: now}, []evidence.Machine{h200}, func(n *evidence.Need) bool { return l.Find(n).Record != nil })
	if err != nil {
		t.Fatal(err)
	}
	v, err := Judge(asked, l)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict.Status{}
	for _, f := range v.Kernels[0].Findings {
		got[f.Rule+" "+f.Entry] = f.Status
	}
	if got["a f()"] != verdict.Fail || got["a g()"] != verdict.Pass || got["b "] != verdict.Pass || len(v.Kernels[0].Entries) != 2 {
		t.Errorf("%v\n%s", got, summaryOf(v))
	}
}

func TestWaiversAreReported(t *testing.T) {
	const one = "  - {rule: RULE, kernel: KERNEL, ceiling: 60, until: UNTIL, owner: '@k', reason: known}\n"
	waiver := func(rule, kernel, until string) string {
		return strings.NewReplacer("RULE", rule, "KERNEL", kernel, "UNTIL", until).Replace(one)
	}
	p := languageOf(t, "{id: a, metric: ptxas.registers, max_regression: 8};{id: b, metric: ptxas.registers, limit: 80};{id: c, metric: ptxas.registers, limit: 50};{id: d, metric: ptxas.registers, limit: 50}",
		"waivers:\n"+waiver("a", "op/k", "2026-12-09")+waiver("b", "op/k", "2026-12-10")+waiver("c", "op/k", "2026-11-20")+waiver("d", "op/gone", "2027-01-01"))
	v := judged(t, p, change(set(headStatic, "ptxas.registers", 60)))
	want := []struct {
		state verdict.WaiverState
		days  int
		soon  bool
	}{{verdict.Used, 14, true}, {verdict.Unused, 15, false}, {verdict.Expired, -5, false}, {verdict.Unused, 37, false}}
	for i, w := range v.Waivers {
		if w.State != want[i].state || w.DaysLeft != want[i].days || w.EndsSoon() != want[i].soon {
			t.Errorf("%+v, want %+v", w, want[i])
		}
	}
	if len(v.Waivers) != len(want) || v.ExitCode() != 1 {
		t.Errorf("%d waivers, exit %d", len(v.Waivers), v.ExitCode())
	}
}

// TestConditionsThatNothingWaitsFor cost no GPU time.
func TestConditionsThatNothingWaitsFor(t *testing.T) {
	p := languageOf(t, "{id: a, metric: ptxas.spill_bytes, limit: 0};{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}", "")
	for name, c := range map[string]struct {
		spills  float64
		stopped bool
	}{"no spill": {0, true}, "a spill within": {32, false}, "a spill beyond": {65, true}} {
		f := change(both(set(headStatic, "ptxas.spill_bytes", c.spills), func(_ *kernel, k *kase) { k.experiment = fact{} }))
		asked, l := f.known(t, p)
		asked = Stop(asked, l)
		for _, q := range asked.Questions {
			if q.Name == "pay" && (q.Stopped != "") != c.stopped {
				t.Errorf("%s: stopped %q", name, q.Stopped)
			}
		}
		v, err := Judge(asked, l)
		if err != nil {
			t.Fatal(err)
		}
		if missing := v.Counts.Missing; (missing == 0) != (c.spills == 0) && c.spills != 65 {
			t.Errorf("%s: %d records are missing\n%s", name, missing, summaryOf(v))
		}
	}
}

// TestBetterIsTheMetrics: what pays for a trade, and what is no worse than the
// base, is told by the direction of the metric.
func TestBetterIsTheMetrics(t *testing.T) {
	rule := func(name, amount string) *policy.Rule {
		return languageOf(t, "{id: s, metric: ptxas.spill_bytes, limit: 0};{id: a, replaces: s, metric: ptxas.spill_bytes, limit: 9, when: {metric: "+name+", min_improvement: "+amount+"}}", "").Rules[1].When
	}
	for _, c := range []struct {
		metric, amount string
		base, head     float64
		want           verdict.Status
	}{
		{"ncu.achieved_occupancy", "5pp", 50, 55, verdict.Pass}, {"ncu.achieved_occupancy", "5pp", 50, 54, verdict.Fail}, {"ncu.achieved_occupancy", "5pp", 50, 45, verdict.Fail},
		{"ncu.achieved_occupancy", "10%", 50, 55, verdict.Pass}, {"ncu.achieved_occupancy", "10%", 50, 54, verdict.Fail},
		{"ptxas.registers", "8", 40, 32, verdict.Pass}, {"ptxas.registers", "8", 40, 33, verdict.Fail}, {"ptxas.registers", "8", 40, 48, verdict.Fail},
		{"ptxas.registers", "10%", 0, 0, verdict.Fail},
	} {
		if got, why := improvement(rule(c.metric, c.amount), c.base, c.head); got != c.want {
			t.Errorf("%s %v → %v for %s: %s, %q", c.metric, c.base, c.head, c.amount, got, why)
		}
	}
	for _, c := range []struct {
		metric              string
		lower, equal, above bool
	}{{"ptxas.registers", true, true, false}, {"ncu.achieved_occupancy", false, true, true}, {"ncu.waves", false, true, false}} {
		m, _ := metric.Lookup(c.metric)
		if noWorse(m, 10, 9) != c.lower || noWorse(m, 10, 10) != c.equal || noWorse(m, 10, 11) != c.above {
			t.Errorf("%s: no worse are 9 %v, 10 %v, 11 %v", c.metric, noWorse(m, 10, 9), noWorse(m, 10, 10), noWorse(m, 10, 11))
		}
	}
}

// TestCeilingsAsAShareOfTheBase: where higher is better, a share says how much
// lower the figure may be.
func TestCeilingsAsAShareOfTheBase(t *testing.T) {
	m, ok := metric.Lookup("ncu.ipc")
	if !ok || m.Better != metric.Higher {
		t.Fatalf("%+v", m)
	}
	p := languageOf(t, "{id: a, metric: ncu.ipc, max_regression: 1%}", "waivers: [{rule: a, kernel: op/k, ceiling: 10%, until: 2999-01-01, owner: k, reason: known}]\n")
	q := &plan.Question{Form: &plan.Form{Kind: plan.Regression, Rule: &p.Rules[0]}, Waiver: &p.Waivers[0]}
	for head, within := range map[float64]bool{2: true, 1: true, 0.95: true, 0.85: false, 0: false} {
		was, is := evidence.Of(1, m.Unit), evidence.Of(head, m.Unit)
		if why := (&judge{}).exceeds(q, verdict.Finding{Head: &is, Base: &was}); (why == "") != within {
			t.Errorf("from 1 to %v: %q", head, why)
		}
	}
}
