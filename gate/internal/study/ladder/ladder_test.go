package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func timed(ns float64) []verdict.CaseFigures {
	return []verdict.CaseFigures{
		{Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(40, ""), "ptxas.spill_bytes": evidence.Of(0, "byte")}},
		{Case: "long", Metrics: evidence.Metrics{warm: evidence.Of(9*ns, "ns")}},
		{Case: mission, Metrics: evidence.Metrics{warm: evidence.Of(ns, "ns"), "ncu.achieved_occupancy": evidence.Absent("not measured", "%")}},
	}
}

func timedBeside(ref, name, metric string, base, change float64) verdict.Finding {
	b, h := evidence.Of(base, "ns"), evidence.Of(base*(1+change), "ns")
	return verdict.Finding{Case: name, Metric: metric, Severity: verdict.Red, RelativeTo: ref, Base: &b, Head: &h,
		Interval: &verdict.Interval{Estimate: change, Low: change - 0.01, High: change + 0.01}}
}

func judged() *verdict.Verdict {
	return &verdict.Verdict{Schema: verdict.Schema, Machines: []verdict.MachineRef{{Description: "a card"}}, Kernels: []verdict.KernelVerdict{
		{Name: "attention/r13_wgmma_cluster", Figures: timed(3700), Findings: []verdict.Finding{
			timedBeside("attention/sdpa_cudnn", mission, warm, 8800, -0.58), timedBeside("attention/sdpa_flash", mission, warm, 10200, -0.64),
			timedBeside("attention/sdpa_cudnn", mission, cold, 9500, -0.5), timedBeside("attention/r02_minimal_fp16", mission, warm, 1, -0.1)}},
		{Name: "attention/r02_minimal_fp16", Figures: timed(127120)},
		{Name: longKernel},
		{Name: "other/r01", Figures: timed(1)},
	}}
}

func lines(text []byte) []string { return strings.Split(strings.TrimSpace(string(text)), "\n") }

func hold(t *testing.T, text []byte, want ...string) {
	t.Helper()
	got := "\n" + string(text)
	for _, w := range want {
		if !strings.Contains(got, "\n"+w+"\n") {
			t.Errorf("no line %q in%s", w, got)
		}
	}
}

// A figure that was not measured is not shown; a second verdict adds what the first
// does not know; the fastest library counts; what is not of the ladder is not in it.
func TestLadder(t *testing.T) {
	races := evidence.Of(3, "")
	more := &verdict.Verdict{Kernels: []verdict.KernelVerdict{{Name: "attention/r02_minimal_fp16",
		Findings: []verdict.Finding{{Case: mission, Metric: "sanitizer.racecheck", Head: &races}},
		Figures:  []verdict.CaseFigures{{Case: mission, Metrics: evidence.Metrics{warm: evidence.Of(1, "ns")}}}}}}
	text := gather([]*verdict.Verdict{judged(), more}).ladder()
	hold(t, text,
		"| [r02_minimal_fp16](attention/r02_minimal_fp16) | 1324 | 127.12 | – | 40 | 0 | – | – | – | – | – | – | – | 3 | – |",
		"| [r13_wgmma_cluster](attention/r13_wgmma_cluster) | – | 3.70 | – | 40 | 0 | – | – | – | – | – | – | – | – | 0.420 |")
	if n := len(lines(text)); n != 4 {
		t.Errorf("%d lines, want 4:\n%s", n, text)
	}
}

func TestLibraries(t *testing.T) {
	hold(t, gather([]*verdict.Verdict{judged()}).libraries(),
		"| sdpa_cudnn | 8.80 | 9.50 | 0.420 (0.410–0.430) | 0.500 (0.490–0.510) |",
		"| sdpa_flash | 10.20 | – | 0.360 (0.350–0.370) | – |")
}

func TestFixtures(t *testing.T) {
	v := &verdict.Verdict{Kernels: []verdict.KernelVerdict{{Name: "fixtures/x9", Figures: timed(6464), Findings: []verdict.Finding{
		{Rule: "races", Status: verdict.Inconclusive}, {Rule: "slow", Status: verdict.Fail}, {Rule: "slow", Status: verdict.Fail},
		timedBeside("attention/r11_fa2_mma", mission, warm, 6200, 0.042)}}}}
	hold(t, gather([]*verdict.Verdict{v}).fixtures(), "| `x9` | slow | – | – | – | 0 | – | – | 6.46 | 1.042 (1.032–1.052) |")
}

// What a launch takes is on the only case of its kernel; a distance needs both times.
func TestFloor(t *testing.T) {
	v := judged()
	v.Kernels = append(v.Kernels, verdict.KernelVerdict{Name: "floor/one_block", Figures: []verdict.CaseFigures{{Case: "one",
		Metrics: evidence.Metrics{warm: evidence.Of(700, "ns"), cold: evidence.Of(900, "ns")}}}}, verdict.KernelVerdict{Name: "floor/none"})
	hold(t, gather([]*verdict.Verdict{v}).floor(), "| `one_block` | 0.70 | 0.90 | 3.00 | – |", "| `none` | – | – | – | – |")
}

