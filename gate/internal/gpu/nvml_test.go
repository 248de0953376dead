//go:build cgo && linux

package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// TestListTwice is for TestLibraryIsLoaded to start: a library is searched for
// where a program's environment says when it starts.
func TestListTwice(t *testing.T) {
	if os.Getenv("GATE_TEST_LIST") == "" {
		t.Skip("started by another test")
	}
	for range 2 {
		devices, err := List(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		processes, err := Processes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode([]any{devices, processes}); err != nil {
			t.Fatal(err)
		}
	}
}

// A library behaves as NVML on a machine with these devices.
type library struct {
	nvml.Interface
	init, count nvml.Return
	lacks       string
	devices     []handle
	handles     nvml.Return
	hang        chan struct{}
}

func (l library) Init() nvml.Return {
	if l.hang != nil {
		<-l.hang
	}
	return l.init
}
func (l library) Shutdown() nvml.Return              { return nvml.SUCCESS }
func (l library) Extensions() nvml.ExtendedInterface { return l }
func (l library) LookupSymbol(name string) error {
	if name == l.lacks {
		return errors.New("undefined symbol")
	}
	return nil
}
func (l library) SystemGetDriverVersion() (string, nvml.Return) { return "580.159.03", nvml.SUCCESS }
func (l library) DeviceGetCount() (int, nvml.Return)            { return len(l.devices), l.count }
func (l library) DeviceGetHandleByIndex(i int) (nvml.Device, nvml.Return) {
	return l.devices[i], l.handles
}
func (l library) SystemGetProcessName(pid int) (string, nvml.Return) {
	if pid != 4711 {
		return "", nvml.ERROR_NOT_FOUND
	}
	return "/opt/run kernel, v2/attention", nvml.SUCCESS
}

// A handle is a device that answers each question about its state with code.
type handle struct {
	nvml.Device
	index int
	uuid  string
	named nvml.Return
	code  nvml.Return
	users []nvml.ProcessInfo
}

const madeUUID = "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f"

func (h handle) GetIndex() (int, nvml.Return)                      { return h.index, nvml.SUCCESS }
func (h handle) GetUUID() (string, nvml.Return)                    { return h.uuid, nvml.SUCCESS }
func (h handle) GetName() (string, nvml.Return)                    { return "NVIDIA H200", h.named }
func (h handle) GetCudaComputeCapability() (int, int, nvml.Return) { return 9, 0, h.code }
func (h handle) GetMigMode() (int, int, nvml.Return)               { return 0, 1, h.code }
func (h handle) GetPersistenceMode() (nvml.EnableState, nvml.Return) {
	return nvml.FEATURE_ENABLED, h.code
}
func (h handle) GetPowerManagementLimit() (uint32, nvml.Return)      { return 700000, h.code }
func (h handle) GetPowerUsage() (uint32, nvml.Return)                { return 77004, h.code }
func (h handle) GetCurrentClocksEventReasons() (uint64, nvml.Return) { return 0x1, h.code }
func (h handle) GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return h.users, h.code
}
func (h handle) GetTemperature(s nvml.TemperatureSensors) (uint32, nvml.Return) {
	return 30 + uint32(s), h.code
}
func (h handle) GetClockInfo(c nvml.ClockType) (uint32, nvml.Return) {
	return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 345, nvml.CLOCK_MEM: 3201}[c], h.code
}
func (h handle) GetMaxClockInfo(c nvml.ClockType) (uint32, nvml.Return) {
	return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1980, nvml.CLOCK_MEM: 3201}[c], h.code
}
func (h handle) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	return nvml.Memory_v2{Total: 143771<<20 + 5, Used: 1<<20 - 1}, h.code
}
func (h handle) GetUtilizationRates() (nvml.Utilization, nvml.Return) {
	return nvml.Utilization{Gpu: 0, Memory: 9}, h.code
}
func (h handle) GetPciInfo() (nvml.PciInfo, nvml.Return) {
	var pci nvml.PciInfo
	for i, c := range "00000000:0f:00.0" {
		pci.BusId[i] = int8(c)
	}
	return pci, h.code
}

func ask[T any](l library, question func(nvml.Interface) (T, error)) (T, error) {
	return askNVML(context.Background(), time.Minute, l, question)
}

