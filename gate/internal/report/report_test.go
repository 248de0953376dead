package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func value(x float64, unit string) *evidence.Value {
	v := evidence.Of(x, unit)
	return &v
}

func absent(reason string) *evidence.Value {
	v := evidence.Absent(reason, "")
	return &v
}

func passed(rule, kase string) verdict.Finding {
	return verdict.Finding{Rule: rule, Case: kase, Status: verdict.Pass, Severity: verdict.Red, Reason: "within the limit"}
}

// kernel is a passing kernel with figures.
func kernel(name string, status verdict.Status, findings ...verdict.Finding) verdict.KernelVerdict {
	return verdict.KernelVerdict{Name: name, File: "kernels/" + name + "/kernel.yaml", Arch: "sm_90", State: verdict.Changed, Status: status,
		Identity: evidence.Identity{Code: "c", Host: "h"}, Findings: findings,
		Figures: []verdict.CaseFigures{
			{Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(168, "registers/thread"), "ptxas.spill_bytes": evidence.Of(0, "byte")}},
			{Case: "mission", Machine: "h200-0a1b2c3d", Metrics: evidence.Metrics{"latency.typical": evidence.Of(17650, "ns"),
				"check.relative_error": evidence.Of(3.2e-4, ""), "ncu.achieved_occupancy": evidence.Absent("not measured", "%")}},
		}}
}

// run is a verdict around kernels.
func run(status verdict.Status, counts verdict.Counts, kernels ...verdict.KernelVerdict) *verdict.Verdict {
	return &verdict.Verdict{Schema: verdict.Schema, Status: status, Policy: "policies.yaml",
		Head: verdict.Side{Commit: "0123456789abcdef0123", Dirty: true}, Base: verdict.Side{Commit: "fedcba9876543210fedc", How: "merge-base with origin/main"},
		Machines: []verdict.MachineRef{{Key: "h200-0a1b2c3d", Description: "NVIDIA H200, driver 580", Oldest: "2026-11-01T10:00:00Z", Newest: "2026-11-20T10:00:00Z"}},
		Counts:   counts, Kernels: kernels, Reproduce: "gate check --base fedcba987654"}
}

// hostile is what a kernel's author may put into any name.
const hostile = "evil\x1b[2J\x1b[31m\r\nPASS\u202e\u200b\u2066\u2028\x00\tcolumn\xff<b>"

func manyCases() []verdict.Finding {
	var out []verdict.Finding
	for _, c := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		for _, r := range []string{"latency", "latency-mean"} {
			out = append(out, verdict.Finding{Rule: r, Metric: "latency.typical", Unit: "ns", Case: c, Machine: "h200", Tier: evidence.Latency,
				Severity: verdict.Red, Head: absent("never timed"), Reason: "never timed", Accepts: "max_regression 2%"})
		}
	}
	return out
}

// manyKernels are thirty of which one thing is to be said, one that differs in
// its architecture, and one with figures of two machines.
func manyKernels() *verdict.Verdict {
	open := verdict.Finding{Rule: "latency", Severity: verdict.Red, Head: absent("never timed"), Reason: "never timed"}
	slow := open
	slow.Status, slow.Reason = verdict.Fail, "slower"
	v := run(verdict.Fail, verdict.Counts{Kernels: 32, Failed: 1, Undecided: 31, Changed: 32}, kernel("attention/z", verdict.Fail, slow))
	v.Kernels[0].Figures = append(v.Kernels[0].Figures, verdict.CaseFigures{Case: "mission", Machine: "b200-12345678"})
	for i := range 30 {
		v.Kernels = append(v.Kernels, kernel(fmt.Sprintf("attention/k%02d", i), verdict.Inconclusive, open))
	}
	other := kernel("attention/k29", verdict.Inconclusive, open)
	other.Arch = "sm_100"
	v.Kernels = append(v.Kernels, other)
	return v
}

