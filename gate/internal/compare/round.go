package compare

import (
	"encoding/binary"
	"fmt"
	"io"
)

// An Arm says which build a process runs. The zero value is neither.
type Arm uint8

// The two arms. Where a kernel is measured against a reference, the reference
// takes the place of the base.
const (
	Base Arm = iota + 1
	Head
)

var armNames = map[Arm]string{Base: "base", Head: "head"}

// String returns "base" or "head".
func (a Arm) String() string { return nameOf(armNames, a) }

// An Order says which arm each of the processes of a round runs, in time.
type Order []Arm

// ordersOf is the number of orders of a round: 70 with four processes of an arm.
func ordersOf(perArm int) int {
	n := 1
	for i := 1; i <= perArm; i++ {
		n = n * (perArm + i) / i
	}
	return n
}

// newOrder draws one of the orders, each with the same probability. The
// exactness of the test rests on this draw: pass crypto/rand.Reader, and log
// the order before the first process. The error is the reader's.
func newOrder(random io.Reader, perArm int) (Order, error) {
	i, err := uniform(random, ordersOf(perArm))
	if err != nil {
		return nil, fmt.Errorf("draw the order of a round: %w", err)
	}
	return orderAt(i, perArm), nil
}

// orderAt returns order number i: the words with as many bits set as not, in
// ascending order, a set bit being a head.
func orderAt(i, perArm int) Order {
	word, o := headWords(perArm)[i], make(Order, 2*perArm)
	for slot := range o {
		o[slot] = Base
		if word>>slot&1 == 1 {
			o[slot] = Head
		}
	}
	return o
}

// A Round holds the processes of one kernel in one round, by arm: as many of
// either.
type Round struct {
	Base []Process `json:"base"`
	Head []Process `json:"head"`
}

// valid reports the first process of a round in which a metric cannot be used.
func (b Round) valid(metrics []Summary) error {
	for _, arm := range []struct {
		name      Arm
		processes []Process
	}{{Base, b.Base}, {Head, b.Head}} {
		for i, p := range arm.processes {
			if err := p.validFor(metrics); err != nil {
				return fmt.Errorf("%s process %d: %w", arm.name, i, err)
			}
		}
	}
	return nil
}

// uniform draws an integer in [0, n) without modulo bias.
func uniform(random io.Reader, n int) (int, error) {
	const words = 1 << 32
	limit := uint64(words - words%n)
	for {
		var b [4]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return 0, err
		}
		if v := uint64(binary.BigEndian.Uint32(b[:])); v < limit {
			return int(v % uint64(n)), nil
		}
	}
}
