package ncu

import (
	"errors"
	"strings"
	"testing"
)

const (
	bodyHead   = fixed15 + `,"Section Name","Body Item Label","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"`
	bodyMetric = `,"Occupancy","","Achieved Occupancy","%","50.00",`
	bodyTable  = `,"Occupancy","Impact","Achieved Occupancy","%","25.00",`
	roofline   = `,"Roofline","","Op:x","","1",`
	inset      = `"GPU ID","GPU Name","NUMA ID"`
)

// TestRows lists the rows of a page with tables and charts, whose labels repeat.
func TestRows(t *testing.T) {
	rep, err := Read(strings.NewReader(text(bodyHead, launch0+bodyMetric, launch0+roofline, inset, `"0","NVIDIA H200","0"`, `"1","NVIDIA H200","1"`,
		launch0+bodyTable, launch0+strings.Replace(roofline, `"1"`, `"2"`, 1), launch0+bodyTable, launch1+roofline, launch1+roofline)), "t.csv")
	if err != nil || len(rep.Launches) != 2 {
		t.Fatalf("%+v, %v", rep, err)
	}
	l := rep.Launches[0]
	rows, err := l.Rows()
	percent := func(n float64) Value { return Value{Kind: Number, Number: n, Unit: "%"} }
	want := []Row{
		{"Occupancy", "", "Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", percent(50)},
		{"Roofline", "", "Op:x", "", Value{Kind: Number, Number: 1}},
		{"Occupancy", "Impact", "Achieved Occupancy", "", percent(25)},
		{"Roofline", "", "Op:x", "", Value{Kind: Number, Number: 2}},
		{"Occupancy", "Impact", "Achieved Occupancy", "", percent(25)},
	}
	if err != nil || len(rows) != len(want) {
		t.Fatalf("%+v, %v", rows, err)
	}
	for i := range want {
		if rows[i] != want[i] {
			t.Errorf("row %d %+v, want %+v", i, rows[i], want[i])
		}
	}
	if v, err := l.Label("Occupancy", "Achieved Occupancy"); err != nil || v != percent(50) {
		t.Errorf("the label of a section: %+v, %v", v, err)
	}
	if v, err := l.Metric(want[0].Counter); err != nil || v != percent(50) {
		t.Errorf("its counter: %+v, %v", v, err)
	}
	if v, err := l.Label("Roofline", "Op:x"); err != nil || v != missing(ReasonSeveral) {
		t.Errorf("a label with two values: %+v, %v", v, err)
	}
	if v, err := rep.Launches[1].Label("Roofline", "Op:x"); err != nil || v.Number != 1 {
		t.Errorf("a label with one value, twice: %+v, %v", v, err)
	}
}

func TestRowsElsewhere(t *testing.T) {
	report, err := readBytes(madeUpReport())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := report.Launches[0].Rows()
	if err != nil || len(rows) != 1 || rows[0].Section != "Occupancy" || rows[0].Label != "Achieved Occupancy" || rows[0].Value.Number != 0.5 {
		t.Errorf("report: %+v, %v", rows, err)
	}
	raw, err := Read(strings.NewReader(text(rawHead, rawUnit, rawLine)), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := raw.Launches[0].Rows(); len(rows) != 0 || err != nil {
		t.Errorf("raw page: %+v, %v", rows, err)
	}
	rd := NewReader(strings.NewReader(text(longHead, launch0+strings.Replace(metric, "1,500", "117.344", 1))), "t.csv")
	l, err := rd.Next()
	if err != nil {
		t.Fatal(err)
	}
	var s *SyntaxError
	if rows, err := l.Rows(); rows != nil || !errors.As(err, &s) {
		t.Errorf("a cell with two readings: %+v, %v", rows, err)
	}
}

// TestInsetTable: only rows of the table about the GPUs are passed over.
func TestInsetTable(t *testing.T) {
	for name, c := range map[string]struct{ in, msg string }{
		"a row cut off":    {text(bodyHead, launch0+bodyMetric, inset, `"0","10","app"`), "the row has 3 fields"},
		"more fields":      {text(bodyHead, launch0+bodyMetric, inset, `"0","NVIDIA H200","0","1"`), "the row has 4 fields"},
		"after a row":      {text(bodyHead, launch0+bodyMetric, inset, `"0","NVIDIA H200","0"`, launch0+bodyTable, `"1","NVIDIA H200","0"`), "the row has 3 fields"},
		"on a raw page":    {text(rawHead, rawUnit, inset, `"0","NVIDIA H200","0"`), "the row has 3 fields"},
		"column elsewhere": {text(strings.Replace(longHead, `"Metric Value"`, `"Metric Value","Body Item Label"`, 1)), "not in a known order"},
		"a body too few":   {text(bodyHead, launch0+`,"Occupancy","Achieved Occupancy","%","50.00",`), "is cut off after a comma"},
	} {
		if rep, err := Read(strings.NewReader(c.in), "t.csv"); err == nil || !strings.Contains(err.Error(), c.msg) {
			t.Errorf("%s: %+v, %v; want %q", name, rep, err, c.msg)
		}
	}
}
