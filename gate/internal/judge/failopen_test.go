package judge

import (
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func TestGoodFactsPass(t *testing.T) {
	v := judged(t, parse(t, standard), good())
	if v.Status != verdict.Pass || v.ExitCode() != 0 || len(v.Kernels[0].Findings) != 14 {
		t.Fatalf("the facts that every case below starts from do not pass:\n%s", summaryOf(v))
	}
	if v.Counts != (verdict.Counts{Kernels: 1, Passed: 1, Changed: 1, Reused: 8}) {
		t.Errorf("%+v", v.Counts)
	}
}

func drop(name string) func(*kernel, *kase) {
	return func(k *kernel, c *kase) {
		delete(k.head, name)
		for _, a := range c.all() {
			if a.Record != nil {
				delete(a.Record.Metrics, name)
			}
		}
	}
}

func set(m func(*kernel, *kase) evidence.Metrics, name string, x float64) func(*kernel, *kase) {
	return func(k *kernel, c *kase) { m(k, c)[name] = evidence.Of(x, units(name)) }
}

func headStatic(k *kernel, _ *kase) evidence.Metrics  { return k.head }
func baseStatic(k *kernel, _ *kase) evidence.Metrics  { return k.old }
func headProfile(_ *kernel, c *kase) evidence.Metrics { return c.profile.Record.Metrics }
func baseProfile(_ *kernel, c *kase) evidence.Metrics { return c.baseProfile.Record.Metrics }

// never is a record of times that says that there are no warm ones.
func never(r *evidence.Record) *evidence.Record {
	out := *r
	out.Samples, out.Absent = nil, map[evidence.CacheState]string{evidence.Warm: "it is too large"}
	out.Metrics = evidence.Metrics{"latency.typical": evidence.Absent(out.Untimed(evidence.Warm), "ns")}
	if r.Experiment != nil {
		x := *r.Experiment
		x.Pilot, x.Rounds = nil, slices.Clone(x.Rounds)
		for i := range x.Rounds {
			x.Rounds[i].Base, x.Rounds[i].Head = nil, nil
		}
		out.Experiment = &x
	}
	return &out
}

// both applies two changes.
func both(a, b func(*kernel, *kase)) func(*kernel, *kase) {
	return func(k *kernel, c *kase) { a(k, c); b(k, c) }
}

func checked(f func(*evidence.Check)) func(*kernel, *kase) {
	return func(_ *kernel, c *kase) { f(&c.correctness.Record.Checks[0]) }
}

func broke(kind evidence.FailureKind) *evidence.Record {
	return &evidence.Record{Failure: &evidence.Failure{Kind: kind, Message: "it broke", Hint: "mend it"}}
}

// baseBroke is an experiment that ended with the base.
func baseBroke() *evidence.Record {
	r := broke(evidence.Tool)
	r.Failure.OtherArm, r.Failure.Message = true, "the base cannot be timed: it broke"
	return r
}

// noisy is an experiment whose launches scatter by 20 %.
func noisy() *evidence.Record {
	r := rand.New(rand.NewSource(3))
	side := func() []evidence.Sample {
		var out []evidence.Sample
		for range 4 {
			out = append(out, samples(r, 1, 100_000*(0.8+0.4*r.Float64()))...)
		}
		return out
	}
	return experimentFrom(3, side, side)
}

// constant is an experiment in which every launch took the same time.
func constant() *evidence.Record {
	side := func() []evidence.Sample {
		var out []evidence.Sample
		for range 4 {
			for _, state := range []evidence.CacheState{evidence.Warm, evidence.Cold} {
				out = append(out, evidence.Sample{CacheState: state, BatchesNS: []float64{100_000, 100_000}})
			}
		}
		return out
	}
	return experimentFrom(3, side, side)
}

// failsOpen are the ways in which gates let a change through that nobody has
// found harmless. None may end in exit 0; most say why in one rule's words.
var failsOpen = []struct {
	name   string
	change func(*kernel, *kase)
	exit   int
	rule   string
	reason string
}{
	{"kernel is gone", func(k *kernel, _ *kase) { k.state = verdict.Gone }, 1, "present", "the base has this kernel and the head does not"},
	{"kernel does not compile", func(k *kernel, _ *kase) { k.broken = plan.Side{Why: "op/k does not compile", Blame: true} }, 1, "builds", "op/k does not compile"},
	{"compiler fails", func(k *kernel, _ *kase) { k.broken = plan.Side{Why: "nvcc was stopped"} }, 3, "builds", "nvcc was stopped"},
	{"base does not build", func(k *kernel, _ *kase) { k.baseBroken, k.old = plan.Side{Why: "the base does not build"}, nil }, 4, "registers", "the base has no figure: the base does not build"},
	{"no base is known", func(k *kernel, _ *kase) { k.state = verdict.NoBase }, 4, "registers", "there is no base: nobody named one"},
	{"no case", func(k *kernel, _ *kase) { k.cases = nil }, 4, "correctness", "no case was judged"},

	{"no static figure of the head", func(k *kernel, _ *kase) { k.head = nil }, 4, "spills", "the compiler's report on this code was not read"},
	{"no static figure of the base", func(k *kernel, _ *kase) { k.old = nil }, 4, "registers", "the base has no figure: the compiler's report on this code was not read"},
	{"metric missing at the head, limit", drop("ptxas.spill_bytes"), 4, "spills", "not measured"},
	{"metric missing at the head, regression", drop("ptxas.registers"), 4, "registers", "not measured"},
	{"metric missing at the base", func(k *kernel, _ *kase) { delete(k.old, "ptxas.registers") }, 4, "registers", "the base has no figure: not measured"},
	{"counter missing at the head", func(_ *kernel, c *kase) { delete(c.profile.Record.Metrics, "ncu.waves") }, 4, "waves", "the recorded profile does not hold ncu.waves"},
	{"counter missing at the base", func(_ *kernel, c *kase) { delete(c.baseProfile.Record.Metrics, "ncu.waves") }, 4, "waves", "the base has no figure: the recorded profile does not hold ncu.waves"},
	{"counter of another name on this chip", func(_ *kernel, c *kase) {
		c.profile.Record.Metrics["ncu.waves"] = evidence.Absent("this chip has no counter of that name", "")
	}, 4, "waves", "this chip has no counter of that name"},
	{"figure in another unit", func(_ *kernel, c *kase) {
		c.profile.Record.Metrics["ncu.achieved_occupancy"] = evidence.Of(0.7, "")
	}, 4, "occupancy", "it is recorded in plain numbers, and ncu.achieved_occupancy is in %"},
	{"figure of the base in another unit", func(_ *kernel, c *kase) {
		c.baseProfile.Record.Metrics["ncu.achieved_occupancy"] = evidence.Of(0.7, "byte")
	}, 4, "occupancy", "it is recorded in byte"},
	{"NaN", set(headStatic, "ptxas.spill_bytes", math.NaN()), 4, "spills", "the measured value is not finite (NaN)"},
	{"infinity", set(headStatic, "ptxas.spill_bytes", math.Inf(1)), 4, "spills", "the measured value is not finite (+Inf)"},
	{"infinity that would be better", set(headProfile, "ncu.achieved_occupancy", math.Inf(1)), 4, "occupancy", "the measured value is not finite (+Inf)"},
	{"NaN at the base", set(baseProfile, "ncu.achieved_occupancy", math.NaN()), 4, "occupancy", "the base has no figure: the measured value is not finite (NaN)"},
	{"base of 0, compared in %", both(set(baseStatic, "ptxas.stack_bytes", 0), set(headStatic, "ptxas.stack_bytes", 1)), 1, "stack", "a share of a base of 0 B is not defined"},
	{"base below 0, compared in %", both(set(baseStatic, "ptxas.stack_bytes", -8), set(headStatic, "ptxas.stack_bytes", 1)), 1, "stack", "a share of a base of -8 B is not defined"},

	{"correctness never checked", func(_ *kernel, c *kase) { c.correctness = fact{} }, 4, "correctness", "no correctness evidence of this code is recorded on h200-"},
	{"correctness missing, with a reason", func(_ *kernel, c *kase) {
		c.correctness = none("measuring was switched off")
	}, 4, "correctness", "no correctness evidence of this code is recorded on " + h200.Key() + "; measuring was switched off"},
	{"no check in the record", func(_ *kernel, c *kase) { c.correctness.Record.Checks = nil }, 4, "correctness", "the record holds no check"},
	{"check of nothing", checked(func(c *evidence.Check) { c.Elements = 0 }), 1, "correctness", "no element was compared"},
	{"wrong", checked(func(c *evidence.Check) { c.Status, c.Reasons = "fail", []string{"too far off"} }), 1, "correctness", `wrong on 1 of 1 input classes; inputs "normal": too far off`},
	{"check without a status", checked(func(c *evidence.Check) { c.Status = "" }), 1, "correctness", "the check failed"},
	{"error that is not finite", checked(func(c *evidence.Check) { c.RelativeError = nil }), 1, "correctness", "the check failed"},
	{"NaN in the output", checked(func(c *evidence.Check) { c.NonFinite = 3 }), 1, "correctness", "3 elements are not finite"},
	{"output not written", checked(func(c *evidence.Check) { c.Unwritten = 3 }), 1, "correctness", "the check failed"},
	{"guard broken", checked(func(c *evidence.Check) { c.Guard = "overrun" }), 1, "correctness", "the check failed"},
	{"guard unknown", checked(func(c *evidence.Check) { c.Guard = "" }), 1, "correctness", "the check failed"},
	{"inputs changed", checked(func(c *evidence.Check) { c.InputsChanged = true }), 1, "correctness", "the check failed"},
	{"another result the second time", checked(func(c *evidence.Check) { c.Repeatable = false }), 1, "correctness", "the check failed"},
	{"kernel hangs", func(_ *kernel, c *kase) { c.correctness.Record = broke(evidence.Hang) }, 1, "correctness", "it broke"},
	{"harness fails", func(_ *kernel, c *kase) { c.correctness.Record = broke(evidence.Tool) }, 3, "correctness", "it broke"},

	{"no profile", func(_ *kernel, c *kase) { c.profile = none("ncu is missing") }, 4, "occupancy", "no profile evidence of this code is recorded on " + h200.Key() + "; ncu is missing"},
	{"no profile of the base", func(_ *kernel, c *kase) { c.baseProfile = fact{} }, 4, "occupancy", "the base has no figure: no profile evidence of this code is recorded on h200-"},
	{"no permission to profile", func(_ *kernel, c *kase) { c.profile.Record = broke(evidence.Permission) }, 3, "occupancy", "it broke"},
	{"no permission to profile the base", func(_ *kernel, c *kase) { c.baseProfile.Record = broke(evidence.Permission) }, 3, "occupancy", "it broke"},

	{"never timed against the base", func(_ *kernel, c *kase) { c.experiment = none("switched off") }, 4, "latency", "head and base were never timed against each other on " + h200.Key() + "; switched off"},
	{"never timed alone", func(_ *kernel, c *kase) { c.alone = fact{} }, 4, "bound", "no latency evidence of this code is recorded on h200-"},
	{"timing fails", func(_ *kernel, c *kase) { c.experiment.Record = broke(evidence.Tool) }, 3, "latency", "it broke"},
	{"kernel crashes when timed", func(_ *kernel, c *kase) { c.experiment.Record = broke(evidence.Crash) }, 1, "latency", "it broke"},
	{"record without an experiment", func(_ *kernel, c *kase) { c.experiment.Record = correctRecord() }, 4, "latency", ""},
	{"experiment without a block", func(_ *kernel, c *kase) {
		c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 0, 100_000)
	}, 4, "latency", ""},
	{"too few pairs", func(_ *kernel, c *kase) {
		c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 1, 100_000)
	}, 4, "latency", ""},
	{"zero variance", func(_ *kernel, c *kase) { c.experiment.Record = constant() }, 4, "latency", "the timer is too coarse or nothing was measured"},
	{"noise", func(_ *kernel, c *kase) { c.experiment.Record = noisy() }, 4, "latency", "is proven"},
	{"collapse", func(_ *kernel, c *kase) {
		c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 5_000)
	}, 4, "latency", "how a kernel looks that does nothing"},
	{"slower", func(_ *kernel, c *kase) {
		c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 104_000)
	}, 1, "latency", "slower than the tolerance"},
	{"launch lost from a block", func(_ *kernel, c *kase) {
		b := &c.experiment.Record.Experiment.Rounds[1]
		b.Head = b.Head[:6]
	}, -1, "", ""},
	{"more blocks than the plan has", func(_ *kernel, c *kase) {
		c.experiment.Record = experiment(rand.New(rand.NewSource(1)), 31, 100_000)
	}, 4, "latency", "the experiment cannot be judged: it holds 124 pairs, its plan ends at 120"},
	{"more sessions than are read", func(_ *kernel, c *kase) {
		c.experiment.Record = baseBroke()
		one := c.sessions.Record.Sessions[0]
		for range 5000 {
			c.sessions.Record.Sessions = append(c.sessions.Record.Sessions, one)
		}
	}, 3, "latency", "at most 4096 are read"},
	{"regime lost from a block", func(_ *kernel, c *kase) {
		for i := range c.experiment.Record.Experiment.Rounds[0].Base {
			c.experiment.Record.Experiment.Rounds[0].Base[i].CacheState = "cold"
		}
	}, -1, "", ""},
	{"launch that timed nothing", func(_ *kernel, c *kase) {
		for i := range c.experiment.Record.Experiment.Rounds[0].Base {
			c.experiment.Record.Experiment.Rounds[0].Base[i].BatchesNS = nil
		}
	}, -1, "", ""},
	{"too few launches for a limit", func(_ *kernel, c *kase) { c.alone.Record.Samples = c.alone.Record.Samples[:8] }, 4, "bound", "too few processes"},
	{"no launch for a limit", func(_ *kernel, c *kase) { c.alone.Record.Samples = nil }, 4, "bound", "holds no warm times"},
	{"a time that cannot be, for a limit", func(_ *kernel, c *kase) { c.alone.Record = never(c.alone.Record) }, 4, "bound", "it has no warm time: it is too large"},
	{"a time that cannot be, against the base", func(_ *kernel, c *kase) { c.experiment.Record = never(c.experiment.Record) }, 4, "latency", "it has no warm time: it is too large"},
	{"a time that cannot be, beside a reference", func(_ *kernel, c *kase) {
		c.references[0].experiment.Record = never(c.references[0].experiment.Record)
	}, 4, "ratio", "it has no warm time: it is too large"},
	{"a time that cannot be, against sessions", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone.Record = baseBroke(), never(c.alone.Record)
	}, 3, "latency", "it has no warm time: it is too large"},
	{"everything skipped", func(k *kernel, c *kase) {
		k.head, k.old = nil, nil
		*c = kase{name: c.name}
	}, 4, "correctness", "no correctness evidence of this code is recorded on h200-"},
	{"new kernel without a time", func(k *kernel, c *kase) {
		k.state = verdict.New
		c.alone = none("switched off")
	}, 4, "latency", "no latency evidence of this code is recorded on " + h200.Key() + "; switched off"},
	{"new kernel without a figure", both(func(k *kernel, _ *kase) { k.state = verdict.New }, drop("ptxas.registers")), 4, "registers", "not measured"},
	{"unchanged kernel never checked", func(k *kernel, c *kase) { k.state, c.correctness = verdict.Unchanged, fact{} }, 4, "correctness", "no correctness evidence of this code is recorded on h200-"},
	{"unchanged kernel never timed", func(k *kernel, c *kase) { k.state, c.alone = verdict.Unchanged, fact{} }, 4, "latency", "no latency evidence of this code is recorded on h200-"},
	{"unchanged kernel never profiled", func(k *kernel, c *kase) { k.state, c.profile = verdict.Unchanged, fact{} }, 4, "waves", "no profile evidence of this code is recorded on h200-"},
	{"unchanged kernel, forced, not timed again", func(k *kernel, c *kase) { k.state, k.forced, c.experiment = verdict.Unchanged, true, fact{} }, 4, "latency", "head and base were never timed against each other on h200-"},
	{"never timed against the reference", func(_ *kernel, c *kase) { c.references = nil }, 4, "ratio", "it was never timed beside op/ref on h200-"},
	{"reference missing, with a reason", func(_ *kernel, c *kase) {
		c.references[0].experiment = none("op/ref does not build")
	}, 4, "ratio", "op/ref does not build"},
	{"reference of another name", func(_ *kernel, c *kase) { c.references[0].name = "op/slow" }, 4, "ratio", "it was never timed beside op/ref on h200-"},
	{"reference never checked", func(_ *kernel, c *kase) { c.references[0].correctness = fact{} }, 4, "ratio", "the reference op/ref is not a measure: no correctness evidence of this code is recorded on h200-"},
	{"reference is wrong", func(_ *kernel, c *kase) {
		wrong := correctRecord()
		wrong.Checks[0].Status = "fail"
		c.references[0].correctness.Record = wrong
	}, 4, "ratio", "the reference op/ref is not a measure: wrong on 1 of 1 input classes"},
	{"reference cannot be checked", func(_ *kernel, c *kase) { c.references[0].correctness.Record = broke(evidence.Tool) }, 3, "ratio", "the reference op/ref is not a measure: it broke"},
	{"reference breaks when timed", func(_ *kernel, c *kase) { c.references[0].experiment.Record = baseBroke() }, 3, "ratio", "the base cannot be timed"},
	{"kernel crashes beside the reference", func(_ *kernel, c *kase) { c.references[0].experiment.Record = broke(evidence.Crash) }, 1, "ratio", "it broke"},
	{"slower than the reference allows", func(_ *kernel, c *kase) {
		c.references[0].experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 152_000)
	}, 1, "ratio", "above the limit of 1.5 × the reference's time: typical 1.52 ×"},
	{"at what the reference allows", func(_ *kernel, c *kase) {
		c.references[0].experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 150_000)
	}, 4, "ratio", "neither above 1.5 × nor below 1.5 × is proven"},
	{"new kernel slower than the reference allows", func(k *kernel, c *kase) {
		k.state = verdict.New
		c.references[0].experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 200_000)
	}, 1, "ratio", "above the limit"},
	{"unchanged kernel without its reference", func(k *kernel, c *kase) { k.state, c.references = verdict.Unchanged, nil }, 4, "ratio", "it was never timed beside op/ref on h200-"},

	{"base breaks, no session", func(_ *kernel, c *kase) {
		c.experiment.Record, c.sessions = baseBroke(), fact{}
	}, 3, "latency", "the base cannot be timed: it broke; no sessions evidence of this code is recorded on " + h200.Key()},
	{"base breaks, seven sessions", func(_ *kernel, c *kase) {
		c.experiment.Record, c.sessions = baseBroke(), just(history(rand.New(rand.NewSource(4)), 7))
	}, 3, "latency", "fewer than 8 sessions are advice only"},
	{"base breaks, sessions of another card", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone.Record.Provenance.Card = baseBroke(), "card1"
	}, 3, "latency", "none is of the card that timed the head"},
	{"base breaks, cards unknown", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone.Record.Provenance.Card = baseBroke(), ""
		for i := range c.sessions.Record.Sessions {
			c.sessions.Record.Sessions[i].Card = ""
		}
	}, 3, "latency", "none is of the card that timed the head"},
	{"base breaks, head not timed", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone = baseBroke(), none("switched off")
	}, 3, "latency", "the base cannot be timed: it broke; no latency evidence of this code is recorded on " + h200.Key() + "; switched off"},
	{"base breaks, slower than its sessions", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone = baseBroke(), just(timedAt(rand.New(rand.NewSource(4)), 110_000))
	}, 1, "latency", "slower than the sessions before"},
	{"base breaks, hardly slower than its sessions", func(_ *kernel, c *kase) {
		c.experiment.Record, c.alone = baseBroke(), just(timedAt(rand.New(rand.NewSource(4)), 101_500))
	}, 3, "latency", "measure base and head together to decide"},
	{"an experiment that is missing is not made up for", func(_ *kernel, c *kase) { c.experiment = none("switched off") }, 4, "latency", "head and base were never timed against each other on " + h200.Key() + "; switched off"},
	{"unknown state", func(k *kernel, _ *kase) { k.state, k.old = "", nil }, 4, "registers", "there is no base: nobody named one"},
}

