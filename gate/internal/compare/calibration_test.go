package compare

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// twoLevels makes rounds in which half of the processes are apart by ±d around
// 100 µs, each with the given batches relative to its level.
func twoLevels(rounds int, d float64, batches ...float64) []AARound {
	list := make([]AARound, rounds)
	for i := range list {
		for slot := range list[i] {
			level := 1e5 * math.Exp(d*[]float64{1, -1, -1, 1}[slot%4])
			for _, b := range batches {
				list[i][slot] = append(list[i][slot], level*math.Exp(b))
			}
		}
	}
	return list
}

// TestSpreadByHand: eighty processes at ±d with four batches of which two are w
// above. Around their round the levels spread d·√(8/7). The squares within are
// w²/4 a batch over 240 degrees of freedom, so w²/3, and those between 320·d² over
// 79. Neighbours correlate by (¼ − ¼ + ¼)w²/w² = ¼, so four batches are worth 4·¾/1¼.
func TestSpreadByHand(t *testing.T) {
	const d, w = 0.01, 0.004
	plan, limits := SequentialPlan(), standard(t)
	rounds := twoLevels(10, d, 0, 0, w, w)
	c, err := SpreadOf(rounds, limits, plan, 12, 9)
	if err != nil {
		t.Fatal(err)
	}
	within := w * w / 3
	between := (320*d*d/79 - within) / 4
	sigma := d * math.Sqrt(8.0/7)
	for name, pair := range map[string][2]float64{
		"typical":         {c.SigmaTypical, sigma},
		"mean":            {c.SigmaMean, sigma},
		"batch":           {c.SigmaBatch, math.Sqrt(within)},
		"process":         {c.SigmaProcess, math.Sqrt(between)},
		"share":           {c.BetweenShare, between / (between + within)},
		"autocorrelation": {c.Autocorrelation, 0.25},
		"effective":       {c.EffectiveBatches, 2.4},
	} {
		if math.Abs(pair[0]/pair[1]-1) > 1e-6 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	want := max(pairsFor(sigma, math.Log(1.02)-math.Log(1.005), plan.lastLevel(9), 4), 8)
	if c.Processes != 80 || c.Batches != 4 || c.NeedPairs != want || want <= 12 {
		t.Errorf("%d processes of %d batches, %d pairs, want 80, 4 and %d", c.Processes, c.Batches, c.NeedPairs, want)
	}
	if c.Modes == nil || math.Abs(c.Modes.Split-1e5) > 1 || c.Modes.BaseSlow != 0.5 || c.Modes.HeadSlow != 0.5 {
		t.Errorf("modes %+v, want a split at 100 µs with half of either arm above", c.Modes)
	}
	up := twoLevels(10, d, 0, w, 0, w) // correlated by −¾
	up[0][0] = up[0][0][:3]            // by 0
	for slot := range up[1] {
		up[1][slot] = []float64{1e5, 1e5, 1e5, 1e5} // not at all
	}
	c, err = SpreadOf(up, limits, plan, 12, 9)
	if err != nil || c.Batches != 3 || c.EffectiveBatches != 3 || !(c.Autocorrelation < -0.7) {
		t.Errorf("%+v, %v, want 3 batches that are worth 3", c, err)
	}
	var constant []AARound
	for range 10 {
		var b AARound
		for slot := range b {
			b[slot] = []float64{1, 1}
		}
		constant = append(constant, b)
	}
	one, err := SpreadOf(constant, limits, plan, 12, 9)
	if err != nil || one.BetweenShare != 0 || one.Gateable || one.MDE90 != nil || !strings.HasPrefix(one.Detail, "all processes gave the same time") {
		t.Errorf("constant: %+v, %v", one, err)
	}
}

// TestDetectItselfIsGateable: levels so far apart that two rounds are red at
// detect and at nothing less. The smallest effect that is found is then detect.
func TestDetectItselfIsGateable(t *testing.T) {
	limits := Limits{Tolerance: 0.005, Detect: 0.02}
	d := (limits.detected() - limits.tolerated()) * (1 - 1e-4) / 2 / math.Sqrt(8.0/7)
	c, err := SpreadOf(twoLevels(10, d, 0), limits, SequentialPlan(), 8, 1)
	if err != nil || !c.Gateable || c.MDE90 == nil || math.Abs(*c.MDE90-0.02) > 1e-12 || c.Detail != "finds +2.00 % with 90 % probability within 8 pairs" {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = SpreadOf(twoLevels(10, d*1.05, 0), limits, SequentialPlan(), 8, 1)
	if err != nil || c.Gateable || c.MDE90 == nil || *c.MDE90 <= 0.02 || !strings.HasPrefix(c.Detail, "not gateable at +2.00 %: finds +2.0") {
		t.Errorf("a little wider: %+v, %v", c, err)
	}
}

// TestSpreadAtItsBounds: ten rounds and 256, one test.
func TestSpreadAtItsBounds(t *testing.T) {
	for _, c := range []struct {
		rounds, tests int
		want          string
	}{
		{10, 1, ""},
		{256, 1, ""},
		{9, 1, "a calibration needs 10 to 256 rounds, got 9"},
		{257, 1, "a calibration needs 10 to 256 rounds, got 257"},
		{10, 0, "a calibration needs the number of tests of a pull request, got 0"},
	} {
		_, err := SpreadOf(twoLevels(c.rounds, 0.001, 0), standard(t), SequentialPlan(), 12, c.tests)
		if (c.want == "") != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("%d rounds, %d tests: %v, want %q", c.rounds, c.tests, err, c.want)
		}
	}
	for want, f := range map[string]func() (Spread, error){
		"limits need":   func() (Spread, error) { return SpreadOf(twoLevels(10, 0.001, 0), Limits{}, SequentialPlan(), 12, 1) },
		"a round needs": func() (Spread, error) { return SpreadOf(twoLevels(10, 0.001, 0), standard(t), Plan{}, 12, 1) },
	} {
		if _, err := f(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestFindableIsTheSmallest: in steps of 0.1 %, found as a calibration finds it,
// and 0.1 % less is not; 100 % is the last that is tried.
func TestFindableIsTheSmallest(t *testing.T) {
	plan := SequentialPlan()
	quarter := func(effect float64) (Limits, error) { return NewLimits(effect/4, effect, 0) }
	rounds := twoLevels(10, 0.004, 0, 0.001)
	got, ok, err := Findable(rounds, plan, 12, 2, quarter)
	if err != nil || !ok || !(got > 0.005 && got < 0.03) || math.Abs(got*1000-math.Round(got*1000)) > 1e-9 {
		t.Fatalf("%v, %v, %v", got, ok, err)
	}
	for effect, want := range map[float64]bool{got: true, got - 0.001: false} {
		limits, err := quarter(effect)
		if err != nil {
			t.Fatal(err)
		}
		processes, err := summarizeAA(rounds)
		if err != nil {
			t.Fatal(err)
		}
		found := true
		for _, m := range []Summary{Typical, Mean} {
			r := replay{pool: centred(processes, m), limits: limits, plan: plan, pairs: 12}
			found = r.prepare(2) && r.finds(limits.detected()) && found
		}
		if found != want {
			t.Errorf("%v is found: %v, want %v", effect, found, want)
		}
	}
	if _, ok, err := Findable(rounds, plan, 4, 2, quarter); ok || err != nil {
		t.Errorf("one round finds something: %v", err)
	}
	last := func(effect float64) (Limits, error) {
		if effect < 0.9995 {
			return Limits{Tolerance: 1e-7, Detect: 2e-7}, nil
		}
		return quarter(effect)
	}
	if got, ok, err := Findable(rounds, plan, 12, 2, last); err != nil || !ok || got != 1 {
		t.Errorf("what is found at 100 %% alone: %v, %v, %v", got, ok, err)
	}
	refused := errors.New("refused")
	if _, ok, err := Findable(rounds, plan, 12, 2, func(float64) (Limits, error) { return Limits{}, refused }); ok || !errors.Is(err, refused) {
		t.Errorf("limits that are refused: %v, %v", ok, err)
	}
	rounds[3][3][0] = 0
	if _, ok, err := Findable(rounds, plan, 12, 2, quarter); ok || !errors.Is(err, errInvalidProcess) {
		t.Errorf("a time of 0: %v, %v", ok, err)
	}
}
