package collect

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
)

// A driver's library that gives the reasons of the environment, and a program
// that prints what the harness makes of them.
const (
	library = `#include <cstdlib>
extern "C" int nvmlInit_v2() { return 0; }
extern "C" int nvmlDeviceGetHandleByUUID(const char*, void** device) { *device = device; return 0; }
extern "C" int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* bits) { *bits = strtoull(getenv("REASONS"), nullptr, 0); return 0; }
`
	program = `#include <cstdio>

#include "nvml.h"

int main() {
  Nvml nvml;
  if (std::string why = nvml.open("GPU-0"); !why.empty()) return fputs(why.c_str(), stderr), 1;
  puts(nvml.sample().text().c_str());
}
`
)

// TestThrottlingIsReadInTheHarnesssWords feeds what the harness's own code makes
// of each of NVML's bits: a round is discarded for those by which the device
// holds its clocks down by force, and for no other.
func TestThrottlingIsReadInTheHarnesssWords(t *testing.T) {
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no g++")
	}
	dir := t.TempDir()
	harness, err := filepath.Abs("../../../kernels/harness")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"nvml.cc": library, "main.cc": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{
		"-shared -fPIC -o libnvidia-ml.so.1 nvml.cc",
		"-std=c++17 -I " + harness + " -o sample main.cc -x c++ " + harness + "/nvml.cu -ldl",
	} {
		build := exec.Command("g++", strings.Fields(args)...)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("g++ %s: %v\n%s", args, err, out)
		}
	}
	const forced = 0x8 | 0x20 | 0x40 | 0x80 // hardware slowdown, software and hardware thermal, power brake
	for bit := range 10 {
		run := exec.Command(filepath.Join(dir, "sample"))
		run.Env = []string{"LD_LIBRARY_PATH=" + dir, fmt.Sprintf("REASONS=%d", 1<<bit)}
		said, err := run.Output()
		if err != nil {
			t.Fatal(err)
		}
		var state evidence.DeviceState
		if err := json.Unmarshal(said, &state); err != nil || len(state.Throttle) != 1 {
			t.Fatalf("bit %d: %s, %v", bit, said, err)
		}
		why := slowed(map[string]*timing{"k@c": {samples: []evidence.Sample{{After: state}}}})
		if want := forced>>bit&1 == 1; (why != "") != want || gpu.Forces(state.Throttle[0]) != want {
			t.Errorf("bit %d is %q: %q, want a reason to discard: %v", bit, state.Throttle[0], why, want)
		}
	}
}
