package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func processesOf(values ...float64) []Process {
	var list []Process
	for _, v := range values {
		list = append(list, Process{Typical: v, Mean: 2 * v})
	}
	return list
}

func TestDecideAbsolute(t *testing.T) {
	twelve := processesOf(101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112)
	for _, c := range []struct {
		name      string
		processes []Process
		metric    Summary
		limit     float64
		verdict   Decision
		reason    Reason
	}{
		{"below", twelve, Typical, 112, Pass, BelowDetect},
		{"at the interval's end", twelve, Typical, 111, Inconclusive, NotDecided},
		{"at the interval's beginning", twelve, Typical, 102, Inconclusive, NotDecided},
		{"inside, below the median", twelve, Typical, 104, Inconclusive, NotDecided},
		{"inside", twelve, Typical, 106.5, Inconclusive, NotDecided},
		{"above", twelve, Typical, 101.5, Regressed, AboveTolerance},
		{"the other metric", twelve, Mean, 112, Regressed, AboveTolerance},
		{"six processes", twelve[:6], Typical, 1e6, Inconclusive, TooFewPairs},
		{"six processes above", twelve[:6], Typical, 1, Inconclusive, TooFewPairs},
		{"none", nil, Typical, 1e6, Inconclusive, NotMeasured},
		{"NaN", processesOf(1, 2, 3, math.NaN(), 5, 6, 7, 8), Typical, 1e6, Inconclusive, InvalidProcess},
		{"constant", processesOf(5, 5, 5, 5, 5, 5, 5, 5), Typical, 1e6, Inconclusive, ZeroVariance},
		{"constant above", processesOf(5, 5, 5, 5, 5, 5, 5, 5), Typical, 4, Regressed, AboveTolerance},
		{"limit NaN", twelve, Typical, math.NaN(), Inconclusive, NotDecided},
		{"limit 0", twelve, Typical, 0, Inconclusive, NotDecided},
	} {
		o := DecideAbsolute(c.processes, c.metric, c.limit)
		if o.Decision != c.verdict || o.Reason != c.reason {
			t.Errorf("%s: %s, %s (%s), want %s, %s", c.name, o.Decision, o.Reason, o.Invalid, c.verdict, c.reason)
		}
	}
}

// P(Binomial(12, ½) <= 1) = 13/4096 is within 1 %, with 2 it is 79/4096.
func TestArmInterval(t *testing.T) {
	arm, err := SummarizeArm(processesOf(12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), Typical)
	if want := (ArmSummary{Processes: 12, Median: 6.5, Low: 2, High: 11, Bounded: true}); err != nil || arm != want {
		t.Errorf("%+v, %v, want %+v", arm, err, want)
	}
	if _, err := SummarizeArm(nil, Typical); !errors.Is(err, errInvalidProcess) {
		t.Errorf("no processes: %v", err)
	}
	for n, bounded := range map[int]bool{1: false, 6: false, 7: true, 8: true} {
		if _, got := signCut(n, armTail); got != bounded {
			t.Errorf("%d processes: bounded %v, want %v", n, got, bounded)
		}
	}
}

func TestReferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(81, 0))
	for _, c := range []struct {
		name          string
		effect, ratio float64
		verdict       Decision
	}{
		{"well below half", -0.6, 0.5, Pass},
		{"twenty times faster is not a collapse", -0.95, 0.5, Pass},
		{"above half", -0.45, 0.5, Regressed},
		{"at half", -0.5, 0.5, Inconclusive},
		{"may be 20 % slower", 0.1, 1.2, Pass},
	} {
		limits, err := ReferenceLimits(c.ratio)
		if err != nil {
			t.Fatal(err)
		}
		e := Series{Limits: limits, Rounds: normalRounds(rng, 3, 0.003, c.effect)}
		if o := decideOne(t, e, fixed(t, 3)); o.Decision != c.verdict {
			t.Errorf("%s: %s (%v), want %s", c.name, o.Decision, o.Reason, c.verdict)
		}
	}
	// A head in two modes says nothing of a reference of another scale.
	limits, err := ReferenceLimits(0.5)
	if err != nil {
		t.Fatal(err)
	}
	two := Series{Limits: limits, Rounds: normalRounds(rng, 3, 0.001, -0.9)}
	for i := range two.Rounds {
		two.Rounds[i].Head[0].Typical *= 1.1
		two.Rounds[i].Head[2].Typical *= 1.1
	}
	if m := decideOne(t, two, fixed(t, 3)).Summaries[0]; m.Modes != nil || m.MDE90 != nil {
		t.Errorf("against a reference: %+v", m)
	}
	two.Limits = standard(t)
	if m := decideOne(t, two, fixed(t, 3)).Summaries[0]; m.Modes == nil || m.Excluded == nil {
		t.Errorf("the same processes against a base: %+v", m)
	}
}
