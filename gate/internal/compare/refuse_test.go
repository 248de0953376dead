package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each of these must not end green.
func TestNothingPassesUnproven(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 0))
	good := func(blocks int) []Block { return normalBlocks(rng, blocks, 0.002, 0) }
	constant := func(base, head float64) []Block {
		blocks := good(3)
		e := mapLaunches(Experiment{Blocks: blocks}, []Arm{Base}, func(Launch) Launch { return Launch{Typical: base, Mean: base} })
		return mapLaunches(e, []Arm{Head}, func(Launch) Launch { return Launch{Typical: head, Mean: head} }).Blocks
	}
	broken := func(x float64) []Block {
		blocks := good(3)
		blocks[1].Head[2].Mean = x
		return blocks
	}
	baseless := good(3)
	baseless[0].Base[0].Typical = 0
	for _, c := range []struct {
		name    string
		blocks  []Block
		verdict Verdict
		reason  Reason
	}{
		{"not measured", nil, Inconclusive, NotMeasured},
		{"one block", good(1), Inconclusive, TooFewPairs},
		{"two blocks", good(2), Inconclusive, TooFewPairs},
		{"noise of 20 %", normalBlocks(rng, 3, 0.2, 0), Inconclusive, Undecided},
		{"zero variance", constant(100, 100), Inconclusive, ZeroVariance},
		{"zero variance, faster", constant(100, 90), Inconclusive, ZeroVariance},
		{"zero variance, slower", constant(100, 101), Regressed, AboveTolerance},
		{"head constant", mapLaunches(Experiment{Blocks: good(3)}, []Arm{Head}, func(Launch) Launch { return Launch{Typical: 1e5, Mean: 1e5} }).Blocks, Inconclusive, ZeroVariance},
		{"collapse", normalBlocks(rng, 3, 0.002, -0.93), Inconclusive, Collapse},
		{"NaN", broken(math.NaN()), Inconclusive, InvalidLaunch},
		{"infinite", broken(math.Inf(1)), Inconclusive, InvalidLaunch},
		{"zero", broken(0), Inconclusive, InvalidLaunch},
		{"negative", broken(-5), Inconclusive, InvalidLaunch},
		{"base of zero", baseless, Inconclusive, InvalidLaunch},
	} {
		o := decideOne(t, Experiment{Limits: standard(t), Blocks: c.blocks}, fixed(t, 3))
		if o.Verdict != c.verdict || o.Reason != c.reason || o.Detail == "" {
			t.Errorf("%s: %s, %s (%s), want %s, %s", c.name, o.Verdict, o.Reason, o.Detail, c.verdict, c.reason)
		}
	}
}

func TestExplainedCollapsePasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 0))
	e := Experiment{Limits: standard(t), Blocks: normalBlocks(rng, 3, 0.002, -0.95), Explained: true}
	if o := decideOne(t, e, fixed(t, 3)); o.Verdict != Improved {
		t.Errorf("%s (%s), want improved", o.Verdict, o.Detail)
	}
}

// The smallest p value of three blocks is 70^-3, and the look at 12 pairs may
// spend a tenth: 343 tests are the most among which it can reject.
func TestFewestPairs(t *testing.T) {
	for _, c := range []struct{ tests, pairs int }{{1, 8}, {4, 12}, {60, 12}, {343, 12}, {344, 20}, {2000, 20}} {
		if got := fewestPairs(SequentialPlan(), c.tests); got != c.pairs {
			t.Errorf("%d tests need %d pairs, want %d", c.tests, got, c.pairs)
		}
	}
	if got := fewestPairs(fixed(t, 3), 5000); got != 16 {
		t.Errorf("5000 tests need %d pairs, want 16 although the plan has 12", got)
	}
}

func TestDecideRefusesMisuse(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 0))
	ok := Experiment{Limits: standard(t), Blocks: normalBlocks(rng, 3, 0.002, 0)}
	with := func(f func(*Experiment)) []Experiment { e := ok; f(&e); return []Experiment{e} }
	for _, c := range []struct {
		name        string
		experiments []Experiment
		plan        Plan
		want        string
	}{
		{"after the last look", []Experiment{ok}, fixed(t, 2), "voids the error bound"},
		{"tolerance 0", with(func(e *Experiment) { e.Limits.Tolerance = 0 }), fixed(t, 3), "0 < tolerance < detect"},
		{"tolerance NaN", with(func(e *Experiment) { e.Limits.Tolerance = math.NaN() }), fixed(t, 3), "0 < tolerance < detect"},
		{"detect infinite", with(func(e *Experiment) { e.Limits.Detect = math.Inf(1) }), fixed(t, 3), "0 < tolerance < detect"},
		{"limits swapped", with(func(e *Experiment) { e.Limits = Limits{Tolerance: 0.02, Detect: 0.01} }), fixed(t, 3), "0 < tolerance < detect"},
		{"unknown metric", with(func(e *Experiment) { e.Summaries = []Summary{7} }), fixed(t, 3), "unknown"},
		{"metric twice", with(func(e *Experiment) { e.Summaries = []Summary{Mean, Mean} }), fixed(t, 3), "named twice"},
		{"no looks", []Experiment{ok}, Plan{Alpha: .01, Beta: .01, FDR: .05}, "1 to 64 looks"},
		{"looks out of order", []Experiment{ok}, Plan{Looks: []Look{{12, .5}, {8, .5}}, Alpha: .01, Beta: .01, FDR: .05}, "must grow"},
		{"a look inside a block", []Experiment{ok}, Plan{Looks: []Look{{13, 1}}, Alpha: .01, Beta: .01, FDR: .05}, "must grow"},
		{"overspent", []Experiment{ok}, Plan{Looks: []Look{{8, .6}, {12, .6}}, Alpha: .01, Beta: .01, FDR: .05}, "more than 1"},
		{"alpha NaN", []Experiment{ok}, Plan{Looks: []Look{{12, 1}}, Alpha: math.NaN(), Beta: .01, FDR: .05}, "error probabilities"},
	} {
		outcomes, err := Decide(c.experiments, c.plan)
		if err == nil || outcomes != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v and %d outcomes, want an error with %q", c.name, err, len(outcomes), c.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		batches []float64
		want    Launch
	}{
		{[]float64{5}, Launch{5, 5, 5}},
		{[]float64{4, 1, 3, 2}, Launch{1.5, 2.5, 3.97}},
		{[]float64{9, 1, 2}, Launch{1.5, 4, 8.86}},
	} {
		got, err := Summarize(c.batches)
		if math.Abs(got.P99-c.want.P99) < 1e-12 {
			got.P99 = c.want.P99
		}
		if err != nil || got != c.want {
			t.Errorf("%v: %v and %v, want %v", c.batches, got, err, c.want)
		}
	}
	for _, batches := range [][]float64{nil, {0}, {1, -1}, {1, math.NaN()}, {math.Inf(1)}} {
		if l, err := Summarize(batches); !errors.Is(err, errInvalidLaunch) {
			t.Errorf("%v: %v and %v, want an invalid launch", batches, l, err)
		}
	}
}
