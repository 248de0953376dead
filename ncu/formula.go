package ncu

import (
	"fmt"
	"math"
)

// An operation says how a formula joins its counters.
type operation uint8

const (
	sumOf   operation = iota // all added
	maxOf                    // the greatest
	ratioOf                  // the first divided by the second
	lessOf                   // the first ones added, the last ones taken off
)

// A formula computes a catalogue metric from counters of one launch.
type formula struct {
	op       operation
	factor   float64
	counters []string
	off      int // of lessOf: how many of the last are taken off
}

func sum(counters ...string) formula      { return formula{sumOf, 1, counters, 0} }
func greatest(counters ...string) formula { return formula{maxOf, 1, counters, 0} }
func ratio(a, b string) formula           { return formula{ratioOf, 1, []string{a, b}, 0} }

// less takes the last so many counters off the sum of the others.
func less(off int, counters ...string) formula { return formula{lessOf, 1, counters, off} }

func times(factor float64, f formula) formula {
	f.factor *= factor
	return f
}

// eval computes the formula. Without a number for each counter the result is
// Missing, and its reason names the first counter that lacks one.
func (f formula) eval(l *Launch, unit string) (Value, error) {
	out := 0.0
	for i, name := range f.counters {
		v, err := l.Metric(name)
		if err != nil {
			return Value{}, err
		}
		if v.Kind != Number {
			reason := v.Reason
			if v.Kind == Text {
				reason = fmt.Sprintf("ncu printed %q", clip(v.Text, 40))
			}
			return missing(name + ": " + reason), nil
		}
		if !fits(v.Unit, unit) {
			return missing(fmt.Sprintf("%s: its unit is %q, not %q", name, v.Unit, unit)), nil
		}
		out = f.join(out, v.Number, i)
	}
	out *= f.factor
	if math.IsNaN(out) || math.IsInf(out, 0) {
		return missing("the counters give no finite value"), nil
	}
	return Value{Kind: Number, Number: out, Unit: unit}, nil
}

func (f formula) join(acc, n float64, i int) float64 {
	switch {
	case i == 0:
		return n
	case f.op == maxOf:
		return math.Max(acc, n)
	case f.op == ratioOf:
		return acc / n
	case f.op == lessOf && i >= len(f.counters)-f.off:
		return acc - n
	}
	return acc + n
}

// fits says whether a counter's unit can stand behind a metric's. Time must be
// known as such, or a unit that this package has not heard of would pass as ns.
// Other units are not compared: ncu prints byte for some counts, and a .ncu-rep
// holds no units at all.
func fits(printed, unit string) bool {
	return unit != "ns" || printed == "ns"
}
