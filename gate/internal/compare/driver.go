package compare

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrRoundFailed says that a round was discarded too often in a row.
var ErrRoundFailed = errors.New("round failed")

// maxAttempts is how often a round is run before the experiment is given up.
const maxAttempts = 3

// A Budget bounds an experiment. Zero is not a bound.
type Budget struct {
	Pairs       int     `json:"pairs"`
	WallSeconds float64 `json:"wall_seconds"`
	GPUSeconds  float64 `json:"gpu_seconds"`
}

// A Cost is what one round took.
type Cost struct {
	WallSeconds float64 `json:"wall_seconds"`
	GPUSeconds  float64 `json:"gpu_seconds"`
}

// A Step is one round to run. It is to be logged before its first process.
type Step struct {
	Number  int   `json:"number"`  // of the round, from 0
	Attempt int   `json:"attempt"` // from 1; a repeated round gets a fresh order
	Order   Order `json:"order"`
	// Experiments are the indices of those to measure, in the order inside
	// every process of the round: the same for both arms.
	Experiments []int `json:"experiments"`
}

// A Driver is the state of one experiment over all kernels of a pull request.
// It runs nothing: it says which round comes next and takes the results.
type Driver struct {
	plan        Plan
	budget      Budget
	trials      []trial
	dropped     map[int]bool
	attempt     int
	pending     *Step
	spent, last Cost
	stopped     string
}

// NewDriver checks a plan, a budget and what is to be measured. What has rounds
// already is continued: the looks are fixed, so that it does not matter when, and
// beside what else, a round is measured. A budget of pairs ends the plan there,
// before anything is measured.
func NewDriver(plan Plan, budget Budget, asked []Series) (*Driver, error) {
	if err := plan.valid(); err != nil {
		return nil, err
	}
	if !(budget.WallSeconds >= 0 && budget.GPUSeconds >= 0) || budget.Pairs < 0 {
		return nil, fmt.Errorf("a budget cannot be negative: %+v", budget)
	}
	if budget.Pairs > 0 {
		capped, err := plan.capped(budget.Pairs)
		if err != nil {
			return nil, fmt.Errorf("budget of %d pairs: %w", budget.Pairs, err)
		}
		plan = capped
	}
	if err := validAll(asked, plan); err != nil {
		return nil, err
	}
	return newDriver(plan, budget, asked), nil
}

func newDriver(plan Plan, budget Budget, asked []Series) *Driver {
	d := &Driver{plan: plan, budget: budget, dropped: map[int]bool{}, attempt: 1}
	for _, e := range asked {
		d.trials = append(d.trials, newTrial(e, plan))
	}
	return d
}

// NextRound draws the next round; false when the experiment is over, and
// Stopped then says why. Of those that go on, the ones with the fewest rounds
// come first, so that what joined later catches up. A round is begun only if, at
// the cost of the last one, the budget reaches to the next look: rounds after the
// last look that was reached decide nothing.
func (d *Driver) NextRound(random io.Reader) (Step, bool, error) {
	if d.pending != nil {
		return Step{}, false, fmt.Errorf("round %d has neither been added nor discarded", d.pending.Number)
	}
	next, open := d.fewest()
	if d.attempt > maxAttempts {
		return Step{}, false, fmt.Errorf("%w: round %d was discarded %d times", ErrRoundFailed, next, maxAttempts)
	}
	if d.stopped = d.stop(next, open); d.stopped != "" {
		return Step{}, false, nil
	}
	step := Step{Number: next, Attempt: d.attempt, Experiments: open}
	var err error
	if step.Order, err = newOrder(random, d.plan.PerArm); err != nil {
		return Step{}, false, err
	}
	if err := shuffle(random, step.Experiments); err != nil {
		return Step{}, false, err
	}
	d.pending = &step
	return step, true, nil
}

// fewest are the undecided experiments that have the fewest rounds, and how many
// rounds they have.
func (d *Driver) fewest() (rounds int, open []int) {
	for _, i := range d.unresolved() {
		switch n := len(d.trials[i].experiment.Rounds); {
		case len(open) == 0 || n < rounds:
			rounds, open = n, []int{i}
		case n == rounds:
			open = append(open, i)
		}
	}
	return rounds, open
}

// shuffle is the Fisher-Yates shuffle over a reader.
func shuffle(random io.Reader, list []int) error {
	for i := len(list) - 1; i > 0; i-- {
		j, err := uniform(random, i+1)
		if err != nil {
			return fmt.Errorf("draw the order of the experiments: %w", err)
		}
		list[i], list[j] = list[j], list[i]
	}
	return nil
}

