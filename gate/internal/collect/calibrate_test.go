package collect

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// timesOf answers for every unit of a process, and logs the process's units in
// their order: a line is one write, since a process that was started early may be
// killed at any time. Shell code runs before, with the process's number in $n.
func timesOf(shell string) string {
	return `n=$(($(cat processes 2>/dev/null | wc -l) + 1))
echo "$(echo "$*" | grep -o -e '--run [^ ]*' | tr -d '\n')" >>processes
state='` + stateJSON + `'
after=$state
more=
` + shell + `
echo '` + configLine + `'
runs=0
for u in $(tail -n 1 processes | sed 's/--run / /g'); do
  echo '` + timeLine + `' | sed "s|op/k|${u%@*}|; s|\"small\"|\"${u#*@}\"|; s|\"after\":.*|\"after\":$after}}|; $more"
  runs=$((runs + 1))
done
echo "{\"end\":{\"begin\":0,\"check\":0,\"time\":$runs,\"profile\":0,\"error\":0}}"
`
}

func processesOf(t *testing.T, c *Bench) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), "processes"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func TestCalibrateRunsWholeRounds(t *testing.T) {
	c, kept := fake(t, timesOf(""))
	units := []unit{of("op/a", "small"), of("op/b", "small"), of("op/c", "small"), of("op/d", "small")}
	records, err := c.calibrate(context.Background(), units, 10)
	if err != nil || len(records) != 4 || len(*kept) != 4 {
		t.Fatalf("%d records, %d kept, %v", len(records), len(*kept), err)
	}
	for i, r := range records {
		if r.Provenance.Kernel != units[i].kernel || r.Tier != evidence.Calibration || r.Failure != nil || len(r.Samples) != 80 || r.AA.Rounds != 10 || len(r.AA.Discarded) != 0 {
			t.Errorf("%s: %d samples, %+v", r.Provenance.Kernel, len(r.Samples), r.AA)
		}
		if r.AA.ProcessSeconds <= 0 || math.Abs(r.AA.TimedSeconds/((101.5+99)*8*1e-9)-1) > 1e-9 || !r.Metrics.Get("latency.typical").Known() {
			t.Errorf("%s: %+v", r.Provenance.Kernel, r.AA)
		}
	}
	processes := processesOf(t, c)
	if len(processes) != 81 {
		t.Fatalf("%d processes", len(processes))
	}
	orders := map[string]bool{}
	for round := range slices.Chunk(processes[1:], 8) {
		orders[round[0]] = true
		for _, l := range round {
			if l != round[0] {
				t.Errorf("one round has two orders: %s and %s", round[0], l)
			}
		}
	}
	if len(orders) < 2 { // 24 orders, ten rounds: all alike once in 2.6e12 runs
		t.Error("all rounds have one order")
	}
}

const throttled = `after=$(echo "$state" | sed 's/"throttle":\[\]/"throttle":["hw_thermal"]/')`

func TestCalibrateDiscardsWholeRoundsByTheDevicesWords(t *testing.T) {
	c, _ := fake(t, timesOf(`if [ $n -ge 5 ] && [ $n -le 12 ]; then `+throttled+`; fi`)) // the first round, and the second attempt at it
	records, err := c.calibrate(context.Background(), []unit{of("op/a", "small")}, 10)
	if err != nil {
		t.Fatal(err)
	}
	aa := records[0].AA
	if aa.Rounds != 10 || len(records[0].Samples) != 80 || len(aa.Discarded) != 2 || aa.Discarded[1].Number != 0 || !strings.Contains(aa.Discarded[1].Reason, "hw_thermal") {
		t.Errorf("%d samples, %+v", len(records[0].Samples), aa)
	}
	for _, s := range records[0].Samples {
		if len(s.After.Throttle) > 0 {
			t.Error("a sample of a discarded round is kept")
		}
	}
	if n := len(processesOf(t, c)); n != 1+12*8 {
		t.Errorf("%d processes", n)
	}

	c, kept := fake(t, timesOf(throttled))
	_, err = c.calibrate(context.Background(), []unit{of("op/a", "small")}, 10)
	if err == nil || !strings.Contains(err.Error(), "the device would not hold still for a round: the device slowed itself down: hw_thermal") || len(*kept) != 0 {
		t.Errorf("%v, %d kept", err, len(*kept))
	}
	if n := len(processesOf(t, c)); n != 1+3*8 {
		t.Errorf("%d processes", n)
	}
}

