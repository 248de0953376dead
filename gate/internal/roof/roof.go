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
// what the bound does not know: plain multiprocessors that work beside the tensor
// cores, and a few lines of the inputs that survive in the L2.
const share = 0.8

// Of is the least time of one call in a state of the caches, by what the record of
// a time says of its card. Calls are those of one batch. The error says what is
// not known; the bound is then that of the rest, and 0 where nothing is known.
func Of(w Work, by *evidence.Record, state evidence.CacheState, calls int) (Bound, error) {
	if by.Capacity == nil || !by.Capacity.Known() {
		return Bound{}, errors.New("the record does not say how fast the card's memory and multiprocessors are")
	}
	var least Bound
	var unknown error
	if w.Flops > 0 {
		perCycle, known := peaks[by.Provenance.Machine.CC][w.Unit]
		if known {
			least = Bound{float64(w.Flops) / perNanosecond(by.Capacity, perCycle), amount(float64(w.Flops), "FLOP of "+w.Unit)}
		} else {
			unknown = fmt.Errorf("no peak of %s is known for compute capability %s", w.Unit, by.Provenance.Machine.CC)
		}
	}
	if state == evidence.Cold && w.Bytes > 0 {
		moved := float64(w.Bytes) - float64(by.Capacity.L2Bytes)/float64(max(calls, 1))
		if ns := moved / bandwidth(by.Capacity); ns > least.NS {
			least = Bound{ns, amount(moved, "B of memory")}
		}
	}
	if least.NS == 0 && unknown == nil {
		unknown = errors.New("the least work that is stated says nothing of this time: what the L2 holds has no known bound")
	}
	return least, unknown
}

// bandwidth is that of the memory in bytes a nanosecond: two transfers a cycle,
// which is how the driver counts the clock of every memory.
func bandwidth(c *evidence.Capacity) float64 {
	return float64(c.BusBits) / 8 * 2 * float64(c.MemoryClockMHz) / 1e3
}

// perNanosecond is what all multiprocessors do at their highest clock.
func perNanosecond(c *evidence.Capacity, perCycle int) float64 {
	return float64(c.SMs) * float64(c.SMClockMHz) * float64(perCycle) / 1e3
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
