package policy

import "github.com/kernelgate/gate/gate/internal/compare"

// addNoise says of a time that passes what would have been found, by a
// calibration where the times themselves do not tell. Unchanged code was not
// put to a test that could have found anything.
func (j *judge) addNoise(r Rule, c *CaseFacts, f *Finding) {
	unchanged := r.Compares() && !j.kernel.timed()
	told := f.Sessions != nil || f.Interval != nil && f.Interval.MDE90 != nil
	if f.Status != Pass || unchanged || told || c.Calibration == nil || isAdvice(r.Metric) {
		return
	}
	limits := j.policy.Limits
	if r.Compares() {
		var err error
		if limits, err = j.policy.timeLimits(r, f.Base.Number); err != nil {
			return // a floor that is no share of the base's time
		}
	}
	blocks, err := compare.AABlocks(c.Calibration.Samples, regime(r.Metric))
	if err != nil {
		return
	}
	found, err := compare.Calibrate(blocks, limits, compare.SequentialPlan(), max(1, len(j.times.decided)+len(j.times.stored)))
	if err == nil && found.MDE90 != nil {
		f.Noise = &Noise{MDE90: *found.MDE90, Recorded: c.Calibration.Provenance.Recorded}
	}
}
