package compare

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// discardNext draws a round and gives it up; false when there is none to draw.
func discardNext(t *testing.T, d *Driver, random *rand.ChaCha8) bool {
	t.Helper()
	step, more, err := d.NextRound(random)
	if errors.Is(err, ErrRoundFailed) {
		return false
	}
	if err != nil || !more {
		t.Fatalf("%v, more %v", err, more)
	}
	if err := d.Discard(step, Cost{}); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestDropGivesTheOthersTheirAttempts: kernels that fail one after another do
// not use up the attempts of those that are well, and a device that holds
// nothing still is given up however often a kernel is dropped again.
func TestDropGivesTheOthersTheirAttempts(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	d := newTestDriver(t, SequentialPlan(), Budget{}, 5)
	const well = 4
	for bad := range well {
		if !discardNext(t, d, random) {
			t.Fatalf("given up at %d, although each kernel failed once", bad)
		}
		d.Drop(bad)
	}
	step, more, err := d.NextRound(random)
	if err != nil || !more || len(step.Experiments) != 1 || step.Experiments[0] != well || step.Attempt != 1 {
		t.Fatalf("%+v, %v, %v", step, more, err)
	}
	if err := d.Discard(step, Cost{}); err != nil {
		t.Fatal(err)
	}
	attempts := 1
	for discardNext(t, d, random) {
		if attempts++; attempts > maxAttempts {
			t.Fatal("a device that never holds still is not given up")
		}
		d.Drop(0)
	}
	if attempts != maxAttempts {
		t.Errorf("given up after %d attempts, want %d", attempts, maxAttempts)
	}
}
