// Package roof says what the fastest kernel could do: how long a card needs at
// least for the work of one call. No kernel is faster, so a time far below it was
// not measured of that work.
package roof

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Units are the kinds of arithmetic whose peaks the harness measures: floating point
// by the width of what is multiplied, tf32 and bf16 by their names, and 8-bit integers.
var Units = []string{"f64", "f32", "tf32", "f16", "bf16", "f8", "i8"}

// A Work is the least that one call of an op does on one case. What is 0 is not
// stated.
type Work struct {
	Bytes int64  // that memory has to give and to take
	Flops int64  // operations, of which a multiplication with an addition is two
	Unit  string // the arithmetic of the operations, one of Units
}

// A Bound is the least time of one call, and for what it is needed.
type Bound struct {
	NS  float64
	For string // "4.3 GFLOP of f16"
}

// share is the part of the bound below which a time is impossible. The rest is for
// what the bound does not know: a clock that was lower while the peaks were measured,
// plain multiprocessors that work beside the tensor cores, and a few lines of the
// inputs that survive in the L2.
const share = 0.8

// Of is the least time of one call in a state of the caches, by what the record of
// a time says of its card. Calls are those of one batch. The error says what is
// not known; the bound is then that of the rest, and 0 where nothing is known.
func Of(w Work, by *evidence.Record, state evidence.CacheState, calls int) (Bound, error) {
	c := by.Capacity
	if c == nil {
		return Bound{}, errors.New("the record does not say how fast the card was seen to be")
	}
	var least Bound
	var unknown error
	if w.Flops > 0 {
		rate, known := c.FlopsPerNS[w.Unit]
		if known {
			least = Bound{float64(w.Flops) / rate, amount(float64(w.Flops), "FLOP of "+w.Unit)}
		} else {
			unknown = noPeak(c, w.Unit)
		}
	}
	if w.Bytes > 0 {
		least = longer(least, memory(w, c, state, calls))
	}
	if least.NS == 0 && unknown == nil {
		unknown = errors.New("the least work that is stated says nothing of this time: the L2 can hold all that a batch moves")
	}
	return least, unknown
}

// noPeak says what the harness said when it measured: an op may have come to state
// this arithmetic since then.
func noPeak(c *evidence.Capacity, unit string) error {
	if why := c.Absent[unit]; why != "" {
		return fmt.Errorf("no peak of %s was measured; the harness said then: %s", unit, why)
	}
	return fmt.Errorf("no peak of %s was measured", unit)
}

// memory is how long the bytes take: from the L2 where they are warm, and where they
// are not from memory, less what the L2 can keep of a batch.
func memory(w Work, c *evidence.Capacity, state evidence.CacheState, calls int) Bound {
	if state == evidence.Warm {
		return Bound{float64(w.Bytes) / c.WarmBytesPerNS, amount(float64(w.Bytes), "B of the L2")}
	}
	moved := float64(w.Bytes) - float64(c.L2Bytes)/float64(max(calls, 1))
	if moved <= 0 {
		return Bound{}
	}
	return Bound{moved / c.ColdBytesPerNS, amount(moved, "B of memory")}
}

func longer(a, b Bound) Bound {
	if b.NS > a.NS {
		return b
	}
	return a
}

// Impossible reports whether a time is below what the card can do.
func (b Bound) Impossible(ns float64) bool { return ns < share*b.NS }

// Percent is how close a time comes to the bound.
func (b Bound) Percent(ns float64) evidence.Value {
	if !(ns > 0) {
		return evidence.Absent("a time of 0 was not measured", "%")
	}
	return evidence.Of(100*b.NS/ns, "%").In(b.For)
}

// amount writes a large number with a prefix: 4294967296 FLOP is "4.3 GFLOP".
func amount(x float64, what string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	at := 0
	for ; x >= 999.5 && at < len(prefixes)-1; at++ {
		x /= 1000
	}
	digits := max(0, 1-int(math.Log10(max(x, 1))))
	return strconv.FormatFloat(x, 'f', digits, 64) + " " + prefixes[at] + what
}
