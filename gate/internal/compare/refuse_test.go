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
	good := func(rounds int) []Round { return normalRounds(rng, rounds, 0.002, 0) }
	constant := func(base, head float64) []Round {
		rounds := good(3)
		e := mapProcesses(Series{Rounds: rounds}, []Arm{Base}, func(Process) Process { return Process{Typical: base, Mean: base} })
		return mapProcesses(e, []Arm{Head}, func(Process) Process { return Process{Typical: head, Mean: head} }).Rounds
	}
	broken := func(x float64) []Round {
		rounds := good(3)
		rounds[1].Head[2].Mean = x
		return rounds
	}
	baseless := good(3)
	baseless[0].Base[0].Typical = 0
	for _, c := range []struct {
		name    string
		rounds  []Round
		verdict Decision
		reason  Reason
	}{
		{"not measured", nil, Inconclusive, NotMeasured},
		{"one round", good(1), Inconclusive, TooFewPairs},
		{"two rounds", good(2), Inconclusive, NotDecided},
		{"noise of 20 %", normalRounds(rng, 3, 0.2, 0), Inconclusive, NotDecided},
		{"zero variance", constant(100, 100), Inconclusive, ZeroVariance},
		{"zero variance, faster", constant(100, 90), Inconclusive, ZeroVariance},
		{"zero variance, slower", constant(100, 101), Regressed, AboveTolerance},
		{"head constant", mapProcesses(Series{Rounds: good(3)}, []Arm{Head}, func(Process) Process { return Process{Typical: 1e5, Mean: 1e5} }).Rounds, Inconclusive, ZeroVariance},
		{"collapse", normalRounds(rng, 3, 0.002, -0.93), Inconclusive, SuspectCollapse},
		{"NaN", broken(math.NaN()), Inconclusive, InvalidProcess},
		{"infinite", broken(math.Inf(1)), Inconclusive, InvalidProcess},
		{"zero", broken(0), Inconclusive, InvalidProcess},
		{"negative", broken(-5), Inconclusive, InvalidProcess},
		{"base of zero", baseless, Inconclusive, InvalidProcess},
	} {
		o := decideOne(t, Series{Limits: standard(t), Rounds: c.rounds}, fixed(t, 3))
		if o.Decision != c.verdict || o.Reason != c.reason {
			t.Errorf("%s: %s, %s (%s), want %s, %s", c.name, o.Decision, o.Reason, o.Invalid, c.verdict, c.reason)
		}
	}
}

func TestExplainedCollapsePasses(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 0))
	e := Series{Limits: standard(t), Rounds: normalRounds(rng, 3, 0.002, -0.95), Explained: true}
	if o := decideOne(t, e, fixed(t, 3)); o.Decision != Improved {
		t.Errorf("%s (%v), want improved", o.Decision, o.Reason)
	}
}

// The more tests, the later is the first look that can be red.
func TestFewestPairs(t *testing.T) {
	for _, c := range []struct{ tests, pairs int }{{1, 8}, {4, 8}, {60, 12}, {344, 12}, {2000, 16}} {
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
	ok := Series{Limits: standard(t), Rounds: normalRounds(rng, 3, 0.002, 0)}
	with := func(f func(*Series)) []Series { e := ok; f(&e); return []Series{e} }
	for _, c := range []struct {
		name        string
		experiments []Series
		plan        Plan
		want        string
	}{
		{"after the last look", []Series{ok}, fixed(t, 2), "voids the error bound"},
		{"tolerance 0", with(func(e *Series) { e.Limits.Tolerance = 0 }), fixed(t, 3), "0 < tolerance < detect"},
		{"tolerance NaN", with(func(e *Series) { e.Limits.Tolerance = math.NaN() }), fixed(t, 3), "0 < tolerance < detect"},
		{"detect infinite", with(func(e *Series) { e.Limits.Detect = math.Inf(1) }), fixed(t, 3), "0 < tolerance < detect"},
		{"limits swapped", with(func(e *Series) { e.Limits = Limits{Tolerance: 0.02, Detect: 0.01} }), fixed(t, 3), "0 < tolerance < detect"},
		{"unknown metric", with(func(e *Series) { e.Summaries = []Summary{7} }), fixed(t, 3), "unknown"},
		{"metric twice", with(func(e *Series) { e.Summaries = []Summary{Mean, Mean} }), fixed(t, 3), "named twice"},
		{"no looks", []Series{ok}, Plan{PerArm: 4, Alpha: .01, Beta: .01, FDR: .05}, "1 to 256 looks"},
		{"looks out of order", []Series{ok}, Plan{PerArm: 4, Looks: []int{12, 8}, Alpha: .01, Beta: .01, FDR: .05}, "must grow"},
		{"a look inside a round", []Series{ok}, Plan{PerArm: 4, Looks: []int{13}, Alpha: .01, Beta: .01, FDR: .05}, "must grow"},
		{"rounds of another size", []Series{ok}, roundsOf(5), "the plan 5 of each arm"},
		{"rounds of one", []Series{ok}, roundsOf(1), "2 to 8 processes"},
		{"alpha NaN", []Series{ok}, Plan{PerArm: 4, Looks: []int{12}, Alpha: math.NaN(), Beta: .01, FDR: .05}, "error probabilities"},
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
		want    Process
	}{
		{[]float64{5}, Process{5, 5, 5}},
		{[]float64{4, 1, 3, 2}, Process{1.5, 2.5, 3.97}},
		{[]float64{9, 1, 2}, Process{1.5, 4, 8.86}},
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
		if l, err := Summarize(batches); !errors.Is(err, errInvalidProcess) {
			t.Errorf("%v: %v and %v, want an invalid process", batches, l, err)
		}
	}
}
