package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestStop: a round is begun if the rounds up to the next look fit into what is
// left. One round was run, the next look comes after four more, and each takes
// 4 s of wall time and 2 s of the GPU: 20 s and 10 s.
func TestStop(t *testing.T) {
	plan := SequentialPlan()
	plan.Looks = []int{4, 20}
	for _, c := range []struct {
		budget Budget
		next   int
		open   []int
		want   string
	}{
		{Budget{}, 1, []int{0}, ""},
		{Budget{}, 1, nil, "resolved"},
		{Budget{}, 4, []int{0}, ""},
		{Budget{}, 5, []int{0}, "pairs"},
		{Budget{WallSeconds: 20}, 1, []int{0}, ""},
		{Budget{WallSeconds: 19.9}, 1, []int{0}, "wall"},
		{Budget{WallSeconds: 8}, 4, []int{0}, ""},
		{Budget{GPUSeconds: 10}, 1, []int{0}, ""},
		{Budget{GPUSeconds: 9.9}, 1, []int{0}, "gpu"},
		{Budget{WallSeconds: 20, GPUSeconds: 9.9}, 1, []int{0}, "gpu"},
		{Budget{WallSeconds: 19, GPUSeconds: 9.9}, 1, []int{0}, "wall"},
	} {
		d := newTestDriver(t, plan, c.budget, 1)
		d.spent, d.last = Cost{WallSeconds: 4, GPUSeconds: 2}, Cost{WallSeconds: 4, GPUSeconds: 2}
		if got := d.stop(c.next, c.open); got != c.want {
			t.Errorf("%+v after %d rounds with %v open: %q, want %q", c.budget, c.next, c.open, got, c.want)
		}
	}
}

// TestBudgetOfPairs ends the plan, and what is wrong with a budget is said.
func TestBudgetOfPairs(t *testing.T) {
	d := newTestDriver(t, SequentialPlan(), Budget{Pairs: 11}, 1)
	if !slices.Equal(d.plan.Looks, []int{4, 8}) {
		t.Errorf("a budget of 11 pairs looks at %v", d.plan.Looks)
	}
	if d := newTestDriver(t, SequentialPlan(), Budget{}, 1); len(d.plan.Looks) != 30 {
		t.Errorf("without a budget there are %d looks", len(d.plan.Looks))
	}
	for want, c := range map[string]struct {
		plan   Plan
		budget Budget
		asked  []Series
	}{
		"budget of 3 pairs: a plan needs at least 4 pairs": {SequentialPlan(), Budget{Pairs: 3}, nil},
		"a budget cannot be negative: {Pairs:-1":           {SequentialPlan(), Budget{Pairs: -1}, nil},
		"a budget cannot be negative: {Pairs:0 Wall":       {SequentialPlan(), Budget{GPUSeconds: math.NaN()}, nil},
		"a plan needs 1 to 256 looks":                      {Plan{PerArm: 4, Alpha: 0.01, Beta: 0.01, FDR: 0.05}, Budget{}, nil},
		"experiment 2: limits need":                        {SequentialPlan(), Budget{}, []Series{{Limits: standard(t)}, {}}},
	} {
		if d, err := NewDriver(c.plan, c.budget, c.asked); err == nil || d != nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestFewest: of those that are undecided, the ones with the fewest rounds.
func TestFewest(t *testing.T) {
	of := func(rounds int, effect float64) Series {
		return Series{Limits: standard(t), Summaries: []Summary{Typical}, Rounds: spaced(rounds, 3000, effect)}
	}
	for _, c := range []struct {
		asked  []Series
		rounds int
		open   []int
	}{
		{[]Series{of(3, 0.01), of(2, 0.01), of(1, 0.01), of(1, 0.01), of(2, 0.01), of(1, 0.01)}, 1, []int{2, 3, 5}},
		{[]Series{of(2, 0.01), of(2, 0.01), of(3, 0.01)}, 2, []int{0, 1}},
		{[]Series{of(2, 5), of(3, 0.01)}, 3, []int{1}},
		{[]Series{of(2, 5)}, 0, nil},
	} {
		d, err := NewDriver(SequentialPlan(), Budget{}, c.asked)
		if err != nil {
			t.Fatal(err)
		}
		if rounds, open := d.fewest(); rounds != c.rounds || !slices.Equal(open, c.open) {
			t.Errorf("%d rounds of %v, want %d of %v", rounds, open, c.rounds, c.open)
		}
	}
}

// TestShuffle: every order of three comes as often, and one alone takes no draw.
func TestShuffle(t *testing.T) {
	if err := shuffle(strings.NewReader(""), []int{7}); err != nil {
		t.Errorf("one experiment: %v", err)
	}
	if err := shuffle(strings.NewReader("abc"), []int{7, 8}); err == nil || !strings.HasPrefix(err.Error(), "draw the order of the experiments: ") {
		t.Errorf("too few random bytes: %v", err)
	}
	rng, counts := rand.New(rand.NewPCG(67, 0)), map[[3]int]int{}
	const draws = 6000
	for range draws {
		list := [3]int{1, 2, 3}
		if err := shuffle(reader{rng}, list[:]); err != nil {
			t.Fatal(err)
		}
		counts[list]++
	}
	chi := 0.0
	for _, n := range counts {
		chi += (float64(n) - draws/6) * (float64(n) - draws/6) / (draws / 6)
	}
	if len(counts) != 6 || chi > 20.5 { // the 99.9 % quantile of 5 degrees of freedom
		t.Errorf("%d orders, chi-squared %.1f: %v", len(counts), chi, counts)
	}
}

// TestAddSaysWhatIsWrong, in the words of who reads it: experiments count from 1.
func TestAddSaysWhatIsWrong(t *testing.T) {
	d := newTestDriver(t, SequentialPlan(), Budget{}, 3)
	step, _, err := d.NextRound(reader{rand.New(rand.NewPCG(68, 0))})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := steady(1, 0)[0], steady(1, 0)[0]
	bad.Base[3].Typical = -1
	for want, rounds := range map[string]map[int]Round{
		"round 0 holds 2 experiments, not 3":                                       {0: good, 1: good},
		"round 0 holds nothing of experiment 3":                                    {0: good, 1: good, 5: good},
		"round 0, experiment 3: base process 3: invalid process: typical is -1 ns": {0: good, 1: good, 2: bad},
	} {
		if err := d.Add(step, rounds, Cost{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if got := d.experiments(); len(got) != 3 || len(got[0].Rounds)+len(got[1].Rounds)+len(got[2].Rounds) != 0 {
		t.Errorf("a round that was refused is kept: %+v", got)
	}
	if err := d.Add(step, map[int]Round{0: good, 1: good, 2: good}, Cost{WallSeconds: 3, GPUSeconds: 2}); err != nil || d.spent != (Cost{WallSeconds: 3, GPUSeconds: 2}) {
		t.Errorf("%v, spent %+v", err, d.spent)
	}
}
