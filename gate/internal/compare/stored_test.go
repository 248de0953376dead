package compare

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// storedLimits suit sessions that differ by about 1 %.
var storedLimits = Limits{Tolerance: 0.005, Detect: 0.06}

// sessions draws stored sessions of ten processes.
func sessions(rng *rand.Rand, n int, between, within float64) []Job {
	list := make([]Job, n)
	for i := range list {
		list[i] = session(rng, between, within, 0)
	}
	return list
}

func session(rng *rand.Rand, between, within, effect float64) Job {
	var s Job
	level := 1e5 * math.Exp(between*rng.NormFloat64()) * (1 + effect)
	for range 10 {
		x := level * math.Exp(within*rng.NormFloat64())
		s.Processes = append(s.Processes, Process{Typical: x, Mean: 1.001 * x})
	}
	return s
}

func storedOne(t *testing.T, k Stored) StoredOutcome {
	t.Helper()
	outcomes, err := DecideStored([]Stored{k}, SequentialPlan())
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 1 {
		t.Fatalf("%d outcomes, want 1", len(outcomes))
	}
	if _, err := json.Marshal(outcomes); err != nil {
		t.Errorf("%+v cannot be written: %v", outcomes, err)
	}
	return outcomes[0]
}

func TestStored(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 0))
	constant := make([]Job, 12)
	for i := range constant {
		constant[i] = Job{Processes: []Process{{Typical: 1e5, Mean: 1e5}, {Typical: 1e5, Mean: 1e5}, {Typical: 1e5, Mean: 1e5}}}
	}
	broken := sessions(rng, 12, 0.005, 0.003)
	broken[4].Processes[2].Mean = math.NaN()
	for _, c := range []struct {
		name     string
		history  []Job
		now      Job
		verdict  Decision
		reason   Reason
		advisory bool
	}{
		{"unchanged", sessions(rng, 20, 0.005, 0.003), session(rng, 0.005, 0.003, 0), Pass, BelowDetect, false},
		{"30 % slower", sessions(rng, 20, 0.005, 0.003), session(rng, 0.005, 0.003, 0.3), Regressed, AboveTolerance, false},
		{"noisy", sessions(rng, 20, 0.05, 0.003), session(rng, 0.05, 0.003, 0), Inconclusive, NotDecided, false},
		{"seven sessions", sessions(rng, 7, 0.005, 0.003), session(rng, 0.005, 0.003, 0), Inconclusive, TooFewPairs, true},
		{"seven sessions, slower", sessions(rng, 7, 0.005, 0.003), session(rng, 0.005, 0.003, 0.3), Inconclusive, TooFewPairs, true},
		{"one session", sessions(rng, 1, 0.005, 0.003), session(rng, 0.005, 0.003, 0), Inconclusive, TooFewPairs, true},
		{"no history", nil, session(rng, 0.005, 0.003, 0), Inconclusive, NotMeasured, false},
		{"no process", sessions(rng, 20, 0.005, 0.003), Job{}, Inconclusive, NotMeasured, false},
		{"two processes", sessions(rng, 20, 0.005, 0.003), Job{Processes: []Process{{Typical: 1e5, Mean: 1e5}, {Typical: 1e5, Mean: 1e5}}}, Inconclusive, InvalidProcess, false},
		{"NaN in the history", broken, session(rng, 0.005, 0.003, 0), Inconclusive, InvalidProcess, false},
		{"constant", constant, constant[0], Inconclusive, ZeroVariance, false},
		{"constant, slower", constant, session(rng, 0, 0.001, 0.5), Inconclusive, ZeroVariance, false},
		{"collapsed", sessions(rng, 20, 0.005, 0.003), session(rng, 0.005, 0.003, -0.95), Inconclusive, SuspectCollapse, false},
	} {
		o := storedOne(t, Stored{Limits: storedLimits, History: c.history, Now: c.now})
		if o.Decision != c.verdict || o.Reason != c.reason || o.Advisory != c.advisory {
			t.Errorf("%s: %s, %s, advisory %v (%s), want %s, %s, %v", c.name, o.Decision, o.Reason, o.Advisory, o.Invalid, c.verdict, c.reason, c.advisory)
		}
	}
}

