package check

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/store"
)

var h200 = evidence.Machine{GPU: "NVIDIA H200", Driver: "580", CC: "9.0"}

func at(code string) evidence.Address {
	return evidence.Address{Identity: evidence.Identity{Code: code, Host: "h"}, Op: "op", Case: "small", Harness: "0123456789", Machine: h200.Key()}
}

func recordAt(code, commit string) *evidence.Record {
	return &evidence.Record{Tier: evidence.Correctness, Address: at(code), Provenance: evidence.Provenance{Machine: h200, Commit: commit, Recorded: "2026-11-20T10:00:00Z"}}
}

func newStores(t *testing.T) stores {
	dir := t.TempDir()
	return stores{shared: store.Open(filepath.Join(dir, "shared")), local: store.Open(filepath.Join(dir, "local"))}
}

func mustPut(t *testing.T, s *store.Store, r *evidence.Record) {
	t.Helper()
	if err := s.Put(r, nil); err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, s *store.Store) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.Dir(), "*", "*", "*", "*.json"))
	if len(files) != 1 {
		t.Fatalf("%d records", len(files))
	}
	if err := os.Truncate(files[0], 5); err != nil {
		t.Fatal(err)
	}
}

func TestRepositoryComesBeforeTheCache(t *testing.T) {
	s := newStores(t)
	get := func() (*evidence.Record, error) { return s.get(evidence.Correctness, at("c1"), nil) }
	if _, err := get(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	mustPut(t, s.local, recordAt("c1", "local"))
	if r, err := get(); err != nil || r.Provenance.Commit != "local" {
		t.Errorf("local alone: %+v, %v", r, err)
	}
	mustPut(t, s.shared, recordAt("c1", "shared"))
	if r, err := get(); err != nil || r.Provenance.Commit != "shared" {
		t.Errorf("both: %+v, %v", r, err)
	}
	damage(t, s.shared)
	if r, err := get(); err != nil || r.Provenance.Commit != "local" {
		t.Errorf("the shared one is damaged: %+v, %v", r, err)
	}
	damage(t, s.local)
	if r, err := get(); err == nil || errors.Is(err, store.ErrNotFound) || r != nil {
		t.Errorf("both are damaged: %+v, %v", r, err)
	}
}

func TestDamagedEvidenceIsMissingWithItsReason(t *testing.T) {
	j := &job{stores: newStores(t), tree: &tree{policy: policyOf(t, "{id: a, metric: ncu.waves, max_regression: 1}")}}
	arm := func() policy.Arm { return j.arm(evidence.Correctness, at("c1"), nil) }
	if a := arm(); a.Record != nil || a.Missing != "no correctness evidence of this code is recorded on "+h200.Key() {
		t.Errorf("nothing: %+v", a)
	}
	base := at("c0")
	if a := j.arm(evidence.Latency, at("c1"), &base); a.Record != nil || !strings.HasPrefix(a.Missing, "head and base were never timed against each other on ") {
		t.Errorf("no experiment: %+v", a)
	}
	mustPut(t, j.stores.local, recordAt("c1", ""))
	if a := arm(); a.Record == nil || a.Missing != "" || a.Source != policy.Reused {
		t.Errorf("a record: %+v", a)
	}
	j.Force = true
	times := recordAt("c1", "")
	times.Tier = evidence.Latency
	mustPut(t, j.stores.shared, times)
	if a := arm(); a.Record == nil {
		t.Errorf("forced: exact evidence is not set aside: %+v", a)
	}
	if a := j.arm(evidence.Latency, at("c1"), nil); a.Record != nil || a.Missing == "" {
		t.Errorf("forced: %+v", a)
	}
	j.NoGPU = true
	if a := j.arm(evidence.Latency, at("c1"), nil); a.Record == nil {
		t.Errorf("forced, with nothing to measure on: %+v", a)
	}
	damage(t, j.stores.local)
	if a := arm(); a.Record != nil || !strings.HasSuffix(a.Missing, "the JSON is cut short") {
		t.Errorf("damaged: %+v", a)
	}
	if a := j.arm(evidence.Correctness, evidence.Address{}, nil); a.Record != nil || a.Missing == "" {
		t.Errorf("no machine: %+v", a)
	}
}

// TestProfileWithoutThePolicysMetricIsTakenAgain: a record made before a rule
// was written does not hold what the rule asks for.
func TestProfileWithoutThePolicysMetricIsTakenAgain(t *testing.T) {
	j := &job{stores: newStores(t), tree: &tree{policy: policyOf(t, "{id: a, metric: ncu.waves, max_regression: 1}")}}
	r := recordAt("c1", "")
	r.Tier, r.Metrics = evidence.Profile, evidence.Metrics{"ncu.achieved_occupancy": evidence.Of(60, "%")}
	mustPut(t, j.stores.shared, r)
	if a := j.arm(evidence.Profile, at("c1"), nil); a.Record != nil || a.Missing != "the recorded profile does not hold ncu.waves" {
		t.Errorf("%+v", a)
	}
	r.Metrics["ncu.waves"] = evidence.Absent("this chip has no such counter", "")
	mustPut(t, j.stores.shared, r)
	if a := j.arm(evidence.Profile, at("c1"), nil); a.Record == nil {
		t.Errorf("a figure that is missing by name is recorded: %+v", a)
	}
}

func TestSkipLeavesWhatWasMeasured(t *testing.T) {
	s := &kase{needs: needs{profile: true, latency: true}}
	s.facts.Correctness = policy.Arm{Record: recordAt("c1", "")}
	s.facts.Profile.Head = policy.Arm{Missing: "not recorded"}
	s.skip("not measured: the static tier failed")
	f := s.facts
	if f.Correctness.Record == nil || f.Profile.Head.Missing != "not measured: the static tier failed" || f.Latency.Head.Missing != "" || !s.skipped || s.missing() != (needs{}) {
		t.Errorf("%+v", s)
	}
}

func TestMachineRefs(t *testing.T) {
	other := evidence.Machine{GPU: "NVIDIA H100"}
	arm := func(m evidence.Machine, day string) policy.Arm {
		return policy.Arm{Record: &evidence.Record{Provenance: evidence.Provenance{Machine: m, Recorded: "2026-11-" + day + "T00:00:00Z"}}}
	}
	k := &kernel{cases: []*kase{
		{facts: policy.CaseFacts{Correctness: arm(h200, "12"), Profile: policy.Pair{Head: arm(h200, "03"), Base: arm(h200, "20")}}},
		{facts: policy.CaseFacts{Correctness: arm(other, "15")}},
		{facts: policy.CaseFacts{Correctness: policy.Arm{Missing: "none"}}},
	}}
	refs := machineRefs([]*kernel{k})
	if len(refs) != 2 || refs[0].Key != other.Key() || refs[1].Key != h200.Key() || refs[1].Oldest != "2026-11-03T00:00:00Z" || refs[1].Newest != "2026-11-20T00:00:00Z" || refs[0].Oldest != refs[0].Newest {
		t.Errorf("%+v", refs)
	}
	if refs := machineRefs(nil); len(refs) != 0 {
		t.Errorf("%+v", refs)
	}
}
