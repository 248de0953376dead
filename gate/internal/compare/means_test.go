package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestHeadSums: one process of an arm, 2 and 8 ns around 4, are 1/2 and 2; the
// head has the larger. Two of an arm are the sums of all six choices.
func TestHeadSums(t *testing.T) {
	const shift = 0.3
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	h := newHeadSums(stratum{[]float64{math.Log(2)}, []float64{math.Log(8) + shift}}, shift)
	if len(h.all) != 2 || !near(h.all[0], 0) || !near(h.all[1], 1.5) || !near(h.observed, 1.5) || !near(h.reach, 1.5) {
		t.Errorf("2 against 8: %+v, want 0 and 3/2, of which 3/2 is observed", h)
	}
	// The product of 1, 2, 4 and 32 is 256, so that the middle is 4.
	h = newHeadSums(stratum{[]float64{math.Log(2), math.Log(32)}, []float64{shift, math.Log(4) + shift}}, shift)
	want := map[float64]int{(1 + 2 - 3) / 4.0: 1, (1 + 4 - 3) / 4.0: 1, (2 + 4 - 3) / 4.0: 1, (1 + 32 - 3) / 4.0: 1, (2 + 32 - 3) / 4.0: 1, (4 + 32 - 3) / 4.0: 1}
	for x := range want {
		n := 0
		for _, y := range h.all {
			if near(x, y) {
				n++
			}
		}
		if n != want[x] {
			t.Errorf("a sum of %v stands in %v %d times", x, h.all, n)
		}
	}
	if len(h.all) != 6 || !near(h.observed, 0.5) || !near(h.reach, 33.0/4) {
		t.Errorf("%+v, want 6 sums, 1/2 observed and a reach of 33/4", h)
	}
}

// inSteps is the p value of meanBelow by its definition: of all orders of two
// rounds, the share with as few whole steps as were observed.
func inSteps(one, two headSums) float64 {
	step := (one.reach + two.reach) / meanSteps
	of := func(x float64) int { return int(x / step) }
	within := 0
	for _, a := range one.all {
		for _, b := range two.all {
			if of(a)+of(b) <= of(one.observed)+of(two.observed) {
				within++
			}
		}
	}
	return float64(within) / float64(len(one.all)*len(two.all))
}

func twoRounds(rng *rand.Rand, perArm int, noise, effect float64) []stratum {
	strata := make([]stratum, 2)
	for i := range strata {
		for range perArm {
			strata[i].base = append(strata[i].base, noise*rng.NormFloat64())
			strata[i].head = append(strata[i].head, noise*rng.NormFloat64()+effect)
		}
	}
	return strata
}

// TestMeanByItsDefinition lists all orders of two rounds. From half of what can
// be on, the p value is 1.
func TestMeanByItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 0))
	below, above := 0, 0
	for range 40 {
		for _, size := range []int{1, 2, 3, 4} {
			strata := twoRounds(rng, size, 0.1, 0.1*rng.Float64()-0.07)
			one, two := newHeadSums(strata[0], 0.02), newHeadSums(strata[1], 0.02)
			want := 1.0
			if one.observed+two.observed < (one.reach+two.reach)/2 {
				want = inSteps(one, two)
				below++
			} else if inSteps(one, two) < 0.95 {
				above++
			}
			if got := meanBelow(strata, 0.02); math.Abs(got-want) > 1e-12 {
				t.Errorf("rounds of %d: p %v, want %v", size, got, want)
			}
		}
	}
	if below < 30 || above < 20 {
		t.Errorf("only %d below the half and %d above it", below, above)
	}
	same := stratum{[]float64{1, 1}, []float64{1, 1}}
	if got := meanBelow([]stratum{same, same}, 0); got != 1 {
		t.Errorf("equal times have a p value of %v", got)
	}
}

// TestMeanExcludes: the answer is refuted, and what is smaller by one step of the
// search is not. A p value that is reached exactly counts as reached.
func TestMeanExcludes(t *testing.T) {
	rng := rand.New(rand.NewPCG(36, 0))
	const low, high = -0.05, 0.2
	const step = (high - low) / 1024
	for range 10 {
		strata := twoRounds(rng, 4, 0.01, 0)
		p := meanBelow(strata, 0.01)
		if p > 0.2 {
			continue
		}
		got := meanExcludes(strata, p, low, high)
		if !(meanBelow(strata, got) <= p && meanBelow(strata, got-step) > p) {
			t.Errorf("%v is excluded at %v, with p values of %v there and %v before", got, p, meanBelow(strata, got), meanBelow(strata, got-step))
		}
		if got := meanExcludes(strata, p, 0.01, high); got != 0.01 {
			t.Errorf("the lower end reaches %v exactly, and %v is excluded", p, got)
		}
		if got := meanExcludes(strata, 0, low, high); got != high {
			t.Errorf("no shift has a p value of 0, and %v is excluded", got)
		}
	}
}
