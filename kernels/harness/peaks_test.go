package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeaks: a process that times says first what the card can do, of the arithmetic
// that the op states, before a kernel is loaded; no other process says it. On the stand-in a line of 128 bytes takes 1 ns
// where it is in the L2 and 5 ns where it is not.
func TestPeaks(t *testing.T) {
	s := buildStandIn(t)
	dir := t.TempDir()
	kernel := filepath.Join(dir, "kernel.so")
	s.compile(t, kernel, "-shared", "-fPIC", "-fno-gnu-unique", "-x", "c++", filepath.Join(cheats, "honest", "honest.cu"), "-L"+s.dir, "-lcudart")
	for _, c := range []struct {
		mode, kernel, unit string
		peaks              float64
	}{{"time", kernel, "f32", 1}, {"time", kernel, "f16", 1}, {"time", kernel, "", 1}, {"time", filepath.Join(dir, "missing.so"), "f64", 1}, {"check", kernel, "f32", 0}} {
		args := rowsArgs(c.mode, s.op, c.kernel, "small=R:128,C:256")
		if c.unit != "" {
			args = append(args, "--work-unit", c.unit)
		}
		if c.mode == "time" {
			args = append(args, "--batches", "4", "--batch-us", "100", "--warmup-ms", "0")
		}
		records, code := run(t, s.program, args...)
		checkFrame(t, records, code)
		if got := records[len(records)-1]["end"]["peaks"]; got != c.peaks {
			t.Fatalf("%s: %v peaks are counted, want %v", c.mode, got, c.peaks)
		}
		for i, r := range records {
			if p, there := r["peaks"]; there {
				holdPeaks(t, p, c.unit)
				if i != 1 || records[2]["begin"] == nil {
					t.Errorf("the peaks are record %d", i)
				}
			}
		}
	}
}

func holdPeaks(t *testing.T, p map[string]any, stated string) {
	t.Helper()
	rate := func(of, name string) float64 {
		x, _ := p[of].(map[string]any)[name].(float64)
		return x
	}
	for _, traffic := range []string{"read", "write", "copy"} {
		cold, warm := rate("cold_bytes_per_ns", traffic), rate("warm_bytes_per_ns", traffic)
		if cold < 24 || cold > 128./5 || warm < 120 || warm > 128 {
			t.Errorf("%s: %v and %v bytes a nanosecond", traffic, cold, warm)
		}
	}
	for _, unit := range []string{"f64", "f32", "tf32", "f16", "bf16", "f8", "i8"} {
		why, _ := p["absent"].(map[string]any)[unit].(string)
		known := rate("flops_per_ns", unit) > 0 && rate("sm_mhz", unit) == 2000
		want := "the op states no work of " + unit
		if unit == stated {
			want = map[string]string{"f16": "no instruction that the harness has for this card is known to reach the peak of f16"}[unit]
		}
		if known != (want == "") || why != want {
			t.Errorf("%s: %v, absent for %q, want %q", unit, p, why, want)
		}
	}
}

// architectures are those that the program is built for, and the instructions by which
// its loops reach the peak of each: of 10.0 tensor cores are not known.
var architectures = map[string][]string{
	"75":  {"FFMA", "HMMA.1688", "IMMA.8816"},
	"80":  {"FFMA", "DMMA", "HMMA.16816", "HMMA.1688.F32.TF32", "IMMA.16832"},
	"86":  {"FFMA", "HMMA.16816", "IMMA.16832"},
	"89":  {"FFMA", "HMMA.16816", "QMMA.16832.F32", "QMMA.16832.F16", "IMMA.16832"},
	"90a": {"FFMA", "DMMA", "HGMMA.64x256x16", "HGMMA.64x256x8.F32.TF32", "QGMMA.64x256x32", "IGMMA.64x256x32"},
	"100": {"FFMA", "DFMA"},
	"120": {"FFMA", "HMMA.16816", "QMMA.16832.F32", "QMMA.16832.F16", "IMMA.16832"},
}

// TestPeaksAreCompiled: the loops are in what the compiler makes, for every kind of
// architecture. No instruction of 9.0 is serialised.
func TestPeaksAreCompiled(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a file for seven architectures")
	}
	nvcc := findCompiler(t)
	for arch, want := range architectures {
		object := filepath.Join(t.TempDir(), "peak_code.o")
		said, err := exec.Command(nvcc, "-O2", "-std=c++17", "-gencode", "arch=compute_"+arch+",code=sm_"+arch, "-I", ".", "-c", "peak_code.cu", "-o", object).CombinedOutput()
		if err != nil || len(said) > 0 {
			t.Fatalf("sm_%s: %v\n%s", arch, err, said)
		}
		code, err := exec.Command(filepath.Join(filepath.Dir(nvcc), "cuobjdump"), "-sass", object).Output()
		if err != nil {
			t.Fatalf("sm_%s: %v", arch, err)
		}
		for _, instruction := range want {
			if !strings.Contains(string(code), " "+instruction) {
				t.Errorf("sm_%s: no %s", arch, instruction)
			}
		}
		if tensor := strings.Contains(string(code), "HMMA") || strings.Contains(string(code), "HGMMA"); tensor == (arch == "100") {
			t.Errorf("sm_%s: tensor cores are used: %v", arch, tensor)
		}
	}
}
