package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		status Status
		tool   bool
		want   int
	}{
		{Pass, false, 0}, {Pass, true, 0}, {Warn, false, 0}, {Warn, true, 0}, {Fail, false, 1}, {Fail, true, 1},
		{Inconclusive, false, 4}, {Inconclusive, true, 3}, {NotCompared, false, 4}, {NotCompared, true, 3}, {Status(99), false, 4}, {Status(-1), true, 3},
	} {
		if got := (&Verdict{Status: c.status, ToolFailure: c.tool}).ExitCode(); got != c.want {
			t.Errorf("%s, tool failure %v: exit %d, want %d", c.status, c.tool, got, c.want)
		}
	}
}

func TestStatusWords(t *testing.T) {
	for _, s := range []Status{Inconclusive, NotCompared, Pass, Warn, Fail} {
		text, err := s.MarshalText()
		var back Status = 77
		if err != nil || back.UnmarshalText(text) != nil || back != s {
			t.Errorf("%d is %s and comes back as %d", s, text, back)
		}
	}
	var s Status
	if err := s.UnmarshalText([]byte("passed")); err == nil || s != Inconclusive {
		t.Errorf("%v", err)
	}
	if Status(99).String() != "inconclusive" || Status(-1).String() != "inconclusive" || Status(0) != Inconclusive {
		t.Error("a status that does not exist is not inconclusive")
	}
	order := []Status{NotCompared, Pass, Warn, Inconclusive, Fail}
	for i, a := range order {
		for j, b := range order {
			if worse(a, b) != (i > j) {
				t.Errorf("%s is worse than %s: %v", a, b, worse(a, b))
			}
		}
	}
}

func TestSeverityWarn(t *testing.T) {
	text := strings.ReplaceAll(standard, "limit: 0}", "limit: 0, severity: warn}")
	v := judged(t, parse(t, text), change(set(headStatic, "ptxas.spill_bytes", 8)))
	if v.Status != Warn || v.ExitCode() != 0 || findingOf(t, v, "spills").Status != Fail {
		t.Errorf("a broken rule that warns:\n%s", summaryOf(v))
	}
	v = judged(t, parse(t, text), change(drop("ptxas.spill_bytes")))
	if v.Status != Warn {
		t.Errorf("a rule that warns and has no figure:\n%s", summaryOf(v))
	}
	v = judged(t, parse(t, text), change(both(set(headStatic, "ptxas.spill_bytes", 8), set(headStatic, "ptxas.registers", 80))))
	if v.Status != Fail || v.ExitCode() != 1 {
		t.Errorf("beside a rule that fails:\n%s", summaryOf(v))
	}
}

func TestRegressionsSayWhatMoved(t *testing.T) {
	p := parse(t, standard)
	for _, c := range []struct {
		name, rule, reason string
		status             Status
		change             func(*KernelFacts, *CaseFacts)
	}{
		{"limit broken", "spills", "8 B is above the limit of 0 B", Fail, set(headStatic, "ptxas.spill_bytes", 8)},
		{"limit met", "spills", "within the limit", Pass, set(headStatic, "ptxas.spill_bytes", 0)},
		{"exactly accepted", "registers", "within what is accepted: 40 → 48", Pass, set(headStatic, "ptxas.registers", 48)},
		{"one too many", "registers", "40 → 49 (9 worse, 8 accepted)", Fail, set(headStatic, "ptxas.registers", 49)},
		{"better", "registers", "better: 40 → 32", Pass, set(headStatic, "ptxas.registers", 32)},
		{"exactly accepted, in %", "stack", "within what is accepted: 100 B → 110 B", Pass, set(headStatic, "ptxas.stack_bytes", 110)},
		{"too much, in %", "stack", "100 B → 120 B (20 % worse, 10% accepted)", Fail, set(headStatic, "ptxas.stack_bytes", 120)},
		{"base of 0 and equal", "stack", "equal", Pass, both(set(baseStatic, "ptxas.stack_bytes", 0), set(headStatic, "ptxas.stack_bytes", 0))},
		{"higher is better, too low", "occupancy", "62.0 % → 50.0 % (12 pp worse, 5pp accepted)", Fail, set(headProfile, "ncu.achieved_occupancy", 50)},
		{"higher is better, higher", "occupancy", "better: 62.0 % → 90.0 %", Pass, set(headProfile, "ncu.achieved_occupancy", 90)},
		{"below the floor", "conflicts", "worse by less than the floor: 1,000 → 2,000", Pass, set(headProfile, "ncu.shared_bank_conflicts", 2000)},
		{"above the floor", "conflicts", "1,000 → 2,001 (100 % worse, 1% accepted)", Fail, set(headProfile, "ncu.shared_bank_conflicts", 2001)},
		{"neither is better, up", "waves", "3 → 4 (33.3 % worse, 10% accepted)", Fail, set(headProfile, "ncu.waves", 4)},
		{"neither is better, down", "waves", "3 → 2 (33.3 % worse, 10% accepted)", Fail, set(headProfile, "ncu.waves", 2)},
		{"limit of a time", "bound", "", Fail, func(_ *KernelFacts, c *CaseFacts) { c.Latency.Head.Record = slow() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := findingOf(t, judged(t, p, change(c.change)), c.rule)
			if f.Status != c.status || c.reason != "" && f.Reason != c.reason {
				t.Errorf("got %s: %s, want %s: %s", f.Status, f.Reason, c.status, c.reason)
			}
		})
	}
}