func TestNothingFailsOpen(t *testing.T) {
	p := parse(t, standard)
	for _, c := range failsOpen {
		t.Run(c.name, func(t *testing.T) {
			asked, l := change(c.change).known(t, p)
			v, err := Judge(asked, l)
			ended, err2 := Judge(Stop(asked, l), l)
			if c.exit == -1 {
				if err == nil && v.ExitCode() == 0 || err2 == nil && ended.ExitCode() == 0 {
					t.Errorf("it passes:\n%s%s", summaryOf(v), summaryOf(ended))
				}
				return
			}
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if v.ExitCode() != c.exit || ended.ExitCode() != c.exit {
				t.Errorf("exit %d, and %d after a failed tier, want %d\n%s", v.ExitCode(), ended.ExitCode(), c.exit, summaryOf(v))
			}
			if f := findingOf(t, v, c.rule); f.Status == verdict.Pass || f.Status == verdict.NotCompared || !strings.Contains(f.Reason, c.reason) || f.Reason == "" {
				t.Errorf("%s: %s: %q, want %q", f.Rule, f.Status, f.Reason, c.reason)
			}
		})
	}
}

func TestNoKernelIsNoPass(t *testing.T) {
	for _, f := range []facts{{}, {kernels: []*kernel{}}, {options: plan.Options{NoBase: "none was asked for", LimitsOnly: true}}} {
		if v := judged(t, parse(t, standard), f); v.Status != verdict.Inconclusive || v.ExitCode() != 4 {
			t.Errorf("%+v: %s", f, summaryOf(v))
		}
	}
}

