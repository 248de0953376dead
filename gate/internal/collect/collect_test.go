package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
)

var testOp = &manifest.Op{Name: "op", Tolerance: map[string]float64{"relative_error": 1e-3}}

// of is a kernel on a case; what the fake harness does goes by its name.
func of(kernel, kase string) unit {
	return unit{kernel: kernel, op: testOp, on: manifest.Case{Name: kase, Dims: []manifest.Dim{{Name: "N", Size: 8}}},
		artifact: &build.Artifact{Arch: "sm_90", Library: "/lib/" + kernel + ".so", Compiler: "13.0.88"},
		address:  evidence.Address{Identity: evidence.Identity{Code: "c", Host: "h"}, Op: "op", Case: kase}}
}

// fake is a collector whose harness is a shell script. The script's "device"
// mode says that the device is well unless the script says otherwise.
func fake(t testing.TB, script string) (*Bench, *[]*evidence.Record) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "harness")
	device := "if [ \"$1\" = device ]; then echo probed >>" + dir + "/probes; [ -e " + dir + "/dead ] && exit 9; printf '%s' '" + whole() + "'; exit 0; fi\n"
	text := "#!/bin/sh\n" + askedByInput + device + "cd " + dir + "\n" + script + "\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	kept := &[]*evidence.Record{}
	return &Bench{most: mostUnits, cache: t.TempDir(), program: program, complete: func(context.Context, *build.Artifact) error { return nil }, op: func(*manifest.Op) (string, error) { return "/lib/op.so", nil },
		device: gpu.Device{UUID: "GPU-1", ComputeCapability: "9.0"},
		now:    func() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) },
		keep:   func(r *evidence.Record, _ string, _ map[string][]byte) error { *kept = append(*kept, r); return nil }}, kept
}

// askedByInput makes arguments of a script from what stands in its standard input.
const askedByInput = "if [ \"$1\" = - ]; then IFS='\n'; set -f; set -- $(tr '\\000' '\\n'); set +f; unset IFS; fi\n"

// say prints lines of the protocol.
func say(lines ...string) string {
	return "cat <<'LINES'\n" + strings.Join(lines, "\n") + "\nLINES\n"
}

func probes(c *Bench) int {
	data, _ := os.ReadFile(filepath.Join(filepath.Dir(c.program), "probes"))
	return strings.Count(string(data), "\n")
}

