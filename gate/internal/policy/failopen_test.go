package policy

import (
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestGoodFactsPass(t *testing.T) {
	v := judged(t, parse(t, standard), good())
	if v.Status != Pass || v.ExitCode() != 0 || len(v.Kernels[0].Findings) != 13 {
		t.Fatalf("the facts that every case below starts from do not pass:\n%s", summaryOf(v))
	}
	if v.Counts != (Counts{Kernels: 1, Passed: 1, Changed: 1, Reused: 8}) {
		t.Errorf("%+v", v.Counts)
	}
}

func drop(name string) func(*KernelFacts, *CaseFacts) {
	return func(k *KernelFacts, c *CaseFacts) {
		delete(k.Head, name)
		for _, a := range c.Arms() {
			delete(a.Record.Metrics, name)
		}
	}
}

func set(m func(*KernelFacts, *CaseFacts) evidence.Metrics, name string, x float64) func(*KernelFacts, *CaseFacts) {
	return func(k *KernelFacts, c *CaseFacts) { m(k, c)[name] = evidence.Of(x, units(name)) }
}

func headStatic(k *KernelFacts, _ *CaseFacts) evidence.Metrics  { return k.Head }
func baseStatic(k *KernelFacts, _ *CaseFacts) evidence.Metrics  { return k.Old }
func headProfile(_ *KernelFacts, c *CaseFacts) evidence.Metrics { return c.Profile.Head.Record.Metrics }
func baseProfile(_ *KernelFacts, c *CaseFacts) evidence.Metrics { return c.Profile.Base.Record.Metrics }

// both applies two changes.
func both(a, b func(*KernelFacts, *CaseFacts)) func(*KernelFacts, *CaseFacts) {
	return func(k *KernelFacts, c *CaseFacts) { a(k, c); b(k, c) }
}

func checked(f func(*evidence.Check)) func(*KernelFacts, *CaseFacts) {
	return func(_ *KernelFacts, c *CaseFacts) { f(&c.Correctness.Record.Checks[0]) }
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
			out = append(out, launches(r, 1, 100_000*(0.8+0.4*r.Float64()))...)
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
			for _, regime := range []string{"warm", "cold"} {
				out = append(out, evidence.Sample{Regime: regime, BatchesNS: []float64{100_000, 100_000}})
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
	change func(*KernelFacts, *CaseFacts)
	exit   int
	rule   string
	reason string
}{
	{"kernel is gone", func(k *KernelFacts, _ *CaseFacts) { k.State = Gone }, 1, "present", "the base has this kernel and the head does not"},
	{"kernel does not compile", func(k *KernelFacts, _ *CaseFacts) { k.Broken = &Problem{Message: "op/k does not compile", Blame: true} }, 1, "builds", "op/k does not compile"},
	{"compiler fails", func(k *KernelFacts, _ *CaseFacts) { k.Broken = &Problem{Message: "nvcc was stopped", Tool: true} }, 3, "builds", "nvcc was stopped"},
	{"base does not build", func(k *KernelFacts, _ *CaseFacts) { k.BaseProblem, k.Old = "the base does not build", nil }, 4, "registers", "the base has no figure: the base does not build"},
	{"no base is known", func(k *KernelFacts, _ *CaseFacts) { k.State = NoBase }, 4, "registers", "there is no base to compare with"},
	{"no case", func(k *KernelFacts, _ *CaseFacts) { k.Cases = nil }, 4, "correctness", "no case was judged"},

	{"no static figure of the head", func(k *KernelFacts, _ *CaseFacts) { k.Head = nil }, 4, "spills", "not measured"},
	{"no static figure of the base", func(k *KernelFacts, _ *CaseFacts) { k.Old = nil }, 4, "registers", "the base has no figure: not measured"},
	{"metric missing at the head, limit", drop("ptxas.spill_bytes"), 4, "spills", "not measured"},
	{"metric missing at the head, regression", drop("ptxas.registers"), 4, "registers", "not measured"},
	{"metric missing at the base", func(k *KernelFacts, _ *CaseFacts) { delete(k.Old, "ptxas.registers") }, 4, "registers", "the base has no figure: not measured"},
	{"counter missing at the head", func(_ *KernelFacts, c *CaseFacts) { delete(c.Profile.Head.Record.Metrics, "ncu.waves") }, 4, "waves", "not measured"},
	{"counter missing at the base", func(_ *KernelFacts, c *CaseFacts) { delete(c.Profile.Base.Record.Metrics, "ncu.waves") }, 4, "waves", "the base has no figure: not measured"},
	{"counter of another name on this chip", func(_ *KernelFacts, c *CaseFacts) {
		c.Profile.Head.Record.Metrics["ncu.waves"] = evidence.Absent("this chip has no counter of that name", "")
	}, 4, "waves", "this chip has no counter of that name"},
	{"figure in another unit", func(_ *KernelFacts, c *CaseFacts) {
		c.Profile.Head.Record.Metrics["ncu.achieved_occupancy"] = evidence.Of(0.7, "")
	}, 4, "occupancy", "it is recorded in plain numbers, and ncu.achieved_occupancy is in %"},
	{"figure of the base in another unit", func(_ *KernelFacts, c *CaseFacts) {
		c.Profile.Base.Record.Metrics["ncu.achieved_occupancy"] = evidence.Of(0.7, "byte")
	}, 4, "occupancy", "it is recorded in byte"},
	{"NaN", set(headStatic, "ptxas.spill_bytes", math.NaN()), 4, "spills", "the measured value is not finite (NaN)"},
	{"infinity", set(headStatic, "ptxas.spill_bytes", math.Inf(1)), 4, "spills", "the measured value is not finite (+Inf)"},
	{"infinity that would be better", set(headProfile, "ncu.achieved_occupancy", math.Inf(1)), 4, "occupancy", "the measured value is not finite (+Inf)"},
	{"NaN at the base", set(baseProfile, "ncu.achieved_occupancy", math.NaN()), 4, "occupancy", "the base has no figure: the measured value is not finite (NaN)"},
	{"base of 0, compared in %", both(set(baseStatic, "ptxas.stack_bytes", 0), set(headStatic, "ptxas.stack_bytes", 1)), 1, "stack", "a share of a base of 0 B is not defined"},
	{"base below 0, compared in %", both(set(baseStatic, "ptxas.stack_bytes", -8), set(headStatic, "ptxas.stack_bytes", 1)), 1, "stack", "a share of a base of -8 B is not defined"},

	{"correctness never checked", func(_ *KernelFacts, c *CaseFacts) { c.Correctness = Arm{} }, 4, "correctness", "not measured"},
	{"correctness missing, with a reason", func(_ *KernelFacts, c *CaseFacts) {
		c.Correctness = Arm{Missing: "no evidence of this code is recorded"}
	}, 4, "correctness", "no evidence of this code is recorded"},
	{"no check in the record", func(_ *KernelFacts, c *CaseFacts) { c.Correctness.Record.Checks = nil }, 4, "correctness", "the record holds no check"},
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
	{"kernel hangs", func(_ *KernelFacts, c *CaseFacts) { c.Correctness.Record = broke(evidence.Hang) }, 1, "correctness", "it broke"},
	{"harness fails", func(_ *KernelFacts, c *CaseFacts) { c.Correctness.Record = broke(evidence.Tool) }, 3, "correctness", "it broke"},

	{"no profile", func(_ *KernelFacts, c *CaseFacts) { c.Profile.Head = Arm{Missing: "ncu is missing"} }, 4, "occupancy", "ncu is missing"},
	{"no profile of the base", func(_ *KernelFacts, c *CaseFacts) { c.Profile.Base = Arm{} }, 4, "occupancy", "the base has no figure: not measured"},
	{"no permission to profile", func(_ *KernelFacts, c *CaseFacts) { c.Profile.Head.Record = broke(evidence.Permission) }, 3, "occupancy", "it broke"},
	{"no permission to profile the base", func(_ *KernelFacts, c *CaseFacts) { c.Profile.Base.Record = broke(evidence.Permission) }, 3, "occupancy", "it broke"},

	{"never timed against the base", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment = Arm{Missing: "never timed"} }, 4, "latency", "never timed"},
	{"never timed alone", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Head = Arm{} }, 4, "bound", "not measured"},
	{"timing fails", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = broke(evidence.Tool) }, 3, "latency", "it broke"},
	{"kernel crashes when timed", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = broke(evidence.Crash) }, 1, "latency", "it broke"},
	{"record without an experiment", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = correct() }, 4, "latency", ""},
	{"experiment without a block", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 0, 100_000)
	}, 4, "latency", ""},
	{"too few pairs", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 1, 100_000)
	}, 4, "latency", ""},
	{"zero variance", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = constant() }, 4, "latency", "the timer is too coarse or nothing was measured"},
	{"noise", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = noisy() }, 4, "latency", "is proven"},
	{"collapse", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 5_000)
	}, 4, "latency", "how a kernel looks that does nothing"},
	{"slower", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 104_000)
	}, 1, "latency", "slower than the tolerance"},
	{"launch lost from a block", func(_ *KernelFacts, c *CaseFacts) {
		b := &c.Latency.Experiment.Record.Experiment.Blocks[1]
		b.Head = b.Head[:6]
	}, -1, "", ""},
	{"more blocks than the plan has", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = experiment(rand.New(rand.NewSource(1)), 31, 100_000)
	}, 4, "latency", "the experiment cannot be judged: it holds 124 pairs, its plan ends at 120"},
	{"more sessions than are read", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record = baseBroke()
		one := c.Latency.Sessions.Record.Sessions[0]
		for range 5000 {
			c.Latency.Sessions.Record.Sessions = append(c.Latency.Sessions.Record.Sessions, one)
		}
	}, 3, "latency", "at most 4096 are read"},
	{"regime lost from a block", func(_ *KernelFacts, c *CaseFacts) {
		for i := range c.Latency.Experiment.Record.Experiment.Blocks[0].Base {
			c.Latency.Experiment.Record.Experiment.Blocks[0].Base[i].Regime = "cold"
		}
	}, -1, "", ""},
	{"launch that timed nothing", func(_ *KernelFacts, c *CaseFacts) {
		for i := range c.Latency.Experiment.Record.Experiment.Blocks[0].Base {
			c.Latency.Experiment.Record.Experiment.Blocks[0].Base[i].BatchesNS = nil
		}
	}, -1, "", ""},
	{"too few launches for a limit", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Head.Record.Samples = c.Latency.Head.Record.Samples[:8] }, 4, "bound", "too few launches"},
	{"no launch for a limit", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Head.Record.Samples = nil }, 4, "bound", "no launch was measured"},
	{"everything skipped", func(k *KernelFacts, c *CaseFacts) {
		k.Head, k.Old = nil, nil
		*c = CaseFacts{Name: c.Name, Machine: c.Machine}
	}, 4, "correctness", "not measured"},
	{"new kernel without a time", func(k *KernelFacts, c *CaseFacts) {
		k.State = New
		c.Latency.Head = Arm{Missing: "never timed"}
	}, 4, "latency", "never timed"},
	{"new kernel without a figure", both(func(k *KernelFacts, _ *CaseFacts) { k.State = New }, drop("ptxas.registers")), 4, "registers", "not measured"},
	{"unchanged kernel never checked", func(k *KernelFacts, c *CaseFacts) { k.State, c.Correctness = Unchanged, Arm{} }, 4, "correctness", "not measured"},
	{"unchanged kernel never timed", func(k *KernelFacts, c *CaseFacts) { k.State, c.Latency.Head = Unchanged, Arm{} }, 4, "latency", "not measured"},
	{"unchanged kernel never profiled", func(k *KernelFacts, c *CaseFacts) { k.State, c.Profile.Head = Unchanged, Arm{} }, 4, "waves", "not measured"},
	{"unchanged kernel, forced, not timed again", func(k *KernelFacts, c *CaseFacts) { k.State, k.Forced, c.Latency.Experiment = Unchanged, true, Arm{} }, 4, "latency", "not measured"},
	{"never timed against the reference", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References = nil }, 4, "ratio", "not measured"},
	{"reference missing, with a reason", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.References[0].Experiment = Arm{Missing: "op/ref does not build"}
	}, 4, "ratio", "op/ref does not build"},
	{"reference of another name", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References[0].Name = "op/slow" }, 4, "ratio", "not measured"},
	{"reference never checked", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References[0].Correctness = Arm{} }, 4, "ratio", "the reference op/ref is no measure: not measured"},
	{"reference is wrong", func(_ *KernelFacts, c *CaseFacts) {
		wrong := correct()
		wrong.Checks[0].Status = "fail"
		c.Latency.References[0].Correctness.Record = wrong
	}, 4, "ratio", "the reference op/ref is no measure: wrong on 1 of 1 input classes"},
	{"reference cannot be checked", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References[0].Correctness.Record = broke(evidence.Tool) }, 3, "ratio", "the reference op/ref is no measure: it broke"},
	{"reference breaks when timed", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References[0].Experiment.Record = baseBroke() }, 3, "ratio", "the base cannot be timed"},
	{"kernel crashes beside the reference", func(_ *KernelFacts, c *CaseFacts) { c.Latency.References[0].Experiment.Record = broke(evidence.Crash) }, 1, "ratio", "it broke"},
	{"slower than the reference allows", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.References[0].Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 152_000)
	}, 1, "ratio", "above the limit of 1.5 × the reference's time: typical 1.52 ×"},
	{"at what the reference allows", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.References[0].Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 150_000)
	}, 4, "ratio", "neither above 1.5 × nor below 1.5 × is proven"},
	{"new kernel slower than the reference allows", func(k *KernelFacts, c *CaseFacts) {
		k.State = New
		c.Latency.References[0].Experiment.Record = experiment(rand.New(rand.NewSource(1)), 3, 200_000)
	}, 1, "ratio", "above the limit"},
	{"unchanged kernel without its reference", func(k *KernelFacts, c *CaseFacts) { k.State, c.Latency.References = Unchanged, nil }, 4, "ratio", "not measured"},

	{"base breaks, no session", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Sessions = baseBroke(), Arm{}
	}, 3, "latency", "the base cannot be timed: it broke; no session of the base's code is recorded"},
	{"base breaks, seven sessions", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Sessions = baseBroke(), reused(history(rand.New(rand.NewSource(4)), 7))
	}, 3, "latency", "fewer than 8 sessions are advice only"},
	{"base breaks, sessions of another card", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Head.Record.Provenance.Card = baseBroke(), "card1"
	}, 3, "latency", "none is of the card that timed the head"},
	{"base breaks, cards unknown", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Head.Record.Provenance.Card = baseBroke(), ""
		for i := range c.Latency.Sessions.Record.Sessions {
			c.Latency.Sessions.Record.Sessions[i].Card = ""
		}
	}, 3, "latency", "none is of the card that timed the head"},
	{"base breaks, head not timed", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Head = baseBroke(), Arm{Missing: "never timed"}
	}, 3, "latency", "the base cannot be timed: it broke; never timed"},
	{"base breaks, slower than its sessions", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Head = baseBroke(), reused(timed(rand.New(rand.NewSource(4)), 110_000))
	}, 1, "latency", "slower than the sessions before"},
	{"base breaks, hardly slower than its sessions", func(_ *KernelFacts, c *CaseFacts) {
		c.Latency.Experiment.Record, c.Latency.Head = baseBroke(), reused(timed(rand.New(rand.NewSource(4)), 101_500))
	}, 3, "latency", "measure base and head together to decide"},
	{"an experiment that is missing is not made up for", func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment = Arm{Missing: "never timed"} }, 4, "latency", "never timed"},
	{"unknown state", func(k *KernelFacts, _ *CaseFacts) { k.State, k.Old = "", nil }, 4, "registers", "the base has no figure: not measured"},
}

