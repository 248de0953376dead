package compare

import "fmt"

// A Series is one kernel in one case, measured in rounds.
type Series struct {
	Limits Limits `json:"limits"`
	// Rounds are in the order in which they were measured: a look judges the
	// first of them.
	Rounds []Round `json:"blocks"`
	// Summaries are the gated ones; none means Typical and Mean.
	Summaries []Summary `json:"metrics,omitempty"`
	// Explained says that a person has accounted for a collapse (at least 90 %
	// faster), which otherwise is never a pass.
	Explained bool `json:"explained,omitempty"`
}

// maxExperiments bounds one call of Decide.
const maxExperiments = 1 << 20

// metrics returns the gated metrics.
func (e Series) summaries() []Summary {
	if len(e.Summaries) == 0 {
		return []Summary{Typical, Mean}
	}
	return e.Summaries
}

// used are the metrics that every process must hold. Typical and Mean are made
// of all batches, so an odd one is an odd process whatever is gated.
func (e Series) used() []Summary { return append([]Summary{Typical, Mean}, e.summaries()...) }

// pairs is the number of processes of each arm.
func (e Series) pairs() int {
	if len(e.Rounds) == 0 {
		return 0
	}
	return len(e.Rounds) * len(e.Rounds[0].Base)
}

// Valid reports what Decide refuses: limits or summaries that are none, or
// more rounds than the plan has. Unusable times are a state of the outcome.
func (e Series) Valid(plan Plan) error {
	if err := e.Limits.Valid(); err != nil {
		return err
	}
	if e.pairs() > plan.LastPairs() {
		return fmt.Errorf("it holds %d pairs, its plan ends at %d: measuring on after the last look voids the error bound", e.pairs(), plan.LastPairs())
	}
	for i, b := range e.Rounds {
		if len(b.Base) != plan.PerArm || len(b.Head) != plan.PerArm {
			return fmt.Errorf("round %d has %d and %d processes, the plan %d of each arm", i+1, len(b.Base), len(b.Head), plan.PerArm)
		}
	}
	seen := map[Summary]bool{}
	for _, m := range e.summaries() {
		if summaryNames[m] == "" || seen[m] {
			return fmt.Errorf("metric %s is unknown or named twice", m)
		}
		seen[m] = true
	}
	return nil
}

// validAll checks a plan and all experiments of a pull request.
func validAll(experiments []Series, plan Plan) error {
	if err := plan.valid(); err != nil {
		return err
	}
	if len(experiments) > maxExperiments {
		return fmt.Errorf("%d experiments, at most %d are judged together", len(experiments), maxExperiments)
	}
	for i, e := range experiments {
		if err := e.Valid(plan); err != nil {
			return fmt.Errorf("experiment %d: %w", i+1, err)
		}
	}
	return nil
}
