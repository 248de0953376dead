package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// aaRounds times processes of one binary on a machine.
func aaRounds(m *machine, rounds, batches int) []AARound {
	list := make([]AARound, rounds)
	for i := range list {
		for slot := range list[i] {
			list[i][slot] = make([]float64, batches)
			m.process(m.tick(), 0, list[i][slot])
		}
	}
	return list
}

func TestCalibrateFindsTheComponents(t *testing.T) {
	m := newMachine(noise{process: 0.004, batch: 0.002}, rand.New(rand.NewPCG(91, 0)))
	c, err := SpreadOf(aaRounds(m, 200, 8), standard(t), SequentialPlan(), 120, 60)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]float64{
		"process":   {c.SigmaProcess, 0.004},
		"batch":     {c.SigmaBatch, 0.002},
		"share":     {c.BetweenShare, 0.8},
		"mean":      {c.SigmaMean, math.Sqrt(0.004*0.004 + 0.002*0.002/8)},
		"effective": {c.EffectiveBatches / 8, 1},
	} {
		if math.Abs(pair[0]/pair[1]-1) > 0.05 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if c.Processes != 1600 || c.Batches != 8 || !c.Gateable || c.MDE90 == nil || *c.MDE90 > 0.02 || c.NeedPairs != 12 {
		t.Errorf("%+v", c)
	}
}

func TestCalibrateSaysWhatCannotBeGated(t *testing.T) {
	simulates(t)
	noisy := aaRounds(newMachine(noise{process: 0.05, batch: 0.002}, rand.New(rand.NewPCG(92, 0))), 10, 8)
	var constant []AARound
	for range 10 {
		var b AARound
		for slot := range b {
			b[slot] = []float64{100, 100, 100}
		}
		constant = append(constant, b)
	}
	good := aaRounds(newMachine(noises[0], rand.New(rand.NewPCG(93, 0))), 10, 8)
	for _, c := range []struct {
		name   string
		rounds []AARound
		pairs  int
		want   string
	}{
		{"too noisy", noisy, 120, "not gateable at +2.00 %"},
		{"constant", constant, 120, "same time"},
		{"two rounds only", good, 8, "8 pairs cannot be red among 60 tests"},
	} {
		got, err := SpreadOf(c.rounds, standard(t), SequentialPlan(), c.pairs, 60)
		if err != nil || got.Gateable || !strings.Contains(got.Detail, c.want) || got.NeedPairs < 12 {
			t.Errorf("%s: %+v, %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestCalibrateRefuses(t *testing.T) {
	good := aaRounds(newMachine(noises[0], rand.New(rand.NewPCG(94, 0))), 10, 8)
	if _, err := SpreadOf(good[:9], standard(t), SequentialPlan(), 120, 60); err == nil {
		t.Error("nine rounds are accepted")
	}
	if _, err := SpreadOf(good, standard(t), SequentialPlan(), 120, 0); err == nil {
		t.Error("no tests are accepted")
	}
	good[3][5] = nil
	if _, err := SpreadOf(good, standard(t), SequentialPlan(), 120, 60); !errors.Is(err, errInvalidProcess) {
		t.Errorf("a process without batches: %v", err)
	}
}

func TestSampleCalibration(t *testing.T) {
	s := readSamples(t)
	for kind, recorded := range s {
		var rounds []AARound
		for r := 0; r+perArm <= sampleRounds; r += perArm { // eight processes of one binary
			var b AARound
			for j := range perArm {
				b[2*j], b[2*j+1] = recorded[r+j][roundBase], recorded[r+j][roundAgain]
			}
			rounds = append(rounds, b, b) // ten rounds are asked for, five are there
		}
		c, err := SpreadOf(rounds, standard(t), SequentialPlan(), 120, 8)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: typical %.3f %%, mean %.3f %%, process %.3f %%, batch %.3f %%, between %.2f, autocorrelation %.2f, MDE90 %.2f %%, pairs %d",
			kind, 100*c.SigmaTypical, 100*c.SigmaMean, 100*c.SigmaProcess, 100*c.SigmaBatch, c.BetweenShare, c.Autocorrelation, 100**c.MDE90, c.NeedPairs)
		if !c.Gateable || c.SigmaTypical < 0.0005 || c.SigmaTypical > 0.006 {
			t.Errorf("%s: %+v", kind, c)
		}
	}
}

func TestModes(t *testing.T) {
	rng := rand.New(rand.NewPCG(97, 0))
	draw := func(rounds int, shareBase, shareHead, effect float64) []Round {
		list := normalRounds(rng, rounds, 0.002, effect)
		for i := range list {
			for arm, side := range [][]Process{list[i].Base, list[i].Head} {
				for j := range side {
					if rng.Float64() < []float64{shareBase, shareHead}[arm] {
						side[j] = times(1.04)(side[j])
					}
				}
			}
		}
		return list
	}
	const trials = 200
	found, alarms := 0, 0
	for range trials {
		if findModes(draw(8, 0.4, 0.4, 0), Typical) != nil {
			found++
		}
		if findModes(draw(8, 0, 0, 0.03), Typical) != nil { // a shift is not two modes
			alarms++
		}
	}
	if found < trials*9/10 || alarms > trials/20 {
		t.Errorf("two modes are seen in %d of %d bimodal and %d of %d plain experiments", found, trials, alarms, trials)
	}
	m := findModes(draw(20, 0.3, 0.8, 0.01), Typical)
	if m == nil || m.BaseSlow > 0.5 || m.HeadSlow < 0.6 || m.ShareP > 0.01 || m.Fast == nil || math.Abs(*m.Fast-0.01) > 0.003 || m.Slow == nil || math.Abs(*m.Slow-0.01) > 0.003 {
		t.Errorf("a changed mode share: %+v", m)
	}
}

// Fisher's tea tasting: three of four right has a two-sided p value of 34/70.
func TestFisherExact(t *testing.T) {
	for _, c := range []struct {
		a, b, c, d int
		want       float64
	}{{3, 1, 1, 3, 34.0 / 70}, {4, 0, 0, 4, 2.0 / 70}, {2, 2, 2, 2, 1}, {5, 0, 5, 0, 1}} {
		if got := fisherExact(c.a, c.b, c.c, c.d); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c, got, c.want)
		}
	}
}