// verdicts are one of every kind, by the names of their golden files.
func verdicts() map[string]*verdict.Verdict {
	spills := verdict.Finding{Rule: "spills", Metric: "ptxas.spill_bytes", Unit: "byte", Tier: evidence.Static, Status: verdict.Fail, Severity: verdict.Red,
		Head: value(1272, "byte"), Accepts: "limit 0", Reason: "1,272 B is above the limit of 0 B"}
	slower := verdict.Finding{Rule: "latency", Metric: "latency.typical", Unit: "ns", Case: "mission", Machine: "h200-0a1b2c3d", Tier: evidence.Latency,
		Status: verdict.Fail, Severity: verdict.Red, Base: value(17650, "ns"), Head: value(19800, "ns"), Accepts: "max_regression 2%",
		Interval: &verdict.Interval{Estimate: 0.12, Low: 0.11, High: 0.13, Pairs: 12}, Reason: "slower than the tolerance of +0.50 %"}
	warning := spills
	warning.Severity = verdict.Warns
	open := verdict.Finding{Rule: "occupancy", Metric: "ncu.achieved_occupancy", Unit: "%", Case: "mission", Tier: evidence.Profile, Severity: verdict.Red,
		Head: absent("no profile evidence of this code is recorded"), Accepts: "max_regression 5pp", Reason: "no profile evidence of this code is recorded"}
	compared := verdict.Finding{Rule: "registers", Metric: "ptxas.registers", Status: verdict.NotCompared, Severity: verdict.Red, Head: value(168, "registers/thread"), Reason: "the kernel is new"}
	gone := verdict.KernelVerdict{Name: "attention/old", Arch: "sm_90", State: verdict.Gone, Status: verdict.Fail,
		Findings: []verdict.Finding{{Rule: "present", Status: verdict.Fail, Severity: verdict.Red, Reason: "the base has this kernel and the head does not"}}}
	broken := verdict.KernelVerdict{Name: "attention/broken", Arch: "sm_90", State: verdict.Changed, Status: verdict.Fail,
		Detail:   "k.cu(3): error: identifier \"x\" is undefined\n\n\t1 error detected\n",
		Findings: []verdict.Finding{{Rule: "builds", Status: verdict.Fail, Severity: verdict.Red, Reason: "attention/broken does not compile"}}}
	evil := kernel(hostile, verdict.Fail, verdict.Finding{Rule: hostile, Metric: hostile, Unit: hostile, Case: hostile, Machine: hostile, Status: verdict.Fail,
		Severity: verdict.Red, Base: value(1, hostile), Head: value(2, hostile), Accepts: hostile, Reason: hostile})
	evil.Arch, evil.State, evil.Detail = hostile, verdict.State(hostile), hostile
	evil.Launches = []verdict.LaunchChange{{Case: hostile, Change: hostile, Kernel: hostile, Grid: [3]int{8, 8, 1}, Block: [3]int{128, 1, 1}, Count: 2}}
	evil.Figures[1].Case, evil.Figures[1].Machine = hostile, hostile
	hostileRun := run(verdict.Fail, verdict.Counts{Kernels: 1, Failed: 1}, evil)
	hostileRun.Notes, hostileRun.Reproduce, hostileRun.Policy = []string{hostile}, hostile, hostile
	hostileRun.Head.Commit, hostileRun.Base = hostile, verdict.Side{Commit: hostile, How: hostile}
	hostileRun.Machines = []verdict.MachineRef{{Key: hostile, Description: hostile, Oldest: hostile, Newest: "2026"}}
	long := open
	long.Reason = strings.Repeat("a long reason ", 60)
	fresh := kernel("attention/new", verdict.Pass, passed("correctness", "mission"), compared)
	fresh.State = verdict.New
	none := run(verdict.Inconclusive, verdict.Counts{})
	none.Machines, none.Head, none.Base = nil, verdict.Side{}, verdict.Side{Why: "--base none was given"}
	held := func(rule, accepts string) verdict.Finding {
		return verdict.Finding{Rule: rule, Metric: "latency.typical", Unit: "ns", Case: "mission", Machine: "h200-0a1b2c3d", Tier: evidence.Latency,
			Status: verdict.Pass, Severity: verdict.Red, Base: value(17650, "ns"), Head: value(17652, "ns"), Accepts: accepts, Reason: "proven below"}
	}
	compareTimes, ceiling, late := held("latency", "max_regression 2%"), held("ceiling", "limit 20us"), slower
	seen := 0.0071
	compareTimes.Interval = &verdict.Interval{Estimate: 0.0001, Low: -0.002, High: 0.002, Pairs: 12, MDE90: &seen}
	compareTimes.Noise = &verdict.Noise{MDE90: 0.5, Recorded: "2026-11-01T00:00:00Z"}
	ceiling.Base, ceiling.Noise = nil, &verdict.Noise{MDE90: 0.0123, Recorded: "2026-11-20T10:00:00Z\u202e"}
	late.Interval = &verdict.Interval{Estimate: 0.12, Low: 0.11, High: 0.13, Pairs: 12, MDE90: &seen}
	beside, tail, sessions := held("ratio", "limit 0.1 of r02"), slower, held("latency", "max_regression 2%")
	beside.RelativeTo, beside.Base, beside.Interval = "attention/r02\u202e", value(127170, "ns"), &verdict.Interval{Estimate: -0.86, Low: -0.87, High: -0.85, Pairs: 8}
	fast, half := -0.001, 0.5
	tail.Rule, tail.Metric, tail.Severity = "tail", "latency.p99", verdict.Info
	tail.Interval = &verdict.Interval{Estimate: 0.12, Low: 0.11, High: 0.13, Pairs: 12,
		Modes: &compare.Modes{Split: 18500, BaseSlow: 0.25, HeadSlow: half, ShareP: 0.4, Fast: &fast}}
	quietTail := held("quiet", "max_regression 2%")
	quietTail.Severity, quietTail.Status = verdict.Info, verdict.Inconclusive
	sessions.Sessions = &verdict.Sessions{Count: 9, Estimate: 0.0001, Low: -0.01, High: 0.01, SigmaSession: 0.004, SigmaProcess: 0.002}
	return map[string]*verdict.Verdict{
		"arms":  run(verdict.Pass, verdict.Counts{Kernels: 1, Passed: 1, Changed: 1, Measured: 2}, kernel("attention/a", verdict.Pass, tail, quietTail, beside, sessions)),
		"times": run(verdict.Fail, verdict.Counts{Kernels: 1, Failed: 1, Changed: 1, Measured: 2}, kernel("attention/a", verdict.Fail, compareTimes, ceiling, held("bare", "limit 20us"), late)),
		"pass":  run(verdict.Pass, verdict.Counts{Kernels: 2, Passed: 2, Changed: 1, New: 1, Reused: 4}, kernel("attention/a", verdict.Pass, passed("correctness", "mission"), passed("spills", "")), fresh),
		"fail": run(verdict.Fail, verdict.Counts{Kernels: 4, Failed: 3, Passed: 1, Changed: 3, Gone: 1, Measured: 3, Missing: 1},
			broken, kernel("attention/slow", verdict.Fail, passed("correctness", "mission"), open, spills, slower), gone, kernel("attention/z", verdict.Pass, passed("correctness", "mission"))),
		"warn":         run(verdict.Warn, verdict.Counts{Kernels: 1, Passed: 1, Changed: 1}, kernel("attention/a", verdict.Warn, warning, passed("correctness", "mission"))),
		"inconclusive": run(verdict.Inconclusive, verdict.Counts{Kernels: 1, Undecided: 1, Changed: 1, Missing: 20}, kernel("attention/a", verdict.Inconclusive, append(manyCases(), long)...)),
		"many":         manyKernels(),
		"nothing":      none,
		"hostile":      hostileRun,
	}
}

