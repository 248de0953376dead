package manifest

import (
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/roof"
)

// A workFile is what an op states as its least work: sums of products of whole
// numbers and dimensions.
type workFile struct {
	Bytes string `yaml:"bytes"`
	Flops string `yaml:"flops"`
	Unit  string `yaml:"unit"`
}

// addWork computes the stated work of every case. Gate judges by it; the harness is
// told its arithmetic alone, of which it measures how fast the card is. No kernel is
// measured in another way for it, so it is in no identity.
func (op *Op) addWork(f workFile, bad func(key, format string, args ...any) error) error {
	switch {
	case f.Bytes == "" && f.Flops == "":
		return bad("work", "work needs bytes, flops or both")
	case f.Flops != "" && !slices.Contains(roof.Units, f.Unit):
		return bad("work.flops", "flops needs a unit, the arithmetic in which they are done: %s", strings.Join(roof.Units, ", "))
	case f.Flops == "" && f.Unit != "":
		return bad("work.unit", "unit is the arithmetic of flops, and flops is missing")
	}
	for i, c := range op.Cases {
		bytes, err := c.evaluate(f.Bytes, op.Dims)
		if err != nil {
			return bad("work.bytes", "work.bytes, case %s: %v", c.Name, err)
		}
		flops, err := c.evaluate(f.Flops, op.Dims)
		if err != nil {
			return bad("work.flops", "work.flops, case %s: %v", c.Name, err)
		}
		op.Cases[i].Work = roof.Work{Bytes: bytes, Flops: flops, Unit: f.Unit}
	}
	return nil
}

// WorkUnit is the arithmetic of the stated work, "" where none is stated.
func (op *Op) WorkUnit() string {
	for _, c := range op.Cases {
		if c.Work.Flops > 0 {
			return c.Work.Unit
		}
	}
	return ""
}

// evaluate is the value of an expression on a case, 0 for none.
func (c Case) evaluate(text string, dims []string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return roof.Evaluate(text, dims, func(dim string) int64 {
		return c.Dims[slices.Index(dims, dim)].Size // in the op's order
	})
}
