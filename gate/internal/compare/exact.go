package compare

import (
	"math"
)

// A Value is a number that may be absent. The zero value is absent, not 0.
type Value struct {
	Number float64
	Known  bool
}

// Known returns a value that is there.
func Known(x float64) Value { return Value{Number: x, Known: true} }

// A ChangeState says which of the two sides there are and how they compare.
type ChangeState uint8

// The states of a change. Undefined is the zero value of a Change that nobody
// computed; it is no evidence.
const (
	Undefined  ChangeState = iota
	Missing                // the head has no value: never a pass, whatever the base has
	NoBaseline             // the head has a value, the base has none
	NotFinite              // a value is NaN or infinite
	Unchanged
	Lower
	Higher
)

var changeNames = map[ChangeState]string{
	Undefined: "undefined", Missing: "missing", NoBaseline: "no-baseline", NotFinite: "not-finite",
	Unchanged: "unchanged", Lower: "lower", Higher: "higher",
}

// String returns the state as a word.
func (s ChangeState) String() string { return nameOf(changeNames, s) }

// MarshalText writes the word; an unnamed state is an error.
func (s ChangeState) MarshalText() ([]byte, error) { return marshalName(changeNames, s) }

// UnmarshalText reads the word.
func (s *ChangeState) UnmarshalText(text []byte) error { return unmarshalName(changeNames, s, text) }

// A Change is the comparison of one exact quantity. Differences are defined
// in the states Unchanged, Lower and Higher only, Relative only on a base
// above zero.
type Change struct {
	State    ChangeState `json:"state"`
	Base     float64     `json:"base"`
	Head     float64     `json:"head"`
	Absolute float64     `json:"absolute"`           // head − base, in the metric's unit
	Relative *float64    `json:"relative,omitempty"` // head/base − 1
}

// Exact compares two exact values. Values that are not finite are dropped, so
// that a Change can always be written as JSON.
func Exact(base, head Value) Change {
	switch {
	case !head.Known:
		return Change{State: Missing}
	case !finite(head.Number):
		return Change{State: NotFinite}
	case !base.Known:
		return Change{State: NoBaseline, Head: head.Number}
	}
	c := Change{State: Unchanged, Base: base.Number, Head: head.Number, Absolute: head.Number - base.Number}
	if !finite(c.Absolute) { // so it is when the base is not
		return Change{State: NotFinite}
	}
	switch {
	case c.Head < c.Base:
		c.State = Lower
	case c.Head > c.Base:
		c.State = Higher
	}
	if ratio := head.Number/base.Number - 1; base.Number > 0 && finite(ratio) {
		c.Relative = &ratio
	}
	return c
}

// finite holds for numbers that can be compared.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// A Kind is the way in which a limit on a change is written.
type Kind uint8

// The kinds of limits. Points are percentage points: an absolute difference of
// a metric whose unit is percent.
const (
	Absolute Kind = iota + 1
	Relative
	Points
)

// A Better is the direction in which a metric improves.
type Better uint8

// The directions.
const (
	LowerBetter Better = iota + 1
	HigherBetter
)

// Worsening is how much worse the head is, in the given kind; negative is
// better. False where that is not known, which is never a pass: a side is
// absent or not finite, or the base is zero or negative and the limit is
// relative. An unchanged value is 0 in every kind.
func (c Change) Worsening(kind Kind, better Better) (float64, bool) {
	if better != LowerBetter && better != HigherBetter {
		return 0, false
	}
	worse := 0.0
	switch {
	case c.State != Unchanged && c.State != Lower && c.State != Higher:
		return 0, false
	case kind == Absolute, kind == Points:
		worse = c.Absolute
	case kind == Relative && c.Relative != nil:
		worse = *c.Relative
	case kind == Relative && c.State == Unchanged:
		worse = 0
	default:
		return 0, false
	}
	if better == HigherBetter {
		worse = -worse
	}
	return worse, true
}