// An advisory kernel has no p value, so it cannot relax Holm's threshold for
// the others.
func TestAdvisoryHasNoPValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(74, 0))
	o := storedOne(t, Stored{Limits: storedLimits, History: sessions(rng, 7, 0.005, 0.003), Now: session(rng, 0.005, 0.003, 0.5)})
	for _, m := range o.Summaries {
		if m.PRegressed != 1 || m.PPass != 1 {
			t.Errorf("%s has p values %v and %v, want 1", m.Summary, m.PRegressed, m.PPass)
		}
	}
}

func TestStoredComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(72, 0))
	o := storedOne(t, Stored{Limits: storedLimits, History: sessions(rng, 1000, 0.008, 0.003), Now: session(rng, 0.008, 0.003, 0)})
	if m := o.Summaries[0]; math.Abs(m.SigmaSession-0.008) > 0.0006 || math.Abs(m.SigmaProcess-0.003) > 0.0001 {
		t.Errorf("components %v and %v, want 0.008 and 0.003", m.SigmaSession, m.SigmaProcess)
	}
}

// Under normal sessions the prediction bound holds its level: at an effect
// equal to the tolerance at most 1 % of the pull requests are red, at one equal
// to detect at most 1 % of the kernels pass.
func TestStoredLevel(t *testing.T) {
	simulates(t)
	const requests, kernels, seed = 1000, 5, 73
	rng := rand.New(rand.NewPCG(seed, 0))
	limits := storedLimits
	red, green := 0, 0
	for range requests {
		var still, slow []Stored
		for range kernels {
			one := Stored{Limits: limits, History: sessions(rng, 10, 0.008, 0.004)}
			one.Now = session(rng, 0.008, 0.004, limits.Tolerance)
			still = append(still, one)
			one.Now = session(rng, 0.008, 0.004, limits.Detect)
			slow = append(slow, one)
		}
		if countStored(t, still, Regressed) > 0 {
			red++
		}
		green += countStored(t, slow, Pass)
	}
	if red > atMost(0.01, requests) || green > atMost(0.01, requests*kernels) {
		t.Errorf("seed %d: %d of %d pull requests red at the tolerance, %d of %d kernels passed at detect", seed, red, requests, green, requests*kernels)
	}
}

func countStored(t *testing.T, kernels []Stored, v Decision) int {
	t.Helper()
	outcomes, err := DecideStored(kernels, SequentialPlan())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range outcomes {
		if o.Decision == v {
			n++
		}
	}
	return n
}

func TestStoredRefuses(t *testing.T) {
	ok := Stored{Limits: storedLimits}
	reference := ok
	reference.Limits = Limits{Tolerance: -0.5, Detect: -0.5, Reference: true}
	for want, kernels := range map[string][]Stored{"not stored": {reference}} {
		if _, err := DecideStored(kernels, SequentialPlan()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// Sessions of unequal size: a history of hundred processes each and a session of
// a few hold the level, because what few processes vary more is counted.
func TestStoredLevelOfUnequalSessions(t *testing.T) {
	simulates(t)
	const requests, seed = 500, 75
	rng := rand.New(rand.NewPCG(seed, 0))
	sized := func(n int, between, within, effect float64) Job {
		var all Job
		level := between * rng.NormFloat64()
		for range n {
			typical := 1e5 * math.Exp(level+within*rng.NormFloat64()) * (1 + effect)
			all.Processes = append(all.Processes, Process{Typical: typical, Mean: typical})
		}
		return all
	}
	for _, now := range []int{3, 10} {
		for _, between := range []float64{0, 0.002, 0.008} {
			red := 0
			for range requests {
				one := Stored{Limits: storedLimits, Summaries: []Summary{Typical}, Now: sized(now, between, 0.01, storedLimits.Tolerance)}
				for range 10 {
					one.History = append(one.History, sized(96+rng.IntN(25), between, 0.01, 0))
				}
				if countStored(t, []Stored{one}, Regressed) > 0 {
					red++
				}
			}
			t.Logf("%d processes against about 108, σ between sessions %.1f %%: %.2f %% red at the tolerance", now, 100*between, 100*float64(red)/requests)
			if red > atMost(0.01, requests) {
				t.Errorf("%d processes, σ between sessions %v (seed %d): %d of %d are red at the tolerance", now, between, seed, red, requests)
			}
		}
	}
}
