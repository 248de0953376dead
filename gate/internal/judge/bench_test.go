package judge

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// BenchmarkJudge asks 50 rules of each of 10,000 changed kernels and judges the
// answers. The CPU seconds are those of all threads, and the peak is the memory
// that the process had from the system, with the records of both sides.
func BenchmarkJudge(b *testing.B) {
	const kernels, rules = 10_000, 50
	p, named := wide(b, rules)
	subjects, l := make([]*plan.Subject, kernels), &evidence.Ledger{}
	for i := range subjects {
		subjects[i] = crowd(i, named, l)
	}
	b.ReportAllocs()
	before := cpuSeconds(b)
	for b.Loop() {
		asked, err := plan.Bound(p, subjects, plan.Options{Now: now}, []evidence.Machine{h200}, func(*evidence.Need) bool { return true })
		if err != nil {
			b.Fatal(err)
		}
		v, err := Judge(Stop(asked, l), l)
		if err != nil || v.Counts.Passed != kernels || len(v.Kernels[0].Findings) != rules+1 {
			b.Fatalf("%+v, %v\n%s", v.Counts, err, summaryOf(&verdict.Verdict{Kernels: v.Kernels[:1]}))
		}
	}
	b.ReportMetric((cpuSeconds(b)-before)/float64(b.N), "cpu-s/op")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/1e6, "peak-MB")
}

// cpuSeconds is what the process has used, the collector of garbage included.
func cpuSeconds(b *testing.B) float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// wide is a policy of so many rules, each on a metric of its own.
func wide(b *testing.B, n int) (*policy.Policy, []metric.Metric) {
	var text []string
	var named []metric.Metric
	for _, m := range metric.All() {
		if len(text) < n && !m.Time() {
			text = append(text, fmt.Sprintf("{id: r%d, metric: %s, max_regression: 10%%}", len(text), m.Name))
			named = append(named, m)
		}
	}
	if len(text) != n {
		b.Fatalf("%d metrics", len(text))
	}
	return parse(b, "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\nrules:\n  - "+strings.Join(text, "\n  - ")+"\n"), named
}

// crowd is one of many kernels, with its records in the ledger.
func crowd(i int, named []metric.Metric, l *evidence.Ledger) *plan.Subject {
	id := func(side string) evidence.Identity {
		return evidence.Identity{Code: fmt.Sprintf("%s %d", side, i), Host: "h"}
	}
	s := &plan.Subject{Name: fmt.Sprintf("op/k%d", i), Arch: "sm_90", Op: "op", State: verdict.Changed,
		Head: plan.Side{Identity: id("head")}, Base: plan.Side{Identity: id("base")}, Cases: []plan.Case{{Name: "small", Harness: "h"}}}
	for _, side := range []plan.Side{s.Head, s.Base} {
		tiers := map[evidence.Tier]evidence.Metrics{evidence.Static: {}, evidence.Correctness: {}, evidence.Profile: {}}
		for _, m := range named {
			tiers[m.Tier][m.Name] = evidence.Of(float64(i%100), m.Unit)
		}
		for tier, figures := range tiers {
			at := evidence.Address{Identity: side.Identity}
			if tier != evidence.Static {
				at.Op, at.Case, at.Harness, at.Machine = "op", "small", "h", h200.Key()
			}
			l.Put(&evidence.Record{Tier: tier, Address: at, Metrics: figures, Checks: []evidence.Check{goodCheck()}, Provenance: evidence.Provenance{Machine: h200}}, evidence.Reused)
		}
	}
	return s
}