func TestCheckTellsFailuresApart(t *testing.T) {
	checked := append([]string{configLine, beginLine, checkLine}, endLine(beginLine, checkLine))
	wrong := strings.Replace(checkLine, `"status":"pass"`, `"status":"fail"`, 1)
	nan := strings.Replace(checkLine, `"relative_error":0.0001`, `"relative_error":null`, 1)
	failed := func(line string) string {
		return say(configLine, beginLine, line, endLine(beginLine, line)) + "exit 1"
	}
	fault := func(kind string) string {
		return failed(strings.Replace(errorLine, `"kind":"cuda"`, `"kind":"`+kind+`"`, 1))
	}
	for _, c := range []struct {
		name, script string
		kind         evidence.FailureKind // "" for a record of checks
		message      string
		probes       int
	}{
		{"passes", say(checked...), "", "", 0},
		{"wrong result", say(configLine, beginLine, wrong, endLine(beginLine, wrong)) + "exit 1", "", "", 0},
		{"error that is not finite", say(configLine, beginLine, nan, endLine(beginLine, nan)) + "exit 1", "", "", 0},
		{"hangs", say(configLine, beginLine) + "sleep 60", evidence.Hang, `the kernel hangs (small, inputs "normal"): it gave no sign of life for 2s, and was killed`, 1},
		{"hangs before its first word", "sleep 60", evidence.Hang, "the kernel hangs: it gave no sign of life for 2s, and was killed", 1},
		{"crashes", say(configLine, beginLine) + "kill -SEGV $$", evidence.Crash, `the process died (small, inputs "normal"): segmentation fault`, 1},
		{"exits without its end", say(configLine, beginLine) + "echo boom >&2; exit 7", evidence.Crash, `the harness ended (small, inputs "normal") with status 7 and without its end record: boom`, 1},
		{"exits well without its end", say(configLine, beginLine, checkLine), evidence.Crash, `the harness ended (small, inputs "normal") with status 0 and without its end record: `, 1},
		{"never begins", say(configLine) + "exit 0", evidence.Tool, "the harness ended with status 0 and without its end record: ", 0},
		{"says nothing", "exit 0", evidence.Tool, "the harness ended with status 0 and without its end record: ", 0},
		{"tool error", say(configLine, endLine()) + "echo no device >&2; exit 3", evidence.Tool, "the harness ended with status 3: no device", 0},
		{"wrong counts", say(configLine, beginLine, endLine()), evidence.Tool, "harness output, line 3: the end record counts {Peaks:0 Begin:0 Check:0 Time:0 Profile:0 Absent:0 Error:0}, {Peaks:0 Begin:1 Check:0 Time:0 Profile:0 Absent:0 Error:0} arrived", 0},
		{"noise", say(configLine, "cuda says hello", beginLine, checkLine), evidence.Tool, "harness output, line 2: invalid character 'c' looking for beginning of value", 0},
		{"nothing checked", say(configLine, beginLine, endLine(beginLine)), evidence.Tool, `harness output, line 3: no result came of op/k on small, inputs "normal"`, 0},
		{"another kernel's check", say(configLine, strings.Replace(checkLine, "op/k", "op/x", 1), endLine(checkLine)), evidence.Tool, "the harness sent no check for this case", 0},
		{"CUDA error", fault("cuda"), evidence.CUDA, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 1},
		{"capture fails", fault("capture"), evidence.CUDA, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 1},
		{"empty graph", fault("empty_graph"), evidence.Wrong, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 0},
		{"refused shape", fault("unsupported"), evidence.Wrong, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 0},
		{"no gate_run", fault("symbol"), evidence.Wrong, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 0},
		{"out of memory", fault("memory"), evidence.Tool, `inputs "normal": cudaErrorIllegalAddress (700): an illegal memory access was encountered`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector, kept := fake(t, c.script) // first: a program is not written while others are started
			if c.kind == evidence.Hang {
				collector.limit = 2 * time.Second // on a busy machine, a harness that is well can be silent for long
			}
			t.Parallel()
			records, err := collector.checkUnits(context.Background(), []unit{of("op/k", "small")})
			if err != nil || len(records) != 1 {
				t.Fatalf("%d records, %v", len(records), err)
			}
			r := records[0]
			if c.kind == "" {
				if r.Failure != nil || len(r.Checks) != 1 || len(*kept) != 1 || r.Provenance.Recorded != "2026-11-20T10:00:00Z" {
					t.Errorf("%+v, failure %v, %d kept", r, r.Failure, len(*kept))
				}
				return
			}
			if r.Failure == nil || r.Failure.Kind != c.kind || r.Failure.Message != c.message {
				t.Errorf("got %v, want %s: %s", r.Failure, c.kind, c.message)
			}
			if len(*kept) != 0 || len(r.Metrics) != 0 {
				t.Errorf("a failure is kept, or has metrics: %+v", r)
			}
			if got := probes(collector); got != c.probes {
				t.Errorf("the device was probed %d times, want %d", got, c.probes)
			}
		})
	}
}

func TestDeadDeviceIsAnError(t *testing.T) {
	c, _ := fake(t, "touch dead; kill -SEGV $$")
	records, err := c.checkUnits(context.Background(), []unit{of("op/k", "small")})
	if !errors.Is(err, errDevice) || len(records) != 1 || records[0].Failure == nil || records[0].Failure.Kind != evidence.Crash {
		t.Errorf("%v, %+v", err, records)
	}
}

// TestOneCaseDoesNotTakeTheOthersAlong: what was measured before a crash
// stands, the case that crashed and those after it do not.
func TestOneCaseDoesNotTakeTheOthersAlong(t *testing.T) {
	second := strings.ReplaceAll(beginLine, "small", "large")
	c, kept := fake(t, say(configLine, beginLine, checkLine, second)+"kill -SEGV $$")
	records, err := c.checkUnits(context.Background(), []unit{of("op/k", "small"), of("op/k", "large"), of("op/k", "third")})
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if records[0].Failure != nil || len(records[0].Checks) != 1 || len(*kept) != 1 {
		t.Errorf("the case before: %+v", records[0])
	}
	for _, r := range records[1:] {
		if r.Failure == nil || r.Failure.Kind != evidence.Crash || len(r.Checks) != 0 {
			t.Errorf("%s: %+v", r.Address.Case, r)
		}
	}
}

