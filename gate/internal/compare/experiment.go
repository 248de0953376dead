package compare

import (
	"errors"
	"fmt"
)

// An Experiment is one kernel in one case, measured in blocks.
type Experiment struct {
	Name   string `json:"name"` // unique within a pull request
	Limits Limits `json:"limits"`
	// Blocks are in the order in which they were measured: a look judges the
	// first of them.
	Blocks []Block `json:"blocks"`
	// Metrics are the gated ones; none means Typical and Mean.
	Metrics []Metric `json:"metrics,omitempty"`
	// Explained says that a person has accounted for a collapse (at least 90 %
	// faster), which otherwise is never a pass.
	Explained bool `json:"explained,omitempty"`
}

// maxExperiments bounds one call of Decide.
const maxExperiments = 1 << 20

// metrics returns the gated metrics.
func (e Experiment) metrics() []Metric {
	if len(e.Metrics) == 0 {
		return []Metric{Typical, Mean}
	}
	return e.Metrics
}

// used are the metrics that every launch must hold. Typical and Mean are made
// of all batches, so an odd one is an odd launch whatever is gated.
func (e Experiment) used() []Metric { return append([]Metric{Typical, Mean}, e.metrics()...) }

// pairs is the number of launches of each arm.
func (e Experiment) pairs() int { return len(e.Blocks) * perArm }

// Valid reports what Decide refuses: no name, limits or metrics that are none,
// more blocks than the plan has. Unusable times are a state of the outcome.
func (e Experiment) Valid(plan Plan) error {
	if e.Name == "" {
		return errors.New("an experiment has no name")
	}
	if err := e.Limits.Valid(); err != nil {
		return err
	}
	if e.pairs() > plan.lastPairs() {
		return fmt.Errorf("it holds %d pairs, its plan ends at %d: measuring on after the last look voids the error bound", e.pairs(), plan.lastPairs())
	}
	seen := map[Metric]bool{}
	for _, m := range e.metrics() {
		if metricNames[m] == "" || seen[m] {
			return fmt.Errorf("metric %s is unknown or named twice", m)
		}
		seen[m] = true
	}
	return nil
}

// validAll checks a plan and all experiments of a pull request.
func validAll(experiments []Experiment, plan Plan) error {
	if err := plan.Valid(); err != nil {
		return err
	}
	if len(experiments) > maxExperiments {
		return fmt.Errorf("%d experiments, at most %d are judged together", len(experiments), maxExperiments)
	}
	seen := make(map[string]bool, len(experiments))
	for _, e := range experiments {
		if err := e.Valid(plan); err != nil {
			return fmt.Errorf("experiment %q: %w", e.Name, err)
		}
		if seen[e.Name] {
			return fmt.Errorf("experiment %q is named twice", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}
