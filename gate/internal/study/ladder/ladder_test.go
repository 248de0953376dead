package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func scene() *verdict.Verdict {
	figures := func(ns float64) []verdict.CaseFigures {
		return []verdict.CaseFigures{
			{Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(40, ""), "ptxas.spill_bytes": evidence.Of(0, "byte")}},
			{Case: "long", Metrics: evidence.Metrics{"latency.typical": evidence.Of(9*ns, "ns")}},
			{Case: shown, Metrics: evidence.Metrics{"latency.typical": evidence.Of(ns, "ns"), "ncu.achieved_occupancy": evidence.Absent("not measured", "%")}},
		}
	}
	beside := func(ref, metric string, change float64) verdict.Finding {
		return verdict.Finding{Case: shown, Metric: metric, Severity: verdict.Red, RelativeTo: ref, Interval: &verdict.Interval{Estimate: change}}
	}
	return &verdict.Verdict{Schema: verdict.Schema, Kernels: []verdict.KernelVerdict{
		{Name: "attention/r02_minimal_fp16", Figures: figures(127120)},
		{Name: "attention/r13_wgmma_cluster", Figures: figures(3700), Findings: []verdict.Finding{
			beside("attention/sdpa_cudnn", "latency.typical", -0.58), beside("attention/sdpa_flash", "latency.typical", -0.64),
			beside("attention/sdpa_cudnn", "latency.cold_typical", -0.5), beside("attention/r02_minimal_fp16", "latency.typical", -0.1)}},
		{Name: "other/r01", Figures: figures(1)},
	}}
}

// A figure that was not measured is not shown; a second verdict adds what the
// first does not know, and no kernel; the fastest library counts; what is not of
// the ladder is not in it.
func TestTable(t *testing.T) {
	found := func(name string) verdict.KernelVerdict {
		races := evidence.Of(3, "")
		return verdict.KernelVerdict{Name: name, Findings: []verdict.Finding{{Case: shown, Metric: "sanitizer.racecheck", Head: &races}},
			Figures: []verdict.CaseFigures{{Case: shown, Metrics: evidence.Metrics{"latency.typical": evidence.Of(1, "ns")}}}}
	}
	more := &verdict.Verdict{Kernels: []verdict.KernelVerdict{found("attention/r02_minimal_fp16"), found("attention/r14_fa3_ws")}}
	want := []string{
		"| [r02_minimal_fp16](attention/r02_minimal_fp16) | 1324 | 127.12 | – | 40 | 0 | – | – | – | – | – | – | 3 | – |",
		"| [r13_wgmma_cluster](attention/r13_wgmma_cluster) | – | 3.70 | – | 40 | 0 | – | – | – | – | – | – | – | 0.420 |",
	}
	lines := strings.Split(strings.TrimSpace(string(table(scene(), more))), "\n")
	if len(lines) != 4 || lines[2] != want[0] || lines[3] != want[1] {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestWriteBetweenTheMarkers(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "verdict.json"), filepath.Join(dir, "README.md")
	v := scene()
	v.Conclude()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{from: string(data), to: "before\n" + begin + "stale text\n" + end + "after\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code := run([]string{from, to}, os.Stderr); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	text, _ := os.ReadFile(to)
	if got := string(text); !strings.HasPrefix(got, "before\n"+begin+"| kernel") || !strings.HasSuffix(got, "|\n"+end+"after\n") || strings.Contains(got, "stale") {
		t.Errorf("%s", got)
	}
	if _, err := between([]byte("no markers"), nil); err == nil {
		t.Error("a file without markers is taken")
	}
	if code := run([]string{from}, os.Stderr); code != 2 {
		t.Errorf("exit status %d for one argument", code)
	}
}