func slow() *evidence.Record {
	facts := good()
	r := facts.Kernels[0].Cases[0].Latency.Head.Record
	for _, s := range r.Samples {
		for i := range s.BatchesNS {
			s.BatchesNS[i] *= 1.3
		}
	}
	return r
}

// TestLimitsInPercent: 0.14 is no binary number, and 14 % has to meet 14%.
func TestLimitsInPercent(t *testing.T) {
	for n := range 101 {
		if got := inMetricUnit(Amount{Number: float64(n) * 0.01, Unit: "%"}); got != float64(n) {
			t.Errorf("%d%% is %v", n, got)
		}
	}
	p := parse(t, withRule("id: o, metric: ncu.achieved_occupancy, limit: 14%"))
	for occupancy, want := range map[float64]Status{14: Pass, 13.9: Fail, 60: Pass} {
		v := judged(t, p, change(set(headProfile, "ncu.achieved_occupancy", occupancy)))
		if f := findingOf(t, v, "o"); f.Status != want {
			t.Errorf("%v %%: %s, %s", occupancy, f.Status, f.Reason)
		}
	}
}

func TestFails(t *testing.T) {
	p := parse(t, standard)
	for _, c := range []struct {
		name   string
		change func(*KernelFacts, *CaseFacts)
		tier   evidence.Tier
		want   bool
	}{
		{"well", func(*KernelFacts, *CaseFacts) {}, evidence.Static, false},
		{"spills", set(headStatic, "ptxas.spill_bytes", 8), evidence.Static, true},
		{"spills are not of this tier", set(headStatic, "ptxas.spill_bytes", 8), evidence.Correctness, false},
		{"missing is no failure", drop("ptxas.spill_bytes"), evidence.Static, false},
		{"wrong", checked(func(c *evidence.Check) { c.Status = "fail" }), evidence.Correctness, true},
		{"hangs", func(_ *KernelFacts, c *CaseFacts) { c.Correctness.Record = broke(evidence.Hang) }, evidence.Correctness, true},
		{"harness fails", func(_ *KernelFacts, c *CaseFacts) { c.Correctness.Record = broke(evidence.Tool) }, evidence.Correctness, false},
		{"does not build", func(k *KernelFacts, _ *CaseFacts) { k.Broken = &Problem{} }, evidence.Static, true},
	} {
		if got := Fails(p, change(c.change).Kernels[0], c.tier); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{
		{0, "byte", "0 B"}, {1234567, "byte", "1,234,567 B"}, {-1234, "byte", "-1,234 B"}, {999, "", "999"}, {1000, "", "1,000"}, {0.000123456, "", "0.0001235"},
		{12.5, "%", "12.5 %"}, {999, "ns", "999 ns"}, {12345, "ns", "12.35 µs"}, {1234567, "ns", "1.235 ms"}, {1e20, "", "1e+20"}, {40, "registers/thread", "40"}, {3, "hz", "3 hz"},
	} {
		if got := Show(c.x, c.unit); got != c.want {
			t.Errorf("%v %s is shown as %q, want %q", c.x, c.unit, got, c.want)
		}
	}
}

func TestVerdictRoundTrip(t *testing.T) {
	f := change(both(set(headStatic, "ptxas.registers", 80), drop("ptxas.stack_bytes")))
	v := judged(t, parse(t, standard), f)
	v.Head, v.Base = Side{Commit: "c2", Dirty: true}, Side{Why: "none"}
	v.Machines = []MachineRef{{Key: "h200-0", Description: "NVIDIA H200", Oldest: "2026", Newest: "2027"}}
	v.Notes, v.Reproduce = []string{"a note with <b> & \u2028"}, "gate check"
	path := filepath.Join(t.TempDir(), "verdict.json")
	if err := os.WriteFile(path, []byte(encoded(t, v)), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := ReadVerdict(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, v) {
		t.Errorf("got  %+v\nwant %+v", back, v)
	}
	if encoded(t, back) != encoded(t, v) || back.ExitCode() != v.ExitCode() {
		t.Error("the second encoding differs")
	}
}

func TestReadVerdictRefuses(t *testing.T) {
	v := judged(t, parse(t, standard), good())
	text := encoded(t, v)
	path := filepath.Join(t.TempDir(), "verdict.json")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "the JSON is cut short"},
		{"cut", text[:200], "the JSON is cut short"},
		{"unknown key", strings.Replace(text, `"policy"`, `"polcy"`, 1), `json: unknown field "polcy"`},
		{"key twice", strings.Replace(text, `"policy"`, `"status": "fail", "policy"`, 1), `the key "status" appears twice in one object`},
		{"another schema", strings.Replace(text, VerdictSchema, "gate/verdict/v0", 1), `the schema is "gate/verdict/v0", this gate reads "gate/verdict/v1"`},
		{"unknown status", strings.Replace(text, `"status": "pass"`, `"status": "green"`, 1), `"green" is not a status`},
		{"second document", text + text, "data follows the JSON"},
		{"metric with value and reason", strings.Replace(text, `"value": 40,`, `"value": 40, "missing": "x",`, 1), "a metric has both a value and a reason for having none"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := ReadVerdict(path); err == nil || err.Error() != path+": "+c.want || v != nil {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if err := os.Truncate(path, maxVerdict+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadVerdict(path); err == nil || !strings.HasSuffix(err.Error(), "larger than 67108864 bytes") {
		t.Errorf("too large: %v", err)
	}
	if _, err := ReadVerdict(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestCounts(t *testing.T) {
	f := good()
	unchanged := good().Kernels[0]
	unchanged.Name, unchanged.State = "op/u", Unchanged
	unchanged.Cases[0].Profile.Base, unchanged.Cases[0].Latency.Experiment = Arm{}, Arm{}
	fresh := good().Kernels[0]
	fresh.Name, fresh.State = "op/n", New
	fresh.Cases[0].Correctness.Source = Measured
	fresh.Cases[0].Profile.Base, fresh.Cases[0].Latency.Experiment = Arm{}, Arm{}
	gone := KernelFacts{Name: "op/g", State: Gone}
	waiting := good().Kernels[0]
	waiting.Name = "op/w"
	waiting.Cases[0].Latency.Experiment = Arm{Missing: "never timed"}
	f.Kernels = append(f.Kernels, unchanged, fresh, gone, waiting)
	v := judged(t, parse(t, standard), f)
	want := Counts{Kernels: 5, Passed: 3, Failed: 1, Undecided: 1, Unchanged: 1, Changed: 2, New: 1, Gone: 1, Measured: 1, Reused: 26, Missing: 1}
	if v.Counts != want {
		t.Errorf("got  %+v\nwant %+v", v.Counts, want)
	}
	var names []string
	for _, k := range v.Kernels {
		names = append(names, k.Name)
	}
	if strings.Join(names, " ") != "op/g op/w op/k op/n op/u" || v.ExitCode() != 1 {
		t.Errorf("%v, exit %d", names, v.ExitCode())
	}
}