// TestLimitsOnlyPassWithoutABase, and only where nobody asked for one: the base
// may have had kernels that are gone.
func TestLimitsOnlyPassWithoutABase(t *testing.T) {
	p := policyOf(t, false, []string{"{id: spills, metric: ptxas.spill_bytes, limit: 0}"})
	f := change(func(k *kernel, _ *kase) { k.state = verdict.NoBase })
	f.options = plan.Options{NoBase: "it is shallow"}
	v := judged(t, p, f)
	if found := findingOf(t, v, "present"); v.ExitCode() != 4 || found.Reason != "there is no base: it is shallow" {
		t.Error(summaryOf(v))
	}
	f.options.LimitsOnly = true
	if v := judged(t, p, f); v.ExitCode() != 0 {
		t.Error(summaryOf(v))
	}
}

// TestWhatTheHeadLeavesOutIsRed: each case and each function by itself.
func TestWhatTheHeadLeavesOutIsRed(t *testing.T) {
	f := change(func(k *kernel, _ *kase) {
		k.lost = []plan.Loss{{Cause: plan.GoneCase, Case: "large"}, {Cause: plan.LeftOut, Entry: "scan"}, {Cause: plan.LeftOut, Entry: "sort"}}
	})
	v := judged(t, parse(t, standard), f)
	var reasons []string
	for _, found := range v.Kernels[0].Findings {
		if found.Rule == "present" && found.Status == verdict.Fail {
			reasons = append(reasons, strings.TrimSpace(found.Case+" "+found.Reason))
		}
	}
	if got := strings.Join(reasons, ", "); got != "large the base measures this case and the head does not: a case that is gone is red until it is declared, "+
		"entries: leaves out scan, which the base judges and the sources still hold, entries: leaves out sort, which the base judges and the sources still hold" || v.ExitCode() != 1 {
		t.Errorf("%s\n%s", got, summaryOf(v))
	}
}