func render(t *testing.T, v *verdict.Verdict, o Options) string {
	t.Helper()
	var buf bytes.Buffer
	if err := Write(&buf, v, o); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestTextGoldens(t *testing.T) {
	wanted := map[string]bool{}
	for name, v := range verdicts() {
		for suffix, o := range map[string]Options{".txt": {}, "-verbose.txt": {Verbose: true}, ".md": {Format: "markdown"}, ".log": {Format: "github"}} {
			file := name + suffix
			wanted[file] = true
			got := render(t, v, o)
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				continue
			}
			if got != string(want) {
				t.Errorf("%s differs (go test -update rewrites it):\n%s", file, got)
			}
		}
	}
	entries, err := os.ReadDir("testdata")
	if err != nil || len(entries) == 0 {
		t.Fatalf("no golden file: %v", err)
	}
	for _, e := range entries {
		if !wanted[e.Name()] {
			t.Errorf("%s belongs to no verdict", e.Name())
		}
	}
}

// TestQuietIsTheLastLine, in every format that is read by people.
func TestQuietIsTheLastLine(t *testing.T) {
	for name, v := range verdicts() {
		whole := strings.TrimSuffix(render(t, v, Options{}), "\n")
		if got, want := render(t, v, Options{Quiet: true}), whole[strings.LastIndexByte(whole, '\n')+1:]+"\n"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if render(t, v, Options{Quiet: true, Format: "json"}) != render(t, v, Options{Format: "json"}) {
			t.Errorf("%s: a part of the JSON is missing", name)
		}
	}
}

