package compare

import (
	"math/rand/v2"
	"testing"
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
func dealt(order Order, processes [roundSize]Process) Round {
	var b Round
	var bases, heads int
	for slot, l := range processes {
		if order[slot] == Base {
			b.Base[bases], bases = l, bases+1
		} else {
			b.Head[heads], heads = l, heads+1
		}
	}
	return b
}

func TestOrders(t *testing.T) {
	seen := map[Order]bool{}
	for i := range orders {
		o := orderAt(i)
		if !balanced(o) {
			t.Errorf("order %d: %v", i, o)
		}
		seen[o] = true
	}
	if len(seen) != orders {
		t.Errorf("%d different orders, want %d", len(seen), orders)
	}
	const draws = 70_000
	rng, counts := rand.New(rand.NewPCG(66, 0)), map[Order]int{}
	for range draws {
		o, err := newOrder(reader{rng})
		if err != nil {
			t.Fatal(err)
		}
		counts[o]++
	}
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - 1000) * (float64(c) - 1000) / 1000
	}
	if len(counts) != orders || chi > 112 { // the 99.9 % quantile of 69 degrees of freedom
		t.Errorf("%d orders were drawn, chi-squared %.1f", len(counts), chi)
	}
}
