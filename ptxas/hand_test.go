package ptxas

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestHandChecked holds figures that were read off the text by eye, not by this
// package: line numbers and values are of the file named.
func TestHandChecked(t *testing.T) {
	checks := []struct {
		file, arch, name string
		occurrence       int
		what             string
		got              func(*Entry) Count
		want             Count
	}{
		{"thirdparty/cuxray.spill.sm_90.log", "sm_90", "_Z6spillyPKfPfii", 1, "spill loads", func(e *Entry) Count { return e.SpillLoadBytes }, known(624)},
		{"thirdparty/cuxray.spill.sm_120a.log", "sm_120a", "_Z6spillyPKfPfii", 1, "cumulative stack", func(e *Entry) Count { return e.CumulativeStackBytes }, known(208)},
		{"thirdparty/cuxray.bank_conflict.sm_90.log", "sm_90", "_Z12padded_cleanPKfPfi", 1, "shared memory", func(e *Entry) Count { return e.SharedBytes }, known(4224)},
		{"thirdparty/rootbeer-kmeans-sm_35.log", "sm_35", "_Z5entryPcS_PiPxS1_S0_S0_S0_S0_P19HostDeviceInterfacei", 1, "registers, first run", func(e *Entry) Count { return e.Registers }, known(143)},
		{"thirdparty/rootbeer-kmeans-sm_35.log", "sm_35", "_Z5entryPcS_PiPxS1_S0_S0_S0_S0_P19HostDeviceInterfacei", 2, "spill stores, second run", func(e *Entry) Count { return e.SpillStoreBytes }, known(400)},
		{"thirdparty/kernelgen-sm_30-jit.log", "sm_30", "__kernelgen_main", 1, "spills of callees", func(e *Entry) Count { return e.CalleeSpillBytes() }, known(144 + 136 + 124 + 124)},
		{"thirdparty/kernelgen-sm_30-jit.log", "sm_30", "__kernelgen_main", 1, "its own spills", func(e *Entry) Count { return e.SpillBytes() }, known(0)},
		{"thirdparty/mcx-sm_20.log", "sm_20", "_Z13mcx_main_loopILi8EEvPjPfS1_S0_P6float4S3_S3_S1_S0_S1_S1_S1_PmS1_PVi", 1, "constant bank 16", func(e *Entry) Count { return e.ConstantBytes(16) }, known(92)},
		{"thirdparty/opencl-driver-sm_30.log", "sm_30", "mcx_main_loop", 1, "stack frame", func(e *Entry) Count { return e.StackBytes }, known(32)},
		{"thirdparty/pgi-openacc-kepler-interleaved.log", "sm_35", "gaussblur_60_gpu", 1, "registers", func(e *Entry) Count { return e.Registers }, known(51)},
		{"thirdparty/torch-load_inline-ninja-cu121-sm_86.log", "sm_86", "_Z19tiled_matmul_kernelPfS_S_iii", 1, "shared memory", func(e *Entry) Count { return e.SharedBytes }, known(2048)},
		{"thirdparty/torch-load_inline-ninja-cu121-sm_86.log", "sm_86", "_Z19tiled_matmul_kernelPfS_S_iii", 1, "barriers, not printed by CUDA 12.1", func(e *Entry) Count { return e.Barriers }, Count{}},
	}
	for _, c := range checks {
		log := parseFile(t, filepath.Join("testdata", filepath.FromSlash(c.file)), Parse)
		e := find(log, c.arch, c.name, c.occurrence)
		if e == nil {
			t.Errorf("%s: no entry %s %s #%d", c.file, c.arch, c.name, c.occurrence)
		} else if got := c.got(e); got != c.want {
			t.Errorf("%s: %s: %s = %v, want %v", c.file, c.name, c.what, got, c.want)
		}
	}
}

func parseFile[T any](t testing.TB, path string, parse func(io.Reader, string) (T, error)) T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	result, err := parse(f, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func find(log *Log, arch, name string, occurrence int) *Entry {
	for i := range log.Entries {
		e := &log.Entries[i]
		if e.Arch == arch && e.Name == name && e.Occurrence == occurrence {
			return e
		}
	}
	return nil
}
