package compare

import "testing"

// TestAttemptsSpendOnePlan: however many there are, and each can be run.
func TestAttemptsSpendOnePlan(t *testing.T) {
	whole, alpha, beta := SequentialPlan(), 0.0, 0.0
	for k := 1; k <= 100; k++ {
		p := whole.Attempt(k)
		if err := p.valid(); err != nil {
			t.Fatalf("attempt %d: %v", k, err)
		}
		if k <= 30 {
			alpha, beta = alpha+p.Alpha, beta+p.Beta
		}
	}
	if alpha > whole.Alpha || beta > whole.Beta {
		t.Errorf("alpha %v of %v, beta %v of %v", alpha, whole.Alpha, beta, whole.Beta)
	}
	if p := whole.Attempt(0); p.Alpha != whole.Alpha {
		t.Errorf("at a desk alpha is %v", p.Alpha)
	}
}
