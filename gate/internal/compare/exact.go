package compare

import (
	"math"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A ChangeState says which of the two sides there are and how they compare.
type ChangeState uint8

// The states of a change. The zero value is a Change that nobody computed; it
// is no evidence.
const (
	undefined  ChangeState = iota
	missing                // the head has no value: never a pass, whatever the base has
	noBaseline             // the head has a value, the base has none
	notFinite              // the difference is infinite
	Unchanged
	changed
)

var changeNames = map[ChangeState]string{
	undefined: "undefined", missing: "missing", noBaseline: "no-baseline", notFinite: "not-finite",
	Unchanged: "unchanged", changed: "changed",
}

// String returns the state as a word.
func (s ChangeState) String() string { return nameOf(changeNames, s) }

// A Change is the comparison of one exact quantity. The difference is defined
// where both sides are known and finite.
type Change struct {
	State    ChangeState
	Base     float64
	Head     float64
	Absolute float64 // head − base, in the metric's unit
}

// Exact compares two exact values. A value that is known is finite.
func Exact(base, head evidence.Value) Change {
	switch {
	case !head.Known():
		return Change{State: missing}
	case !base.Known():
		return Change{State: noBaseline, Head: head.Number}
	}
	c := Change{State: Unchanged, Base: base.Number, Head: head.Number, Absolute: head.Number - base.Number}
	if !finite(c.Absolute) {
		return Change{State: notFinite}
	}
	if c.Head != c.Base {
		c.State = changed
	}
	return c
}

// finite holds for numbers that can be compared.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// A Better is the direction in which a metric improves.
type Better uint8

// The directions.
const (
	LowerBetter Better = iota + 1
	HigherBetter
)

// Worsening is how much worse the head is, in the metric's unit; negative is
// better. False where that is not known, which is never a pass: a side is
// absent or not finite, or the metric has no direction.
func (c Change) Worsening(better Better) (float64, bool) {
	switch {
	case c.State != Unchanged && c.State != changed:
		return 0, false
	case better == LowerBetter:
		return c.Absolute, true
	case better == HigherBetter:
		return -c.Absolute, true
	}
	return 0, false
}
