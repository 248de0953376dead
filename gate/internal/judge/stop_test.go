package judge

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// endedBy lists the questions that a failed tier ended, by their rules, with
// the reason.
func endedBy(p plan.Plan) string {
	var out []string
	for _, q := range p.Questions {
		if q.Stopped != "" {
			out = append(out, q.Name+": "+q.Stopped)
		}
	}
	return strings.Join(out, ", ")
}

// TestStop: a kernel that fails the static tier is not worth GPU time, and one
// that is wrong is not worth more of it.
func TestStop(t *testing.T) {
	rules := []string{"{id: spills, metric: ptxas.spill_bytes, limit: 0}", "{id: error, metric: check.relative_error, limit: 1}",
		"{id: occupancy, metric: ncu.achieved_occupancy, max_regression: 5pp}", "{id: latency, metric: latency.typical, max_regression: 2%}", "{id: tail, metric: latency.p99, max_regression: 10%}"}
	const static, correctness = ": not measured: the static tier failed", ": not measured: the correctness tier failed"
	nothing := func(k *kernel, c *kase) { *c = kase{name: c.name} }
	for _, c := range []struct {
		name   string
		change func(*kernel, *kase)
		want   string
	}{
		{"well and measured", func(*kernel, *kase) {}, ""},
		{"well and not measured", nothing, ""},
		{"spills", both(nothing, set(headStatic, "ptxas.spill_bytes", 8)), "correctness" + static + ", error" + static + ", occupancy" + static + ", latency" + static},
		{"spills and is measured", set(headStatic, "ptxas.spill_bytes", 8), ""},
		{"spills and is measured in part", both(set(headStatic, "ptxas.spill_bytes", 8), func(_ *kernel, c *kase) { c.baseProfile = fact{} }), "occupancy" + static},
		{"a missing figure is not a failure", both(nothing, drop("ptxas.spill_bytes")), ""},
		{"wrong", func(_ *kernel, c *kase) {
			wrong := correctRecord()
			wrong.Checks[0].Status = "fail"
			*c = kase{name: c.name, correctness: just(wrong)}
		}, "occupancy" + correctness + ", latency" + correctness},
		{"hangs", func(_ *kernel, c *kase) { *c = kase{name: c.name, correctness: just(broke(evidence.Hang))} }, "occupancy" + correctness + ", latency" + correctness},
		{"the harness fails", func(_ *kernel, c *kase) { *c = kase{name: c.name, correctness: just(broke(evidence.Tool))} }, ""},
		{"the error is above its limit", func(_ *kernel, c *kase) {
			off := correctRecord()
			off.Metrics["check.relative_error"] = evidence.Of(2, "")
			*c = kase{name: c.name, correctness: just(off)}
		}, "occupancy" + correctness + ", latency" + correctness},
		{"does not build", func(k *kernel, _ *kase) { k.broken = plan.Side{Why: "it does not build", Blame: true} }, ""},
	} {
		p := policyOf(t, false, rules)
		asked, l := change(c.change).known(t, p)
		ended := Stop(asked, l)
		if got := endedBy(ended); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if endedBy(asked) != "" {
			t.Errorf("%s: the plan that was handed in is changed", c.name)
		}
		p.AfterFailure = policy.Continue
		if got := endedBy(Stop(asked, l)); got != "" {
			t.Errorf("%s: after_failure continues, and still: %s", c.name, got)
		}
	}
}

// TestStopKeepsToItsCase: a wrong case leaves the others to be measured, and a
// rule that only warns stops nothing.
func TestStopKeepsToItsCase(t *testing.T) {
	wrong := correctRecord()
	wrong.Checks[0].Status = "fail"
	f := change(func(k *kernel, c *kase) {
		k.cases = []*kase{{name: "small", correctness: just(wrong)}, {name: "large", correctness: just(correctRecord())}}
	})
	asked, l := f.known(t, parse(t, standard))
	for _, q := range Stop(asked, l).Questions {
		if q.Case == "large" && q.Stopped != "" || q.Case == "small" && q.Tier == evidence.Profile && q.Stopped == "" {
			t.Errorf("%s: %q", q, q.Stopped)
		}
	}
	warns := policyOf(t, false, []string{"{id: spills, metric: ptxas.spill_bytes, limit: 0, severity: warn}", "{id: waves, metric: ncu.waves, max_regression: 1}"})
	f = change(both(set(headStatic, "ptxas.spill_bytes", 8), func(_ *kernel, c *kase) { *c = kase{name: c.name} }))
	asked, l = f.known(t, warns)
	if got := endedBy(Stop(asked, l)); got != "" {
		t.Errorf("a rule that warns stops %s", got)
	}
}

// TestAStoppedQuestionSaysSo whatever a store holds of it: it left the family,
// so that its times are not put to a test either.
func TestAStoppedQuestionSaysSo(t *testing.T) {
	spills := set(headStatic, "ptxas.spill_bytes", 8)
	for name, f := range map[string]facts{
		"timed beside a reference that was never checked": change(both(spills, func(_ *kernel, c *kase) { c.experiment, c.references[0].correctness = fact{}, fact{} })),
		"nothing is timed": change(both(spills, func(_ *kernel, c *kase) { c.experiment, c.references = fact{}, nil })),
	} {
		v := stopped(t, parse(t, standard), f)
		for _, rule := range []string{"latency", "ratio"} {
			if found := findingOf(t, v, rule); found.Status != verdict.Inconclusive || !strings.HasSuffix(found.Reason, "not measured: the static tier failed") {
				t.Errorf("%s: %s: %+v", name, rule, found)
			}
		}
	}
	// Another run may measure what this one has stopped.
	asked, l := change(both(spills, func(_ *kernel, c *kase) { c.experiment = fact{} })).known(t, parse(t, standard))
	ended := Stop(asked, l)
	for _, q := range ended.Questions {
		if q.Name == "latency" {
			n := q.Need(evidence.Answers, evidence.Latency)
			enter(l, just(experiment(rand.New(rand.NewSource(1)), 3, 100_000)), *n.Key)
		}
	}
	v, err := Judge(ended, l)
	if err != nil {
		t.Fatal(err)
	}
	if found := findingOf(t, v, "latency"); found.Status != verdict.Inconclusive || found.Reason != "not measured: the static tier failed" {
		t.Errorf("%+v", found)
	}
}
