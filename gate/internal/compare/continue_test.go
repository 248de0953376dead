package compare

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// A script is what would be measured: the rounds of every experiment, whenever
// each is run.
type script [][]Round

func newScript(rng *rand.Rand, kernels int) (script, []Series) {
	effects := []float64{-0.02, 0, 0, 0.004, 0.01, 0.0125, 0.02, 0.05}
	var s script
	var asked []Series
	for range kernels {
		s = append(s, normalRounds(rng, lastPairs/perArm, 0.002+0.02*rng.Float64(), effects[rng.IntN(len(effects))]))
		asked = append(asked, Series{Limits: Limits{Tolerance: 0.005, Detect: 0.02, Tail: 0.4}, Summaries: []Summary{Typical}})
	}
	return s, asked
}

// play runs the experiments of a script until they end or so many rounds are
// measured. It returns what was measured, and how often each round was.
func (s script) play(t *testing.T, rng *rand.Rand, asked []Series, elsewhere, most int, ran map[[2]int]int) (all []Series, ended bool) {
	t.Helper()
	plan := SequentialPlan()
	plan.Elsewhere = elsewhere
	d, err := NewDriver(plan, Budget{}, asked)
	if err != nil {
		t.Fatal(err)
	}
	for range most {
		step, more, err := d.NextRound(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return d.experiments(), true
		}
		rounds := map[int]Round{}
		for _, i := range step.Experiments {
			rounds[i] = s[i][step.Number]
			ran[[2]int{i, step.Number}]++
		}
		if err := d.Add(step, rounds, Cost{}); err != nil {
			t.Fatal(err)
		}
	}
	return d.experiments(), false
}

// An experiment that is cut at any point and continued, alone or with kernels
// that join later, gives the decision of one that is not cut, on the same rounds,
// and measures no round twice.
func TestContinuedIsAsUncut(t *testing.T) {
	cuts := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 83))
		kernels := 1 + rng.IntN(5)
		s, asked := newScript(rng, kernels)
		whole, _ := s.play(t, rng, asked, 0, 1000, map[[2]int]int{})
		want := outcomesOf(t, whole, SequentialPlan())

		ran := map[[2]int]int{}
		there := 1 + rng.IntN(kernels) // the others join later
		all, ended := asked[:there:there], false
		for !ended || there < kernels {
			if ended || rng.IntN(3) == 0 {
				joined := min(kernels, there+1)
				all, there = append(slices.Clone(all), asked[there:joined]...), joined
			}
			all, ended = s.play(t, rng, all, kernels-there, 1+rng.IntN(6), ran)
			cuts++
		}
		if got := outcomesOf(t, all, SequentialPlan()); !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: continued\n%+v\nuncut\n%+v", seed, got, want)
		}
		for round, n := range ran {
			if n != 1 {
				t.Errorf("seed %d: round %d of experiment %d was measured %d times", seed, round[1], round[0], n)
			}
		}
	}
	if cuts < 200 {
		t.Errorf("only %d runs were cut", cuts)
	}
}
