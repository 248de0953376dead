package verdict

import (
	"errors"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		status Status
		tool   bool
		want   int
	}{
		{Pass, false, 0}, {Pass, true, 3}, {Warn, false, 0}, {Warn, true, 3}, {Fail, false, 1}, {Fail, true, 1},
		{Inconclusive, false, 4}, {Inconclusive, true, 3}, {NotCompared, false, 4}, {NotCompared, true, 3}, {Status(99), false, 4}, {Status(-1), true, 3},
	} {
		if got := (&Verdict{Status: c.status, ToolFailure: c.tool}).ExitCode(); got != c.want {
			t.Errorf("%s, tool failure %v: exit %d, want %d", c.status, c.tool, got, c.want)
		}
	}
	if v := (&Verdict{}); v.ExitCode() != 4 {
		t.Errorf("the zero verdict exits %d", v.ExitCode())
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

// of is a finding of a status and a severity.
func of(s Status, weight Severity) Finding { return Finding{Status: s, Severity: weight} }

func TestStatusIsTheWorstFinding(t *testing.T) {
	for _, c := range []struct {
		name     string
		findings []Finding
		want     Status
	}{
		{"none", nil, Inconclusive},
		{"nothing compared", []Finding{of(NotCompared, Red)}, Inconclusive},
		{"a limit beside what is not compared", []Finding{of(NotCompared, Red), of(Pass, Red)}, Pass},
		{"one is open", []Finding{of(Pass, Red), of(Inconclusive, Red)}, Inconclusive},
		{"red", []Finding{of(Inconclusive, Red), of(Fail, Red), of(Pass, Red)}, Fail},
		{"no severity is red", []Finding{of(Fail, ""), of(Pass, Red)}, Fail},
		{"a broken rule that warns", []Finding{of(Pass, Red), of(Fail, Warns)}, Warn},
		{"an open rule that warns", []Finding{of(Pass, Red), of(Inconclusive, Warns)}, Warn},
		{"a kept rule that warns", []Finding{of(Pass, Warns)}, Pass},
		{"warns beside what is open", []Finding{of(Inconclusive, Red), of(Fail, Warns)}, Inconclusive},
		{"red beside what warns", []Finding{of(Fail, Red), of(Fail, Warns)}, Fail},
		{"advice weighs nothing", []Finding{of(Pass, Red), of(Fail, Info)}, Pass},
		{"advice alone", []Finding{of(Pass, Info)}, Inconclusive},
	} {
		v := Verdict{Kernels: []KernelVerdict{{Findings: c.findings}}}
		if v.Conclude(); v.Status != c.want || v.Kernels[0].Status != c.want {
			t.Errorf("%s: %s and %s, want %s", c.name, v.Status, v.Kernels[0].Status, c.want)
		}
	}
	var none Verdict
	if none.Conclude(); none.Status != Inconclusive || none.ExitCode() != 4 {
		t.Errorf("no kernel: %s, exit %d", none.Status, none.ExitCode())
	}
}

// TestOnlyWhatIsOpenIsAToolsFailure: a tool that failed matters where it leaves
// a question open that counts.
func TestOnlyWhatIsOpenIsAToolsFailure(t *testing.T) {
	for _, c := range []struct {
		status Status
		weight Severity
		want   bool
	}{{Inconclusive, Red, true}, {Inconclusive, Warns, true}, {Inconclusive, Info, false}, {Fail, Red, false}, {Pass, Red, false}} {
		v := Verdict{Kernels: []KernelVerdict{{Findings: []Finding{{Status: c.status, Severity: c.weight, Tool: true}}}}}
		if v.Conclude(); v.ToolFailure != c.want {
			t.Errorf("%s, %s: %v", c.status, c.weight, v.ToolFailure)
		}
	}
}

func TestConcludeCountsAndOrders(t *testing.T) {
	kernel := func(name, arch string, state State, s Status) KernelVerdict {
		return KernelVerdict{Name: name, Arch: arch, State: state, Findings: []Finding{of(s, Red)}}
	}
	v := Verdict{Counts: Counts{Measured: 1, Reused: 2, Missing: 3}, Kernels: []KernelVerdict{
		kernel("op/b", "sm_90", Changed, Pass), kernel("op/u", "sm_90", Unchanged, Pass), kernel("op/g", "", Gone, Fail), kernel("op/a", "sm_90", New, Pass),
		kernel("op/w", "sm_90", NoBase, Inconclusive), kernel("op/b", "sm_80", Changed, Pass), {Name: "op/x", State: Changed, Findings: []Finding{of(Fail, Warns)}},
	}}
	v.Conclude()
	want := Counts{Kernels: 7, Passed: 5, Failed: 1, Undecided: 1, Unchanged: 1, Changed: 3, New: 1, Gone: 1, Measured: 1, Reused: 2, Missing: 3}
	if v.Counts != want {
		t.Errorf("got  %+v\nwant %+v", v.Counts, want)
	}
	var order []string
	for _, k := range v.Kernels {
		order = append(order, k.Name+" "+k.Arch)
	}
	if got := strings.Join(order, ", "); got != "op/g , op/w sm_90, op/x , op/a sm_90, op/b sm_80, op/b sm_90, op/u sm_90" || v.ExitCode() != 1 {
		t.Errorf("%s, exit %d", got, v.ExitCode())
	}
}

// TestTheWholeIsItsWorstKernel: the whole is no better than its worst part, in
// whatever order the parts stand, and one finding more never improves it.
func TestTheWholeIsItsWorstKernel(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	finding := func() Finding {
		return of(Status(r.Intn(5)), []Severity{Red, Warns, Info}[r.Intn(3)])
	}
	for range 300 {
		var v Verdict
		for i := range 1 + r.Intn(4) {
			k := KernelVerdict{Name: string(rune('a' + i))}
			for range r.Intn(4) {
				k.Findings = append(k.Findings, finding())
			}
			v.Kernels = append(v.Kernels, k)
		}
		again := Verdict{Kernels: append([]KernelVerdict(nil), v.Kernels...)}
		r.Shuffle(len(again.Kernels), func(i, j int) {
			again.Kernels[i], again.Kernels[j] = again.Kernels[j], again.Kernels[i]
		})
		v.Conclude()
		again.Conclude()
		if !reflect.DeepEqual(v, again) {
			t.Fatalf("seed %d: the order counts:\n%+v\n%+v", seed, v, again)
		}
		if v.Status != v.Kernels[0].Status || (v.ExitCode() == 0) != (v.Status == Pass || v.Status == Warn) {
			t.Fatalf("seed %d: %+v", seed, v)
		}
		for i, k := range v.Kernels[1:] {
			if worse(k.Status, v.Kernels[i].Status) {
				t.Fatalf("seed %d: %s is worse than %s, which stands before it", seed, k.Name, v.Kernels[i].Name)
			}
		}
		// A kernel that passes or fails is not improved by one more finding.
		for _, k := range v.Kernels {
			more := statusOf(append(append([]Finding(nil), k.Findings...), finding()))
			if k.Status == Fail && more != Fail || k.Status == Warn && more == Pass {
				t.Fatalf("seed %d: %s becomes %s", seed, k.Status, more)
			}
		}
	}
}

// sample is a verdict that uses every part of the layout.
func sample() *Verdict {
	base, head, missing := evidence.Of(40, "registers/thread"), evidence.Of(80, "registers/thread"), evidence.Absent("not measured", "byte")
	seen := 0.01
	v := &Verdict{Schema: Schema, Policy: "policies.yaml", Head: Side{Commit: "c2", Dirty: true, How: "the working tree"}, Base: Side{Why: "none"},
		Machines: []MachineRef{{Key: "h200-0", Description: "NVIDIA H200", Oldest: "2026", Newest: "2027"}},
		Counts:   Counts{Measured: 1, Reused: 2, Missing: 3},
		Notes:    []string{"a note with <b> & \u2028"}, Reproduce: "gate check",
		Kernels: []KernelVerdict{{Name: "op/k", File: "k.yaml", Arch: "sm_90", State: Changed, Identity: evidence.Identity{Code: "c2", Host: "h"}, Detail: "a line",
			Findings: []Finding{
				{Rule: "registers", Metric: "ptxas.registers", Unit: "registers/thread", Tier: evidence.Static, Status: Fail, Severity: Red, Base: &base, Head: &head, Accepts: "max_regression 8", Reason: "40 → 80"},
				{Rule: "stack", Status: Inconclusive, Severity: Warns, Head: &missing, Reason: "not measured", Hint: "mend it", Tool: true},
				{Rule: "ratio", Case: "small", Machine: "h200-0", RelativeTo: "op/ref", Interval: &Interval{Estimate: 0.01, Low: 0.005, High: 0.02, Pairs: 12, MDE90: &seen, Modes: &compare.Modes{}}, Reason: "x", Severity: Red},
				{Rule: "bound", Noise: &Noise{MDE90: 0.01, Recorded: "2026"}, Sessions: &Sessions{Count: 9, Estimate: 0.1, Low: 0, High: 0.2, SigmaSession: 0.1, SigmaProcess: 0.2}, Reason: "y", Severity: Info},
			},
			Launches: []LaunchChange{{Case: "small", Change: "added", Kernel: "a", Grid: [3]int{1, 2, 3}, Block: [3]int{4, 5, 6}, Count: 2}},
			Figures:  []CaseFigures{{Metrics: evidence.Metrics{"ptxas.registers": head}}, {Case: "small", Machine: "h200-0", Metrics: evidence.Metrics{"ncu.waves": evidence.Absent("no", "")}}},
		}}}
	v.Conclude()
	return v
}

func encoded(t *testing.T, v *Verdict) string {
	t.Helper()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRoundTrip(t *testing.T) {
	v := sample()
	path := filepath.Join(t.TempDir(), "verdict.json")
	if err := os.WriteFile(path, []byte(encoded(t, v)), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := Read(path)
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

func TestReadRefuses(t *testing.T) {
	text := encoded(t, sample())
	path := filepath.Join(t.TempDir(), "verdict.json")
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "the JSON is cut short"},
		{"cut", text[:200], "the JSON is cut short"},
		{"unknown key", strings.Replace(text, `"policy"`, `"polcy"`, 1), `json: unknown field "polcy"`},
		{"key twice", strings.Replace(text, `"policy"`, `"status": "fail", "policy"`, 1), `the key "status" appears twice in one object`},
		{"another schema", strings.Replace(text, Schema, "gate/verdict/v0", 1), `the schema is "gate/verdict/v0", this gate reads "gate/verdict/v1"`},
		{"unknown status", strings.Replace(text, `"status": "fail"`, `"status": "green"`, 1), `"green" is not a status`},
		{"unknown severity", strings.Replace(text, `"severity": "fail"`, `"severity": "none"`, 1),
			`the verdict contradicts itself: a finding of op/k has the severity "none", and there are fail, warn and info`},
		{"second document", text + text, "data follows the JSON"},
		{"metric with value and reason", strings.Replace(text, `"value": 40,`, `"value": 40, "missing": "x",`, 1), "a metric has both a value and a reason for having none"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if v, err := Read(path); err == nil || err.Error() != path+": "+c.want || v != nil {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if err := os.Truncate(path, maxVerdict+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasSuffix(err.Error(), "larger than 67108864 bytes") {
		t.Errorf("too large: %v", err)
	}
	if _, err := Read(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
