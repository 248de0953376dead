package compare

import "fmt"

// Prove reports whether every gated metric of an experiment is proven to have
// an effect below the given one, at the plan's Beta over all of its looks. A
// claim such as "at least 3 % faster" is Prove(e, plan, −0.03). Suspect times
// (a collapse, a constant arm) prove nothing.
func Prove(e Experiment, plan Plan, below float64) (bool, error) {
	if err := validAll([]Experiment{e}, plan); err != nil {
		return false, err
	}
	if !(below > -1 && below <= maxEffect) {
		return false, fmt.Errorf("an effect must be above -1 and at most %d, got %v", maxEffect, below)
	}
	// The tests run against the one bound; the verdict's other limit is unused.
	t := newTrial(Experiment{
		Name: e.Name, Blocks: e.Blocks, Metrics: e.Metrics,
		Limits: Limits{Tolerance: below, Detect: below, Reference: true},
	}, plan)
	if t.invalid != nil || len(e.Blocks) == 0 {
		return false, nil
	}
	for _, one := range t.tests {
		collapsed := newTest(one.d, e.Limits, nil).collapsed && !e.Explained
		if collapsed || one.constant || last(one.passed) > plan.Beta {
			return false, nil
		}
	}
	return true, nil
}