func TestNothingFailsOpen(t *testing.T) {
	p := parse(t, standard)
	for _, c := range failsOpen {
		t.Run(c.name, func(t *testing.T) {
			v, err := Judge(p, change(c.change))
			if c.exit == -1 {
				if err == nil && v.ExitCode() == 0 {
					t.Errorf("it passes:\n%s", summaryOf(v))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v.ExitCode() != c.exit {
				t.Errorf("exit %d, want %d\n%s", v.ExitCode(), c.exit, summaryOf(v))
			}
			if f := findingOf(t, v, c.rule); f.Status == Pass || f.Status == NotCompared || !strings.Contains(f.Reason, c.reason) || f.Reason == "" {
				t.Errorf("%s: %s: %q, want %q", f.Rule, f.Status, f.Reason, c.reason)
			}
		})
	}
}

func TestNoKernelIsNoPass(t *testing.T) {
	for _, f := range []Facts{{}, {Kernels: []KernelFacts{}}, {NoBase: "none was asked for", LimitsOnly: true}} {
		if v := judged(t, parse(t, standard), f); v.Status != Inconclusive || v.ExitCode() != 4 {
			t.Errorf("%+v: %s", f, summaryOf(v))
		}
	}
	if v := (&Verdict{}); v.ExitCode() != 4 {
		t.Errorf("the zero verdict exits %d", v.ExitCode())
	}
}

// TestSessionsStandInForABaseThatBreaks: a head that is proven no slower than
// the base's sessions passes, and says on what grounds.
func TestSessionsStandInForABaseThatBreaks(t *testing.T) {
	faster := func(k *KernelFacts, c *CaseFacts) {
		c.Latency.Head = reused(timed(rand.New(rand.NewSource(4)), 98_000))
	}
	facts := change(both(faster, func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment.Record = baseBroke() }))
	v := judged(t, parse(t, standard), facts)
	f := findingOf(t, v, "latency")
	if v.ExitCode() != 0 || f.Status != Pass || f.Sessions == nil || f.Sessions.Count != 12 || f.Sessions.SigmaSession <= 0 || f.Tool ||
		!strings.Contains(f.Reason, "the base cannot be timed") || !strings.Contains(f.Reason, "against 12 sessions") {
		t.Errorf("%+v\n%s", f, summaryOf(v))
	}

	// A policy that never runs the base judges by sessions alone.
	_, all, _ := strings.Cut(standard, "  - ")
	rules := strings.Split(strings.TrimSuffix(all, "\n"), "\n  - ")
	stored := policyOf(t, true, slices.DeleteFunc(rules, func(r string) bool { return strings.Contains(r, "p99") }))
	v = judged(t, stored, change(both(faster, func(_ *KernelFacts, c *CaseFacts) { c.Latency.Experiment = Arm{} })))
	if f := findingOf(t, v, "latency"); v.ExitCode() != 0 || !strings.HasPrefix(f.Reason, "the policy does not run the base; proven below") {
		t.Errorf("%+v\n%s", f, summaryOf(v))
	}
	v = judged(t, stored, change(func(_ *KernelFacts, c *CaseFacts) { c.Latency.Sessions = Arm{} }))
	if f := findingOf(t, v, "latency"); v.ExitCode() != 4 || f.Status != Inconclusive {
		t.Errorf("an experiment is used, and not a session: %+v", f)
	}
}

// TestAdviceWeighsNothing: a tail that grew is told and never red.
func TestAdviceWeighsNothing(t *testing.T) {
	v := judged(t, parse(t, standard), change(func(_ *KernelFacts, c *CaseFacts) {
		for _, b := range c.Latency.Experiment.Record.Experiment.Blocks {
			for _, s := range b.Head {
				s.BatchesNS[len(s.BatchesNS)-1] *= 1.2
			}
		}
	}))
	if f := findingOf(t, v, "tail"); f.Status != Fail || f.Severity != Advice || findingOf(t, v, "latency").Status != Pass {
		t.Errorf("%+v\n%s", f, summaryOf(v))
	}
	if statusOf([]Finding{{Status: Pass}, {Status: Fail, Severity: Advice}}) != Pass || statusOf([]Finding{{Status: Pass, Severity: Advice}}) != Inconclusive {
		t.Error("advice weighs something")
	}
}

// TestKernelWithoutComparison: a new kernel passes by its limits alone, and a
// rule that compares is no pass of its own.
func TestKernelWithoutComparison(t *testing.T) {
	v := judged(t, parse(t, standard), change(func(k *KernelFacts, _ *CaseFacts) { k.State = New }))
	if v.Status != Pass || findingOf(t, v, "registers").Status != NotCompared || findingOf(t, v, "latency").Status != NotCompared {
		t.Error(summaryOf(v))
	}
	if statusOf(nil) != Inconclusive || statusOf([]Finding{{Status: NotCompared}}) != Inconclusive {
		t.Error("a kernel without a single judgement passes")
	}
}
