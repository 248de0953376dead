package diff

import (
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func record(tier evidence.Tier, m evidence.Metrics) *evidence.Record {
	return &evidence.Record{Tier: tier, Address: evidence.Address{Identity: evidence.Identity{Code: "c", Host: "h"}, Op: "op", Case: "small"}, Metrics: m}
}

// TestDirections: which way is better is the metric's, and a figure that one
// side lacks is never equal.
func TestDirections(t *testing.T) {
	of := evidence.Of
	for _, c := range []struct {
		metric string
		a, b   evidence.Value
		want   Direction
		change float64 // 0 for none
	}{
		{"ptxas.registers", of(40, "registers/thread"), of(40, "registers/thread"), Equal, 0},
		{"ptxas.registers", of(40, "registers/thread"), of(44, "registers/thread"), Worse, 0.1},
		{"ptxas.registers", of(40, "registers/thread"), of(30, "registers/thread"), Better, -0.25},
		{"ncu.achieved_occupancy", of(40, "%"), of(44, "%"), Better, 0.1},
		{"ncu.achieved_occupancy", of(40, "%"), of(36, "%"), Worse, -0.1},
		{"ptxas.spill_bytes", of(0, "byte"), of(8, "byte"), Worse, 0},
		{"ncu.raw.sm__cycles_active.avg", of(10, "cycle"), of(9, "cycle"), Changed, -0.1},
		{"a.name.of.an.older.gate", of(10, ""), of(20, ""), Changed, 1},
		{"ptxas.registers", of(40, "registers/thread"), evidence.Absent("lost", ""), OnlyA, 0},
		{"ptxas.registers", evidence.Absent("lost", ""), of(40, "registers/thread"), OnlyB, 0},
		{"ptxas.registers", evidence.Absent("lost", ""), evidence.Absent("lost", ""), Unknown, 0},
		{"latency.typical", of(1, "ns"), of(1, "us"), Unknown, 0},
	} {
		got, err := Of(record(evidence.Profile, evidence.Metrics{c.metric: c.a}), record(evidence.Profile, evidence.Metrics{c.metric: c.b}))
		if err != nil || len(got.Figures) != 1 {
			t.Fatalf("%s: %+v, %v", c.metric, got, err)
		}
		f := got.Figures[0]
		if f.Direction != c.want || (f.Change == nil) != (c.change == 0 && c.want != Equal) || f.Change != nil && (*f.Change < c.change-1e-9 || *f.Change > c.change+1e-9) {
			t.Errorf("%s %+v → %+v: %s, change %v, want %s, %v", c.metric, c.a, c.b, f.Direction, f.Change, c.want, c.change)
		}
	}
}

// TestEveryFigureIsThere: what only one side has is listed, function by function.
func TestEveryFigureIsThere(t *testing.T) {
	a, b := record(evidence.Static, evidence.Metrics{"ptxas.registers": evidence.Of(1, "")}), record(evidence.Static, evidence.Metrics{"ptxas.stack_bytes": evidence.Of(1, "byte")})
	a.Entries = map[string]evidence.Metrics{"f": {"ptxas.registers": evidence.Of(8, "")}, "gone": {"ptxas.registers": evidence.Of(8, "")}}
	b.Entries = map[string]evidence.Metrics{"f": {"ptxas.registers": evidence.Of(9, "")}, "new": {"ptxas.registers": evidence.Of(8, "")}}
	c, err := Of(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range c.Moved() {
		got = append(got, f.Entry+" "+f.Metric+" "+string(f.Direction))
	}
	want := []string{"f ptxas.registers worse", " ptxas.registers only in A", "gone ptxas.registers only in A", " ptxas.stack_bytes only in B", "new ptxas.registers only in B"}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %q, want %q", i, got[i], want[i])
		}
	}
	if c.Count(Worse) != 1 || c.Count(OnlyA) != 2 || c.Count(Equal) != 0 {
		t.Errorf("%d worse, %d only in A", c.Count(Worse), c.Count(OnlyA))
	}
}

// TestParts: each part of what identifies a record is named where it differs, and
// nothing is where the records are one.
func TestParts(t *testing.T) {
	a := record(evidence.Profile, nil)
	if c, err := Of(a, a); err != nil || len(c.Differs) != 0 || len(c.Figures) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	for what, change := range map[string]func(r *evidence.Record){
		"kernel":    func(r *evidence.Record) { r.Provenance.Kernel = "x" },
		"code":      func(r *evidence.Record) { r.Address.Code = "x" },
		"host":      func(r *evidence.Record) { r.Address.Host = "x" },
		"other arm": func(r *evidence.Record) { r.Base = &evidence.Address{Identity: evidence.Identity{Code: "x"}} },
		"op":        func(r *evidence.Record) { r.Address.Op = "x" },
		"case":      func(r *evidence.Record) { r.Address.Case = "x" },
		"harness":   func(r *evidence.Record) { r.Address.Harness = "x" },
		"machine":   func(r *evidence.Record) { r.Address.Machine = "x" },
		"card":      func(r *evidence.Record) { r.Provenance.Card = "x" },
		"compiler":  func(r *evidence.Record) { r.Provenance.Compiler = "x" },
		"profiler":  func(r *evidence.Record) { r.Provenance.Profiler = "x" },
		"protocol":  func(r *evidence.Record) { r.Provenance.Protocol = "x" },
		"commit":    func(r *evidence.Record) { r.Provenance.Commit = "x" },
		"launches":  func(r *evidence.Record) { r.Launches = []evidence.Launch{{Kernel: "k", Grid: [3]int{1, 2, 3}}} },
	} {
		b := record(evidence.Profile, nil)
		change(b)
		c, err := Of(a, b)
		if err != nil || len(c.Differs) != 1 || c.Differs[0].What != what {
			t.Errorf("%s: %+v, %v", what, c.Differs, err)
		}
	}
	if _, err := Of(a, record(evidence.Static, nil)); err == nil {
		t.Error("two tiers are compared")
	}
}