// One GPU reads the same through NVML and in nvidia-smi's table.
func TestNVMLReadsAsSMI(t *testing.T) {
	want, err := parseDevices(goodRow, fields)
	if err != nil {
		t.Fatal(err)
	}
	want[0].Source = NVML
	got, err := ask(library{devices: []handle{{uuid: madeUUID}}}, devicesOf)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

// What NVML does not tell has the name that nvidia-smi gives it.
func TestNVMLAbsences(t *testing.T) {
	for _, c := range []struct {
		code       nvml.Return
		why, fault string
	}{
		{nvml.ERROR_NOT_SUPPORTED, "N/A", ""},
		{nvml.ERROR_NO_PERMISSION, "Insufficient Permissions", ""},
		{nvml.ERROR_GPU_IS_LOST, "GPU is lost", "GPU is lost"},
		{nvml.ERROR_RESET_REQUIRED, "GPU requires reset", "GPU requires reset"},
		{nvml.ERROR_UNKNOWN, "Unknown Error", "Unknown Error"},
	} {
		list, err := ask(library{devices: []handle{{uuid: madeUUID, code: c.code}}}, devicesOf)
		if err != nil {
			t.Fatal(err)
		}
		d := list[0]
		for i, r := range d.readings() {
			if r != (Reading{Why: c.why}) {
				t.Errorf("%v: reading %d is %+v", c.code, i, r)
			}
		}
		if d.Throttle.Known || d.Throttle.Active != nil || d.MIG != Absent || d.Persistence != Absent || d.PCI != "" || d.ComputeCapability != "" {
			t.Errorf("%v: %+v", c.code, d)
		}
		if d.Fault() != c.fault {
			t.Errorf("%v: fault %q", c.code, d.Fault())
		}
	}
}

func TestNVMLErrors(t *testing.T) {
	good := []handle{{uuid: madeUUID}}
	for _, c := range []struct {
		name string
		lib  library
		is   error // may be nil
		want string
	}{
		{"no library", library{init: nvml.ERROR_LIBRARY_NOT_FOUND}, errNVMLUnavailable, ""},
		{"an older library", library{lacks: "nvmlDeviceGetCurrentClocksEventReasons", devices: good}, errNVMLUnavailable, "EventReasons"},
		{"driver not loaded", library{init: nvml.ERROR_DRIVER_NOT_LOADED}, ErrNoDriver, "start NVML"},
		{"driver not permitted", library{init: nvml.ERROR_NO_PERMISSION}, ErrNoDriver, "Insufficient Permissions"},
		{"driver and library differ", library{init: nvml.ERROR_LIB_RM_VERSION_MISMATCH}, ErrNoDriver, "MISMATCH"},
		{"no GPU", library{}, ErrNoDevice, ""},
		{"no GPU that is permitted", library{devices: good, handles: nvml.ERROR_NO_PERMISSION}, ErrNoDevice, ""},
		{"no count", library{count: nvml.ERROR_UNKNOWN}, nil, "count GPUs"},
		{"a lost GPU", library{devices: good, handles: nvml.ERROR_GPU_IS_LOST}, nil, "GPU 0: GPU is lost"},
		{"twice the same", library{devices: append(good, good...)}, nil, "listed twice"},
		{"a UUID that climbs", library{devices: []handle{{uuid: "GPU-../../../../etc/passwd"}}}, nil, "uuid"},
		{"no name", library{devices: []handle{{uuid: madeUUID, named: nvml.ERROR_UNKNOWN}}}, nil, "name: Unknown Error"},
		{"too many", library{devices: make([]handle, maxDevices+1)}, nil, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ask(c.lib, devicesOf)
			if got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for _, known := range []error{errNVMLUnavailable, ErrNoDriver, ErrNoDevice} {
				if errors.Is(err, known) != (known == c.is) {
					t.Errorf("error %v is or is not %v", err, known)
				}
			}
		})
	}
}

