package compare

import (
	"math"
	"testing"

	"github.com/montanaflynn/stats"
)

// TestPairsFor: where the noise is the gap, 1 % and a power of 90 % take
// 2·(2.3263 + 1.2816)²·π/3 = 27.26 pairs, and half the gap four times as many.
func TestPairsFor(t *testing.T) {
	for _, c := range []struct {
		sigma, gap, level float64
		perArm, want      int
	}{
		{0.01, 0.01, 0.01, 4, 28},
		{0.01, 0.01, 0.01, 5, 30},
		{0.01, 0.01, 0.01, 7, 28},
		{0.02, 0.01, 0.01, 4, 112}, // 109.05
		{0.01, 0.02, 0.01, 4, 8},   // 6.8
		{0, 0.01, 0.01, 4, 0},
		{0.01, 0, 0.01, 4, maxNeed},
		{0.01, -0.01, 0.01, 4, maxNeed},
		{0, 0, 0.01, 4, maxNeed},
		{0.01, 0.01, 0, 4, maxNeed},
		{0, 0.01, 0, 4, maxNeed},
		{0.01, 0.01, -1, 4, maxNeed},
		{1, 1e-4, 0.01, 4, maxNeed},
		{math.NaN(), 0.01, 0.01, 4, maxNeed},
		{0.01, math.NaN(), 0.01, 4, maxNeed},
	} {
		if got := pairsFor(c.sigma, c.gap, c.level, c.perArm); got != c.want {
			t.Errorf("%+v: %d pairs", c, got)
		}
	}
	for p, want := range map[float64]float64{0.5: 0, 0.025: 1.959964, 0.01: 2.326348, 0.9: -1.281552} {
		if got := normalQuantile(p); math.Abs(got-want) > 1e-6 {
			t.Errorf("the quantile of %v is %v, want %v", p, got, want)
		}
	}
}

// TestFewestPairsAtTheEdge: the fixed plan's own look where it can reject, else
// the rounds whose smallest p value, 70⁻³ for three, is within four fifths.
func TestFewestPairsAtTheEdge(t *testing.T) {
	for tests, want := range map[int]int{0: 12, 1: 12, 2744: 12, 2745: 16} {
		if got := fewestPairs(fixed(t, 3), tests); got != want {
			t.Errorf("%d tests: %d pairs, want %d", tests, got, want)
		}
	}
	for tests, alpha := range map[int]float64{0: 0.01, 1: 0.01, 5: 0.002} {
		if got := SequentialPlan().redLevel(tests); math.Abs(got-0.8*alpha) > 1e-15 {
			t.Errorf("%d tests: the rank test has %v, want %v", tests, got, 0.8*alpha)
		}
		plan := SequentialPlan()
		if got, want := plan.lastLevel(tests), plan.red().nominal(plan.redLevel(tests))/math.Sqrt(30); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d tests: the last look rejects %v, want %v", tests, got, want)
		}
	}
}

// TestNeedPairs: the cheaper of proving an effect above the tolerance and proving
// it below detect, of the metric that needs more, and none for what is decided.
func TestNeedPairs(t *testing.T) {
	plan, limits := SequentialPlan(), standard(t)
	plan.Looks = plan.Looks[:10]
	z := normalQuantile(0.1)
	cheaper := map[bool]int{}
	for _, effect := range []float64{-0.005, 0.002, 0.008, 0.012, 0.02, 0.03} {
		e := Series{Limits: limits, Summaries: []Summary{Typical}, Rounds: spaced(2, 1500, effect)}
		sigma, err := stats.StandardDeviationSample(residuals(e.Rounds, Typical))
		if err != nil {
			t.Fatal(err)
		}
		estimate, _, _ := hodgesLehmann(strataOf(e.Rounds, Typical), 0.95)
		pairs := func(level, gap float64) float64 {
			if gap <= 0 {
				return math.Inf(1)
			}
			return 4 * math.Ceil(2*math.Pi/3*math.Pow((normalQuantile(level)+z)*sigma/gap, 2)/4)
		}
		above := pairs(plan.red().nominal(0.008/3)/math.Sqrt(10), estimate-math.Log(1.005))
		below := max(8, pairs(plan.pass(limits).nominal(0.01)/math.Sqrt(9), math.Log(1.02)-estimate))
		want := int(max(min(above, below), 8))
		cheaper[above < below] = want
		if got := newTrial(e, plan).tests[0].needPairs(e, 3, plan); got != want {
			t.Errorf("an effect of %v: %d pairs, want %d (above %v, below %v)", effect, got, want, above, below)
		}
	}
	if len(cheaper) != 2 {
		t.Errorf("only one side is ever cheaper: %v", cheaper)
	}
	e := Series{Limits: limits, Rounds: spaced(2, 3000, 0.01)}
	for i := range e.Rounds {
		for j := range e.Rounds[i].Head {
			e.Rounds[i].Base[j].Mean = 1e5 * math.Pow(e.Rounds[i].Base[j].Mean/1e5, 2) // twice the noise
			e.Rounds[i].Head[j].Mean = 1e5 * math.Pow(e.Rounds[i].Head[j].Mean/1e5, 2)
		}
	}
	one := newTrial(e, plan)
	typical, mean := one.tests[0].needPairs(e, 2, plan), one.tests[1].needPairs(e, 2, plan)
	if typical >= mean {
		t.Fatalf("typical needs %d pairs, the mean %d", typical, mean)
	}
	of := func(reason Reason, whole, first, second Decision) Outcome {
		return Outcome{Reason: reason, Decision: whole, Summaries: []SummaryOutcome{{Decision: first}, {Decision: second}}}
	}
	for name, c := range map[string]struct {
		o    Outcome
		want int
	}{
		"both are open":   {of(NotDecided, Inconclusive, Inconclusive, Inconclusive), mean},
		"the mean passed": {of(NotDecided, Inconclusive, Inconclusive, Pass), typical},
		"too few":         {of(TooFewPairs, Inconclusive, Inconclusive, Pass), typical},
		"decided":         {of(BelowDetect, Pass, Inconclusive, Inconclusive), 0},
		"collapsed":       {of(SuspectCollapse, Inconclusive, Inconclusive, Inconclusive), -1},
		"constant":        {of(ZeroVariance, Inconclusive, Inconclusive, Inconclusive), -1},
	} {
		if got := one.needPairs(c.o, 2, plan); got != c.want {
			t.Errorf("%s: %d pairs, want %d", name, got, c.want)
		}
	}
	if got := newTrial(Series{Limits: limits}, plan).needPairs(Outcome{}, 60, plan); got != 12 {
		t.Errorf("nothing measured among 60 tests: %d pairs, want 12", got)
	}
}
