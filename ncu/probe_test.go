package ncu

import (
	"strings"
	"testing"
)

// TestProbeRecording holds a recording of the probe, made on an H200 by
// TestGPUCatalogue, against what its kernels do: every matrix instruction counts
// once, as mma or as wgmma.
func TestProbeRecording(t *testing.T) {
	rep, err := readPath(t, "testdata/gpu/probe.h200.raw.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	_, unavailable := Counters("9.0", names...)
	checkLaunches(t, rep, names, unavailable)
}

// checkLaunches derives every metric of every launch of the probe.
func checkLaunches(t *testing.T, rep *Report, names []string, unavailable map[string]string) {
	t.Helper()
	if len(rep.Launches) != 9 {
		t.Fatalf("%d launches, want 9", len(rep.Launches))
	}
	kernels := make(map[string]map[string]float64)
	for _, l := range rep.Launches {
		kernel, _, _ := strings.Cut(l.Key, "(")
		kernels[kernel] = make(map[string]float64)
		for _, name := range names {
			v, err := Derive("9.0", l, name)
			if err != nil {
				t.Fatal(err)
			}
			if _, none := unavailable[name]; none == (v.Kind == Number) {
				t.Errorf("%s %s: %+v", kernel, name, v)
			}
			kernels[kernel][name] = v.Number
			t.Logf("%s %s = %s", kernel, name, show(v))
		}
	}
	checkProbe(t, kernels)
}

func checkProbe(t *testing.T, kernels map[string]map[string]float64) {
	t.Helper()
	const blocks, rounds, warps = 132, 4096, 4
	exact := func(kernel, metric string, want float64) {
		t.Helper()
		if got, ok := kernels[kernel][metric]; !ok || got != want {
			t.Errorf("%s %s = %v (%v), want %v", kernel, metric, got, ok, want)
		}
	}
	above := func(kernel, metric string, bound float64) {
		t.Helper()
		if got := kernels[kernel][metric]; !(got > bound) {
			t.Errorf("%s %s = %v, want more than %v", kernel, metric, got, bound)
		}
	}
	// One 16x16x16 product of a warp is two instructions, 8x8x4 in double one.
	for kernel, each := range map[string]float64{"probe_mma": 2, "probe_mma_int": 2, "probe_mma_double": 1} {
		exact(kernel, "ncu.tensor_mma_instructions", each*rounds*warps*blocks)
		exact(kernel, "ncu.tensor_wgmma_instructions", 0)
		exact(kernel, "ncu.tensor_instructions", each*rounds*warps*blocks)
		above(kernel, "ncu.tensor_pipe_utilization", 1)
	}
	for _, kernel := range []string{"probe_wgmma", "probe_wgmma_fp8", "probe_wgmma_int"} {
		exact(kernel, "ncu.tensor_mma_instructions", 0)
		exact(kernel, "ncu.tensor_wgmma_instructions", rounds*warps*blocks)
		exact(kernel, "ncu.tensor_instructions", rounds*warps*blocks)
		above(kernel, "ncu.tensor_pipe_utilization", 1)
	}
	for _, k := range []string{"probe_conflicts", "probe_plain", "probe_local"} {
		exact(k, "ncu.tensor_pipe_utilization", 0)
		exact(k, "ncu.tensor_instructions", 0)
	}
	exact("probe_conflicts", "ncu.shared_wavefronts", 33*32*blocks)
	exact("probe_conflicts", "ncu.shared_wavefronts_excessive", 33*31*blocks)
	exact("probe_plain", "ncu.shared_bank_conflicts", 0)
	exact("probe_plain", "ncu.local_bytes", 0)
	above("probe_local", "ncu.local_bytes", 0)
}
