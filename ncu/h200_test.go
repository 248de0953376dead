package ncu_test

import (
	"math"
	"os"
	"testing"

	"github.com/kernelgate/gate/ncu"
)

func readFile(t *testing.T, path string) *ncu.Report {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rep, err := ncu.Read(f, path)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// The figures were read off the CSV text by eye, and sums worked out by hand.
func TestH200Figures(t *testing.T) {
	raw := readFile(t, "testdata/h200-2025.3.1/raw-full.csv.gz")
	metrics := readFile(t, "testdata/h200-2025.3.1/metrics.csv")
	for _, c := range []struct {
		rep    *ncu.Report
		launch int
		name   string
		want   float64
		unit   string
	}{
		{raw, 0, "ncu.achieved_occupancy", 75.71, "%"},
		{raw, 2, "ncu.shared_bank_conflicts", 4095818, ""},
		{raw, 2, "ncu.shared_wavefronts_excessive", 4063232, ""},
		{raw, 4, "ncu.local_bytes", 32 * (50794000 + 42009496), "byte"},
		{raw, 4, "ncu.dram_bytes", 230745088 + 623748352, "byte"},
		{raw, 4, "ncu.duration", 479200, "ns"},
		{raw, 6, "ncu.theoretical_occupancy", 50, "%"},
		{raw, 6, "ncu.active_sms", 1, "SM"},
		{raw, 8, "ncu.tensor_pipe_utilization", 0, "%"},
		{raw, 16, "ncu.tensor_pipe_utilization", 4.40, "%"},
		{metrics, 2, "ncu.shared_bank_conflicts", 4095836, ""},
		{metrics, 3, "ncu.achieved_occupancy", 86.04, "%"},
		{metrics, 4, "ncu.registers_per_thread", 32, "register/thread"},
		{metrics, 4, "ncu.duration", 473760, "ns"},
	} {
		if n := len(c.rep.Launches); n != 18 {
			t.Fatalf("%d launches, want 18", n)
		}
		v, err := ncu.Derive("9.0", c.rep.Launches[c.launch], c.name)
		if err != nil {
			t.Fatal(err)
		}
		if v.Kind != ncu.Number || math.Abs(v.Number-c.want) > 1e-9*c.want || v.Unit != c.unit {
			t.Errorf("launch %d %s = %+v, want %v %s", c.launch, c.name, v, c.want, c.unit)
		}
	}
}
