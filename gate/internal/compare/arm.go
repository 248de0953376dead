package compare

import (
	"fmt"
	"math"
	"slices"
)

// armTail is the probability that the true median lies beyond one end of an
// arm's interval, so the interval has a confidence of 98 % and a limit is
// passed or broken at 1 %.
const armTail = 0.01

// An ArmSummary is one arm for itself: the median of its processes and an
// interval of the median that assumes no distribution (order statistics). It
// treats processes as independent, which a drift over the job breaks; for a
// comparison of two arms use an Series.
type ArmSummary struct {
	Processes int     `json:"launches"`
	Median    float64 `json:"median_ns"`
	Low       float64 `json:"low_ns"`
	High      float64 `json:"high_ns"`
	// Bounded is false where the processes are too few (below 7) for the
	// confidence; Low and High are then the extremes.
	Bounded bool `json:"bounded"`
}

// SummarizeArm summarises processes of one arm. The error wraps
// errInvalidProcess.
func SummarizeArm(processes []Process, metric Summary) (ArmSummary, error) {
	if len(processes) == 0 {
		return ArmSummary{}, fmt.Errorf("%w: there is none", errInvalidProcess)
	}
	var values []float64
	for i, l := range processes {
		if err := l.valid(); err != nil {
			return ArmSummary{}, fmt.Errorf("process %d: %w", i, err)
		}
		values = append(values, metric.of(l))
	}
	slices.Sort(values)
	below, bounded := signCut(len(values), armTail)
	return ArmSummary{
		Processes: len(values), Median: median(values), Bounded: bounded,
		Low: values[below], High: values[len(values)-1-below],
	}, nil
}

// signCut returns how many values may be cut off each end of a sorted sample so
// that the median lies beyond the rest with at most the given probability:
// the largest c with P(Binomial(n, ½) <= c) <= tail. False where not even the
// extremes reach it.
func signCut(n int, tail float64) (int, bool) {
	cumulated := 0.0
	for c := 0; ; c++ { // the sum over all c is 1
		cumulated += math.Exp(logChoose(n, c) - float64(n)*math.Ln2)
		if cumulated > tail {
			return max(0, c-1), c > 0
		}
	}
}

// An AbsoluteOutcome is an arm held against a limit in nanoseconds.
type AbsoluteOutcome struct {
	Decision Decision   `json:"verdict"` // Pass, Regressed or Inconclusive
	Reason   Reason     `json:"reason"`
	Invalid  error      `json:"-"` // why its times cannot be used, of InvalidProcess
	Limit    float64    `json:"limit_ns"`
	Arm      ArmSummary `json:"arm"`
}

// DecideAbsolute passes when the whole interval of the median lies below the
// limit, is red when all of it lies above, and is inconclusive otherwise. The
// error is 1 % for each limit by itself.
func DecideAbsolute(processes []Process, metric Summary, limit float64) AbsoluteOutcome {
	o := AbsoluteOutcome{Limit: limit}
	if len(processes) == 0 {
		return o
	}
	if o.Arm, o.Invalid = SummarizeArm(processes, metric); o.Invalid != nil {
		o.Reason = InvalidProcess
		return o
	}
	switch arm := o.Arm; {
	case !usable(limit):
		o.Limit, o.Reason = 0, NotDecided
	case !arm.Bounded:
		o.Reason = TooFewPairs
	case arm.Low > limit:
		o.Decision, o.Reason = Regressed, AboveTolerance
	case arm.Low == arm.High:
		o.Reason = ZeroVariance
	case arm.High < limit:
		o.Decision, o.Reason = Pass, BelowDetect
	default:
		o.Reason = NotDecided
	}
	return o
}