// TestSessionsStandInForABaseThatBreaks: a head that is proven no slower than
// the base's sessions passes, and says on what grounds.
func TestSessionsStandInForABaseThatBreaks(t *testing.T) {
	faster := func(k *kernel, c *kase) {
		c.alone = just(timedAt(rand.New(rand.NewSource(4)), 98_000))
	}
	f := change(both(faster, func(_ *kernel, c *kase) { c.experiment.Record = baseBroke() }))
	v := judged(t, parse(t, standard), f)
	found := findingOf(t, v, "latency")
	if v.ExitCode() != 0 || found.Status != verdict.Pass || found.Sessions == nil || found.Sessions.Count != 12 || found.Sessions.SigmaSession <= 0 || found.Tool ||
		!strings.Contains(found.Reason, "the base cannot be timed") || !strings.Contains(found.Reason, "against 12 sessions") {
		t.Errorf("%+v\n%s", found, summaryOf(v))
	}

	// A policy that never runs the base judges by sessions alone.
	stored := policyOf(t, true, slices.DeleteFunc(rulesOf(standard), func(r string) bool { return strings.Contains(r, "p99") }))
	v = judged(t, stored, change(both(faster, func(_ *kernel, c *kase) { c.experiment = fact{} })))
	if found := findingOf(t, v, "latency"); v.ExitCode() != 0 || !strings.HasPrefix(found.Reason, "the policy does not run the base; proven below") {
		t.Errorf("%+v\n%s", found, summaryOf(v))
	}
	v = judged(t, stored, change(func(_ *kernel, c *kase) { c.sessions = fact{} }))
	if found := findingOf(t, v, "latency"); v.ExitCode() != 4 || found.Status != verdict.Inconclusive {
		t.Errorf("an experiment is used, and not a session: %+v", found)
	}
}

