package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden parts of testdata")

// fakeSMI puts a program named nvidia-smi alone on PATH, next to what a shell
// script needs, and sees to it that NVML is not asked.
func fakeSMI(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv(EnvNVML, "off")
}

// say is a shell line that prints a text.
func say(text string) string { return "cat <<'EOF'\n" + strings.TrimSuffix(text, "\n") + "\nEOF\n" }

// replay is a fake that answers with the recordings of one machine.
func replay(dir string) string {
	return fmt.Sprintf(`case "$1" in
--query-gpu=*) exec cat %[1]q/query-gpu.txt ;;
--query-compute-apps=*) exec cat %[1]q/query-compute-apps.txt ;;
esac
exit 1
`, dir)
}

func TestRecordings(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	machines, err := filepath.Glob(filepath.Join(here, "testdata/smi/*"))
	if err != nil || len(machines) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, dir := range machines {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			fakeSMI(t, replay(dir))
			devices, err := List(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			processes, err := Processes(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(dir, "devices.json"), devices)
			golden(t, filepath.Join(dir, "processes.json"), processes)
		})
	}
}

// golden compares a value with a file, or writes it there.
func golden(t *testing.T, file string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// The recording instructions must ask what the package asks.
func TestReadmeNamesTheFields(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "--query-gpu="+names(fields)+" ") {
		t.Errorf("testdata/README.md does not ask for %s", names(fields))
	}
}

const goodRow = "0, GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, NVIDIA H200, 580.159.03, 00000000:0F:00.0, 9.0, Disabled, Enabled, 700.00, 77.00, 30, 345, 3201, 1980, 3201, 143771, 0, 0, 0x0000000000000001"

// row is goodRow with one cell replaced.
func row(column string, value string) string {
	cells := strings.Split(goodRow, ", ")
	for i, f := range fields {
		if f.name == column {
			cells[i] = value
		}
	}
	return strings.Join(cells, ", ")
}

func TestListRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		is         error  // may be nil
		want       string // in the text
	}{
		{"no driver", say("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.") + "exit 9", ErrNoDriver, "couldn't communicate"},
		{"driver and library differ", "echo 'Failed to initialize NVML: Driver/library version mismatch' >&2; exit 18", ErrNoDriver, "mismatch"},
		{"no device", say("No devices were found") + "exit 6", ErrNoDevice, ""},
		{"no device, exit 0", say("No devices were found"), ErrNoDevice, ""},
		{"nothing printed", "exit 0", ErrNoDevice, ""},
		{"lost GPU", "echo 'Unable to determine the device handle for GPU0: 0000:0F:00.0: GPU is lost.  Reboot the system to recover this GPU' >&2; exit 15", nil, "nvidia-smi ended with 15: Unable to determine"},
		{"rows, yet failed", say(goodRow) + "exit 3", nil, "ended with 3"},
		{"refuses a field that is needed", "case \"$1\" in *,uuid,*) echo 'Field \"uuid\" is not a valid field to query.'; exit 2;; esac\n" + say(strings.Replace(goodRow, " GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f,", "", 1)), nil, "uuid"},
		{"not a program", "exec /nonexistent", nil, ""},
		{"garbage", say("hello"), nil, "line 1"},
		{"HTML", say("<html>\n<body>"), nil, "line 1"},
		{"a column too few", say(strings.TrimSuffix(goodRow, ", 0x0000000000000001")), nil, "18 columns, want 19"},
		{"a column too many", say(goodRow + ", 1"), nil, "20 columns"},
		{"no UUID", say(row("uuid", "[N/A]")), nil, "uuid"},
		{"a UUID that climbs", say(row("uuid", "GPU-../../../../etc/passwd")), nil, "uuid"},
		{"twice the same", say(goodRow + "\n" + goodRow), nil, "listed twice"},
		{"negative index", say(row("index", "-1")), nil, "index"},
		{"no name", say(row("name", "[Unknown Error]")), nil, "name"},
		{"power is a word", say(row("power.limit", "much")), nil, "power.limit"},
		{"power is NaN", say(row("power.limit", "nan")), nil, "power.limit"},
		{"power is infinite", say(row("power.limit", "inf")), nil, "power.limit"},
		{"power is negative", say(row("power.limit", "-5")), nil, "power.limit"},
		{"power is empty", say(row("power.limit", "")), nil, "power.limit"},
		{"MIG is a word", say(row("mig.mode.current", "Maybe")), nil, "mig.mode.current"},
		{"reasons without 0x", say(row("clocks_event_reasons.active", "4")), nil, "clocks_event_reasons"},
		{"endless", "exec head -c 3000000 /dev/zero", nil, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeSMI(t, c.body)
			got, err := List(context.Background())
			if got != nil || err == nil {
				t.Fatalf("got %+v, error %v", got, err)
			}
			if c.is != nil && !errors.Is(err, c.is) || c.is == nil && (errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice)) {
				t.Errorf("error %v, want it to be %v", err, c.is)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestNoSMI(t *testing.T) {
	for _, path := range usualSMI {
		if _, err := os.Stat(path); err == nil {
			t.Skipf("%s is here", path)
		}
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvNVML, "off")
	if _, err := List(context.Background()); !errors.Is(err, ErrNoDriver) {
		t.Errorf("error %v", err)
	}
	if _, err := Processes(context.Background()); !errors.Is(err, ErrNoDriver) {
		t.Errorf("error %v", err)
	}
}

// An older driver refuses fields that it does not know: one is asked by its
// older name, one is left out.
func TestOlderDriver(t *testing.T) {
	fakeSMI(t, `case "$1" in
*clocks_event_reasons.active*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2 ;;
*compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; exit 2 ;;
*clocks_throttle_reasons.active*) ;;
*) echo 'nothing asks for the reasons'; exit 1 ;;
esac
`+say(strings.Replace(row("clocks_event_reasons.active", "0x0000000000000028"), " 9.0,", "", 1)))
	got, err := List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d := got[0]
	if d.ComputeCapability != "" || d.MIG != Off || strings.Join(d.Throttle.Active, " ") != "hw_slowdown sw_thermal" {
		t.Errorf("got %+v", d)
	}
}

func TestListStopsWithItsContext(t *testing.T) {
	fakeSMI(t, "sleep 600\n")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestProcessesRefuse(t *testing.T) {
	for _, line := range []string{
		"hello", "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, 1, name", "../x, 1, name, 2",
		"GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, one, name, 2", "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, -1, name, 2",
		"GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f, 1, name, lots",
	} {
		fakeSMI(t, say(line))
		if got, err := Processes(context.Background()); got != nil || err == nil {
			t.Errorf("%q: got %+v", line, got)
		}
	}
}

func TestNoProcesses(t *testing.T) {
	for _, body := range []string{"exit 0", say("No running processes found")} {
		fakeSMI(t, body)
		if got, err := Processes(context.Background()); len(got) != 0 || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

func TestZeroValuesAreAbsent(t *testing.T) {
	var d Device
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), `{"absent":"not asked"}`); n != 11 {
		t.Errorf("%d named absences, want 11: %s", n, data)
	}
	if f := (&Device{PowerDraw: Reading{Why: "GPU is lost"}}).Fault(); f != "GPU is lost" {
		t.Errorf("fault %q", f)
	}
	if f := (&Device{PowerDraw: Reading{Why: "N/A"}}).Fault(); f != "" {
		t.Errorf("fault %q", f)
	}
}

func TestSlowing(t *testing.T) {
	all, err := parseReasons("0x00000000000003ff")
	if err != nil || len(all.Active) != 10 {
		t.Fatalf("got %+v, %v", all, err)
	}
	slow := strings.Join(all.Slowing(), " ")
	if want := "display_clock hw_power_brake hw_slowdown hw_thermal sw_power_cap sw_thermal sync_boost unnamed_0x200"; slow != want {
		t.Errorf("got %s", slow)
	}
	if none, err := parseReasons("0x0"); err != nil || !none.Known || len(none.Active) != 0 {
		t.Errorf("got %+v, %v", none, err)
	}
}
