package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// FewestCalibrationRounds is the number of A/A rounds from which a calibration
// says something about the spread between processes.
const FewestCalibrationRounds = 10

// aaSize is the number of processes in a round of a calibration.
const aaSize = 8

// An AARound holds the batch times (nanoseconds per call) of the eight
// processes of one binary, in time order.
type AARound [aaSize][]float64

// A Spread is what an A/A run says about one kernel on one machine. The
// standard deviations are of logarithms, so 0.002 is 0.2 %.
type Spread struct {
	Processes int `json:"launches"`
	Batches   int `json:"batches"` // of one process; the smallest number
	// SigmaTypical and SigmaMean are the spread of the process summaries around
	// their round, which is what the test sees.
	SigmaTypical float64 `json:"sigma_typical"`
	SigmaMean    float64 `json:"sigma_mean"`
	// SigmaProcess and SigmaBatch split the variance of the batches into what
	// all batches of a process share and what they do not.
	SigmaProcess float64 `json:"sigma_launch"`
	SigmaBatch   float64 `json:"sigma_batch"`
	BetweenShare float64 `json:"between_share"`
	// Autocorrelation is that of neighbouring batches in a process;
	// EffectiveBatches what a process's batches are worth because of it. Both
	// are information: batches never count as samples.
	Autocorrelation  float64 `json:"autocorrelation"`
	EffectiveBatches float64 `json:"effective_batches"`
	Modes            *Modes  `json:"modes,omitempty"`
	// MDE90 is the effect found with 90 % probability under the plan among the
	// given number of tests, the worse of the two metrics; nil where none is.
	MDE90     *float64 `json:"mde90"`
	NeedPairs int      `json:"need_pairs"` // for detect with 90 % probability
	Gateable  bool     `json:"gateable"`   // MDE90 is at most detect
	Detail    string   `json:"detail"`
}

// SpreadOf evaluates an A/A run of at least ten rounds, for an experiment that
// ends after the given pairs of the plan at the latest. Tests is the number of
// (kernel, metric) pairs that a pull request is expected to hold. The error
// wraps errInvalidProcess where a time cannot be used.
func SpreadOf(rounds []AARound, limits Limits, plan Plan, pairs, tests int) (Spread, error) {
	if err := cmp.Or(limits.Valid(), plan.valid()); err != nil {
		return Spread{}, err
	}
	if len(rounds) < FewestCalibrationRounds || len(rounds) > maxRounds {
		return Spread{}, fmt.Errorf("a calibration needs %d to %d rounds, got %d", FewestCalibrationRounds, maxRounds, len(rounds))
	}
	if tests < 1 {
		return Spread{}, fmt.Errorf("a calibration needs the number of tests of a pull request, got %d", tests)
	}
	processes, err := summarizeAA(rounds)
	if err != nil {
		return Spread{}, err
	}
	c := Spread{Processes: aaSize * len(rounds)}
	c.SigmaTypical, c.SigmaMean = sigma(centred(processes, Typical)), sigma(centred(processes, Mean))
	c.batches(rounds)
	c.Modes = modesOf(alternate(processes, Typical))
	c.detect(processes, replay{limits: limits, plan: plan, pairs: min(pairs, plan.LastPairs())}, tests)
	return c, nil
}

// summarizeAA reduces every process of an A/A run.
func summarizeAA(rounds []AARound) ([][aaSize]Process, error) {
	processes := make([][aaSize]Process, len(rounds))
	for i, b := range rounds {
		for slot, batches := range b {
			l, err := Summarize(batches)
			if err != nil {
				return nil, fmt.Errorf("round %d, process %d: %w", i, slot, err)
			}
			processes[i][slot] = l
		}
	}
	return processes, nil
}

// centred pools the logarithms of the summaries around their round's mean,
// sorted; the factor undoes what eight values about their own mean lose.
func centred(rounds [][aaSize]Process, m Summary) []float64 {
	inflate := math.Sqrt(float64(aaSize) / (aaSize - 1))
	var pool []float64
	for _, b := range rounds {
		var logs []float64
		for _, l := range b {
			logs = append(logs, math.Log(m.of(l)))
		}
		slices.Sort(logs) // so that the rounding of the mean does not depend on the order
		mean := average(logs)
		for _, y := range logs {
			pool = append(pool, (y-mean)*inflate)
		}
	}
	slices.Sort(pool)
	return pool
}

