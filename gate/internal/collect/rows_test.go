package collect

import (
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// TestRowsOfARecord: a record compares as many rows as the op asks for, or all.
func TestRowsOfARecord(t *testing.T) {
	op := func(rows int64) *manifest.Op {
		return &manifest.Op{Name: "op", Cases: []manifest.Case{{Name: "long", Rows: rows}}}
	}
	at := evidence.Address{Op: "op", Case: "long"}
	for _, test := range []struct {
		ops       []*manifest.Op
		rows, all int64
		says      string // nothing where it agrees
	}{
		{[]*manifest.Op{op(2048)}, 2048, 4096, ""},
		{[]*manifest.Op{op(2048)}, 2051, 4096, ""}, // rows that a class is about come on top
		{[]*manifest.Op{op(2048)}, 512, 512, ""},
		{[]*manifest.Op{op(2048)}, 2047, 4096, "compares 2047 of 4096 rows, and its op says 2048 "},
		{[]*manifest.Op{op(2048)}, 0, 0, "compares 0 of 0 rows, and its op says"},
		{[]*manifest.Op{op(0)}, 2048, 4096, "compares 2048 of 4096 rows, and its op says 0 "},
		{[]*manifest.Op{op(0)}, 0, 0, ""},
		{[]*manifest.Op{op(0), op(2048)}, 2048, 4096, ""},
		{[]*manifest.Op{op(0), op(2048)}, 0, 0, ""},
		{nil, 2048, 4096, ""},
		{nil, 4097, 4096, "compares 4097 of 4096 rows"},
		{nil, -1, 4096, "compares -1 of 4096 rows"},
		{nil, 0, 4096, "compares 0 of 4096 rows"},
		{nil, 3, 5, "compares 3 of 5 rows, and there are 8192 elements"},
		{nil, 4096, 16384, "compares 4096 of 16384 rows, and there are 8192 elements"},
	} {
		err := Auditor{Ops: test.ops}.rows(at, evidence.Check{Elements: 8192, Rows: test.rows, AllRows: test.all})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if (said == "") != (test.says == "") || !strings.HasPrefix(said, test.says) {
			t.Errorf("%d of %d: %q, want %q", test.rows, test.all, said, test.says)
		}
	}
	if (Auditor{Ops: []*manifest.Op{op(2048)}}).Knows() == (Auditor{Ops: []*manifest.Op{op(0)}}).Knows() {
		t.Error("what an audit depends on does not hold the rows")
	}
	named := func(name string, rows int64) Auditor {
		return Auditor{Ops: []*manifest.Op{{Name: "op", Cases: []manifest.Case{{Name: name, Rows: rows}}}}}
	}
	if named("long1", 123).Knows() == named("long11", 23).Knows() {
		t.Error("two cases with other rows are taken for one")
	}
}
