package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/montanaflynn/stats"
)

// FewestCalibrationBlocks is the number of A/A blocks from which a calibration
// says something about the spread between launches.
const FewestCalibrationBlocks = 10

// An AABlock holds the batch times (nanoseconds per call) of the eight
// launches of one binary, in time order.
type AABlock [blockSize][]float64

// A Calibration is what an A/A run says about one kernel on one machine. The
// standard deviations are of logarithms, so 0.002 is 0.2 %.
type Calibration struct {
	Launches int `json:"launches"`
	Batches  int `json:"batches"` // of one launch; the smallest number
	// SigmaTypical and SigmaMean are the spread of the launch summaries around
	// their block, which is what the test sees.
	SigmaTypical float64 `json:"sigma_typical"`
	SigmaMean    float64 `json:"sigma_mean"`
	// SigmaLaunch and SigmaBatch split the variance of the batches into what
	// all batches of a launch share and what they do not.
	SigmaLaunch  float64 `json:"sigma_launch"`
	SigmaBatch   float64 `json:"sigma_batch"`
	BetweenShare float64 `json:"between_share"`
	// Autocorrelation is that of neighbouring batches in a launch;
	// EffectiveBatches what a launch's batches are worth because of it. Both
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

// Calibrate evaluates an A/A run of at least ten blocks. Tests is the number
// of (kernel, metric) pairs that a pull request is expected to hold. The error
// wraps errInvalidLaunch where a time cannot be used.
func Calibrate(blocks []AABlock, limits Limits, plan Plan, tests int) (Calibration, error) {
	if err := cmp.Or(limits.Valid(), plan.Valid()); err != nil {
		return Calibration{}, err
	}
	if len(blocks) < FewestCalibrationBlocks || len(blocks) > maxBlocks {
		return Calibration{}, fmt.Errorf("a calibration needs %d to %d blocks, got %d", FewestCalibrationBlocks, maxBlocks, len(blocks))
	}
	if tests < 1 {
		return Calibration{}, fmt.Errorf("a calibration needs the number of tests of a pull request, got %d", tests)
	}
	launches, err := summarizeAA(blocks)
	if err != nil {
		return Calibration{}, err
	}
	c := Calibration{Launches: blockSize * len(blocks)}
	c.SigmaTypical, c.SigmaMean = sigma(centred(launches, Typical)), sigma(centred(launches, Mean))
	c.batches(blocks)
	c.Modes = modesOf(alternate(launches, Typical))
	c.detect(launches, limits, plan, tests)
	return c, nil
}

// summarizeAA reduces every launch of an A/A run.
func summarizeAA(blocks []AABlock) ([][blockSize]Launch, error) {
	launches := make([][blockSize]Launch, len(blocks))
	for i, b := range blocks {
		for slot, batches := range b {
			l, err := Summarize(batches)
			if err != nil {
				return nil, fmt.Errorf("block %d, launch %d: %w", i, slot, err)
			}
			launches[i][slot] = l
		}
	}
	return launches, nil
}

// centred pools the logarithms of the summaries around their block's mean,
// sorted; the factor undoes what eight values about their own mean lose.
func centred(blocks [][blockSize]Launch, m Summary) []float64 {
	inflate := math.Sqrt(float64(blockSize) / (blockSize - 1))
	var pool []float64
	for _, b := range blocks {
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

// batches fills in what lies inside a launch.
func (c *Calibration) batches(blocks []AABlock) {
	var groups [][]float64
	var correlations []float64
	c.Batches = maxBatches
	for _, b := range blocks {
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
	c.SigmaLaunch, c.SigmaBatch = math.Sqrt(v.between), math.Sqrt(v.within)
	if total := v.between + v.within; total > 0 {
		c.BetweenShare = v.between / total
	}
	c.Autocorrelation = average(correlations)
	rho := max(0, min(c.Autocorrelation, 0.999)) // a negative estimate is worth no extra batches
	c.EffectiveBatches = float64(c.Batches) * (1 - rho) / (1 + rho)
}

// detect fills in what can be found, by the worse of the two metrics.
func (c *Calibration) detect(launches [][blockSize]Launch, limits Limits, plan Plan, tests int) {
	worst, known := 0.0, true
	for _, m := range []Summary{Typical, Mean} {
		effect, ok := detectable(centred(launches, m), limits, plan, tests)
		known, worst = known && ok, max(worst, effect)
	}
	level := plan.Looks[len(plan.Looks)-1].Weight * plan.Alpha / float64(tests)
	gap := limits.detected() - limits.tolerated()
	c.NeedPairs = max(pairsFor(max(c.SigmaTypical, c.SigmaMean), gap, level), fewestPairs(plan, tests))
	switch {
	case !(c.SigmaTypical > constantBelow && c.SigmaMean > constantBelow):
		c.Detail = "all launches gave the same time: the timer is too coarse or nothing was measured"
	case !known:
		c.Detail = fmt.Sprintf("not gateable: no look of the plan can reject among %d tests; at least %d pairs are needed", tests, fewestPairs(plan, tests))
	default:
		c.MDE90, c.Gateable = &worst, worst <= limits.Detect
		c.Detail = fmt.Sprintf("finds %s with 90 %% probability within %d pairs", percent(worst), plan.lastPairs())
		if !c.Gateable {
			c.Detail = fmt.Sprintf("not gateable at %s: %s; about %d pairs would be needed", percent(limits.Detect), c.Detail, c.NeedPairs)
		}
	}
}

// alternate deals the launches of every block to two arms in turns; for an A/A
// run any order will do.
func alternate(blocks [][blockSize]Launch, m Summary) (base, head []float64) {
	for _, b := range blocks {
		for slot := 0; slot < blockSize; slot += 2 {
			base, head = append(base, m.of(b[slot])), append(head, m.of(b[slot+1]))
		}
	}
	return base, head
}
