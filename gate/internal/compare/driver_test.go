package compare

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func newTestDriver(t *testing.T, plan Plan, budget Budget, experiments int) *Driver {
	t.Helper()
	asked := make([]Series, experiments)
	for i := range asked {
		asked[i].Limits = standard(t)
	}
	d, err := NewDriver(plan, budget, asked)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// drive runs a driver to its end; effects belong to the experiments.
func drive(t *testing.T, d *Driver, rng *rand.Rand, sigma float64, effects []float64, cost Cost) []Step {
	t.Helper()
	var steps []Step
	for {
		step, more, err := d.NextRound(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return steps
		}
		steps = append(steps, step)
		rounds := map[int]Round{}
		for _, i := range step.Experiments {
			rounds[i] = normalRounds(rng, 1, sigma, effects[i])[0]
		}
		if err := d.Add(step, rounds, cost); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDriverLetsResolvedKernelsLeave(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 0))
	const same, slow, between = 0, 1, 2
	effects := []float64{same: 0, slow: 0.05, between: 0.0125}
	d := newTestDriver(t, SequentialPlan(), Budget{}, len(effects))
	steps := drive(t, d, rng, 0.008, effects, Cost{WallSeconds: 4, GPUSeconds: 1})
	if d.Stopped() != "resolved" {
		t.Errorf("stopped by %q, want resolved", d.Stopped())
	}
	pairs := make([]int, len(effects))
	outcomes, err := Decide(d.experiments(), d.plan)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]Decision{same: Pass, slow: Regressed}
	for i, o := range outcomes {
		pairs[i] = o.Pairs
		if w, ok := want[i]; ok && o.Decision != w {
			t.Errorf("%d: %s (%v), want %s", i, o.Decision, o.Reason, w)
		}
		if !slices.Contains(SequentialPlan().Looks, o.Pairs) {
			t.Errorf("%d left after %d pairs, which is not a look", i, o.Pairs)
		}
	}
	if pairs[same] >= pairs[between] || pairs[slow] >= pairs[between] || len(steps)*perArm != pairs[between] {
		t.Errorf("pairs %v in %d rounds: the clear kernels should leave before the other", pairs, len(steps))
	}
	if got := d.spent.WallSeconds; got != 4*float64(len(steps)) {
		t.Errorf("spent %v s of wall time in %d rounds of 4 s", got, len(steps))
	}
	for i, s := range steps {
		if s.Number != i || s.Attempt != 1 || !balanced(s.Order) {
			t.Errorf("step %d is %+v", i, s)
		}
	}
}

func TestDriverFixedPlan(t *testing.T) {
	d := newTestDriver(t, fixed(t, 3), Budget{}, 2)
	steps := drive(t, d, rand.New(rand.NewPCG(62, 0)), 0.003, make([]float64, 2), Cost{})
	if len(steps) != 3 {
		t.Errorf("%d rounds, want 3", len(steps))
	}
	for _, s := range steps {
		if len(s.Experiments) != 2 {
			t.Errorf("round %d measures %v, want both experiments", s.Number, s.Experiments)
		}
	}
}

func TestDriverBudgets(t *testing.T) {
	simulates(t)
	for _, c := range []struct {
		budget  Budget
		rounds  int
		stopped string
	}{
		{Budget{}, 30, "pairs"},
		{Budget{Pairs: 41}, 10, "pairs"},
		{Budget{WallSeconds: 12}, 3, "wall"}, // the look at 20 pairs would take 20 s
		{Budget{WallSeconds: 20}, 5, "wall"}, // the look at 20 pairs is reached
		{Budget{GPUSeconds: 2.9}, 2, "gpu"},  // so is that at 8
		{Budget{WallSeconds: 1}, 1, "wall"},  // what a round costs is known only after one
		{Budget{Pairs: 12, WallSeconds: 1000, GPUSeconds: 1000}, 3, "pairs"},
	} {
		d := newTestDriver(t, SequentialPlan(), c.budget, 1)
		steps := drive(t, d, rand.New(rand.NewPCG(63, 0)), 0.3, make([]float64, 1), Cost{WallSeconds: 4, GPUSeconds: 1})
		if len(steps) != c.rounds || d.Stopped() != c.stopped {
			t.Errorf("%+v: stopped by %q after %d rounds, want %q after %d", c.budget, d.Stopped(), len(steps), c.stopped, c.rounds)
		}
		if _, err := Decide(d.experiments(), d.plan); err != nil {
			t.Errorf("%+v: %v", c.budget, err)
		}
	}
}

func TestDriverRepeatsWholeRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 0))
	d := newTestDriver(t, SequentialPlan(), Budget{}, 1)
	for attempt := 1; attempt <= 3; attempt++ {
		step, more, err := d.NextRound(reader{rng})
		if err != nil || !more || step.Number != 0 || step.Attempt != attempt {
			t.Fatalf("attempt %d: %+v, %v, %v", attempt, step, more, err)
		}
		bad := normalRounds(rng, 1, 0.003, 0)[0]
		bad.Head[1].Typical = 0
		if err := d.Add(step, map[int]Round{0: bad}, Cost{}); !errors.Is(err, errInvalidProcess) {
			t.Fatalf("a process of 0 ns: %v", err)
		}
		if err := d.Discard(step, Cost{WallSeconds: 4}); err != nil {
			t.Fatal(err)
		}
	}
	if _, more, err := d.NextRound(reader{rng}); more || !errors.Is(err, ErrRoundFailed) {
		t.Errorf("after three attempts: %v, want a failed round", err)
	}
	if got := d.experiments()[0].Rounds; len(got) != 0 {
		t.Errorf("%d discarded rounds were kept", len(got))
	}
}

func TestDriverRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(65, 0))
	d := newTestDriver(t, SequentialPlan(), Budget{}, 2)
	step, _, err := d.NextRound(reader{rng})
	if err != nil {
		t.Fatal(err)
	}
	round := normalRounds(rng, 1, 0.003, 0)[0]
	other := step
	other.Number++
	for name, err := range map[string]error{
		"two rounds at once":   func() error { _, _, err := d.NextRound(reader{rng}); return err }(),
		"a missing experiment": d.Add(step, map[int]Round{0: round}, Cost{}),
		"a strange experiment": d.Add(step, map[int]Round{0: round, 2: round}, Cost{}),
		"another step":         d.Add(other, map[int]Round{0: round, 1: round}, Cost{}),
		"a negative cost":      d.Add(step, map[int]Round{0: round, 1: round}, Cost{WallSeconds: -1}),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := d.Add(step, map[int]Round{0: round, 1: round}, Cost{}); err != nil {
		t.Errorf("the step itself: %v", err)
	}
	if err := d.Add(step, map[int]Round{0: round, 1: round}, Cost{}); err == nil {
		t.Error("a round is accepted twice")
	}
	if _, _, err := d.NextRound(strings.NewReader("")); !errors.Is(err, io.EOF) {
		t.Errorf("an exhausted source of randomness: %v", err)
	}
	if _, err := NewDriver(SequentialPlan(), Budget{WallSeconds: -1}, nil); err == nil {
		t.Error("a negative budget is accepted")
	}
	if _, err := NewDriver(SequentialPlan(), Budget{Pairs: 3}, nil); err == nil {
		t.Error("a budget below one round is accepted")
	}
}

// experiments are the evidence so far, in the order asked.
func (d *Driver) experiments() []Series {
	var out []Series
	for _, t := range d.trials {
		out = append(out, t.experiment)
	}
	return out
}

// Rounds whose experiments are measured in parts, one after the other, give every
// experiment what it needs, once for each number of a round, and leave all of them
// in one family.
func TestDriverTakesPartsOfARound(t *testing.T) {
	rng := rand.New(rand.NewPCG(64, 0))
	const most = 2
	effects := []float64{0, 0.05, 0.0125, 0, 0}
	want := []Decision{Pass, Regressed, Regressed, Pass, Pass}
	d := newTestDriver(t, SequentialPlan(), Budget{}, len(effects))
	have := make([]int, len(effects))
	for {
		step, more, err := d.NextRound(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		step.Experiments = step.Experiments[:min(most, len(step.Experiments))]
		rounds := map[int]Round{}
		for _, i := range step.Experiments {
			if have[i] != step.Number {
				t.Fatalf("experiment %d has %d rounds and takes part in round %d", i, have[i], step.Number)
			}
			have[i]++
			rounds[i] = normalRounds(rng, 1, 0.008, effects[i])[0]
		}
		if err := d.Add(step, rounds, Cost{}); err != nil {
			t.Fatal(err)
		}
	}
	outcomes, err := Decide(d.experiments(), d.plan)
	if err != nil || d.Stopped() != "resolved" {
		t.Fatalf("%q, %v", d.Stopped(), err)
	}
	for i, o := range outcomes {
		if o.Decision != want[i] || o.Pairs != have[i]*perArm {
			t.Errorf("%d: %s after %d pairs of %d", i, o.Decision, o.Pairs, have[i]*perArm)
		}
	}
}

func TestDriverRefusesWhatIsNoPart(t *testing.T) {
	for _, given := range [][]int{nil, {0, 0}, {2, 1}, {0, 3}} {
		d := newTestDriver(t, SequentialPlan(), Budget{}, 3)
		rng := rand.New(rand.NewPCG(65, 0))
		step, _, err := d.NextRound(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		drawn := step.Experiments
		step.Experiments = nil
		rounds := map[int]Round{}
		for _, place := range given { // places in the order drawn; the last is of another step
			i := 3
			if place < len(drawn) {
				i = drawn[place]
			}
			step.Experiments = append(step.Experiments, i)
			rounds[i] = normalRounds(rng, 1, 0.008, 0)[0]
		}
		if err := d.Add(step, rounds, Cost{}); err == nil || !strings.Contains(err.Error(), "were drawn") {
			t.Errorf("places %v: %v", given, err)
		}
		if err := d.Discard(step, Cost{}); err == nil {
			t.Errorf("places %v are discarded", given)
		}
	}
}
