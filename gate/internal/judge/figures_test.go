package judge

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func TestLaunchChanges(t *testing.T) {
	at := func(kernel string, block int) evidence.Launch {
		return evidence.Launch{Kernel: kernel, Block: [3]int{block, 1, 1}, Grid: [3]int{8, 8, 1}}
	}
	of := func(state verdict.State, base, head []evidence.Launch) []verdict.LaunchChange {
		f := change(func(k *kernel, c *kase) {
			k.state, c.baseProfile.Record.Launches, c.profile.Record.Launches = state, base, head
		})
		return judged(t, parse(t, standard), f).Kernels[0].Launches
	}
	a, b := at("a(int)", 128), at("b(int)", 128)
	changed := func(what string, l evidence.Launch, n int) verdict.LaunchChange {
		return verdict.LaunchChange{Case: "small", Machine: h200.Key(), Change: what, Kernel: l.Kernel, Block: l.Block, Grid: l.Grid, Count: n}
	}
	for _, c := range []struct {
		name       string
		base, head []evidence.Launch
		want       []verdict.LaunchChange
	}{
		{"equal", []evidence.Launch{a, b}, []evidence.Launch{a, b}, nil},
		{"another order", []evidence.Launch{a, b}, []evidence.Launch{b, a}, nil},
		{"another hash in a name", []evidence.Launch{at("_INTERNAL_0a1b2c3d_4_k_cu_11112222::a(int)", 128)}, []evidence.Launch{at("_INTERNAL_99999999_4_k_cu_33334444::a(int)", 128)}, nil},
		{"one more", []evidence.Launch{a}, []evidence.Launch{a, b}, []verdict.LaunchChange{changed("added", b, 1)}},
		{"twice more", []evidence.Launch{a}, []evidence.Launch{b, a, b}, []verdict.LaunchChange{changed("added", b, 2)}},
		{"another block", []evidence.Launch{a}, []evidence.Launch{at("a(int)", 256)}, []verdict.LaunchChange{changed("added", at("a(int)", 256), 1), changed("removed", a, 1)}},
		{"not profiled", nil, []evidence.Launch{a}, nil},
	} {
		if got := of(verdict.Changed, c.base, c.head); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := of(verdict.New, []evidence.Launch{a}, []evidence.Launch{b}); got != nil {
		t.Errorf("a new kernel: %+v", got)
	}
}

func TestRegressionsSayWhatMoved(t *testing.T) {
	p := parse(t, standard)
	for _, c := range []struct {
		name, rule, reason string
		status             verdict.Status
		change             func(*kernel, *kase)
	}{
		{"limit broken", "spills", "8 B is above the limit of 0 B", verdict.Fail, set(headStatic, "ptxas.spill_bytes", 8)},
		{"limit met", "spills", "within the limit", verdict.Pass, set(headStatic, "ptxas.spill_bytes", 0)},
		{"exactly accepted", "registers", "within what is accepted: 40 → 48", verdict.Pass, set(headStatic, "ptxas.registers", 48)},
		{"one too many", "registers", "40 → 49 (9 worse, 8 accepted)", verdict.Fail, set(headStatic, "ptxas.registers", 49)},
		{"better", "registers", "better: 40 → 32", verdict.Pass, set(headStatic, "ptxas.registers", 32)},
		{"exactly accepted, in %", "stack", "within what is accepted: 100 B → 110 B", verdict.Pass, set(headStatic, "ptxas.stack_bytes", 110)},
		{"too much, in %", "stack", "100 B → 120 B (20 % worse, 10% accepted)", verdict.Fail, set(headStatic, "ptxas.stack_bytes", 120)},
		{"base of 0 and equal", "stack", "equal", verdict.Pass, both(set(baseStatic, "ptxas.stack_bytes", 0), set(headStatic, "ptxas.stack_bytes", 0))},
		{"higher is better, too low", "occupancy", "62.0 % → 50.0 % (12 pp worse, 5pp accepted)", verdict.Fail, set(headProfile, "ncu.achieved_occupancy", 50)},
		{"higher is better, higher", "occupancy", "better: 62.0 % → 90.0 %", verdict.Pass, set(headProfile, "ncu.achieved_occupancy", 90)},
		{"below the floor", "conflicts", "worse by less than the floor: 1,000 → 2,000", verdict.Pass, set(headProfile, "ncu.shared_bank_conflicts", 2000)},
		{"above the floor", "conflicts", "1,000 → 2,001 (100 % worse, 1% accepted)", verdict.Fail, set(headProfile, "ncu.shared_bank_conflicts", 2001)},
		{"neither is better, up", "waves", "3 → 4 (33.3 % worse, 10% accepted)", verdict.Fail, set(headProfile, "ncu.waves", 4)},
		{"neither is better, down", "waves", "3 → 2 (33.3 % worse, 10% accepted)", verdict.Fail, set(headProfile, "ncu.waves", 2)},
		{"limit of a time", "bound", "", verdict.Fail, slow},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := findingOf(t, judged(t, p, change(c.change)), c.rule)
			if f.Status != c.status || c.reason != "" && f.Reason != c.reason {
				t.Errorf("got %s: %s, want %s: %s", f.Status, f.Reason, c.status, c.reason)
			}
		})
	}
}

