package metric

import (
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
)

func TestMetricsAreAClosedSortedList(t *testing.T) {
	list := All()
	if len(list) <= len(own) {
		t.Fatalf("%d metrics", len(list))
	}
	for i, m := range list {
		if i > 0 && list[i-1].Name >= m.Name {
			t.Errorf("%s stands before %s", list[i-1].Name, m.Name)
		}
		found, ok := Lookup(m.Name)
		if !ok || found != m {
			t.Errorf("%s is not found as listed", m.Name)
		}
		if m.Doc == "" || m.Tier == "" || m.Better > Neither {
			t.Errorf("%+v lacks something", m)
		}
	}
	for _, m := range list {
		// A time has all of what places it, and nothing else has any of it.
		if m.Time() != (m.CacheState != "") || m.Time() != (m.Summary != 0) || m.Advice != (m.Summary == compare.P99) {
			t.Errorf("%+v is half a time", m)
		}
	}
	if names := Names(); len(names) != len(list) || names[0] != list[0].Name {
		t.Errorf("the names are not those of the list: %v", names)
	}
	for _, name := range []string{"", "ptxas", "ptxas.", "ncu.", "ncu.raw.", "ncu.raw.a b", "latency.typical ", "PTXAS.registers", "ncu.raw.$(x)"} {
		if m, ok := Lookup(name); ok {
			t.Errorf("%q is found as %+v", name, m)
		}
	}
	if m, ok := Lookup("ncu.raw.sm__cycles_active.avg"); !ok || m.Name != "ncu.raw.sm__cycles_active.avg" {
		t.Errorf("a raw counter: %+v, %v", m, ok)
	}
}

// TestTimes: the state of the caches and the summary are the metric's, and only
// a tail is advice.
func TestTimes(t *testing.T) {
	for name, want := range map[string]Metric{
		"latency.typical":   {CacheState: "warm", Summary: compare.Typical},
		"latency.mean":      {CacheState: "warm", Summary: compare.Mean},
		"latency.p99":       {CacheState: "warm", Summary: compare.P99, Advice: true},
		"latency.cold_mean": {CacheState: "cold", Summary: compare.Mean},
		"latency.cold_p99":  {CacheState: "cold", Summary: compare.P99, Advice: true},
	} {
		m, ok := Lookup(name)
		if !ok || m.CacheState != want.CacheState || m.Summary != want.Summary || m.Advice != want.Advice || m.Unit != "ns" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestShow(t *testing.T) {
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{
		{0, "byte", "0 B"}, {92240, "byte/block", "92,240 B"}, {1234567, "byte", "1,234,567 B"}, {-1234, "byte", "-1,234 B"}, {999, "", "999"}, {1000, "", "1,000"}, {0.000123456, "", "0.0001235"},
		{12.5, "%", "12.5 %"}, {999, "ns", "999 ns"}, {12345, "ns", "12.35 µs"}, {1234567, "ns", "1.235 ms"}, {1e20, "", "1e+20"}, {40, "registers/thread", "40"}, {3, "hz", "3 hz"},
	} {
		if got := Show(c.x, c.unit); got != c.want {
			t.Errorf("%v %s is shown as %q, want %q", c.x, c.unit, got, c.want)
		}
	}
}
