package compare

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Processes summarises the samples of one state, in the order measured.
func Processes(samples []evidence.Sample, state evidence.CacheState) ([]Process, error) {
	var processes []Process
	for _, s := range samples {
		if s.CacheState != state {
			continue
		}
		l, err := Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		processes = append(processes, l)
	}
	return processes, nil
}

// RoundOf summarises a recorded round of one state.
func RoundOf(b evidence.Round, state evidence.CacheState) (Round, error) {
	var out Round
	var err error
	if out.Base, err = Processes(b.Base, state); err == nil {
		out.Head, err = Processes(b.Head, state)
	}
	if err != nil {
		return out, fmt.Errorf("round %d: %w", b.Number+1, err)
	}
	if len(out.Base) != perArm || len(out.Head) != perArm {
		return out, fmt.Errorf("round %d has %d and %d %s processes, not %d of each arm", b.Number+1, len(out.Base), len(out.Head), state, perArm)
	}
	return out, nil
}

// AARounds groups the samples of one state of an A/A run into its rounds; they
// stand in the order measured.
func AARounds(samples []evidence.Sample, state evidence.CacheState) ([]AARound, error) {
	var processes [][]float64
	for _, s := range samples {
		if s.CacheState == state {
			processes = append(processes, s.BatchesNS)
		}
	}
	if len(processes) == 0 || len(processes)%aaSize != 0 {
		return nil, fmt.Errorf("%d %s processes are not whole rounds of %d", len(processes), state, aaSize)
	}
	var rounds []AARound
	for whole := range slices.Chunk(processes, aaSize) {
		rounds = append(rounds, AARound(whole))
	}
	return rounds, nil
}

// BaseTime is the median of a pilot's processes, in ns.
func BaseTime(pilot []evidence.Sample, state evidence.CacheState, m Summary) (float64, error) {
	processes, err := Processes(pilot, state)
	if err != nil {
		return 0, err
	}
	s, err := SummarizeArm(processes, m)
	return s.Median, err
}

// SessionProcesses summarises the samples of one job.
func SessionProcesses(samples []evidence.Sample) ([]evidence.SessionProcess, error) {
	var out []evidence.SessionProcess
	for _, s := range samples {
		l, err := Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		out = append(out, evidence.SessionProcess{CacheState: s.CacheState, Typical: l.Typical, Mean: l.Mean})
	}
	return out, nil
}

// JobOf is a recorded session in one state.
func JobOf(s evidence.Session, state evidence.CacheState) Job {
	var out Job
	for _, l := range s.Processes {
		if l.CacheState == state {
			out.Processes = append(out.Processes, Process{Typical: l.Typical, Mean: l.Mean})
		}
	}
	return out
}