func TestCalibrateTakesOutAUnitThatFails(t *testing.T) {
	fault := strings.NewReplacer("op/k", "op/b", `,"class":"normal"`, "").Replace(errorLine)
	// The fault comes in the middle of the second round.
	c, kept := fake(t, timesOf(`case "$*" in *op/b@small*) if [ $n -ge 13 ]; then `+say(configLine, fault, endLine(fault))+`exit 1; fi;; esac`))
	records, err := c.calibrate(context.Background(), []unit{of("op/a", "small"), of("op/b", "small")}, 10)
	if err != nil || len(records) != 2 || len(*kept) != 1 {
		t.Fatalf("%d records, %d kept, %v", len(records), len(*kept), err)
	}
	a, b := records[0], records[1]
	if len(a.Samples) != 80 || len(a.AA.Discarded) != 1 || a.AA.Discarded[0].Number != 1 || !strings.HasPrefix(a.AA.Discarded[0].Reason, "op/b@small: cudaErrorIllegalAddress") {
		t.Errorf("%d samples, %+v", len(a.Samples), a.AA)
	}
	if b.Failure == nil || b.Failure.Kind != evidence.CUDA || b.AA != nil || probes(c) != 1 {
		t.Errorf("%+v, %d probes", b.Failure, probes(c))
	}

	c, kept = fake(t, timesOf(`touch dead; `+say(configLine, fault, endLine(fault))+`exit 1`))
	if _, err := c.calibrate(context.Background(), []unit{of("op/b", "small")}, 10); !errors.Is(err, errDevice) || len(*kept) != 0 {
		t.Errorf("a device that is gone: %v, %d kept", err, len(*kept))
	}
}

// A process that comes onto the GPU costs the round it came in.
func TestCalibrateDiscardsARoundThatWasDisturbed(t *testing.T) {
	c, _ := fake(t, timesOf(""))
	asked := 0
	c.processes = func(context.Context) ([]gpu.Process, error) {
		if asked++; asked < 3 {
			return nil, nil
		}
		return []gpu.Process{{UUID: "GPU-1", PID: 8, Name: "train"}}, nil
	}
	records, err := c.calibrate(context.Background(), []unit{of("op/a", "small")}, 10)
	if err != nil {
		t.Fatal(err)
	}
	aa := records[0].AA
	if aa.Rounds != 10 || len(aa.Discarded) != 1 || aa.Discarded[0].Number != 1 || aa.Discarded[0].Reason != "another process came onto the GPU: train (pid 8)" {
		t.Errorf("%+v", aa)
	}
}

// What was measured before an interrupt is kept, in whole rounds.
func TestCalibrateKeepsWhatItHas(t *testing.T) {
	c, kept := fake(t, timesOf(""))
	ctx, cancel := context.WithCancel(context.Background())
	processes := 0
	c.progress = func(float64, string) {
		if processes++; processes == 1+8+8+3 {
			cancel()
		}
	}
	records, err := c.calibrate(ctx, []unit{of("op/a", "small")}, 10)
	if !errors.Is(err, context.Canceled) || !slices.Equal(records, *kept) {
		t.Errorf("%v, %v", records, err)
	}
	if len(*kept) != 1 || (*kept)[0].AA.Rounds != 2 || len((*kept)[0].Samples) != 16 {
		t.Errorf("%d kept: %+v", len(*kept), *kept)
	}
}

// What was kept of the units before is handed back with the error that ended the run,
// and nothing stands for what was not kept.
func TestCalibrateHandsBackWhatItKept(t *testing.T) {
	c := newCutter(t, `if [ $n -gt 85 ]; then `+throttled+`; fi`) // in the first round of the second group
	c.most = 1
	tasks := []plan.Task{measured("op/k", "small"), measured("op/two", "large"), measured("op/ref", "small")}
	records, err := c.Calibrate(context.Background(), tasks, 10)
	if err == nil || len(records) != 1 || len(*c.kept) != 1 || records[0] != (*c.kept)[0] || records[0].AA.Rounds != 10 {
		t.Errorf("%d records, %d kept, %v", len(records), len(*c.kept), err)
	}

	c = newCutter(t, "")
	full := errors.New("the disk is full")
	keep := c.keep
	c.keep = func(r *evidence.Record, against string, raw map[string][]byte) error {
		if r.Provenance.Kernel == "op/k" {
			return full
		}
		return keep(r, against, raw)
	}
	records, err = c.Calibrate(context.Background(), tasks[:2], 10)
	if !errors.Is(err, full) || len(records) != 2 || records[0] != nil || records[1] != (*c.kept)[0] {
		t.Errorf("%+v, %v", records, err)
	}
}

// Two builds of one kernel share processes under names of their own.
func TestCalibrateTellsArtifactsApart(t *testing.T) {
	c, _ := fake(t, timesOf(""))
	a, b := of("op/a", "small"), of("op/a", "small")
	a.role, b.role = "sm_90", "sm_90a"
	records, err := c.calibrate(context.Background(), []unit{a, b}, 10)
	if err != nil || len(records) != 2 || len(records[0].Samples) != 80 || len(records[1].Samples) != 80 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, l := range processesOf(t, c) {
		if !strings.Contains(l, "op/a:sm_90@small") || !strings.Contains(l, "op/a:sm_90a@small") {
			t.Errorf("a process times %q", l)
		}
	}
}