// The share of the fastest library is unknown while one of them was not timed.
func TestMeasured(t *testing.T) {
	s := gather([]*verdict.Verdict{judged()})
	k := s.named("attention/r13_wgmma_cluster")
	k.Findings = append(k.Findings, verdict.Finding{Case: mission, Metric: cold, RelativeTo: "attention/sdpa_flash"},
		verdict.Finding{Kind: "time limit", Case: mission, Metric: warm, Reason: "below the limit: typical 3700 ns (3690 to 3710)"},
		verdict.Finding{Rule: "races", Case: "wide", Metric: "sanitizer.racecheck", Tier: evidence.Sanitizer},
		verdict.Finding{Rule: "correctness", Case: mission, Reason: "correct on 18 input classes"},
		verdict.Finding{Rule: "correctness", Case: "long", Reason: "correct on 18 input classes"})
	k.Entries = []verdict.EntryFigures{{Entry: "a", Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(40, "")}}, {Entry: "b"}}
	hold(t, s.measured(*k, s.named("attention/r02_minimal_fp16")),
		"| mission, 1×8×512×64 | gate's records, a card |",
		"| warm / cold | 3.70 µs / not recorded |",
		"| warm / cold, case long | 33.30 µs / not recorded |",
		"| warm, with its 95 % interval | typical 3700 ns (3690 to 3710) |",
		"| warm, against r02 | 127.12 µs → 3.70 µs, 0.03 × |",
		"| of the fastest SDPA, warm | 0.420 (0.410–0.430) of cudnn's 8.80 µs |",
		"| of the fastest SDPA, cold | not recorded |",
		"| registers | 40 `a`, not recorded `b` |",
		"| memory errors, races | not recorded, not recorded |",
		"| memory errors, races, case wide | not recorded, not recorded |",
		"| results | correct on 18 input classes (mission, long) |")
}

// Rates are of the stated work in the times of one experiment, and more than 1 is
// faster than the fastest library. What was never timed says why.
func TestLong(t *testing.T) {
	shapes := []shape{{"long4k", "4×4", 274.877906944e9}, {"wide4k", "4×8", 549.755813888e9}}
	const why = "it was never timed"
	v := &verdict.Verdict{Kernels: []verdict.KernelVerdict{{Name: longKernel,
		Figures: []verdict.CaseFigures{{Case: "long4k", Metrics: evidence.Metrics{
			"ncu.tensor_pipe_utilization": evidence.Of(58.5, "%"), "ncu.stall.selected": evidence.Of(9, ""), "ncu.stall.wait": evidence.Of(1.7, ""),
			"ncu.stall.barrier": evidence.Of(0.1, ""), "ncu.stall.long_scoreboard": evidence.Of(0.6, ""), "ncu.stall.dispatch_stall": evidence.Of(0.7, "")}}},
		Findings: []verdict.Finding{
			timedBeside("attention/sdpa_cudnn", "long4k", cold, 610000, -0.1), timedBeside("attention/sdpa_flash", "long4k", cold, 960000, -0.43),
			timedBeside("attention/sdpa_cudnn", "wide4k", cold, 880000, 0.05),
			{Case: "wide4k", Metric: cold, RelativeTo: "attention/sdpa_flash", Reason: why}},
	}}}
	text, err := gather([]*verdict.Verdict{v}).long(shapes)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, text,
		"| TFLOP/s, cold | r14 | sdpa_cudnn | sdpa_flash | r14 over the fastest | tensor % | warps that wait, per issued instruction |",
		"| 4×4 | 501 | 451 | 286 | 1.111 (1.099–1.124) | 58.5 | `wait` 1.70, `dispatch_stall` 0.70, `long_scoreboard` 0.60 |",
		"| 4×8 | – | 625 | – | – | – | – |",
		"- not recorded: "+why)
	if _, err := (scene{}).long(shapes); err == nil {
		t.Error("verdicts without the kernel for long sequences are taken")
	}
}

// The work comes from the op: four operations for each of S² pairs and D.
func TestShapes(t *testing.T) {
	shapes, err := shapesOf("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	want := []shape{{"long4k", "4×16×4096×64", 4 * 4 * 16 * 4096 * 4096 * 64}, {"wide4k", "4×16×4096×128", 4 * 4 * 16 * 4096 * 4096 * 128}}
	if len(shapes) != 2 || shapes[0] != want[0] || shapes[1] != want[1] {
		t.Errorf("got %v, want %v", shapes, want)
	}
}

func TestWriteBetweenTheMarkers(t *testing.T) {
	const begin, end = "<!-- ladder: written by gate/internal/study/ladder -->\n", "<!-- end of ladder -->\n"
	file := filepath.Join(t.TempDir(), "README.md")
	stale := "before\n" + begin + "stale text\n" + end + "after\n"
	if err := os.WriteFile(file, []byte(stale), 0o644); err != nil {
		t.Fatal(err)
	}
	p := part{file, "ladder", []byte("| new |\n")}
	if err := p.write(true); !errors.Is(err, errStale) {
		t.Errorf("a stale table is taken: %v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != stale {
		t.Errorf("-check wrote %q", text)
	}
	if err := p.write(false); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "before\n"+begin+"| new |\n"+end+"after\n" {
		t.Errorf("wrote %q", text)
	}
	if err := p.write(true); err != nil {
		t.Errorf("what was written is called stale: %v", err)
	}
	p.name = "other"
	if err := p.write(false); err == nil {
		t.Error("a file without the markers is taken")
	}
}

func TestExitStatus(t *testing.T) {
	t.Chdir("../../../..")
	none := filepath.Join(t.TempDir(), "none")
	for want, args := range map[int][]string{2: nil, 3: {"-check", none}} {
		if code := run(args, os.Stderr); code != want {
			t.Errorf("%q: exit status %d, want %d", args, code, want)
		}
	}
	v := judged()
	v.Conclude()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(t.TempDir(), "verdict.json")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"-check", from}, os.Stderr); code != 1 {
		t.Errorf("exit status %d, want 1: the tables are of other verdicts", code)
	}
}
