package compare

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// request draws a pull request with kernels of every kind of effect and noise.
func request(rng *rand.Rand, kernels, blocks int) []Experiment {
	limits := []Limits{{Tolerance: 0.005, Detect: 0.02}, {Tolerance: 0.0025, Detect: 0.01}, {Tolerance: 0.03, Detect: 0.05}}
	effects := []float64{-0.3, -0.02, 0, 0, 0.004, 0.01, 0.02, 0.05}
	var experiments []Experiment
	for range kernels {
		experiments = append(experiments, Experiment{
			Limits: limits[rng.IntN(len(limits))],
			Blocks: normalBlocks(rng, rng.IntN(blocks+1), 0.001*math.Pow(2, 3*rng.Float64()), effects[rng.IntN(len(effects))]),
		})
	}
	return experiments
}

// mapLaunches returns a copy with every launch of the given arms replaced.
func mapLaunches(e Experiment, arms []Arm, f func(Launch) Launch) Experiment {
	e.Blocks = slices.Clone(e.Blocks)
	for i := range e.Blocks {
		for j := range perArm {
			if slices.Contains(arms, Base) {
				e.Blocks[i].Base[j] = f(e.Blocks[i].Base[j])
			}
			if slices.Contains(arms, Head) {
				e.Blocks[i].Head[j] = f(e.Blocks[i].Head[j])
			}
		}
	}
	return e
}

func times(c float64) func(Launch) Launch {
	return func(l Launch) Launch { return Launch{Typical: c * l.Typical, Mean: c * l.Mean} }
}

func outcomesOf(t *testing.T, experiments []Experiment, plan Plan) []Outcome {
	t.Helper()
	outcomes, err := Decide(experiments, plan)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// eachRequest runs a law on seeded pull requests, under both kinds of plans.
func eachRequest(t *testing.T, law func(rng *rand.Rand, experiments []Experiment, plan Plan)) {
	t.Helper()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 31))
		for _, plan := range []Plan{SequentialPlan(), fixed(t, 3)} {
			law(rng, request(rng, 6, min(5, plan.lastPairs()/perArm)), plan)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func TestSwapNegatesTheLogRatio(t *testing.T) {
	eachRequest(t, func(_ *rand.Rand, experiments []Experiment, _ Plan) {
		for _, e := range experiments {
			if len(e.Blocks) == 0 {
				continue
			}
			for _, m := range e.summaries() {
				d := newDifferences(e.Blocks, m)
				swapped := make([]Block, len(e.Blocks))
				for i, b := range e.Blocks {
					swapped[i] = Block{Base: b.Head, Head: b.Base}
				}
				s := newDifferences(swapped, m)
				estimate, low, high := d.hodgesLehmann(intervalConfidence)
				back, backLow, backHigh := s.hodgesLehmann(intervalConfidence)
				if back != -estimate || backLow != -high || backHigh != -low {
					t.Errorf("%v (%v to %v) becomes %v (%v to %v)", estimate, low, high, back, backLow, backHigh)
				}
				if d.pAbove(0.01) != s.pBelow(-0.01) {
					t.Errorf("p %v becomes %v", d.pAbove(0.01), s.pBelow(-0.01))
				}
			}
		}
	})
}

func TestEqualArmsAreNeverRed(t *testing.T) {
	eachRequest(t, func(_ *rand.Rand, experiments []Experiment, plan Plan) {
		for i, e := range experiments {
			for j, b := range e.Blocks {
				experiments[i].Blocks[j].Head = b.Base
			}
		}
		for i, o := range outcomesOf(t, experiments, plan) {
			if o.Verdict == Regressed {
				t.Errorf("%d against itself: %s", i, o.Detail)
			}
		}
	})
}

func TestSlowerNeverPassesWhatFailed(t *testing.T) {
	failed := 0
	eachRequest(t, func(rng *rand.Rand, experiments []Experiment, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		k := rng.IntN(len(experiments))
		slower := slices.Clone(experiments)
		slower[k] = mapLaunches(slower[k], []Arm{Head}, func(l Launch) Launch { return times(1 + 0.1*rng.Float64())(l) })
		for i, after := range outcomesOf(t, slower, plan) {
			if before[i].Verdict != Regressed {
				continue
			}
			failed++
			if after.Verdict != Regressed {
				t.Errorf("%d was regressed and is %s with %d slower: %s", i, after.Verdict, k, after.Detail)
			}
		}
	})
	if failed == 0 {
		t.Fatal("no experiment failed, so the law was not tested")
	}
}

func TestScaleLeavesTheVerdict(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Experiment, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		c := math.Exp(20*rng.Float64() - 10)
		for i := range experiments {
			experiments[i] = mapLaunches(experiments[i], []Arm{Base, Head}, times(c))
		}
		for i, after := range outcomesOf(t, experiments, plan) {
			if after.Verdict != before[i].Verdict || after.Reason != before[i].Reason || after.NeedPairs != before[i].NeedPairs {
				t.Errorf("times %v: %d was %s (%s) and is %s (%s)", c, i, before[i].Verdict, before[i].Detail, after.Verdict, after.Detail)
			}
		}
	})
}