func TestNVMLProcesses(t *testing.T) {
	lib := library{devices: []handle{{uuid: madeUUID, users: []nvml.ProcessInfo{{Pid: 4711, UsedGpuMemory: 5110<<20 + 7}, {Pid: 12, UsedGpuMemory: ^uint64(0)}}}}}
	got, err := ask(lib, processesOf)
	want := []Process{
		{UUID: madeUUID, PID: 4711, Name: "/opt/run kernel, v2/attention", Memory: Reading{Value: 5110, Known: true}},
		{UUID: madeUUID, PID: 12, Memory: Reading{Why: "N/A"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	lib.devices[0].code = nvml.ERROR_NOT_SUPPORTED
	if got, err := ask(lib, processesOf); got != nil || err == nil {
		t.Errorf("got %+v of a device that does not tell", got)
	}
}

// A device on which NVML hangs ends neither the caller's patience nor the
// limit, and once it answers the next caller has its turn.
func TestNVMLHangs(t *testing.T) {
	hang := make(chan struct{})
	stuck := library{hang: hang, devices: []handle{{uuid: madeUUID}}}
	if _, err := askNVML(context.Background(), time.Millisecond, stuck, devicesOf); !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := askNVML(ctx, time.Minute, stuck, devicesOf); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	deadline, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := askNVML(deadline, time.Minute, stuck, devicesOf); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNoDriver) {
		t.Errorf("error %v", err)
	}
	close(hang)
	if list, err := ask(stuck, devicesOf); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// The names stand at the bits that NVML's header gives them.
func TestReasonBits(t *testing.T) {
	for bit, name := range map[uint64]string{
		nvml.ClocksEventReasonGpuIdle: "gpu_idle", nvml.ClocksEventReasonApplicationsClocksSetting: "app_clocks",
		nvml.ClocksEventReasonSwPowerCap: "sw_power_cap", nvml.ClocksThrottleReasonHwSlowdown: "hw_slowdown",
		nvml.ClocksEventReasonSyncBoost: "sync_boost", nvml.ClocksEventReasonSwThermalSlowdown: "sw_thermal",
		nvml.ClocksThrottleReasonHwThermalSlowdown: "hw_thermal", nvml.ClocksThrottleReasonHwPowerBrakeSlowdown: "hw_power_brake",
		nvml.ClocksEventReasonDisplayClockSetting: "display_clock",
	} {
		if got := reasons(bit).Active; len(got) != 1 || got[0] != name {
			t.Errorf("%#x is %v, want %s", bit, got, name)
		}
	}
}

// A library that the dynamic linker finds is asked before nvidia-smi, and can
// be opened again after it was closed.
func TestLibraryIsLoaded(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libnvidia-ml.so.1"), "testdata/nvml.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct{ name, init, want string }{
		{"an answer", "0", `"source":"nvml"`},
		{"no driver", "9", "list GPUs: no working NVIDIA driver: start NVML: made"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeSMI(t, say(goodRow))
			t.Setenv(EnvNVML, "")
			cmd := exec.Command(os.Args[0], "-test.run=^TestListTwice$")
			cmd.Env = append(os.Environ(), "GATE_TEST_LIST=1", "LD_LIBRARY_PATH="+dir, "MADE_INIT="+c.init)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.init == "0") || !strings.Contains(string(out), c.want) || c.init == "0" && strings.Count(string(out), `"pid":4711,"name":"made"`) != 2 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// On a machine that has both, the sources agree on all that stands still.
func TestSourcesAgree(t *testing.T) {
	t.Setenv(EnvNVML, "")
	ours, err := nvmlDevices(context.Background())
	if err != nil {
		t.Skipf("no GPU to ask: %v", err)
	}
	theirs, err := smiDevices(context.Background())
	if err != nil {
		t.Skipf("no nvidia-smi to ask: %v", err)
	}
	if len(ours) != len(theirs) {
		t.Fatalf("NVML lists %d GPUs, nvidia-smi %d", len(ours), len(theirs))
	}
	for i := range ours {
		a, b := still(ours[i]), still(theirs[i])
		if !reflect.DeepEqual(a, b) {
			t.Errorf("NVML       %+v\nnvidia-smi %+v", a, b)
		}
		t.Logf("NVML       %+v", ours[i])
		t.Logf("nvidia-smi %+v", theirs[i])
	}
}

// still keeps of what moves only whether it is known, and why not.
func still(d Device) Device {
	for _, r := range []*Reading{&d.PowerDraw, &d.Temperature, &d.SMClock, &d.MemoryClock, &d.MemoryUsed, &d.Utilization} {
		r.Value = 0
	}
	d.Throttle.Active, d.Source = nil, ""
	return d
}
