package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSpendingAgainstBruteForce lists all orders of three rounds of four and
// two rounds of five, looks after every round, and counts the orders whose
// smallest t is at most each value that there is.
func TestSpendingAgainstBruteForce(t *testing.T) {
	for _, c := range []struct{ size, rounds int }{{4, 3}, {5, 2}} {
		s := spendingOf(c.size, []int{1, 2, 3}[:c.rounds], rootShape(0, c.rounds))
		us := make([]int, ordersOf(c.size))
		for i := range us {
			us[i] = beats(orderAt(i, c.size))
		}
		orders := map[float64]int{} // by smallest t
		var list func(round, u int, least float64)
		list = func(round, u int, least float64) {
			if round == c.rounds {
				orders[least]++
				return
			}
			for _, more := range us {
				p := nullOf(c.size, round+1).atLeast(u + more)
				list(round+1, u+more, min(least, s.scaled(round, p)))
			}
		}
		list(0, 0, math.Inf(1))
		all := math.Pow(float64(len(us)), float64(c.rounds))
		for at := range orders {
			within := 0
			for other, n := range orders {
				if other <= at*(1+1e-12) {
					within += n
				}
			}
			if got, want := s.exact(at), float64(within)/all; math.Abs(got-want) > 1e-12 {
				t.Errorf("rounds of %d: t of %v has probability %v, want %v", c.size, at, got, want)
			}
		}
		for _, level := range []float64{0.5, 0.01, 0.002} {
			if p := s.exact(s.nominal(level)); p > level || s.exact(s.nominal(level)*1.0001+1e-9) < p {
				t.Errorf("rounds of %d: the nominal t of %v has probability %v", c.size, level, p)
			}
		}
	}
}

// TestPValuesOverAllOrders lists all orders of two rounds of fixed slots, slow
// ones among them: of each test, the share of orders with a p value of at most x
// is at most x.
func TestPValuesOverAllOrders(t *testing.T) {
	simulates(t)
	rng := rand.New(rand.NewPCG(33, 0))
	limits := Limits{Tolerance: 0.005, Detect: 0.02}
	for trial := range 5 {
		var slots [2][roundSize]float64
		for b := range slots {
			for i := range slots[b] {
				slots[b][i] = 0.003 * rng.NormFloat64()
				if rng.Float64() < 0.3 {
					slots[b][i] += 0.1
				}
			}
		}
		for name, p := range map[string]func([]stratum) float64{
			"mean": func(s []stratum) float64 { return meanBelow(s, limits.detected()) },
			"slow": func(s []stratum) float64 {
				one := newSlowTest(limits.tolerated(), limits.detected())
				for _, x := range s {
					one.add(x)
				}
				return one.p()
			},
		} {
			shift := map[string]float64{"mean": limits.detected(), "slow": limits.tolerated()}[name]
			var ps []float64
			for i := range orders {
				for j := range orders {
					var strata []stratum
					for b, o := range []Order{orderAt(i, perArm), orderAt(j, perArm)} {
						var s stratum
						for slot, a := range o {
							if a == Base {
								s.base = append(s.base, slots[b][slot])
							} else {
								s.head = append(s.head, slots[b][slot]+shift)
							}
						}
						strata = append(strata, s)
					}
					ps = append(ps, p(strata))
				}
			}
			for _, x := range []float64{0.001, 0.005, 0.01, 0.05, 0.2, 0.5} {
				within := 0
				for _, p := range ps {
					if p <= x {
						within++
					}
				}
				if share := float64(within) / float64(len(ps)); share > x+1e-12 {
					t.Errorf("trial %d, %s: %.5f of the orders have a p value of at most %v", trial, name, share, x)
				}
			}
		}
	}
}

// TestMeanAgainstBruteForce: where all times are far apart, the p value is the
// share of orders whose sum is as small.
func TestMeanAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 0))
	for range 50 {
		strata := make([]stratum, 2)
		for i := range strata {
			for range perArm {
				strata[i].base = append(strata[i].base, 0.3*rng.NormFloat64())
				strata[i].head = append(strata[i].head, 0.3*rng.NormFloat64()-0.2)
			}
		}
		one, two := newHeadSums(strata[0], 0), newHeadSums(strata[1], 0)
		within := 0
		for _, a := range one.all {
			for _, b := range two.all {
				if a+b <= one.observed+two.observed+1e-12 {
					within++
				}
			}
		}
		want := float64(within) / float64(len(one.all)*len(two.all))
		if got := meanBelow(strata, 0); want < 0.4 && math.Abs(got-want) > 0.01+0.05*want {
			t.Errorf("p %v, want about %v", got, want)
		}
	}
}

// TestConstantArmGoesOn: an arm that a coarse timer holds constant is measured
// on, and passes once it is not.
func TestConstantArmGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 0))
	rounds := normalRounds(rng, 4, 0.001, 0)
	for i := range rounds[:3] {
		for j := range rounds[i].Head {
			rounds[i].Head[j] = Process{Typical: 1e5, Mean: 1e5}
		}
	}
	if o := decideOne(t, Series{Limits: standard(t), Rounds: rounds[:3]}, SequentialPlan()); o.Reason != ZeroVariance {
		t.Errorf("three rounds of one time: %s (%v)", o.Decision, o.Reason)
	}
	if o := decideOne(t, Series{Limits: standard(t), Rounds: rounds}, SequentialPlan()); o.Decision != Pass {
		t.Errorf("with a fourth: %s (%v)", o.Decision, o.Reason)
	}
}

// TestMoreRulesNeverTurnFailIntoPass: an effect between tolerance and detect,
// which a look can prove to be both, stays unproven when further tests move the
// bar of a red past that look.
func TestMoreRulesNeverTurnFailIntoPass(t *testing.T) {
	simulates(t)
	failed := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 36))
		e := Series{Limits: standard(t), Rounds: normalRounds(rng, 2+rng.IntN(3), 0.001, 0.008+0.006*rng.Float64()), Summaries: []Summary{Typical}}
		plan := SequentialPlan()
		before := Inconclusive
		for _, elsewhere := range []int{0, 1, 3, 7, 20, 60, 400, 5000} {
			plan.Elsewhere = elsewhere
			o := decideOne(t, e, plan)
			if before == Regressed && (o.Decision == Pass || o.Decision == Improved) {
				t.Errorf("seed %d: regressed, and %s beside %d tests", seed, o.Decision, elsewhere)
			}
			before = o.Decision
			if before == Regressed {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Fatal("nothing failed, so the law was not tested")
	}
}

// TestTailSetsTheFewestPairs: with 98 % one of so many processes is slow.
func TestTailSetsTheFewestPairs(t *testing.T) {
	for tail, want := range map[float64]int{0: 1, 0.4: 8, 0.2: 18, 0.1: 38} {
		if got := (Limits{Tail: tail}).fewestPairs(); got != want {
			t.Errorf("a tail of %v takes %d processes, want %d", tail, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(37, 0))
	strict, err := Profile("strict")
	if err != nil {
		t.Fatal(err)
	}
	for rounds, want := range map[int]Decision{4: Inconclusive, 5: Pass} {
		if o := decideOne(t, Series{Limits: strict, Rounds: normalRounds(rng, rounds, 0.0005, 0)}, SequentialPlan()); o.Decision != want {
			t.Errorf("%d rounds at strict: %s (%v), want %s", rounds, o.Decision, o.Reason, want)
		}
	}
}