// slow times the head at 130 µs by itself.
func slow(_ *kernel, c *kase) {
	for _, s := range c.alone.Record.Samples {
		for i := range s.BatchesNS {
			s.BatchesNS[i] *= 1.3
		}
	}
}

// TestFindingsSayWhatIsAccepted in the words of the policy.
func TestFindingsSayWhatIsAccepted(t *testing.T) {
	p := policyOf(t, false, append(rulesOf(standard), "{id: own, metric: latency.mean, floor: 10us}"))
	v := judged(t, p, good())
	for rule, want := range map[string]string{
		"spills": "limit 0", "registers": "max_regression 8", "conflicts": "max_regression 1%, floor 1000", "bound": "limit 120us",
		"ratio": "limit 1.5 of ref", "own": "detect 2%, floor 10us",
	} {
		if got := findingOf(t, v, rule).Accepts; got != want {
			t.Errorf("%s accepts %q, want %q", rule, got, want)
		}
	}
}

// TestLimitsInPercent: a measured 14 % meets a limit of 14%.
func TestLimitsInPercent(t *testing.T) {
	p := policyOf(t, false, []string{"{id: o, metric: ncu.achieved_occupancy, limit: 14%}"})
	for occupancy, want := range map[float64]verdict.Status{14: verdict.Pass, 13.9: verdict.Fail, 60: verdict.Pass} {
		v := judged(t, p, change(set(headProfile, "ncu.achieved_occupancy", occupancy)))
		if f := findingOf(t, v, "o"); f.Status != want {
			t.Errorf("%v %%: %s, %s", occupancy, f.Status, f.Reason)
		}
	}
}

func TestSeverityWarn(t *testing.T) {
	p := parse(t, strings.ReplaceAll(standard, "limit: 0}", "limit: 0, severity: warn}"))
	v := judged(t, p, change(set(headStatic, "ptxas.spill_bytes", 8)))
	if v.Status != verdict.Warn || v.ExitCode() != 0 || findingOf(t, v, "spills").Status != verdict.Fail {
		t.Errorf("a broken rule that warns:\n%s", summaryOf(v))
	}
	v = judged(t, p, change(drop("ptxas.spill_bytes")))
	if v.Status != verdict.Warn {
		t.Errorf("a rule that warns and has no figure:\n%s", summaryOf(v))
	}
	v = judged(t, p, change(both(set(headStatic, "ptxas.spill_bytes", 8), set(headStatic, "ptxas.registers", 80))))
	if v.Status != verdict.Fail || v.ExitCode() != 1 {
		t.Errorf("beside a rule that fails:\n%s", summaryOf(v))
	}
}

