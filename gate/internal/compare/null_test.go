package compare

import (
	"math"
	"testing"
)

// bruteForce counts U over all orders of one round, by listing them.
func bruteForce(t *testing.T) []int {
	t.Helper()
	counts := make([]int, pairsPerRound+1)
	for i := range orders {
		counts[beats(orderAt(i, perArm))]++
	}
	return counts
}

// beats counts the pairs of an order in which the head stands later.
func beats(o Order) int {
	u, bases := 0, 0
	for _, a := range o {
		if a == Base {
			bases++
		} else {
			u += bases
		}
	}
	return u
}

func TestNullAgainstBruteForce(t *testing.T) {
	one := bruteForce(t)
	for u, c := range one {
		if got := nullOf(perArm, 1).pmf[u]; got != float64(c)/orders {
			t.Errorf("P(U=%d) over one round is %v, want %d/70", u, got, c)
		}
	}
	counts := map[int]int{}
	var us []int
	for i := range orders {
		us = append(us, beats(orderAt(i, perArm)))
	}
	for _, a := range us {
		for _, b := range us {
			for _, c := range us {
				counts[a+b+c]++
			}
		}
	}
	n, tail := nullOf(perArm, 3), 0
	for u := 48; u >= 0; u-- {
		tail += counts[u]
		want := float64(tail) / (orders * orders * orders)
		if math.Abs(n.atLeast(u)-want) > 1e-14 {
			t.Errorf("P(U>=%d) over three rounds is %v, want %v", u, n.atLeast(u), want)
		}
		if got := n.atMost(48 - u); math.Abs(got-want) > 1e-14 {
			t.Errorf("P(U<=%d) over three rounds is %v, want %v", 48-u, got, want)
		}
	}
}

func TestNullBounds(t *testing.T) {
	for rounds := range 31 {
		n := nullOf(perArm, rounds)
		sum := 0.0
		for _, p := range n.pmf {
			sum += p
		}
		if len(n.pmf) != pairsPerRound*rounds+1 || math.Abs(sum-1) > 1e-12 {
			t.Errorf("%d rounds: %d points that add up to %v", rounds, len(n.pmf), sum)
		}
		if n.atLeast(-1) != n.atLeast(0) || n.atLeast(len(n.pmf)) != 0 || n.atMost(-1) != 0 {
			t.Errorf("%d rounds: tails outside the range are wrong", rounds)
		}
		want := math.Pow(orders, -float64(rounds))
		if got := n.atLeast(len(n.pmf) - 1); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%d rounds: smallest p value %v, want 70^-%d = %v", rounds, got, rounds, want)
		}
	}
}

func TestCriticalIsTheSmallest(t *testing.T) {
	for _, p := range []float64{0.5, 0.025, 1e-3, 1e-5, 1e-9} {
		for rounds := 1; rounds <= 30; rounds++ {
			n := nullOf(perArm, rounds)
			u, ok := n.critical(p)
			if !ok {
				if n.atLeast(len(n.pmf)-1) <= p {
					t.Errorf("%d rounds at %v: a critical value exists", rounds, p)
				}
				continue
			}
			if n.atLeast(u) > p || n.atLeast(u-1) <= p {
				t.Errorf("%d rounds at %v: %d is not the smallest critical value", rounds, p, u)
			}
		}
	}
}
