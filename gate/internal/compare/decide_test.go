package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

// normalRounds draws rounds of lognormal processes around 100 µs, the head
// slower by effect.
func normalRounds(rng *rand.Rand, rounds int, sigma, effect float64) []Round {
	list := make([]Round, rounds)
	for i := range list {
		for range perArm {
			list[i].Base = append(list[i].Base, normalProcess(rng, sigma, 0))
			list[i].Head = append(list[i].Head, normalProcess(rng, sigma, effect))
		}
	}
	return list
}

func normalProcess(rng *rand.Rand, sigma, effect float64) Process {
	typical := 1e5 * math.Exp(sigma*rng.NormFloat64()) * (1 + effect)
	return Process{Typical: typical, Mean: typical * (1 + sigma/2*math.Abs(rng.NormFloat64()))}
}

func standard(t *testing.T) Limits {
	t.Helper()
	l, err := Profile("standard")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fixed(t *testing.T, rounds int) Plan {
	t.Helper()
	p, err := fixedPlan(rounds)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decideOne(t *testing.T, e Series, plan Plan) Outcome {
	t.Helper()
	outcomes, err := Decide([]Series{e}, plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 1 {
		t.Fatalf("got %d outcomes, want 1", len(outcomes))
	}
	return outcomes[0]
}

func TestDecideThreeRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	for _, c := range []struct {
		name    string
		effect  float64
		verdict Decision
		reason  Reason
	}{
		{"unchanged", 0, Pass, BelowDetect},
		{"slower", 0.02, Regressed, AboveTolerance},
		{"much slower", 9, Regressed, AboveTolerance},
		{"faster", -0.05, Improved, ProvenFaster},
		{"collapsed", -0.95, Inconclusive, SuspectCollapse},
	} {
		e := Series{Limits: standard(t), Rounds: normalRounds(rng, 3, 0.002, c.effect)}
		o := decideOne(t, e, fixed(t, 3))
		if o.Decision != c.verdict || o.Reason != c.reason {
			t.Errorf("%s: %s, %s (%s), want %s, %s", c.name, o.Decision, o.Reason, o.Invalid, c.verdict, c.reason)
		}
		for _, m := range o.Summaries {
			if !(m.Low <= m.Estimate && m.Estimate <= m.High) || math.Abs(m.Estimate-c.effect) > 0.004*(1+c.effect) {
				t.Errorf("%s: %s is %v (%v to %v), want about %v", c.name, m.Summary, m.Estimate, m.Low, m.High, c.effect)
			}
			if pass := c.verdict != Regressed; pass != (m.Excluded != nil) || pass && !(*m.Excluded >= m.Low && *m.Excluded < 0.02) {
				t.Errorf("%s: %s excludes %v, estimated %v", c.name, m.Summary, m.Excluded, m.Estimate)
			}
		}
	}
}
