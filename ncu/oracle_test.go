package ncu

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"io"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// printed are the numbers of the recordings, which all come from machines with
// an English or the C locale.
var printed = regexp.MustCompile(`^-?[\d,]+(\.\d+)?$`)

// instances are the parts of a value that charts show.
var instances = regexp.MustCompile(`^([\d,.]+) \(.*\)$`)

// oracleUnits spells out what the units of the recordings are in base units.
var oracleUnits = map[string]struct {
	base  string
	scale string
}{
	"us": {"ns", "1e3"}, "ms": {"ns", "1e6"}, "nsecond": {"ns", "1"}, "Ghz": {"hz", "1e9"},
	"Kbyte": {"byte", "1e3"}, "Mbyte": {"byte", "1e6"}, "Gbyte": {"byte", "1e9"},
	"Kbyte/s": {"byte/s", "1e3"}, "Mbyte/s": {"byte/s", "1e6"}, "Gbyte/s": {"byte/s", "1e9"}, "Tbyte/s": {"byte/s", "1e12"},
	"byte/second": {"byte/s", "1"}, "Kbyte/block": {"byte/block", "1e3"}, "Kbyte/cycle": {"byte/cycle", "1e3"},
	"%/Kbyte": {"%/byte", "1e3"}, "sector/ns": {"sector/s", "1e9"}, "sector/us": {"sector/s", "1e6"}, "sector/ms": {"sector/s", "1e3"}, "Mhz": {"hz", "1e6"},
}

// oracleCell is a cell as encoding/csv and exact arithmetic read it.
func oracleCell(t *testing.T, text, unit string) Value {
	t.Helper()
	u, ok := oracleUnits[unit]
	if !ok {
		u.base, u.scale = unit, "1"
	}
	text = instances.ReplaceAllString(text, "$1")
	if !printed.MatchString(text) {
		return Value{Kind: Text, Text: text}
	}
	n, ok := new(big.Rat).SetString(strings.ReplaceAll(text, ",", ""))
	scale, good := new(big.Rat).SetString(u.scale)
	if !ok || !good {
		t.Fatalf("%q %q", text, unit)
	}
	f, _ := n.Mul(n, scale).Float64()
	return Value{Kind: Number, Number: f, Unit: u.base}
}

// TestAgainstEncodingCSV compares every cell of every recording with what
// encoding/csv and rational numbers make of it.
func TestAgainstEncodingCSV(t *testing.T) {
	files, cells := 0, 0
	for name := range recordings {
		path, there := recording(t, name)
		if !there || strings.HasSuffix(name, ".ncu-rep") {
			continue
		}
		rep, err := readPath(t, path)
		if err != nil {
			t.Fatal(err)
		}
		files++
		rows := csvRows(t, path)
		if slices.Contains(rows[0], "Metric Value") {
			cells += compareLong(t, name, rep, rows)
		} else {
			cells += compareRaw(t, name, rep, rows)
		}
	}
	if files < 7 || cells < 40000 {
		t.Errorf("compared %d cells of %d recordings", cells, files)
	}
	t.Logf("%d cells of %d recordings", cells, files)
}

func csvRows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	all, err := io.ReadAll(bufio.NewReader(r))
	if err != nil {
		t.Fatal(err)
	}
	c := csv.NewReader(bytes.NewReader(all[bytes.Index(all, []byte(`"ID",`)):]))
	c.FieldsPerRecord = -1
	rows, err := c.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// compareLong compares each row with Rows, and with Label where the label stands
// for one value.
func compareLong(t *testing.T, name string, rep *Report, rows [][]string) (cells int) {
	h := rows[0]
	section, body, metric := slices.Index(h, "Section Name"), slices.Index(h, "Body Item Label"), slices.Index(h, "Metric Name")
	at, last := -1, ""
	var have []Row
	for _, r := range rows[1:] {
		if len(r) <= metric || r[metric] == "" {
			continue // a rule's result, or not of this table
		}
		if r[0] != last {
			if at, last = at+1, r[0]; len(have) > 0 {
				t.Errorf("%s: %d rows more than the page has", name, len(have))
			}
			var err error
			if have, err = rep.Launches[at].Rows(); err != nil {
				t.Fatal(err)
			}
		}
		row := have[0]
		have = have[1:]
		if row.Section != r[section] || row.Label != r[metric] || (body >= 0 && row.Body != r[body]) {
			t.Fatalf("%s: row %+v, want %q", name, row, r)
		}
		compareCell(t, name+" "+row.Label, row.Value, nil, r[metric+2], r[metric+1])
		if v, err := rep.Launches[at].Label(row.Section, row.Label); row.Body == "" && (err != nil || v.Reason != ReasonSeveral) {
			compareCell(t, name+" "+row.Label, v, err, r[metric+2], r[metric+1])
		}
		cells++
	}
	if at+1 != len(rep.Launches) || len(have) > 0 {
		t.Errorf("%s: %d launches and %d rows, want %d launches", name, len(rep.Launches), len(have), at+1)
	}
	return cells
}

func compareRaw(t *testing.T, name string, rep *Report, rows [][]string) (cells int) {
	if len(rows)-2 != len(rep.Launches) {
		t.Errorf("%s: %d launches, want %d", name, len(rep.Launches), len(rows)-2)
	}
	for i, r := range rows[2:] {
		for j := 11; j < len(r); j++ {
			v, err := rep.Launches[i].Metric(rows[0][j])
			compareCell(t, name+" "+rows[0][j], v, err, r[j], rows[1][j])
			cells++
		}
	}
	return cells
}

func compareCell(t *testing.T, what string, v Value, err error, text, unit string) {
	t.Helper()
	want := oracleCell(t, text, unit)
	switch text {
	case "", "n/a", "no data", "nan":
		if err != nil || v.Kind != Missing {
			t.Errorf("%s: %+v, %v; want missing", what, v, err)
		}
		return
	}
	if err != nil || v.Kind != want.Kind || v.Number != want.Number || v.Text != want.Text || want.Kind == Number && v.Unit != want.Unit {
		t.Errorf("%s: %+v, %v; want %+v", what, v, err, want)
	}
}
