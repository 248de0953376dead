package compare

import (
	"errors"
	"fmt"
	"slices"
)

// errInvalidProcess marks a process whose times cannot be used: none at all, not
// finite, zero, negative or absurdly large or small. The round that holds it has to be repeated.
var errInvalidProcess = errors.New("invalid process")

// maxBatches bounds the batches of one process; more is a malformed input.
const maxBatches = 1 << 20

// A Process is what one process says about one kernel, in nanoseconds
// per call.
type Process struct {
	// Typical is the mean of the faster half of the batches: the latency when
	// nothing interferes.
	Typical float64 `json:"typical"`
	// Mean is the mean of all batches: the GPU time that is paid, tails and
	// slow modes included.
	Mean float64 `json:"mean"`
	// P99 is the 99th percentile of the batches, interpolated between order
	// statistics (type 7 of Hyndman and Fan): of few batches hardly less than
	// the slowest. It is for advice; 0 is not measured.
	P99 float64 `json:"p99,omitempty"`
}

// Summarize reduces the batch times of one process (nanoseconds per call, one
// value per graph replay) to a Process. The lower half of an odd number of
// batches includes the middle one. The error wraps errInvalidProcess.
func Summarize(batches []float64) (Process, error) {
	if len(batches) == 0 {
		return Process{}, fmt.Errorf("%w: no batch was timed", errInvalidProcess)
	}
	if len(batches) > maxBatches {
		return Process{}, fmt.Errorf("%w: %d batches, at most %d are read", errInvalidProcess, len(batches), maxBatches)
	}
	for i, t := range batches {
		if !usable(t) {
			return Process{}, fmt.Errorf("%w: batch %d took %v ns", errInvalidProcess, i, t)
		}
	}
	sorted := slices.Sorted(slices.Values(batches))
	l := Process{Typical: average(sorted[:(len(sorted)+1)/2]), Mean: average(sorted), P99: percentile(sorted, 0.99)}
	return l, l.valid()
}

// percentile interpolates a sorted sample linearly at rank (n−1)·p, from 0.
func percentile(sorted []float64, p float64) float64 {
	rank := p * float64(len(sorted)-1)
	below := int(rank)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (rank-float64(below))*(sorted[above]-sorted[below])
}

// valid reports why a process cannot be used, or nil.
func (l Process) valid() error { return l.validFor([]Summary{Typical, Mean}) }

func (l Process) validFor(metrics []Summary) error {
	for _, m := range metrics {
		if t := m.of(l); !usable(t) {
			return fmt.Errorf("%w: %s is %v ns", errInvalidProcess, m, t)
		}
	}
	return nil
}

// Times outside these bounds, in nanoseconds, are not times: a tenth of a
// femtosecond is not a kernel and thirty years no test. They keep every ratio of
// two times finite.
const (
	shortest = 1e-7
	longest  = 1e18
)

// usable holds for a time that can be one. Written so that NaN fails it.
func usable(t float64) bool { return t >= shortest && t <= longest }

// A Summary is one of the summaries of a process.
type Summary uint8

// Typical and Mean are the gated metrics. A kernel is red when one of them is,
// and green when both are: Typical alone does not see a tail, Mean alone is
// noisy. P99 is advice.
const (
	Typical Summary = iota + 1
	Mean
	P99
)

var summaryNames = map[Summary]string{Typical: "typical", Mean: "mean", P99: "p99"}

// String returns "typical", "mean" or "p99".
func (m Summary) String() string { return nameOf(summaryNames, m) }

// of returns the metric's value in a process.
func (m Summary) of(l Process) float64 {
	switch m {
	case Mean:
		return l.Mean
	case P99:
		return l.P99
	}
	return l.Typical
}
