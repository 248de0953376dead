package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// request draws a pull request with kernels of every kind of effect and noise.
func request(rng *rand.Rand, kernels, rounds int) []Series {
	limits := []Limits{{Tolerance: 0.005, Detect: 0.02}, {Tolerance: 0.0025, Detect: 0.01}, {Tolerance: 0.03, Detect: 0.05}}
	effects := []float64{-0.3, -0.02, 0, 0, 0.004, 0.01, 0.02, 0.05}
	var experiments []Series
	for range kernels {
		experiments = append(experiments, Series{
			Limits: limits[rng.IntN(len(limits))],
			Rounds: normalRounds(rng, rng.IntN(rounds+1), 0.001*math.Pow(2, 3*rng.Float64()), effects[rng.IntN(len(effects))]),
		})
	}
	return experiments
}

// mapProcesses returns a copy with every process of the given arms replaced.
func mapProcesses(e Series, arms []Arm, f func(Process) Process) Series {
	e.Rounds = slices.Clone(e.Rounds)
	for i := range e.Rounds {
		e.Rounds[i].Base, e.Rounds[i].Head = slices.Clone(e.Rounds[i].Base), slices.Clone(e.Rounds[i].Head)
		for j := range perArm {
			if slices.Contains(arms, Base) {
				e.Rounds[i].Base[j] = f(e.Rounds[i].Base[j])
			}
			if slices.Contains(arms, Head) {
				e.Rounds[i].Head[j] = f(e.Rounds[i].Head[j])
			}
		}
	}
	return e
}

func times(c float64) func(Process) Process {
	return func(l Process) Process { return Process{Typical: c * l.Typical, Mean: c * l.Mean} }
}

func outcomesOf(t *testing.T, experiments []Series, plan Plan) []Outcome {
	t.Helper()
	outcomes, err := Decide(experiments, plan)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// eachRequest runs a law on seeded pull requests, under both kinds of plans.
func eachRequest(t *testing.T, law func(rng *rand.Rand, experiments []Series, plan Plan)) {
	t.Helper()
	simulates(t)
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 31))
		for _, plan := range []Plan{SequentialPlan(), fixed(t, 3)} {
			law(rng, request(rng, 6, min(5, plan.LastPairs()/perArm)), plan)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestSwapNegatesTheLogRatio(t *testing.T) {
	eachRequest(t, func(_ *rand.Rand, experiments []Series, _ Plan) {
		for _, e := range experiments {
			if len(e.Rounds) == 0 {
				continue
			}
			for _, m := range e.summaries() {
				d := strataOf(e.Rounds, m)
				swapped := make([]Round, len(e.Rounds))
				for i, b := range e.Rounds {
					swapped[i] = Round{Base: b.Head, Head: b.Base}
				}
				s := strataOf(swapped, m)
				estimate, low, high := hodgesLehmann(d, intervalConfidence)
				back, backLow, backHigh := hodgesLehmann(s, intervalConfidence)
				if back != -estimate || backLow != -high || backHigh != -low {
					t.Errorf("%v (%v to %v) becomes %v (%v to %v)", estimate, low, high, back, backLow, backHigh)
				}
				if above, below := pAboveAll(d, 0.01), pBelowAll(s, -0.01); above != below {
					t.Errorf("p %v becomes %v", above, below)
				}
			}
		}
	})
}

// pAboveAll and pBelowAll are the p values of all rounds at one look.
func pAboveAll(strata []stratum, shift float64) float64 {
	above, _ := countAll(strata, shift)
	return pAbove(len(strata[0].base), len(strata), above)
}

func pBelowAll(strata []stratum, shift float64) float64 {
	above, ties := countAll(strata, shift)
	return pBelow(len(strata[0].base), len(strata), above, ties)
}

func countAll(strata []stratum, shift float64) (above, ties int) {
	for _, s := range strata {
		a, t := s.count(shift)
		above, ties = above+a, ties+t
	}
	return above, ties
}

// Decisions that are made at once share what was computed once, and are those
// of a lone one.
func TestSeveralDecideAtOnce(t *testing.T) {
	plan := fixed(t, 3)
	want := outcomesOf(t, request(rand.New(rand.NewPCG(1, 31)), 2, 3), plan)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			got, err := Decide(request(rand.New(rand.NewPCG(1, 31)), 2, 3), plan)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
	all.Wait()
}

func TestEqualArmsAreNeverRed(t *testing.T) {
	eachRequest(t, func(_ *rand.Rand, experiments []Series, plan Plan) {
		for i, e := range experiments {
			for j, b := range e.Rounds {
				experiments[i].Rounds[j].Head = b.Base
			}
		}
		for i, o := range outcomesOf(t, experiments, plan) {
			if o.Decision == Regressed {
				t.Errorf("%d against itself: %s", i, o.Reason)
			}
		}
	})
}

func TestSlowerNeverPassesWhatFailed(t *testing.T) {
	failed := 0
	eachRequest(t, func(rng *rand.Rand, experiments []Series, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		k := rng.IntN(len(experiments))
		slower := slices.Clone(experiments)
		slower[k] = mapProcesses(slower[k], []Arm{Head}, func(l Process) Process { return times(1 + 0.1*rng.Float64())(l) })
		for i, after := range outcomesOf(t, slower, plan) {
			if before[i].Decision != Regressed {
				continue
			}
			failed++
			if after.Decision != Regressed {
				t.Errorf("%d was regressed and is %s with %d slower: %s", i, after.Decision, k, after.Reason)
			}
		}
	})
	if failed == 0 {
		t.Fatal("no experiment failed, so the law was not tested")
	}
}

func TestScaleLeavesTheDecision(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Series, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		c := math.Exp(20*rng.Float64() - 10)
		for i := range experiments {
			experiments[i] = mapProcesses(experiments[i], []Arm{Base, Head}, times(c))
		}
		for i, after := range outcomesOf(t, experiments, plan) {
			if after.Decision != before[i].Decision || after.Reason != before[i].Reason || after.NeedPairs != before[i].NeedPairs {
				t.Errorf("times %v: %d was %s (%s) and is %s (%s)", c, i, before[i].Decision, before[i].Reason, after.Decision, after.Reason)
			}
		}
	})
}

