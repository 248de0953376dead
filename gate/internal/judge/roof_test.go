package judge

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// The card of the facts does 989 000 of these a nanosecond, and moves 4400 bytes in its
// memory and 6600 in its L2.
func flops(ns float64) roof.Work {
	return roof.Work{Flops: int64(ns * 989000), Unit: "f16"}
}

func bytes(ns float64) roof.Work {
	return roof.Work{Bytes: int64(ns*4400) + 62914560/4} // the L2 keeps its part of 4 calls
}

// TestFasterThanTheMachine: the head takes 100 µs, cold and warm. A time below 0.8
// of what its card needs is red by every kind of question.
func TestFasterThanTheMachine(t *testing.T) {
	const red, fine = verdict.Fail, verdict.Pass
	for _, c := range []struct {
		name   string
		rule   string
		work   roof.Work
		change func(*kernel, *kase)
		want   verdict.Status
		says   string
	}{
		{"nothing stated", "metric: latency.typical, max_regression: 2%", roof.Work{}, nil, fine, ""},
		{"a kernel that does it", "metric: latency.typical, max_regression: 2%", flops(100_000), nil, fine, ""},
		{"a little faster", "metric: latency.typical, max_regression: 2%", flops(124_000), nil, fine, ""},
		{"too fast", "metric: latency.typical, max_regression: 2%", flops(126_000), nil, red, "faster than the machine: 100.0"},
		{"too fast, cold", "metric: latency.cold_typical, max_regression: 2%", flops(126_000), nil, red, "and NVIDIA H200 needs at least 126.00 µs for 125 GFLOP of f16"},
		{"the mean", "metric: latency.mean, max_regression: 2%", flops(126_000), nil, red, "faster than the machine"},
		{"a limit", "metric: latency.typical, limit: 120us", flops(126_000), nil, red, "faster than the machine"},
		{"beside a reference", "metric: latency.typical, relative_to: ref, limit: 1.5", flops(126_000), nil, red, "faster than the machine"},
		{"a rule that only warns", "metric: latency.typical, max_regression: 2%, severity: warn", flops(126_000), nil, red, "faster than the machine"},
		{"a rule that lets what is open pass", "metric: latency.typical, max_regression: 2%, on_missing: warn, on_inconclusive: warn", flops(126_000), nil, red, "faster than the machine"},
		{"unchanged code", "metric: latency.typical, max_regression: 2%", flops(126_000), func(k *kernel, _ *kase) { k.state = verdict.Unchanged }, red, "faster than the machine"},
		{"a new kernel", "metric: latency.typical, max_regression: 2%", flops(126_000), func(k *kernel, _ *kase) { k.state = verdict.New }, red, "faster than the machine"},
		{"memory, warm", "metric: latency.typical, max_regression: 2%", bytes(126_000), nil, fine, ""},
		{"the L2", "metric: latency.typical, max_regression: 2%", roof.Work{Bytes: 126_000 * 6600}, nil, red, "needs at least 126.00 µs for 832 MB of the L2"},
		{"the L2 that is fast enough", "metric: latency.typical, max_regression: 2%", roof.Work{Bytes: 124_000 * 6600}, nil, fine, ""},
		{"memory, cold", "metric: latency.cold_typical, max_regression: 2%", bytes(126_000), nil, red, "for 554 MB of memory"},
		{"memory that is fast enough", "metric: latency.cold_typical, max_regression: 2%", bytes(124_000), nil, fine, ""},
		{"an arithmetic without a peak", "metric: latency.typical, max_regression: 2%", roof.Work{Flops: 1e15, Unit: "i8"}, nil, fine, ""},
		{"a base that is too fast", "metric: latency.typical, max_regression: 2%", flops(126_000), func(_ *kernel, k *kase) {
			r := rand.New(rand.NewSource(1))
			k.experiment = just(experimentFrom(3, func() []evidence.Sample { return samples(r, 4, 99_900) }, func() []evidence.Sample { return samples(r, 4, 101_000) }))
		}, fine, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judged(t, languageOf(t, "{id: correct, metric: check.relative_error, limit: 1};{id: a, "+c.rule+"}", ""), change(func(k *kernel, x *kase) {
				x.work = c.work
				if c.change != nil {
					c.change(k, x)
				}
			}))
			f := findingOf(t, v, "a")
			if tooFast := strings.HasPrefix(f.Reason, "faster than the machine"); tooFast != (c.want == red) || !strings.Contains(f.Reason, c.says) {
				t.Errorf("%s: %s", f.Status, f.Reason)
			}
			if c.want == red && (v.ExitCode() != 1 || f.Status != red || f.Severity != verdict.Red) {
				t.Errorf("exit %d\n%s", v.ExitCode(), summaryOf(v))
			}
		})
	}
}

