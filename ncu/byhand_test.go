package ncu

import (
	"testing"
)

// TestByHand holds figures of ten recordings against what a person reads in
// their text, conversion of units included.
func TestByHand(t *testing.T) {
	checked := 0
	for _, c := range []struct {
		recording      string
		launch         int
		section, label string // section "" for a counter
		want           float64
		unit           string
	}{
		{"clima-a100-baseline.details.csv", 5, "GPU Speed Of Light Throughput", "Duration", 30_860_000, "ns"}, // 30.86 ms
		{"clima-a100-baseline.details.csv", 0, "Launch Statistics", "Shared Memory Configuration Size", 8190, "byte"},
		{"clima-a100-mod.details.csv", 0, "Memory Workload Analysis", "Memory Throughput", 483_890_000_000, "byte/s"},
		{"nsightful-copy_blocked.details.csv", 0, "Memory Workload Analysis", "Memory Throughput", 196_456_177_859.63, "byte/s"},
		{"superbench-cublaslt-b200.details.csv", 0, "GPU Speed Of Light Throughput", "DRAM Frequency", 3_995_313_115.40, "hz"},
		{"dsocr-rtx50-k0001.metrics.csv", 0, "", "dram__bytes_read.sum", 2_330_000, "byte"},
		{"dsocr-rtx50-k0003.sol.csv", 0, "GPU Speed Of Light Throughput", "SM Frequency", 1_990_000_000, "hz"},
		{"lashi-4090-readWriteOffset_ca.csv", 2, "", "gpu__time_duration.sum", 227_712, "ns"}, // printed as nsecond
		{"shrey-sm86-vecmul.details.csv", 0, "GPU Speed Of Light Throughput", "DRAM Frequency", 6_480_321_285.14, "hz"},
		{"shrey-sm86-sigmoid.metrics.csv", 0, "", "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum", 337_976_384, "byte"},
		{"siglip-b200-baseline.raw.csv", 0, "", "gpu__time_duration.sum", 1_157_152, "ns"}, // 1.157152 ms
		{"siglip-b200-after.raw.csv", 0, "", "dram__bytes_read.sum", 715_479_552, "byte"},  // 715.479552 Mbyte
		{"siglip-b200-after.raw.csv", 0, "", "launch__registers_per_thread", 222, "register/thread"},
		{"h200-2025.3.1/metrics.csv", 7, "", "sm__inst_executed_pipe_tensor.sum", 2_097_152, "inst"},
	} {
		path, there := recording(t, c.recording)
		if !there {
			continue
		}
		rep, err := readPath(t, path)
		if err != nil {
			t.Error(err)
			continue
		}
		l := rep.Launches[c.launch]
		v, err := l.Label(c.section, c.label)
		if c.section == "" {
			v, err = l.Metric(c.label)
		}
		checked++
		if err != nil || v.Kind != Number || v.Number != c.want || v.Unit != c.unit {
			t.Errorf("%s launch %d %s = %+v, %v; want %v %s", c.recording, c.launch, c.label, v, err, c.want, c.unit)
		}
	}
	if checked < 5 {
		t.Errorf("checked %d figures", checked)
	}
}

// A metric that ncu prints as n/a is missing and has no number.
func TestNotAvailable(t *testing.T) {
	rep, err := readPath(t, "testdata/llm-perf-opt/rtx50-k0001.metrics.csv")
	if err != nil {
		t.Fatal(err)
	}
	v, err := rep.Launches[0].Metric("flop_count_sp.sum")
	if err != nil || v.Kind != Missing || v.Reason != ReasonNotAvailable {
		t.Errorf("%+v, %v", v, err)
	}
}

// Labels that stood for one counter in all releases find it; others do not.
func TestLabels(t *testing.T) {
	for _, c := range []struct{ section, label, counter string }{
		{"GPU Speed Of Light Throughput", "Duration", "gpu__time_duration.sum"},
		{"GPU Speed Of Light", "SOL SM", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
		{"Occupancy", "Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
		{"Compute Workload Analysis", "SM Busy", ""}, // of active cycles in one release, of elapsed in another
		{"Occupancy", "Duration", ""},
		{"Occupancy", "sm__warps_active.avg.per_cycle_active", "sm__warps_active.avg.per_cycle_active"},
		{"Occupancy", "my __ label", ""},
	} {
		got, _ := labelCounter(c.section, c.label)
		if got != c.counter {
			t.Errorf("%s: %s is %q, want %q", c.section, c.label, got, c.counter)
		}
	}
	if n := len(labels()); n != 216 {
		t.Errorf("%d labels, want 216", n)
	}
}
