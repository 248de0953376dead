package compare

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrBlockFailed says that a block was discarded too often in a row.
var ErrBlockFailed = errors.New("block failed")

// maxAttempts is how often a block is run before the experiment is given up.
const maxAttempts = 3

// A Budget bounds an experiment. Zero is no bound.
type Budget struct {
	Pairs       int     `json:"pairs"`
	WallSeconds float64 `json:"wall_seconds"`
	GPUSeconds  float64 `json:"gpu_seconds"`
}

// A Cost is what one block took.
type Cost struct {
	WallSeconds float64 `json:"wall_seconds"`
	GPUSeconds  float64 `json:"gpu_seconds"`
}

// A Target is a kernel to be measured.
type Target struct {
	Name      string
	Limits    Limits
	Metrics   []Metric // none means Typical and Mean
	Explained bool
}

// A Step is one block to run. It is to be logged before its first launch.
type Step struct {
	Number  int   `json:"number"`  // of the block, from 0
	Attempt int   `json:"attempt"` // from 1; a repeated block gets a fresh order
	Order   Order `json:"order"`
	// Kernels are the names to measure, in the order inside every launch of
	// the block: the same for both arms.
	Kernels []string `json:"kernels"`
}

// A Driver is the state of one experiment over all kernels of a pull request.
// It runs nothing: it says which block comes next and takes the results.
type Driver struct {
	plan        Plan
	budget      Budget
	experiments []Experiment
	open        []string // names that go on, as of the last look
	next        int      // number of the next block
	attempt     int
	pending     *Step
	spent, last Cost
	stopped     string
}

// NewDriver checks a plan, a budget and targets. A budget of pairs ends the
// plan there, before anything is measured.
func NewDriver(plan Plan, budget Budget, targets []Target) (*Driver, error) {
	if err := plan.Valid(); err != nil {
		return nil, err
	}
	if !(budget.WallSeconds >= 0 && budget.GPUSeconds >= 0) || budget.Pairs < 0 {
		return nil, fmt.Errorf("a budget cannot be negative: %+v", budget)
	}
	if budget.Pairs > 0 {
		capped, err := plan.Capped(budget.Pairs)
		if err != nil {
			return nil, fmt.Errorf("budget of %d pairs: %w", budget.Pairs, err)
		}
		plan = capped
	}
	d := &Driver{plan: plan, budget: budget, attempt: 1}
	for _, t := range targets {
		d.experiments = append(d.experiments, Experiment{Name: t.Name, Limits: t.Limits, Metrics: t.Metrics, Explained: t.Explained})
	}
	return d, validAll(d.experiments, plan)
}

// NextBlock draws the next block; false when the experiment is over, and
// Stopped then says why. A block is begun only if, at the cost of the last one,
// the budget reaches to the next look: blocks behind the last look that was
// reached decide nothing.
func (d *Driver) NextBlock(random io.Reader) (Step, bool, error) {
	if d.pending != nil {
		return Step{}, false, fmt.Errorf("block %d has neither been added nor discarded", d.pending.Number)
	}
	if d.attempt > maxAttempts {
		return Step{}, false, fmt.Errorf("%w: block %d was discarded %d times", ErrBlockFailed, d.next, maxAttempts)
	}
	if d.next == 0 || d.atLook() {
		d.open = d.unresolved()
	}
	if d.stopped = d.stop(); d.stopped != "" {
		return Step{}, false, nil
	}
	step := Step{Number: d.next, Attempt: d.attempt, Kernels: slices.Clone(d.open)}
	var err error
	if step.Order, err = NewOrder(random); err != nil {
		return Step{}, false, err
	}
	if err := shuffle(random, step.Kernels); err != nil {
		return Step{}, false, err
	}
	d.pending = &step
	return step, true, nil
}

// shuffle is the Fisher-Yates shuffle over a reader.
func shuffle(random io.Reader, names []string) error {
	for i := len(names) - 1; i > 0; i-- {
		j, err := uniform(random, i+1)
		if err != nil {
			return fmt.Errorf("draw the order of the kernels: %w", err)
		}
		names[i], names[j] = names[j], names[i]
	}
	return nil
}

