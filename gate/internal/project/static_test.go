package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/identity"
)

const report = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 1.000 ms
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
ptxas info    : Compile time = 1.000 ms
`

func artifact(t *testing.T, log string) *build.Artifact {
	t.Helper()
	a := &build.Artifact{Arch: "sm_90", Entries: []string{"one"}, Rest: []string{"two"}, Log: filepath.Join(t.TempDir(), "ptxas.log"),
		Units: []build.Unit{{Source: "k.cu", Functions: []identity.Function{
			{Name: "helper", Registers: 90, Frame: 8},
			{Name: "one", Entry: true, Registers: 16, Shared: 128 + reserved},
			{Name: "two", Entry: true, Registers: 32, Frame: 24, Stack: 40},
		}}}}
	if err := os.WriteFile(a.Log, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEveryKernelOfTheCodeCounts(t *testing.T) {
	r, err := static(artifact(t, report))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		number float64
		where  string
	}{
		"ptxas.registers": {32, "two, which entries: leaves out"}, "ptxas.spill_bytes": {36, "two, which entries: leaves out"},
		"ptxas.stack_bytes": {40, "two, which entries: leaves out"}, "ptxas.shared_bytes": {128, "one"}, "ptxas.barriers": {1, "one"}, "ptxas.spill_load_bytes": {16, "two, which entries: leaves out"},
	} {
		if v := r.Metrics.Get(name); !v.Known() || v.Number != want.number || v.Where() != want.where {
			t.Errorf("%s: %+v, want %+v", name, v, want)
		}
	}
	for entry, want := range map[string]float64{"one": 16, "two": 32} {
		if v := r.Entries[entry].Get("ptxas.registers"); len(r.Entries) != 2 || v.Number != want || v.Where() != "" {
			t.Errorf("%s of %d functions: %+v", entry, len(r.Entries), v)
		}
	}
}

func TestReportThatDisagreesWithTheCodeIsRefused(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"Used 32", "Used 24", "the compiler's log says 24 registers of two, and its code says 32"},
		{"24 bytes stack frame, 20", "0 bytes stack frame, 0", "the compiler's log says 0 bytes of stack frame of two, and its code says 24"},
		{", 128 bytes smem", "", "the compiler's log says 0 bytes of shared memory of one, and its code says 128"},
		{"used 0 barriers", "used 0 barriers, 8 bytes lmem", "the compiler's log says 8 bytes of local memory of two, and its code says 0"},
		{"'two' for 'sm_90'", "'two' for 'sm_80'", "the compiler's log reports two for sm_80, not for sm_90"},
		{"function 'two'", "function 'three'", "the compiler's log has no report on two for sm_90"},
	} {
		if _, err := static(artifact(t, strings.Replace(report, c.before, c.after, 1))); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.after, err, c.want)
		}
	}
	twice := report + report[strings.Index(report, "ptxas info    : Compiling entry function 'two'"):]
	if _, err := static(artifact(t, twice)); err == nil || !strings.Contains(err.Error(), "more often than the code holds it") {
		t.Errorf("a second report: %v", err)
	}
}

// TestTwoUnitsOfOneName: each of two kernels of one name has its own report.
func TestTwoUnitsOfOneName(t *testing.T) {
	second := strings.NewReplacer("Used 32", "Used 40", "'one'", "'other'", "for one", "for other").Replace(report)
	a := artifact(t, report+second)
	a.Units = append(a.Units, build.Unit{Source: "j.cu", Functions: []identity.Function{
		{Name: "other", Entry: true, Registers: 16, Shared: 128 + reserved}, {Name: "two", Entry: true, Registers: 40, Frame: 24}}})
	r, err := static(a)
	if err != nil || r.Metrics.Get("ptxas.registers").Number != 40 {
		t.Fatalf("%+v, %v", r, err)
	}
	a.Units[0], a.Units[1] = a.Units[1], a.Units[0]
	if _, err := static(a); err == nil {
		t.Error("the reports of two kernels of one name were exchanged")
	}
}

// TestLinkedKernels: after the device link its figures hold, and the spills of every unit's functions.
func TestLinkedKernels(t *testing.T) {
	a := artifact(t, report+`ptxas info    : 0 bytes gmem
ptxas info    : Function properties for helper
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Compile time = 1.000 ms
nvlink warning : Stack size for entry function 'one' cannot be statically determined
`)
	a.Entries, a.Rest = []string{"one"}, nil
	a.Units[0].Functions[1].Shared = 128 // the reserve comes with the link
	a.Linked = []identity.Function{{Name: "one", Entry: true, Registers: 84, Shared: 128 + reserved, Stack: 48}}
	r, err := static(a)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Metrics
	if m.Get("ptxas.registers").Number != 84 || m.Get("ptxas.spill_bytes").Number != 8 || m.Get("ptxas.shared_bytes").Number != 128 || m.Get("ptxas.stack_bytes").Known() {
		t.Errorf("%+v", m)
	}
	a.Linked[0].Name = "three"
	if _, err := static(a); err == nil || err.Error() != "no unit holds three, which the linked code does" {
		t.Errorf("%v", err)
	}
}
