package compare

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
)

// decodeRounds reads processes from bytes: two floating-point numbers each.
func decodeRounds(data []byte) []Round {
	const size = 8 * 2 * roundSize
	var rounds []Round
	for len(data) >= size && len(rounds) < 5 {
		next := func() float64 {
			x := math.Float64frombits(binary.LittleEndian.Uint64(data))
			data = data[8:]
			return x
		}
		var b Round
		for range perArm {
			b.Base = append(b.Base, Process{Typical: next(), Mean: next()})
			b.Head = append(b.Head, Process{Typical: next(), Mean: next()})
		}
		rounds = append(rounds, b)
	}
	return rounds
}

func encodeRounds(rounds []Round) []byte {
	var data []byte
	for _, b := range rounds {
		for i := range perArm {
			for _, x := range []float64{b.Base[i].Typical, b.Base[i].Mean, b.Head[i].Typical, b.Head[i].Mean} {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
			}
		}
	}
	return data
}

// FuzzDecide holds outcomes to what no input may break: they can be written,
// an unusable time or fewer than eight pairs never pass, the estimate lies in
// its interval, p values are probabilities before their weights, and an arm
// against itself is never red.
func FuzzDecide(f *testing.F) {
	s := readSamples(f)
	for kind := range s {
		f.Add(encodeRounds(s.rounds(f, kind, roundPlus2)), 0.005, 0.02)
		f.Add(encodeRounds(s.rounds(f, kind, roundAgain)[:2]), 0.0025, 0.01)
	}
	nothing := Round{Base: make([]Process, perArm), Head: make([]Process, perArm)}
	f.Add(encodeRounds([]Round{nothing, nothing, nothing}), 0.005, 0.02)
	f.Fuzz(func(t *testing.T, data []byte, tolerance, detect float64) {
		limits, err := NewLimits(tolerance, detect, 0)
		if err != nil {
			return
		}
		e := Series{Limits: limits, Rounds: decodeRounds(data)}
		o := decideOne(t, e, SequentialPlan())
		if _, err := json.Marshal(o); err != nil {
			t.Fatalf("%+v cannot be written: %v", o, err)
		}
		if len(e.Rounds) < 2 && o.Decision != Inconclusive {
			t.Fatalf("%d rounds are %s: %s", len(e.Rounds), o.Decision, o.Reason)
		}
		for _, b := range e.Rounds {
			if b.valid([]Summary{Typical, Mean}) != nil && o.Decision != Inconclusive {
				t.Fatalf("unusable times are %s: %s", o.Decision, o.Reason)
			}
		}
		for _, m := range o.Summaries {
			if !(m.Low <= m.Estimate && m.Estimate <= m.High) || !(m.PRegressed > 0 && m.PRegressed <= 1) || !(m.PPass > 0 && m.PPass <= 1) {
				t.Fatalf("%+v", m)
			}
		}
		for i, b := range e.Rounds {
			e.Rounds[i].Head = b.Base
		}
		if same := decideOne(t, e, SequentialPlan()); same.Decision == Regressed {
			t.Fatalf("an arm against itself: %s", same.Reason)
		}
	})
}