// unresolved lists the kernels that go on. Running minima only fall and Holm's
// threshold only rises with them, so a kernel that left stays decided.
func (d *Driver) unresolved() []string {
	var trials []trial
	for _, e := range d.experiments {
		trials = append(trials, newTrial(e, d.plan))
	}
	red, _, _ := thresholds(trials, d.plan)
	var open []string
	for _, t := range trials {
		if decided(t.tests, red, d.plan.Beta) == Inconclusive {
			open = append(open, t.experiment.Name)
		}
	}
	return open
}

// atLook reports whether the blocks so far end at a look.
func (d *Driver) atLook() bool {
	return slices.ContainsFunc(d.plan.Looks, func(l Look) bool { return l.Pairs == d.next*perArm })
}

// stop says why no further block is run, or "".
func (d *Driver) stop() string {
	if len(d.open) == 0 {
		return "resolved"
	}
	look, more := d.plan.nextLook(d.next * perArm)
	if !more {
		return "pairs"
	}
	ahead := float64(look.Pairs/perArm - d.next)
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

// Add records a block that was measured: exactly the kernels of the step. An
// invalid launch is an error that wraps errInvalidLaunch and leaves the block
// pending, for Discard.
func (d *Driver) Add(step Step, blocks map[string]Block, cost Cost) error {
	if err := d.expect(step, cost); err != nil {
		return err
	}
	if len(blocks) != len(step.Kernels) {
		return fmt.Errorf("block %d holds %d kernels, want %d", step.Number, len(blocks), len(step.Kernels))
	}
	for _, name := range step.Kernels {
		b, ok := blocks[name]
		if !ok {
			return fmt.Errorf("block %d holds nothing of kernel %q", step.Number, name)
		}
		if err := b.valid([]Metric{Typical, Mean}); err != nil {
			return fmt.Errorf("block %d, kernel %q: %w", step.Number, name, err)
		}
	}
	for i, e := range d.experiments {
		if slices.Contains(step.Kernels, e.Name) {
			d.experiments[i].Blocks = append(e.Blocks, blocks[e.Name])
		}
	}
	d.charge(cost)
	d.next, d.attempt = d.next+1, 1
	return nil
}

// Discard gives up a whole block, by the state of the device or because a
// launch failed; never by a time. After three in a row NextBlock fails.
func (d *Driver) Discard(step Step, cost Cost) error {
	if err := d.expect(step, cost); err != nil {
		return err
	}
	d.charge(cost)
	d.attempt++
	return nil
}

// expect checks that a step is the one that was drawn last.
func (d *Driver) expect(step Step, cost Cost) error {
	if d.pending == nil || d.pending.Number != step.Number || d.pending.Attempt != step.Attempt || d.pending.Order != step.Order {
		return fmt.Errorf("block %d, attempt %d is not the one that was drawn", step.Number, step.Attempt)
	}
	if !(cost.WallSeconds >= 0 && cost.GPUSeconds >= 0) {
		return fmt.Errorf("a cost cannot be negative: %+v", cost)
	}
	return nil
}

// charge adds a cost and closes the pending block.
func (d *Driver) charge(cost Cost) {
	d.spent.WallSeconds += cost.WallSeconds
	d.spent.GPUSeconds += cost.GPUSeconds
	d.last, d.pending = cost, nil
}

// Experiments returns the evidence so far, in the order of the targets.
func (d *Driver) Experiments() []Experiment { return slices.Clone(d.experiments) }

// Spent returns the cost so far, discarded blocks included.
func (d *Driver) Spent() Cost { return d.spent }

// Stopped says why NextBlock ended: "resolved", "pairs", "wall" or "gpu"; ""
// while it goes on.
func (d *Driver) Stopped() string { return d.stopped }

// Decide judges the evidence so far.
func (d *Driver) Decide() ([]Outcome, error) { return Decide(d.experiments, d.plan) }