func TestOrderLeavesTheBytes(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Experiment, plan Plan) {
		before, err := json.Marshal(outcomesOf(t, experiments, plan))
		if err != nil {
			t.Fatal(err)
		}
		rng.Shuffle(len(experiments), func(i, j int) { experiments[i], experiments[j] = experiments[j], experiments[i] })
		for _, e := range experiments {
			for i := range e.Blocks {
				for _, side := range []*[perArm]Launch{&e.Blocks[i].Base, &e.Blocks[i].Head} {
					rng.Shuffle(perArm, func(a, b int) { side[a], side[b] = side[b], side[a] })
				}
			}
		}
		after, err := json.Marshal(outcomesOf(t, experiments, plan))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, after) {
			t.Errorf("permuted input changes the bytes:\n%s\n%s", before, after)
		}
	})
}

// Taking blocks away from the end of an experiment, or a whole experiment's
// blocks, never leads to a green pull request where there was none.
func TestDeletedEvidenceNeverHelps(t *testing.T) {
	green := func(outcomes []Outcome) bool {
		return !slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Verdict == Regressed || o.Verdict == Inconclusive })
	}
	passed := 0
	eachRequest(t, func(rng *rand.Rand, experiments []Experiment, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		k := rng.IntN(len(experiments))
		blocks := experiments[k].Blocks
		for keep := range len(blocks) {
			experiments[k].Blocks = blocks[:keep]
			after := outcomesOf(t, experiments, plan)
			if green(after) && !green(before) {
				t.Errorf("%d of %d blocks of %d turn the pull request green", keep, len(blocks), k)
			}
			for i, o := range after {
				if i == k && (o.Verdict == Pass || o.Verdict == Improved) {
					passed++
					if before[i].Verdict == Regressed {
						t.Errorf("%d of %d blocks turn %d from regressed to %s", keep, len(blocks), k, o.Verdict)
					}
				}
			}
		}
	})
	if passed == 0 {
		t.Fatal("nothing passed on a part of its blocks, so the law was not tested")
	}
}

func TestMoreExperimentsNeverTurnFailIntoPass(t *testing.T) {
	eachRequest(t, func(rng *rand.Rand, experiments []Experiment, plan Plan) {
		before := outcomesOf(t, experiments, plan)
		more := append(slices.Clone(experiments), Experiment{Limits: standard(t), Blocks: normalBlocks(rng, 3, 0.003, 0)})
		for i, o := range outcomesOf(t, more, plan)[:len(before)] {
			if before[i].Verdict == Regressed && (o.Verdict == Pass || o.Verdict == Improved) {
				t.Errorf("%d was regressed and passes beside one more experiment", i)
			}
		}
	})
}