// unresolved lists the experiments that go on. Running minima only fall and
// Holm's threshold only rises with them, so one that left stays decided.
func (d *Driver) unresolved() []int {
	red, _, _ := thresholds(d.trials, d.plan)
	var open []int
	for i, t := range d.trials {
		if !d.dropped[i] && decided(t.tests, red, d.plan) == Inconclusive {
			open = append(open, i)
		}
	}
	return open
}

// stop says why no further round is run, or "".
func (d *Driver) stop(next int, open []int) string {
	if len(open) == 0 {
		return "resolved"
	}
	look, more := d.plan.nextLook(next * d.plan.PerArm)
	if !more {
		return "pairs"
	}
	ahead := float64(look/d.plan.PerArm - next)
	if exceeds(d.spent.WallSeconds+ahead*d.last.WallSeconds, d.budget.WallSeconds) {
		return "wall"
	}
	if exceeds(d.spent.GPUSeconds+ahead*d.last.GPUSeconds, d.budget.GPUSeconds) {
		return "gpu"
	}
	return ""
}

// exceeds holds for a cost over a budget that there is.
func exceeds(cost, budget float64) bool { return budget > 0 && cost > budget }

// Add records a round that was measured: exactly the experiments of the step. Who
// cannot measure all of them together takes a part out of the step that was drawn,
// in its order, and gives that back: the others have the fewest rounds then, so the
// next step is about them. An invalid process is an error that wraps
// errInvalidProcess and leaves the round pending, for Discard.
func (d *Driver) Add(step Step, rounds map[int]Round, cost Cost) error {
	if err := d.expect(step, cost); err != nil {
		return err
	}
	if len(rounds) != len(step.Experiments) {
		return fmt.Errorf("round %d holds %d experiments, not %d", step.Number, len(rounds), len(step.Experiments))
	}
	for _, i := range step.Experiments {
		b, ok := rounds[i]
		if !ok {
			return fmt.Errorf("round %d holds nothing of experiment %d", step.Number, i+1)
		}
		if err := b.valid([]Summary{Typical, Mean}); err != nil {
			return fmt.Errorf("round %d, experiment %d: %w", step.Number, i+1, err)
		}
	}
	for _, i := range step.Experiments {
		d.trials[i].read(rounds[i])
	}
	d.charge(cost)
	d.attempt = 1
	return nil
}

// Discard gives up a whole round, by the state of the device or because a
// process failed; never by a time. After three in a row NextRound fails.
func (d *Driver) Discard(step Step, cost Cost) error {
	if err := d.expect(step, cost); err != nil {
		return err
	}
	d.charge(cost)
	d.attempt++
	return nil
}

// Drop takes experiments out: one whose processes fail cannot be compared, and
// must not hold up the others. What it measured so far is lost. It still counts
// as a test that rejects nothing, because the judge counts it as well. The
// attempts that the round took count no more: what failed is out.
func (d *Driver) Drop(experiments ...int) {
	for _, i := range experiments {
		if !d.dropped[i] {
			e := d.trials[i].experiment
			e.Rounds = nil
			d.dropped[i], d.trials[i], d.attempt = true, newTrial(e, d.plan), 1
		}
	}
}

// expect checks that a step is the one that was drawn last, or a part of it.
func (d *Driver) expect(step Step, cost Cost) error {
	if d.pending == nil || d.pending.Number != step.Number || d.pending.Attempt != step.Attempt || !slices.Equal(d.pending.Order, step.Order) {
		return fmt.Errorf("round %d, attempt %d is not the one that was drawn", step.Number, step.Attempt)
	}
	if !partOf(step.Experiments, d.pending.Experiments) {
		return fmt.Errorf("round %d is of the experiments %v, and %v were drawn", step.Number, step.Experiments, d.pending.Experiments)
	}
	if !(cost.WallSeconds >= 0 && cost.GPUSeconds >= 0) {
		return fmt.Errorf("a cost cannot be negative: %+v", cost)
	}
	return nil
}

// partOf reports whether a part, which is not empty, has its members from a whole,
// each once and in the order there.
func partOf(part, whole []int) bool {
	for _, i := range part {
		at := slices.Index(whole, i)
		if at < 0 {
			return false
		}
		whole = whole[at+1:]
	}
	return len(part) > 0
}

// charge adds a cost and closes the pending round.
func (d *Driver) charge(cost Cost) {
	d.spent.WallSeconds += cost.WallSeconds
	d.spent.GPUSeconds += cost.GPUSeconds
	d.last, d.pending = cost, nil
}

// Stopped says why NextRound ended: "resolved", "pairs", "wall" or "gpu"; ""
// while it goes on.
func (d *Driver) Stopped() string { return d.stopped }
