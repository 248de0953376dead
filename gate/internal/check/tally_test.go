package check

import (
	"math/rand/v2"
	"testing"
)

// TestTally: whatever the work turns out to be, the number never falls, never
// passes the whole, and reaches it with the last record.
func TestTally(t *testing.T) {
	for range 2000 {
		expected, real := rand.IntN(20), 1+rand.IntN(20)
		tally := tally{of: expected}
		last, whole := 0, 0
		for left := float64(real); left > 1e-9; {
			more := min(left, rand.Float64()*3)
			if rand.IntN(4) == 0 {
				more = min(left, 1./3)
			}
			left -= more
			n, of := tally.add(more)
			if n < last || of < whole || n > of || n < 1 {
				t.Fatalf("%d of %d after %d of %d", n, of, last, whole)
			}
			last, whole = n, of
		}
		if want := min(real+1, max(expected, real)); last != want || whole != max(expected, real, 1) {
			t.Fatalf("ends with %d of %d, expected %d, were %d", last, whole, expected, real)
		}
	}
	tally := tally{of: 3}
	for i, want := range []int{1, 1, 1, 2, 2, 2, 3, 3, 3, 3} {
		n, _ := tally.add(1. / 3)
		if i == 0 {
			continue
		}
		if n < want || n > want+1 {
			t.Errorf("after %d thirds: %d", i+1, n)
		}
	}
}