// TestAdviceWeighsNothing: a tail that grew is told and never red.
func TestAdviceWeighsNothing(t *testing.T) {
	v := judged(t, parse(t, standard), change(func(_ *kernel, c *kase) {
		for _, b := range c.experiment.Experiment.Rounds {
			for _, s := range b.Head {
				s.BatchesNS[len(s.BatchesNS)-1] *= 1.2
			}
		}
	}))
	if f := findingOf(t, v, "tail"); f.Status != verdict.Fail || f.Severity != verdict.Info || findingOf(t, v, "latency").Status != verdict.Pass {
		t.Errorf("%+v\n%s", f, summaryOf(v))
	}
}

// TestKernelWithoutComparison: a new kernel passes by its limits alone, and a
// rule that compares is not a pass of its own.
func TestKernelWithoutComparison(t *testing.T) {
	v := judged(t, parse(t, standard), change(func(k *kernel, _ *kase) { k.state = verdict.New }))
	if v.Status != verdict.Pass || findingOf(t, v, "registers").Status != verdict.NotCompared || findingOf(t, v, "latency").Status != verdict.NotCompared {
		t.Error(summaryOf(v))
	}
}

// TestErrorsAreComparedWithTheBases: a bound on how much an error may grow is
// held against the base's record, and not against the head's own.
func TestErrorsAreComparedWithTheBases(t *testing.T) {
	p := parse(t, standard)
	at := func(head, base float64) func(*kernel, *kase) {
		return func(_ *kernel, c *kase) {
			c.correctness.Record.Metrics["check.max_abs_error"] = evidence.Of(head, "")
			c.baseCorrectness.Record.Metrics["check.max_abs_error"] = evidence.Of(base, "")
		}
	}
	for _, c := range []struct {
		name   string
		change func(*kernel, *kase)
		exit   int
		reason string
	}{
		{"4 times the error", at(4e-3, 1e-3), 1, "0.001 → 0.004 (300 % worse, 10% accepted)"},
		{"within what is accepted", at(1.05e-3, 1e-3), 0, "within what is accepted: 0.001 → 0.00105"},
		{"smaller", at(1e-4, 1e-3), 0, "better: 0.001 → 0.0001"},
		{"an error where there was none", at(1e-9, 0), 1, "0 → 1e-09: worse, and a share of a base of 0 is not defined"},
		{"the base was never checked", func(_ *kernel, c *kase) { c.baseCorrectness = none("switched off") }, 4, "the base has no figure: no correctness evidence of this code is recorded on " + h200.Key() + "; switched off"},
		{"the base cannot be checked", func(_ *kernel, c *kase) { c.baseCorrectness.Record = broke(evidence.Tool) }, 3, "the base has no figure: it broke"},
		{"the base does not build", func(k *kernel, c *kase) { k.baseBroken = plan.Side{Why: "the base does not build"} }, 4, "the base has no figure: the base does not build"},
		{"unchanged", func(k *kernel, _ *kase) { k.state = verdict.Unchanged }, 0, "unchanged code"},
	} {
		v := judged(t, p, change(c.change))
		if f := findingOf(t, v, "growth"); v.ExitCode() != c.exit || f.Reason != c.reason {
			t.Errorf("%s: exit %d, want %d: %s\n%s", c.name, v.ExitCode(), c.exit, f.Reason, summaryOf(v))
		}
	}
}

// TestAProfileThatLacksAnothersMetricIsComplete: what one rule asks of a profile
// leaves the other rules' answers as they are.
func TestAProfileThatLacksAnothersMetricIsComplete(t *testing.T) {
	v := judged(t, parse(t, standard), change(drop("ncu.waves")))
	if f := findingOf(t, v, "waves"); f.Status != verdict.Inconclusive || !strings.HasPrefix(f.Reason, "the recorded profile does not hold ncu.waves") {
		t.Errorf("%+v", f)
	}
	if f := findingOf(t, v, "occupancy"); f.Status != verdict.Pass {
		t.Errorf("%+v", f)
	}
}
