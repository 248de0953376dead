package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/montanaflynn/stats"
)

// ErrInvalidLaunch marks a launch whose times cannot be used: none at all, not
// finite, zero, negative or absurdly large or small. The block that holds it has to be repeated.
var ErrInvalidLaunch = errors.New("invalid launch")

// maxBatches bounds the batches of one launch; more is a malformed input.
const maxBatches = 1 << 20

// A Launch is what one process launch says about one kernel, in nanoseconds
// per call.
type Launch struct {
	// Typical is the mean of the faster half of the batches: the latency when
	// nothing interferes.
	Typical float64 `json:"typical"`
	// Mean is the mean of all batches: the GPU time that is paid, tails and
	// slow modes included.
	Mean float64 `json:"mean"`
}

// Summarize reduces the batch times of one launch (nanoseconds per call, one
// value per graph replay) to a Launch. The lower half of an odd number of
// batches includes the middle one. The error wraps ErrInvalidLaunch.
func Summarize(batches []float64) (Launch, error) {
	if len(batches) == 0 {
		return Launch{}, fmt.Errorf("%w: no batch was timed", ErrInvalidLaunch)
	}
	if len(batches) > maxBatches {
		return Launch{}, fmt.Errorf("%w: %d batches, at most %d are read", ErrInvalidLaunch, len(batches), maxBatches)
	}
	for i, t := range batches {
		if !usable(t) {
			return Launch{}, fmt.Errorf("%w: batch %d took %v ns", ErrInvalidLaunch, i, t)
		}
	}
	sorted := slices.Sorted(slices.Values(batches))
	typical, err := stats.Mean(sorted[:(len(sorted)+1)/2])
	if err != nil {
		return Launch{}, fmt.Errorf("%w: %w", ErrInvalidLaunch, err)
	}
	mean, err := stats.Mean(sorted)
	if err != nil {
		return Launch{}, fmt.Errorf("%w: %w", ErrInvalidLaunch, err)
	}
	l := Launch{Typical: typical, Mean: mean}
	return l, l.Valid()
}

// Valid reports why a launch cannot be used, or nil.
func (l Launch) Valid() error {
	if !usable(l.Typical) {
		return fmt.Errorf("%w: typical is %v ns", ErrInvalidLaunch, l.Typical)
	}
	if !usable(l.Mean) {
		return fmt.Errorf("%w: mean is %v ns", ErrInvalidLaunch, l.Mean)
	}
	return nil
}

// Times outside these bounds, in nanoseconds, are no times: a tenth of a
// femtosecond is no kernel and thirty years no test. They keep every ratio of
// two times finite.
const (
	shortest = 1e-7
	longest  = 1e18
)

// usable holds for a time that can be one. Written so that NaN fails it.
func usable(t float64) bool { return t >= shortest && t <= longest }

// A Metric is one of the summaries of a launch that can be gated.
type Metric uint8

// The two gated metrics. A kernel is red when one of them is, and green when
// both are: Typical alone does not see a tail, Mean alone is noisy.
const (
	Typical Metric = iota + 1
	Mean
)

var metricNames = map[Metric]string{Typical: "typical", Mean: "mean"}

// String returns "typical" or "mean".
func (m Metric) String() string { return nameOf(metricNames, m) }

// MarshalText writes the name; an unnamed metric is an error.
func (m Metric) MarshalText() ([]byte, error) { return marshalName(metricNames, m) }

// UnmarshalText reads the name.
func (m *Metric) UnmarshalText(text []byte) error { return unmarshalName(metricNames, m, text) }

// of returns the metric's value in a launch.
func (m Metric) of(l Launch) float64 {
	if m == Mean {
		return l.Mean
	}
	return l.Typical
}