// TestCounts: every record counts once, whoever asks for it, and what is missing
// counts for each kernel that lacks it. What decides nothing does not count.
func TestCounts(t *testing.T) {
	f := good()
	unchanged := good().kernels[0]
	unchanged.name, unchanged.state = "op/u", verdict.Unchanged
	fresh := good().kernels[0]
	fresh.name, fresh.state = "op/n", verdict.New
	fresh.cases[0].correctness.source = evidence.Measured
	waiting := good().kernels[0]
	waiting.name, waiting.cases[0].experiment = "op/w", none("switched off")
	twin := *waiting
	twin.name, twin.like = "op/x", "op/w"
	f.kernels = append(f.kernels, unchanged, fresh, &kernel{name: "op/g", state: verdict.Gone}, waiting, &twin)
	v := judged(t, policyOf(t, false, rulesOf(strings.ReplaceAll(standard, `, kernels: ["op/k*"]`, ""))), f)
	// op/k rests on 8 records: 2 checks, 2 profiles, 1 time, 1 experiment, and 2 of the reference.
	want := verdict.Counts{Kernels: 6, Passed: 3, Failed: 1, Undecided: 2, Unchanged: 1, Changed: 3, New: 1, Gone: 1, Measured: 1, Reused: 8 + 5 + 4 + 7, Missing: 2}
	if v.Counts != want {
		t.Errorf("got  %+v\nwant %+v\n%s", v.Counts, want, summaryOf(v))
	}
	var names []string
	for _, k := range v.Kernels {
		names = append(names, k.Name)
	}
	if strings.Join(names, " ") != "op/g op/w op/x op/k op/n op/u" || v.ExitCode() != 1 {
		t.Errorf("%v, exit %d", names, v.ExitCode())
	}

	// A stand-in counts where it stands in, and the head's own time only beside sessions.
	one := policyOf(t, false, []string{"{id: latency, metric: latency.typical, max_regression: 2%}"})
	for _, c := range []struct {
		name   string
		change func(*kernel, *kase)
		want   verdict.Counts
	}{
		{"an experiment", func(*kernel, *kase) {}, verdict.Counts{Reused: 2}},
		{"the base broke", func(_ *kernel, c *kase) { c.experiment.Record = baseBroke() }, verdict.Counts{Reused: 4}},
		{"the base broke, the head has no time", func(_ *kernel, c *kase) { c.experiment.Record, c.alone = baseBroke(), fact{} }, verdict.Counts{Reused: 3, Missing: 1}},
		{"the base broke, no session", func(_ *kernel, c *kase) { c.experiment.Record, c.alone, c.sessions = baseBroke(), fact{}, fact{} }, verdict.Counts{Reused: 2, Missing: 1}},
	} {
		got := judged(t, one, change(c.change)).Counts
		if got.Measured != 0 || got.Reused != c.want.Reused || got.Missing != c.want.Missing {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestMachinesAreThoseOfTheEvidence, with the dates of what was used.
func TestMachinesAreThoseOfTheEvidence(t *testing.T) {
	other := evidence.Machine{GPU: "NVIDIA H100", CC: "9.0"}
	dated := func(day string) *evidence.Record {
		r := correctRecord()
		r.Provenance.Recorded = "2026-11-" + day + "T00:00:00Z"
		return r
	}
	p := policyOf(t, false, []string{"{id: growth, metric: check.max_abs_error, max_regression: 10%}"})
	p.Machines = []policy.Machine{{Name: "h200"}, {Name: "h100"}}
	f := change(func(_ *kernel, c *kase) {
		*c = kase{name: c.name, correctness: just(dated("12")), baseCorrectness: just(dated("03"))}
	})
	_, l := f.known(t, p)
	s := f.kernels[0].subject()
	r := dated("15")
	r.Tier, r.Provenance.Machine = evidence.Correctness, other
	r.Address = evidence.Address{Identity: s.Head.Identity, Op: "op", Case: "small", Harness: "harness of small", Machine: other.Key()}
	l.Put(r, evidence.Reused)
	asked, err := plan.Bound(p, []*plan.Subject{s}, plan.Options{}, []evidence.Machine{h200, other}, func(*evidence.Need) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	v, err := Judge(asked, l)
	if err != nil {
		t.Fatal(err)
	}
	m := v.Machines
	if len(m) != 2 || m[0].Key != other.Key() || m[1].Key != h200.Key() || m[1].Oldest != "2026-11-03T00:00:00Z" || m[1].Newest != "2026-11-12T00:00:00Z" || m[0].Oldest != m[0].Newest {
		t.Errorf("%+v\n%s", m, summaryOf(v))
	}
	if v := judged(t, p, facts{}); len(v.Machines) != 0 {
		t.Errorf("%+v", v.Machines)
	}
}

// TestFiguresAreTheHeads: judged or not, of every tier, and never the base's.
func TestFiguresAreTheHeads(t *testing.T) {
	v := judged(t, parse(t, standard), good())
	figures := v.Kernels[0].Figures
	if len(figures) != 2 || figures[0].Metrics.Get("ptxas.stack_bytes").Number != 110 || figures[1].Case != "small" || figures[1].Machine != h200.Key() {
		t.Fatalf("%+v", figures)
	}
	for name, want := range map[string]float64{"ncu.achieved_occupancy": 60, "check.relative_error": 1e-4, "latency.mean": 100_000} {
		if got := figures[1].Metrics.Get(name); got.Number != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	v = judged(t, parse(t, standard), change(func(k *kernel, _ *kase) { k.broken = plan.Side{Why: "no", Detail: "k.cu(3): error", Blame: true} }))
	if k := v.Kernels[0]; len(k.Figures) != 0 || k.Detail != "k.cu(3): error" {
		t.Errorf("%+v", k)
	}
}

// TestFromABaseOfZero: a floor holds from 0 as well, and what lies above it is
// worse, since a share of 0 is not defined.
func TestFromABaseOfZero(t *testing.T) {
	p := languageOf(t, "{id: a, metric: ncu.shared_bank_conflicts, max_regression: 1%, floor: 1000};{id: b, metric: ncu.shared_bank_conflicts, max_regression: 1%}", "")
	for _, c := range []struct {
		base, head    float64
		floored, bare verdict.Status
	}{
		{0, 0, verdict.Pass, verdict.Pass}, {0, 1000, verdict.Pass, verdict.Fail}, {0, 1001, verdict.Fail, verdict.Fail},
		{-1, 0, verdict.Inconclusive, verdict.Fail}, {-1, -1, verdict.Inconclusive, verdict.Pass},
	} {
		for i, want := range []verdict.Status{c.floored, c.bare} {
			if got, why := worsening(&p.Rules[i], c.base, c.head); got != want {
				t.Errorf("%v → %v by rule %s: %s, %q, want %s", c.base, c.head, p.Rules[i].ID, got, why, want)
			}
		}
	}
}
