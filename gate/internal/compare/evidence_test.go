package compare

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// sampled is one sample of two batches for each time: typically that, and 2 more on average.
func sampled(state evidence.CacheState, times ...float64) []evidence.Sample {
	var samples []evidence.Sample
	for _, x := range times {
		samples = append(samples, evidence.Sample{CacheState: state, BatchesNS: []float64{x + 4, x}})
	}
	return samples
}

func typicals(processes []Process) []float64 {
	var values []float64
	for _, p := range processes {
		values = append(values, p.Typical)
	}
	return values
}

// TestProcessesOfOneState: those of the other state are left out, in the order
// measured, and one without a time is an error and nothing else.
func TestProcessesOfOneState(t *testing.T) {
	samples := append(append(sampled(evidence.Warm, 10, 20), sampled(evidence.Cold, 1)...), sampled(evidence.Warm, 15)...)
	for state, want := range map[evidence.CacheState][]float64{evidence.Warm: {10, 20, 15}, evidence.Cold: {1}, "other": nil} {
		got, err := Processes(samples, state)
		if err != nil || !reflect.DeepEqual(typicals(got), want) {
			t.Errorf("%s: %+v, %v, want %v", state, got, err, want)
		}
	}
	if got, err := Processes(sampled(evidence.Warm, 10), evidence.Warm); err != nil || got[0].Mean != 12 {
		t.Errorf("the mean of 10 and 14: %+v, %v", got, err)
	}
	samples[3].BatchesNS = nil
	if got, err := Processes(samples, evidence.Warm); !errors.Is(err, errInvalidProcess) || got != nil {
		t.Errorf("a process without a time: %+v, %v", got, err)
	}
	if time, err := BaseTime(samples[:2], evidence.Warm, Mean); err != nil || time != 17 {
		t.Errorf("the median of 12 and 22 is %v, %v", time, err)
	}
	for name, pilot := range map[string][]evidence.Sample{"no process": samples[2:3], "a broken one": samples} {
		if time, err := BaseTime(pilot, evidence.Warm, Mean); !errors.Is(err, errInvalidProcess) || time != 0 {
			t.Errorf("%s: %v, %v", name, time, err)
		}
	}
}

// TestRoundOfEvidence: a round has four processes of each arm in one state.
func TestRoundOfEvidence(t *testing.T) {
	four, three := sampled(evidence.Warm, 1, 2, 3, 4), sampled(evidence.Warm, 5, 6, 7)
	more := append(sampled(evidence.Cold, 9), sampled(evidence.Warm, 5, 6, 7, 8)...)
	broken := sampled(evidence.Warm, 5, 6, -7, 8)
	got, err := RoundOf(evidence.Round{Number: 2, Base: four, Head: more}, evidence.Warm)
	if err != nil || !reflect.DeepEqual(typicals(got.Base), []float64{1, 2, 3, 4}) || !reflect.DeepEqual(typicals(got.Head), []float64{5, 6, 7, 8}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		base, head []evidence.Sample
		want       string
	}{
		{three, four, "round 3 has 3 and 4 warm processes, not 4 of each arm"},
		{four, three, "round 3 has 4 and 3 warm processes, not 4 of each arm"},
		{four, nil, "round 3 has 4 and 0 warm processes"},
		{append(three, four...), four, "round 3 has 7 and 4 warm processes"},
		{broken, four, "round 3: invalid process"},
		{four, broken, "round 3: invalid process"},
	} {
		if _, err := RoundOf(evidence.Round{Number: 2, Base: c.base, Head: c.head}, evidence.Warm); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestAARoundsOfEvidence: whole rounds of eight, of one state.
func TestAARoundsOfEvidence(t *testing.T) {
	eight := sampled(evidence.Warm, 1, 2, 3, 4, 5, 6, 7, 8)
	samples := append(append(sampled(evidence.Cold, 9), eight...), sampled(evidence.Warm, 11, 12, 13, 14, 15, 16, 17, 18)...)
	got, err := AARounds(samples, evidence.Warm)
	if err != nil || len(got) != 2 || got[0][0][1] != 1 || got[0][7][1] != 8 || got[1][0][1] != 11 || got[1][7][1] != 18 {
		t.Errorf("%v, %v", got, err)
	}
	for want, samples := range map[string][]evidence.Sample{
		"0 warm processes":  sampled(evidence.Cold, 1, 2, 3, 4, 5, 6, 7, 8),
		"7 warm processes":  eight[:7],
		"15 warm processes": samples[:16],
	} {
		if got, err := AARounds(samples, evidence.Warm); err == nil || got != nil || !strings.HasPrefix(err.Error(), want+" are not whole rounds of 8") {
			t.Errorf("%v, %v, want %q", got, err, want)
		}
	}
}

// TestSessionOfEvidence: what a session keeps of samples, and what comes back.
func TestSessionOfEvidence(t *testing.T) {
	samples := append(sampled(evidence.Warm, 10, 20), sampled(evidence.Cold, 30)...)
	got, err := SessionProcesses(samples)
	want := []evidence.SessionProcess{{CacheState: evidence.Warm, Typical: 10, Mean: 12}, {CacheState: evidence.Warm, Typical: 20, Mean: 22}, {CacheState: evidence.Cold, Typical: 30, Mean: 32}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if job := JobOf(evidence.Session{Processes: got}, evidence.Warm); !reflect.DeepEqual(job.Processes, []Process{{Typical: 10, Mean: 12}, {Typical: 20, Mean: 22}}) {
		t.Errorf("%+v", job)
	}
	samples[1].BatchesNS[0] = 0
	if got, err := SessionProcesses(samples); !errors.Is(err, errInvalidProcess) || got != nil {
		t.Errorf("a process of 0 ns: %+v, %v", got, err)
	}
}
