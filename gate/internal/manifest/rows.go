package manifest

import (
	"fmt"
	"slices"
)

// A referenceFile says how much of a result is compared with the reference.
type referenceFile struct {
	Rows  int64    `yaml:"rows"`
	Cases []string `yaml:"cases"`
}

// fewestRows and mostRows are the numbers of rows that a check may compare: fewer would
// leave tiles out, and of more the whole reference is the better one.
const fewestRows, mostRows = 64, 1 << 24

// addReference gives the cases that it names, or all, the number of rows that are
// compared.
func (op *Op) addReference(f *referenceFile, bad func(key, format string, args ...any) error) error {
	if f == nil {
		return nil
	}
	if f.Rows == 0 {
		return bad("reference", "reference needs rows, the number of rows that are compared")
	}
	if f.Rows < fewestRows || f.Rows > mostRows {
		return bad("reference.rows", "reference.rows must be a number from %d to %d, not %d", fewestRows, mostRows, f.Rows)
	}
	if f.Cases != nil && len(f.Cases) == 0 {
		return bad("reference.cases", "reference.cases needs at least one case; without it, rows of every case are drawn")
	}
	for i, name := range f.Cases {
		at := fmt.Sprintf("reference.cases[%d]", i)
		if !slices.Contains(op.caseNames(), name) {
			return bad(at, "reference.cases: the op has no case %q", name)
		}
		if slices.Index(f.Cases, name) != i {
			return bad(at, "reference.cases names %q twice", name)
		}
	}
	for i, c := range op.Cases {
		if f.Cases == nil || slices.Contains(f.Cases, c.Name) {
			op.Cases[i].Rows = f.Rows
		}
	}
	return nil
}