func TestAnnouncedNotesAreLeftOut(t *testing.T) {
	v := verdicts()["nothing"]
	v.Notes = []string{"read already", "new"}
	want := strings.Replace(render(t, v, Options{}), "note: read already\n", "", 1)
	if got := render(t, v, Options{Announced: []string{"read already", "another"}}); got != want || !strings.Contains(got, "note: new\n") {
		t.Error(got)
	}
	if got := render(t, v, Options{Format: "json", Announced: v.Notes}); !strings.Contains(got, "read already") {
		t.Error(got)
	}
}

// TestColourIsAllThatColourAdds: without its escapes, the coloured text is the
// plain one.
func TestColourIsAllThatColourAdds(t *testing.T) {
	for name, v := range verdicts() {
		coloured := render(t, v, Options{Color: true})
		if !strings.Contains(coloured, "\x1b[") {
			t.Errorf("%s has no colour", name)
		}
		for _, code := range []string{"31", "32", "33", "36"} {
			coloured = strings.ReplaceAll(coloured, "\x1b[1;"+code+"m", "")
		}
		if coloured = strings.ReplaceAll(coloured, "\x1b[0m", ""); coloured != render(t, v, Options{}) {
			t.Errorf("%s: %s", name, coloured)
		}
	}
}

// TestJSONRoundTrip: every report can be made from the JSON that is written.
func TestJSONRoundTrip(t *testing.T) {
	for name, v := range verdicts() {
		path := filepath.Join(t.TempDir(), "verdict.json")
		if err := os.WriteFile(path, []byte(render(t, v, Options{Format: "json"})), 0o600); err != nil {
			t.Fatal(err)
		}
		back, err := verdict.Read(path)
		if name == "nothing" {
			if err == nil || !strings.HasSuffix(err.Error(), "it judges no kernel") {
				t.Errorf("nothing: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "hostile" && !reflect.DeepEqual(back, v) { // JSON replaces what is not UTF-8
			t.Errorf("%s: got %+v, want %+v", name, back, v)
		}
		for _, o := range []Options{{}, {Verbose: true, Color: true}, {Format: "json"}} {
			if (name != "hostile" || o.Format != "json") && render(t, back, o) != render(t, v, o) {
				t.Errorf("%s: %+v differs after the round trip", name, o)
			}
		}
		if back.ExitCode() != v.ExitCode() {
			t.Errorf("%s: exit %d, then %d", name, v.ExitCode(), back.ExitCode())
		}
	}
}

func TestSameVerdictSameBytes(t *testing.T) {
	for name, v := range verdicts() {
		for _, o := range []Options{{}, {Verbose: true}, {Format: "json"}} {
			first := render(t, v, o)
			for range 20 {
				if again := render(t, verdicts()[name], o); again != first {
					t.Fatalf("%s: %+v differs", name, o)
				}
			}
		}
	}
}

func TestRenderingChangesNothing(t *testing.T) {
	for name, v := range verdicts() {
		render(t, v, Options{Verbose: true})
		if !reflect.DeepEqual(v, verdicts()[name]) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, &verdict.Verdict{}, Options{Format: "pdf"})
	if err == nil || err.Error() != "unknown format \"pdf\": known are "+strings.Join(Formats, ", ") {
		t.Error(err)
	}
	for _, f := range Formats {
		if err := Write(&bytes.Buffer{}, &verdict.Verdict{}, Options{Format: f}); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrorsAreHandedOn(t *testing.T) {
	for _, f := range Formats {
		if err := Write(full{}, &verdict.Verdict{}, Options{Format: f}); err == nil || err.Error() != "no space left" {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestWorstFindingComesFirst(t *testing.T) {
	statuses := []verdict.Finding{
		{Rule: "pass", Status: verdict.Pass, Severity: verdict.Red}, {Rule: "none", Status: verdict.NotCompared, Severity: verdict.Red},
		{Rule: "warns", Status: verdict.Fail, Severity: verdict.Warns}, {Rule: "open", Status: verdict.Inconclusive, Severity: verdict.Red},
		{Rule: "fail", Status: verdict.Fail, Severity: verdict.Red}, {Rule: "fail2", Status: verdict.Fail, Severity: verdict.Red},
		{Rule: "advice", Status: verdict.Fail, Severity: verdict.Info},
	}
	var got []string
	for _, f := range order(statuses) {
		got = append(got, f.Rule)
	}
	if want := []string{"fail", "fail2", "open", "warns", "pass", "none", "advice"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkGroup(b *testing.B) {
	findings := manyFindings()
	for b.Loop() {
		grouped(order(findings))
	}
}

// manyFindings are 30,000, of which most say the same of many cases.
func manyFindings() []verdict.Finding {
	var findings []verdict.Finding
	for i := range 30_000 {
		f := verdict.Finding{Rule: fmt.Sprint("rule", i%300), Case: fmt.Sprint("case", i/300), Status: verdict.Inconclusive, Severity: verdict.Red, Reason: "not measured"}
		if i%3 == 0 {
			f.Reason = fmt.Sprint("reason ", i)
		}
		findings = append(findings, f)
	}
	return findings
}

// TestSharesOfTheRoofAreAColumn: where an op states its work, and nowhere else.
func TestSharesOfTheRoofAreAColumn(t *testing.T) {
	of := func(more evidence.Metrics) *verdict.Verdict {
		m := evidence.Metrics{"latency.typical": evidence.Of(10_000, "ns")}
		maps.Copy(m, more)
		v := &verdict.Verdict{Schema: verdict.Schema, Kernels: []verdict.KernelVerdict{{Name: "op/k", Figures: []verdict.CaseFigures{{}, {Case: "small", Metrics: m}}}}}
		v.Conclude()
		return v
	}
	for _, c := range []struct {
		name          string
		more          evidence.Metrics
		title, figure bool
	}{
		{"nothing stated", nil, false, false},
		{"a share", evidence.Metrics{"latency.roof": evidence.Of(42.5, "%")}, true, true},
		{"none that is known", evidence.Metrics{"latency.roof": evidence.Absent("no peak", "%")}, true, false},
	} {
		var text bytes.Buffer
		if err := writeText(&text, of(c.more), Options{}); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{text.String(), Markdown(of(c.more), CommentBytes)} {
			if strings.Contains(out, "% of the roof") != c.title || strings.Contains(out, "42.5 %") != c.figure || strings.Contains(out, "cold % of") {
				t.Errorf("%s:\n%s", c.name, out)
			}
		}
	}
}