// TestNoWaiverAndNoTradeMakesATimePossible: such a time is a wrong measurement, and
// not a figure that somebody accepts.
func TestNoWaiverAndNoTradeMakesATimePossible(t *testing.T) {
	p := languageOf(t, "{id: a, metric: latency.typical, limit: 200us}", "")
	p.Waivers = []policy.Waiver{{Rule: "a", Kernel: "op/k", Until: now.Add(240 * time.Hour), Owner: "@k", Reason: "meant",
		Ceiling: policy.Amount{Number: 1e9, Text: "1s", Unit: "ns", Set: true}}}
	v := judged(t, p, change(func(_ *kernel, k *kase) { k.work = flops(126_000) }))
	if f := findingOf(t, v, "a"); v.ExitCode() != 1 || f.Status != verdict.Fail || f.Severity != verdict.Red || f.Waiver != nil {
		t.Errorf("exit %d\n%s", v.ExitCode(), summaryOf(v))
	}
	if v.Waivers[0].State != verdict.Unused {
		t.Errorf("the waiver is %s", v.Waivers[0].State)
	}
	p = languageOf(t, "{id: spills, metric: ptxas.spill_bytes, limit: 0};{id: pays, replaces: spills, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}", "")
	v = judged(t, p, change(func(k *kernel, x *kase) {
		r := rand.New(rand.NewSource(1))
		k.head["ptxas.spill_bytes"], x.experiment, x.work = evidence.Of(8, "byte"), just(experiment(r, 3, 60_000)), flops(76_000)
	}))
	if v.ExitCode() != 1 || !strings.Contains(summaryOf(v), "faster than the machine") {
		t.Errorf("a trade for an impossible time: exit %d\n%s", v.ExitCode(), summaryOf(v))
	}
}

// TestSharesOfTheRoof: a figure says how close a time is to what the card can do, or
// why that is not known.
func TestSharesOfTheRoof(t *testing.T) {
	p := languageOf(t, "{id: a, metric: latency.typical, max_regression: 2%};{id: b, metric: latency.cold_typical, max_regression: 2%}", "")
	for _, c := range []struct {
		name       string
		work       roof.Work
		warm, cold string
	}{
		{"nothing stated", roof.Work{}, "", ""},
		{"operations", flops(25_000), "25.0 %", "25.0 %"},
		{"memory", roof.Work{Bytes: 50_000 * 6600}, "50.0 %", "71.4 %"},
		{"what the L2 can hold", roof.Work{Bytes: 6600}, "0.0 %", "the least work that is stated says nothing of this time: the L2 can hold all that a batch moves"},
		{"no peak", roof.Work{Flops: 1, Unit: "i8"}, "no peak of i8 was measured", "no peak of i8 was measured"},
	} {
		v := judged(t, p, change(func(_ *kernel, k *kase) { k.work = c.work }))
		got := v.Kernels[0].Figures[1].Metrics
		for name, want := range map[string]string{"latency.roof": c.warm, "latency.cold_roof": c.cold} {
			text := ""
			if x, there := got[name]; there {
				text = x.Missing()
				if x.Known() {
					text = fmt.Sprintf("%.1f %s", x.Number, x.Unit())
				}
			}
			if text != want {
				t.Errorf("%s, %s: %q, want %q", c.name, name, text, want)
			}
		}
	}
	unknown := judged(t, p, change(func(_ *kernel, k *kase) {
		k.work = flops(500_000)
		k.alone.Record.Provenance.Machine, k.experiment.Record.Provenance.Machine = h200, h200 // and no capacity
	}))
	share := unknown.Kernels[0].Figures[1].Metrics["latency.roof"]
	if share.Known() || !strings.Contains(share.Missing(), "does not say how fast") {
		t.Errorf("a record without a capacity: %+v", share)
	}
}
