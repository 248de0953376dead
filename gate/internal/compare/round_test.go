package compare

import (
	"fmt"
	"math/rand/v2"
	"strings"
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

// TestOrderAt lists the six orders of two and two: the words 0011, 0101, 0110,
// 1001, 1010 and 1100, the lowest bit being the first in time.
func TestOrderAt(t *testing.T) {
	for i, want := range []string{"[head head base base]", "[head base head base]", "[base head head base]", "[head base base head]", "[base head base head]", "[base base head head]"} {
		if got := fmt.Sprint(orderAt(i, 2)); got != want {
			t.Errorf("order %d is %s, want %s", i, got, want)
		}
	}
	for perArm, want := range []int{1, 2, 6, 20, 70, 252, 924, 3432, 12870} {
		if got := ordersOf(perArm); got != want || len(headWords(perArm)) != want {
			t.Errorf("%d of each arm have %d orders and %d words, want %d", perArm, got, len(headWords(perArm)), want)
		}
	}
}

// TestUniform: 2³² is 61356675·70 + 46, so that the last 46 words would favour
// the first 46 of 70 and are drawn again.
func TestUniform(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  int
	}{
		{"\x00\x00\x00\x00", 0},
		{"\x00\x00\x00\x46", 0},
		{"\x00\x00\x00\x8b", 69},
		{"\xff\xff\xff\xd1", 69},
		{"\xff\xff\xff\xd2\x00\x00\x00\x05", 5},
		{"\xff\xff\xff\xff\xff\xff\xff\xd2\x00\x00\x00\x47", 1},
	} {
		if got, err := uniform(strings.NewReader(c.bytes), 70); err != nil || got != c.want {
			t.Errorf("%x: %d, %v, want %d", c.bytes, got, err, c.want)
		}
	}
	for _, short := range []string{"", "abc", "\xff\xff\xff\xffabc"} {
		if _, err := uniform(strings.NewReader(short), 70); err == nil {
			t.Errorf("%d bytes are enough", len(short))
		}
	}
}