func TestChildSeesTheLockedDeviceOnly(t *testing.T) {
	c, _ := fake(t, `echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER" >seen; printf '%s\n' "$@" >args`)
	if _, err := c.checkUnits(context.Background(), []unit{of("op/k", "small"), of("op/k", "large"), of("op/j", "small")}); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := read("seen"); got != "GPU-1 PCI_BUS_ID\n" {
		t.Errorf("the child sees %s", got)
	}
	want := "check --op /lib/op.so --case small=N:8 --case large=N:8 --kernel op/k=/lib/op/k.so --kernel op/j=/lib/op/j.so " +
		"--run op/k@small --run op/k@large --run op/j@small --tolerance relative_error=0.001"
	if got := strings.Join(strings.Fields(read("args")), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNothingAskedCanBeLookedUp: every process sees the arguments of all others.
func TestNothingAskedCanBeLookedUp(t *testing.T) {
	c, _ := fake(t, `echo "$1" >>modes; for f in cmdline environ; do tr '\000' ' ' </proc/$$/$f; echo; done >>seen; [ "$1" != prepare ] || exit 1; `+say(configLine, endLine()))
	ctx := context.Background()
	units := []unit{of("op/k", "small")}
	c.checkUnits(ctx, units)
	c.timeAlone(ctx, units, []evidence.CacheState{evidence.Warm})
	c.data = t.TempDir()
	c.checkUnits(ctx, units)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if modes := strings.Fields(read("modes")); len(modes) < 3 || !slices.Contains(modes, "check") || !slices.Contains(modes, "time") || !slices.Contains(modes, "prepare") {
		t.Fatalf("asked in modes %q", modes)
	}
	for _, word := range []string{"check", "--seed", "--run", "op/k", "small", "op.so"} {
		if strings.Contains(read("seen"), word) {
			t.Errorf("%q can be looked up in\n%s", word, read("seen"))
		}
	}
}

// crashing ends a launch that has op/bad in it, at op/bad; without, it is whole.
var crashing = "case \"$*\" in *op/bad@*)\n" + say(configLine, strings.ReplaceAll(timedLine, "op/k", "op/bad")) + "kill -SEGV $$;;\nesac\n"

// The failure of a kernel is returned when the run is cancelled later, too.
func TestAKernelThatBrokeIsNamedWhenTheRunEnds(t *testing.T) {
	line := func(text string) string { return strings.ReplaceAll(text, "op/k", "op/good") }
	c, kept := fake(t, crashing+say(configLine, line(timedLine), line(timeLine), endLine(timedLine, timeLine)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	said := 0
	c.progress = func(float64, string) {
		if said++; said == 3 {
			cancel()
		}
	}
	records, err := c.timeAlone(ctx, []unit{of("op/bad", "small"), of("op/good", "small")}, []evidence.CacheState{evidence.Warm})
	if !errors.Is(err, context.Canceled) || len(records) != 2 || records[1] != nil || len(*kept) != 0 {
		t.Fatalf("%+v, %d kept, %v", records, len(*kept), err)
	}
	if r := records[0]; r == nil || r.Failure == nil || r.Failure.Kind != evidence.Crash {
		t.Errorf("%+v", r)
	}
}

func TestTimeTakesOutTheKernelThatBreaks(t *testing.T) {
	good := []string{strings.ReplaceAll(timedLine, "op/k", "op/good"), strings.ReplaceAll(timeLine, "op/k", "op/good")}
	c, kept := fake(t, crashing+say(append(append([]string{configLine}, good...), endLine(good...))...))
	records, err := c.timeAlone(context.Background(), []unit{of("op/bad", "small"), of("op/good", "small")}, []evidence.CacheState{evidence.Warm})
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	byName := map[string]*evidence.Record{}
	for _, r := range records {
		byName[r.Provenance.Kernel] = r
	}
	if r := byName["op/bad"]; r == nil || r.Failure == nil || r.Failure.Kind != evidence.Crash {
		t.Errorf("the bad one: %+v", r)
	}
	r := byName["op/good"]
	if r == nil || r.Failure != nil || len(r.Samples) != singleProcesses || len(*kept) != 1 || probes(c) != 1 {
		t.Fatalf("the good one: %+v, %d kept, %d probes", r, len(*kept), probes(c))
	}
	if v := r.Metrics.Get("latency.typical"); !v.Known() || v.Number != 99 || v.Unit() != "ns" {
		t.Errorf("typical %+v", v)
	}
	if v := r.Metrics.Get("latency.cold_typical"); v.Known() || v.Missing() == "" {
		t.Errorf("cold, which was not measured: %+v", v)
	}
}

func TestTimesThatCannotBeUsed(t *testing.T) {
	for name, change := range map[string][2]string{
		"0 nodes": {`"kernel_nodes":16`, `"kernel_nodes":0`}, "time of 0": {"101.5", "0"}, "one batch": {"[101.5,99]", "[99]"},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.Replace(timeLine, change[0], change[1], 1)
			c, kept := fake(t, say(configLine, timedLine, line, endLine(timedLine, line)))
			t.Parallel()
			records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, []evidence.CacheState{evidence.Warm})
			if err != nil || len(records) != 1 || records[0].Failure == nil || records[0].Failure.Kind != evidence.Wrong || len(*kept) != 0 {
				t.Errorf("%+v, %v", records, err)
			}
		})
	}
}

// TestUnitWithoutTimesIsNotMeasured: a launch that leaves a unit out is no
// launch of it.
func TestUnitWithoutTimesIsNotMeasured(t *testing.T) {
	c, kept := fake(t, say(configLine, timedLine, timeLine, endLine(timedLine, timeLine)))
	records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small"), of("op/silent", "small")}, []evidence.CacheState{evidence.Warm})
	if err == nil {
		for _, r := range records {
			if r.Provenance.Kernel == "op/silent" && r.Failure == nil {
				t.Errorf("a kernel that was never timed has a record: %+v", r)
			}
		}
	}
	for _, r := range *kept {
		if r.Provenance.Kernel == "op/silent" {
			t.Error("and it is kept")
		}
	}
}

// TestAHarnessThatSpeaksOfOthersEnds: what it says of a unit that is out already
// is not a reason to ask it again.
func TestAHarnessThatSpeaksOfOthersEnds(t *testing.T) {
	twice := []string{timedLine, timeLine, timeLine}
	c, kept := fake(t, say(append(append([]string{configLine}, twice...), endLine(twice...))...))
	if _, err := c.timeAlone(context.Background(), []unit{of("op/k", "small"), of("op/silent", "small")}, []evidence.CacheState{evidence.Warm}); err == nil || !strings.Contains(err.Error(), "a second result of op/k on small, warm") || len(*kept) != 0 {
		t.Errorf("%v, %d kept", err, len(*kept))
	}
}

func TestTimesOfSomeoneElseAreNobodys(t *testing.T) {
	line := strings.ReplaceAll(timeLine, "op/k", "op/x")
	c, kept := fake(t, say(configLine, line, endLine(line)))
	records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, []evidence.CacheState{evidence.Warm})
	if err != nil || records[0].Failure == nil || records[0].Failure.Kind != evidence.Tool || len(*kept) != 0 {
		t.Errorf("%+v, %v", records, err)
	}
	c, kept = fake(t, say(configLine, timeLine, line, endLine(timeLine, line)))
	if records, err := c.timeAlone(context.Background(), []unit{of("op/k", "small")}, []evidence.CacheState{evidence.Warm}); err == nil || len(*kept) != 0 {
		t.Errorf("%+v", records)
	}
}