// sigma is the root mean square of values that are centred already.
func sigma(pool []float64) float64 {
	sum := 0.0
	for _, x := range pool {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(pool)))
}

// batches fills in what lies inside a process.
func (c *Spread) batches(rounds []AARound) {
	var groups [][]float64
	var correlations []float64
	c.Batches = maxBatches
	for _, b := range rounds {
		for _, batches := range b {
			c.Batches = min(c.Batches, len(batches))
			var logs []float64
			for _, t := range batches {
				logs = append(logs, math.Log(t))
			}
			groups = append(groups, logs)
			if r, err := stats.AutoCorrelation(logs, 1); err == nil && finite(r) {
				correlations = append(correlations, r)
			}
		}
	}
	v := varianceComponents(groups)
	c.SigmaProcess, c.SigmaBatch = math.Sqrt(v.between), math.Sqrt(v.within)
	if total := v.between + v.within; total > 0 {
		c.BetweenShare = v.between / total
	}
	c.Autocorrelation = average(correlations)
	rho := max(0, min(c.Autocorrelation, 0.999)) // a negative estimate is worth no extra batches
	c.EffectiveBatches = float64(c.Batches) * (1 - rho) / (1 + rho)
}

// detect fills in what can be found, by the worse of the two metrics.
func (c *Spread) detect(processes [][aaSize]Process, r replay, tests int) {
	limits, plan := r.limits, r.plan
	worst, known := 0.0, true
	for _, m := range []Summary{Typical, Mean} {
		r.pool = centred(processes, m)
		effect, ok := r.detectable(tests)
		known, worst = known && ok, max(worst, effect)
	}
	gap := limits.detected() - limits.tolerated()
	c.NeedPairs = max(pairsFor(max(c.SigmaTypical, c.SigmaMean), gap, plan.lastLevel(tests), plan.PerArm), fewestPairs(plan, tests))
	switch {
	case !(c.SigmaTypical > constantBelow && c.SigmaMean > constantBelow):
		c.Detail = "all processes gave the same time: the timer is too coarse or nothing was measured"
	case !known:
		c.Detail = fmt.Sprintf("not gateable: %d pairs cannot be red among %d tests, at least %d are needed", r.pairs, tests, fewestPairs(plan, tests))
	default:
		c.MDE90, c.Gateable = &worst, worst <= limits.Detect*(1+constantBelow)
		c.Detail = fmt.Sprintf("finds %s with 90 %% probability within %d pairs", Percent(worst), r.pairs)
		if !c.Gateable {
			c.Detail = fmt.Sprintf("not gateable at %s: %s; about %d pairs would be needed", Percent(limits.Detect), c.Detail, c.NeedPairs)
		}
	}
}

// alternate deals the processes of every round to two arms in turns; for an A/A
// run any order will do.
func alternate(rounds [][aaSize]Process, m Summary) (base, head []float64) {
	for _, b := range rounds {
		for slot := 0; slot < aaSize; slot += 2 {
			base, head = append(base, m.of(b[slot])), append(head, m.of(b[slot+1]))
		}
	}
	return base, head
}

// Findable is the smallest effect, in steps of 0.1 %, that an experiment on this
// machine would call a regression with 90 % probability if it were the effect to
// be found. The limits follow from it. False where there is none up to 100 %.
func Findable(rounds []AARound, plan Plan, pairs, tests int, limits func(effect float64) (Limits, error)) (float64, bool, error) {
	processes, err := summarizeAA(rounds)
	if err != nil {
		return 0, false, err
	}
	const step, most = 0.001, 1000
	low, high := 0, most+1
	for low+1 < high {
		middle := (low + high) / 2
		at, err := limits(step * float64(middle))
		if err != nil {
			return 0, false, err
		}
		found := true
		for _, m := range []Summary{Typical, Mean} {
			r := replay{pool: centred(processes, m), limits: at, plan: plan, pairs: min(pairs, plan.LastPairs())}
			found = found && r.prepare(tests) && r.finds(at.detected())
		}
		if found {
			high = middle
		} else {
			low = middle
		}
	}
	return step * float64(high), high <= most, nil
}
