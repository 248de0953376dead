package compare

import (
	"encoding/binary"
	"fmt"
	"io"
)

// perArm is the number of processes of each arm in a round, and roundSize that
// of both. Four of eight is the smallest round whose 70 orders let 12 pairs
// reject in a pull request of 30 kernels.
const (
	perArm    = 4
	roundSize = 2 * perArm
	orders    = 70 // 8 choose 4
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

// An Order says which arm each of the eight processes of a round runs, in time.
type Order [roundSize]Arm

// newOrder draws one of the 70 orders, each with the same probability. The
// exactness of the test rests on this draw: pass crypto/rand.Reader, and log
// the order before the first process. The error is the reader's.
func newOrder(random io.Reader) (Order, error) {
	i, err := uniform(random, orders)
	if err != nil {
		return Order{}, fmt.Errorf("draw the order of a round: %w", err)
	}
	return orderAt(i), nil
}

// orderAt returns order number i of 70: the eight-bit words with four bits set,
// in ascending order, a set bit being a head.
func orderAt(i int) Order {
	for word := 0; word < 1<<roundSize; word++ {
		o, heads := Order{}, 0
		for slot := range o {
			o[slot] = Base
			if word>>slot&1 == 1 {
				o[slot] = Head
				heads++
			}
		}
		if heads != perArm {
			continue
		}
		if i == 0 {
			return o
		}
		i--
	}
	return Order{}
}

// A Round holds the processes of one kernel in one round, by arm.
type Round struct {
	Base [perArm]Process `json:"base"`
	Head [perArm]Process `json:"head"`
}

// valid reports the first process of a round in which a metric cannot be used.
func (b Round) valid(metrics []Summary) error {
	for i := range perArm {
		if err := b.Base[i].validFor(metrics); err != nil {
			return fmt.Errorf("base process %d: %w", i, err)
		}
		if err := b.Head[i].validFor(metrics); err != nil {
			return fmt.Errorf("head process %d: %w", i, err)
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