func TestOrderLeavesTheBytes(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Series, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		moved := rng.Perm(len(experiments))
		permuted := make([]Series, len(experiments))
		for i, to := range moved {
			permuted[to] = experiments[i]
			for r := range permuted[to].Rounds {
				for _, side := range [][]Process{permuted[to].Rounds[r].Base, permuted[to].Rounds[r].Head} {
					rng.Shuffle(perArm, func(a, b int) { side[a], side[b] = side[b], side[a] })
				}
			}
		}
		after := outcomesOf(t, permuted, plan)
		for i, to := range moved {
			if a, b := bytesOf(t, before[i]), bytesOf(t, after[to]); !bytes.Equal(a, b) {
				t.Errorf("permuted input changes the bytes:\n%s\n%s", a, b)
			}
		}
	})
}

func bytesOf(t *testing.T, o Outcome) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Taking rounds away from the end of an experiment, or a whole experiment's
// rounds, never leads to a green pull request where there was none.
func TestDeletedEvidenceNeverHelps(t *testing.T) {
	green := func(outcomes []Outcome) bool {
		return !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Decision == Regressed || o.Decision == Inconclusive })
	}
	passed := 0
	eachRequest(t, func(rng *rand.Rand, experiments []Series, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		k := rng.IntN(len(experiments))
		rounds := experiments[k].Rounds
		for keep := range len(rounds) {
			experiments[k].Rounds = rounds[:keep]
			after := outcomesOf(t, experiments, plan)
			if green(after) && !green(before) {
				t.Errorf("%d of %d rounds of %d turn the pull request green", keep, len(rounds), k)
			}
			for i, o := range after {
				if i == k && (o.Decision == Pass || o.Decision == Improved) {
					passed++
					if before[i].Decision == Regressed {
						t.Errorf("%d of %d rounds turn %d from regressed to %s", keep, len(rounds), k, o.Decision)
					}
				}
			}
		}
	})
	if passed == 0 {
		t.Fatal("nothing passed on a part of its rounds, so the law was not tested")
	}
}

func TestMoreExperimentsNeverTurnFailIntoPass(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Series, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		more := append(slices.Clone(experiments), Series{Limits: standard(t), Rounds: normalRounds(rng, 3, 0.003, 0)})
		for i, o := range outcomesOf(t, more, plan)[:len(before)] {
			if before[i].Decision == Regressed && (o.Decision == Pass || o.Decision == Improved) {
				t.Errorf("%d was regressed and passes beside one more experiment", i)
			}
		}
	})
}
