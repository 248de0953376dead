package ncu

import (
	"math"
	"testing"
)

// TestUnitsAgree: the raw page of one report in the units that ncu chooses and
// in base units holds the same values, up to what the six decimals of the
// former have lost.
func TestUnitsAgree(t *testing.T) {
	auto, err := readPath(t, "testdata/h200-2025.3.1/units-auto.csv")
	if err != nil {
		t.Fatal(err)
	}
	base, err := readPath(t, "testdata/h200-2025.3.1/units-base.csv")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, l := range base.Launches {
		for _, name := range l.Names() {
			want, err := l.Metric(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := auto.Launches[i].Metric(name)
			if err != nil || got.Kind != want.Kind || got.Text != want.Text || got.Unit != want.Unit || math.Abs(got.Number-want.Number) > 0.005+1e-5*math.Abs(want.Number) {
				t.Errorf("launch %d: %s = %+v, %v; in base units %+v", i, name, got, err, want)
			}
			compared++
		}
	}
	if compared != 7*34 {
		t.Errorf("%d values compared", compared)
	}
}
