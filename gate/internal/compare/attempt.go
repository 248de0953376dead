package compare

import "math"

// Attempt is the plan of the k-th time, from 1, that one change is measured
// because somebody asked again. It may spend a part of the error rates that
// halves with every attempt, so that however often somebody asks, all attempts
// together spend no more than one plan does: asking until it passes, or until it
// fails, buys nothing. With 0 there are no attempts, and the plan is as it is.
func (p Plan) Attempt(k int) Plan {
	share := math.Ldexp(1, -max(0, min(k, 30)))
	p.Alpha, p.Beta, p.FDR = p.Alpha*share, p.Beta*share, p.FDR*share
	return p
}
