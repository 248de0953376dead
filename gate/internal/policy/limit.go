package policy

import (
	"fmt"
	"math"

	"github.com/kernelgate/gate/gate/internal/compare"
)

func applyLimit(r Rule, f *Finding) {
	limit := inMetricUnit(r.Limit)
	broken := f.Head.Number > limit
	word := "above"
	if r.Metric.Better == compare.HigherBetter {
		broken, word = f.Head.Number < limit, "below"
	}
	if broken {
		f.Status, f.Reason = Fail, fmt.Sprintf("%s is %s the limit of %s", Show(f.Head.Number, r.Metric.Unit), word, Show(limit, r.Metric.Unit))
		return
	}
	f.Status, f.Reason = Pass, "within the limit"
}

// inMetricUnit turns "14%" into 14 for a metric in %: not the 14.000000000000002
// that the binary 0.14 makes of it, which a measured 14 does not reach.
func inMetricUnit(a Amount) float64 {
	if a.Unit == "%" {
		return math.Round(a.Number*1e11) / 1e9
	}
	return a.Number
}

// applyRegression compares an exact or a counted quantity with the base's.
func (j *judge) applyRegression(r Rule, c *CaseFacts, f *Finding) {
	switch j.kernel.State {
	case New:
		f.Status, f.Reason = NotCompared, "the kernel is new: there is nothing to compare with"
		return
	case NoBase:
		f.Reason = j.noBase()
		return
	case Unchanged:
		base := *f.Head
		f.Base = &base
		f.Status, f.Reason = Pass, "unchanged code"
		return
	}
	base, arm := j.value(r.Metric, c, true)
	f.Base = &base
	if failure := arm.failure(); failure != nil {
		f.Tool, f.Hint = !failure.Blames(), failure.Hint
	}
	change := compare.Exact(base, *f.Head)
	if !base.Known() {
		f.Reason = "the base has no figure: " + base.Missing
		return
	}
	f.Status, f.Reason = regression(r, change)
}

// regression decides how much worse is too much. A relative bound says nothing
// about a base of 0, so there any worsening above the floor is a failure.
func regression(r Rule, change compare.Change) (Status, string) {
	amount, ok := change.Worsening(r.Metric.Better)
	if r.Metric.Either {
		amount = math.Abs(change.Absolute)
	}
	if !ok {
		return Inconclusive, "the two sides cannot be compared: " + fmt.Sprint(change.State)
	}
	unit := r.Metric.Unit
	moved := fmt.Sprintf("%s → %s", Show(change.Base, unit), Show(change.Head, unit))
	switch {
	case change.State == compare.Unchanged:
		return Pass, "equal"
	case amount <= 0:
		return Pass, "better: " + moved
	case r.Floor.Set && amount <= r.Floor.Number:
		return Pass, "worse by less than the floor: " + moved
	}
	accepted := r.MaxRegression.Number
	if r.MaxRegression.Unit == "%" {
		if change.Base <= 0 {
			return Fail, moved + ": worse, and a share of a base of " + Show(change.Base, unit) + " is not defined"
		}
		accepted *= change.Base
	}
	if amount <= accepted {
		return Pass, "within what is accepted: " + moved
	}
	return Fail, fmt.Sprintf("%s (%s worse, %s accepted)", moved, worsening(r, change, amount), r.MaxRegression.Text)
}

func worsening(r Rule, change compare.Change, amount float64) string {
	switch {
	case r.MaxRegression.Unit == "%":
		return fmt.Sprintf("%.3g %%", 100*amount/change.Base)
	case r.Metric.Unit == "%":
		return fmt.Sprintf("%.3g pp", amount)
	}
	return Show(amount, r.Metric.Unit)
}