func TestCheckMetrics(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	m := checkMetrics([]evidence.Check{{RelativeError: x(0.5), MaxAbsError: x(2), Status: "pass"}, {RelativeError: x(0.25), MaxAbsError: x(3), Status: "fail"}})
	if fmt.Sprint(m.Get("check.relative_error").Number, m.Get("check.max_abs_error").Number, m.Get("check.failed_classes").Number) != "0.5 3 1" {
		t.Errorf("%+v", m)
	}
	m = checkMetrics([]evidence.Check{{RelativeError: nil, MaxAbsError: x(2), Status: "fail"}, {RelativeError: x(0.25), MaxAbsError: x(1), Status: "pass"}})
	if v := m.Get("check.relative_error"); v.Known() {
		t.Errorf("an error that is not finite became %v", v.Number)
	}
}

// TestEveryTierIsEntered: what is collected for a verdict can be measured and
// audited, and a tier that nothing measures is an error.
func TestEveryTierIsEntered(t *testing.T) {
	for i, name := range evidence.Order {
		if of := tiers[name]; of.audit == nil || (of.measure == nil) != (i == 0) {
			t.Errorf("%s: %+v", name, of)
		}
	}
	c, _ := fake(t, "")
	c.made = &build.Set{}
	step := plan.Step{Tier: "trace", Tasks: []plan.Task{{Subject: &plan.Subject{Name: "op/k"}}}}
	if err := c.Fill(context.Background(), step, &evidence.Ledger{}); err == nil || !strings.Contains(err.Error(), `nothing here measures the tier "trace"`) {
		t.Errorf("a tier that nobody measures: %v", err)
	}
}
