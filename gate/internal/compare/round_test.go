package compare

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// The size of a round in these tests, and its orders.
const (
	roundSize     = 2 * perArm
	orders        = 70
	pairsPerRound = perArm * perArm
)

// balanced holds for an order with four processes of each arm.
func balanced(o Order) bool {
	count := map[Arm]int{}
	for _, a := range o {
		count[a]++
	}
	return count[Base] == perArm && count[Head] == perArm
}

// dealt sorts eight processes, given in time order, into their arms.
func dealt(order Order, processes []Process) Round {
	var b Round
	for slot, l := range processes {
		if order[slot] == Base {
			b.Base = append(b.Base, l)
		} else {
			b.Head = append(b.Head, l)
		}
	}
	return b
}

func TestOrders(t *testing.T) {
	simulates(t)
	seen := map[string]bool{}
	for i := range orders {
		o := orderAt(i, perArm)
		if !balanced(o) {
			t.Errorf("order %d: %v", i, o)
		}
		seen[fmt.Sprint(o)] = true
	}
	if len(seen) != orders {
		t.Errorf("%d different orders, want %d", len(seen), orders)
	}
	const draws = 70_000
	rng, counts := rand.New(rand.NewPCG(66, 0)), map[string]int{}
	for range draws {
		o, err := newOrder(reader{rng}, perArm)
		if err != nil {
			t.Fatal(err)
		}
		counts[fmt.Sprint(o)]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - 1000) * (float64(c) - 1000) / 1000
	}
	if len(counts) != orders || chi > 112 { // the 99.9 % quantile of 69 degrees of freedom
		t.Errorf("%d orders were drawn, chi-squared %.1f", len(counts), chi)
	}
}
