package selftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

var now = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

const everyKind = `version: 1
kernels: kernels/**/kernel.yaml
machines: [h200, {name: ours, match: "NVIDIA B*"}]
store: kernels/evidence
rules:
  - {id: spills, metric: ptxas.spill_bytes, limit: 0}
  - {id: registers, metric: ptxas.registers, limit: 64, max_regression: 8}
  - {id: growth, metric: check.max_abs_error, max_regression: 10%}
  - {id: occupancy, metric: ncu.achieved_occupancy, max_regression: 5pp, limit: 40%}
  - {id: waves, metric: ncu.waves, max_regression: 10%, severity: warn}
  - {id: latency, metric: latency.typical, max_regression: 2%, floor: 50ns}
  - {id: bound, metric: latency.mean, limit: 1us}
  - {id: ratio, metric: latency.typical, relative_to: ref, limit: 1.5}
  - {id: elsewhere, metric: ptxas.spill_bytes, limit: 0, kernels: ["op/other"]}
`

// kernel is one with the compiler's figures, its policy and what is asked of it.
func kernel(t *testing.T, text string) (p *policy.Policy, path string, asked plan.Plan, l *evidence.Ledger) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Read(path, "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	id := evidence.Identity{Code: strings.Repeat("a", 64), Host: strings.Repeat("b", 64)}
	s := &plan.Subject{Name: "op/k", File: "kernels/op/k/kernel.yaml", Arch: "sm_90a", Op: "op", State: verdict.Unchanged,
		Head: plan.Side{Identity: id}, Base: plan.Side{Identity: id},
		References: map[string]plan.Side{"op/ref": {Identity: evidence.Identity{Code: strings.Repeat("c", 64), Host: strings.Repeat("d", 64)}}},
		Cases:      []plan.Case{{Name: "small", Harness: strings.Repeat("e", 64)}, {Name: "large", Harness: strings.Repeat("f", 64)}}}
	l = &evidence.Ledger{}
	l.Put(&evidence.Record{Schema: evidence.Schema, Tier: evidence.Static, Address: evidence.Address{Identity: id},
		Metrics: evidence.Metrics{"ptxas.spill_bytes": evidence.Of(0, "byte"), "ptxas.registers": evidence.Of(40, "registers/thread")}}, evidence.Measured)
	return p, path, plan.Make(p, []*plan.Subject{s}, plan.Options{Now: now}), l
}

func TestEveryKindIsCaught(t *testing.T) {
	r, err := Run(kernelArgs(t, everyKind))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Planted {
		if !p.Caught {
			t.Errorf("%s (%s): %s", p.Kind, p.Tier, p.Said)
		}
	}
	kinds := map[string]bool{}
	for _, p := range r.Planted {
		kinds[p.Kind] = true
	}
	for _, k := range []string{"rule spills: limit", "rule registers: limit", "rule registers: regression", "rule growth: regression", "rule occupancy: limit",
		"rule occupancy: regression", "rule waves: regression", "rule latency: experiment", "rule bound: time limit", "rule ratio: ratio", "a time that the card cannot reach"} {
		if !kinds[k] {
			t.Errorf("no violation of %s was planted", k)
		}
	}
	if len(r.Never) != 1 || !strings.Contains(r.Never[0], "elsewhere") || len(r.Skipped) != 0 || r.Caught() != len(r.Planted) || len(r.Planted) < 80 {
		t.Errorf("%d planted, never %q, skipped %q", len(r.Planted), r.Never, r.Skipped)
	}
}

// TestStatedWorkLeavesNothingOut: the times of a selftest are made up, and would be
// too fast for what an op states.
func TestStatedWorkLeavesNothingOut(t *testing.T) {
	p, path, asked, l := kernel(t, everyKind)
	for i := range asked.Subjects[0].Cases {
		asked.Subjects[0].Cases[i].Work = roof.Work{Flops: 1 << 50, Unit: "f16"}
	}
	for _, q := range asked.Questions {
		if n := q.Need(evidence.Answers, evidence.Latency); n != nil && !n.Compares() {
			l.Put(&evidence.Record{Schema: evidence.Schema, Tier: evidence.Latency, Address: n.At, Provenance: evidence.Provenance{Machine: evidence.Machine{CC: "9.0"}},
				Metrics:  evidence.Metrics{"latency.typical": evidence.Of(1e9, "ns")},
				Samples:  []evidence.Sample{{CacheState: evidence.Warm, Calls: 1, BatchesNS: []float64{1e9, 1.1e9}}},
				Capacity: &evidence.Capacity{L2Bytes: 62914560, ColdBytesPerNS: 4400, WarmBytesPerNS: 6600, FlopsPerNS: map[string]float64{"f16": 989000}}}, evidence.Reused)
		}
	}
	r, err := Run(p, path, asked, l, now)
	if err != nil || len(r.Skipped) != 0 || r.Caught() != len(r.Planted) {
		t.Errorf("%v, skipped %q, %d of %d caught", err, r.Skipped, r.Caught(), len(r.Planted))
	}
}

func TestStoredSessionsAreHeldAgainst(t *testing.T) {
	r, err := Run(kernelArgs(t, strings.Replace(everyKind, "rules:", "latency: {base: stored}\nrules:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Planted {
		if p.Kind == "rule latency: history" && p.Caught {
			return
		}
	}
	t.Errorf("no slower head was planted beside stored sessions: %+v", r.Planted)
}

// TestWhatIsNotCaughtIsSaid: without a violation there is nothing to catch.
func TestWhatIsNotCaughtIsSaid(t *testing.T) {
	p, _, asked, l := kernel(t, everyKind)
	b, err := newBench(p, asked.Subjects[0], recordedIn(asked, l), now)
	if err != nil || b.clean.Status != verdict.Pass {
		t.Fatalf("%v: %s", err, worst(b.clean))
	}
	var r Result
	for _, least := range []verdict.Status{verdict.Inconclusive, verdict.Fail} {
		if err := r.try(b, b.ledger, "nothing", evidence.Latency, least); err != nil {
			t.Fatal(err)
		}
	}
	none := b.ledger.Clone()
	none.Refuse(*b.red(evidence.Correctness).Key, "")
	if err := r.try(b, none, "only inconclusive", evidence.Latency, verdict.Fail); err != nil {
		t.Fatal(err)
	}
	if r.Caught() != 0 || len(r.Planted) != 3 {
		t.Errorf("%+v", r.Planted)
	}
}

func TestAKernelThatFailsProvesNothing(t *testing.T) {
	if r, err := Run(kernelArgs(t, strings.Replace(everyKind, "limit: 64", "limit: 8", 1))); err == nil {
		t.Errorf("%+v", r)
	}
}

func kernelArgs(t *testing.T, text string) (*policy.Policy, string, plan.Plan, *evidence.Ledger, time.Time) {
	t.Helper()
	p, path, asked, l := kernel(t, text)
	return p, path, asked, l, now
}
