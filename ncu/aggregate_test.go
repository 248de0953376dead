package ncu

import (
	"fmt"
	"strings"
	"testing"
)

// recorded makes launches of an H200 from rows of duration, occupancy,
// conflicts, registers and block limit.
func recorded(t *testing.T, rows ...[5]string) []*Launch {
	t.Helper()
	if len(rows) == 0 {
		return nil
	}
	in := fixed15 + `,"gpu__time_duration.sum","sm__warps_active.avg.pct_of_peak_sustained_active",` +
		`"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","launch__registers_per_thread","launch__occupancy_limit_warps"` + "\n" +
		`"","","","","","","","","","","","us","%","","register/thread","block"` + "\n"
	for i, r := range rows {
		in += strings.Replace(launch0, `"0"`, fmt.Sprintf(`"%d"`, i), 1) + `,"` + strings.Join(r[:], `","`) + `"` + "\n"
	}
	rep, err := Read(strings.NewReader(in), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	return rep.Launches
}

func TestAggregate(t *testing.T) {
	two := [][5]string{{"9.00", "80.00", "100", "32", "8"}, {"1.00", "30.00", "5", "64", "4"}}
	for _, c := range []struct {
		name string
		rows [][5]string
		want float64
	}{
		{"ncu.duration", two, 10000},
		{"ncu.achieved_occupancy", two, 75},
		{"ncu.shared_bank_conflicts", two, 105},
		{"ncu.registers_per_thread", two, 64},
		{"ncu.block_limit.warps", two, 4},
		{"ncu.raw.launch__registers_per_thread", two, 64},
		{"ncu.achieved_occupancy", two[1:], 30},
		{"ncu.achieved_occupancy", [][5]string{{"n/a", "30.00", "5", "64", "4"}}, 30},
	} {
		v, err := Aggregate("9.0", recorded(t, c.rows...), c.name)
		if err != nil || v.Kind != Number || v.Number != c.want {
			t.Errorf("%s = %+v, %v; want %v", c.name, v, err, c.want)
		}
	}
}

// No figure is made up where one launch has none.
func TestAggregateMissing(t *testing.T) {
	good := [5]string{"9.00", "80.00", "100", "32", "8"}
	for _, c := range []struct {
		name, reason string
		rows         [][5]string
	}{
		{"ncu.shared_bank_conflicts", "launch 1 (k(int)): l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum: ncu printed n/a", [][5]string{good, {"1.00", "1.00", "n/a", "1", "1"}}},
		{"ncu.shared_bank_conflicts", "ncu printed nan", [][5]string{{"1.00", "1.00", "nan", "1", "1"}, good}},
		{"ncu.shared_bank_conflicts", `ncu printed "many"`, [][5]string{{"1.00", "1.00", "many", "1", "1"}}},
		{"ncu.achieved_occupancy", "gpu__time_duration.sum is 0 for every launch", [][5]string{{"0", "1.00", "1", "1", "1"}, {"0", "1.00", "1", "1", "1"}}},
		{"ncu.achieved_occupancy", "gpu__time_duration.sum is negative", [][5]string{{"-1", "1.00", "1", "1", "1"}, good}},
		{"ncu.achieved_occupancy", "ncu printed n/a", [][5]string{{"n/a", "1.00", "1", "1", "1"}, good}},
		{"ncu.duration", "ncu printed n/a", [][5]string{{"n/a", "1.00", "1", "1", "1"}}},
		{"ncu.dram_bytes", "dram__bytes_read.sum: not collected", [][5]string{good}},
		{"ncu.duration", "no launch", nil},
	} {
		for name, f := range map[string]func(string, []*Launch, string) (Value, error){"Aggregate": Aggregate, "Median": Median} {
			if name == "Median" && strings.HasPrefix(c.reason, durationCounter) || name == "Median" && c.name == "ncu.achieved_occupancy" {
				continue // a median needs no weights
			}
			v, err := f("9.0", recorded(t, c.rows...), c.name)
			if err != nil || v.Kind != Missing || !strings.Contains(v.Reason, c.reason) {
				t.Errorf("%s %s = %+v, %v; want missing: %s", name, c.name, v, err, c.reason)
			}
		}
	}
	v, err := Aggregate("9.0", recorded(t, good, good), "ncu.tensor_tcgen05_instructions")
	if err != nil || v.Kind != Unavailable {
		t.Errorf("%+v, %v; want unavailable", v, err)
	}
}

// A figure of another chip is none of this one.
func TestOtherChip(t *testing.T) {
	l := recorded(t, [5]string{"1.00", "1.00", "1", "1", "1"})
	v, err := Aggregate("8.0", l, "ncu.duration")
	if err != nil || v.Kind != Missing || v.Reason != "the launch ran on compute capability 9.0, not 8.0" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, cc := range []string{"", "9.0", "sm_90a"} {
		if v, err := Aggregate(cc, l, "ncu.duration"); err != nil || v.Number != 1000 {
			t.Errorf("%q: %+v, %v", cc, v, err)
		}
	}
}

// A time in a unit that nobody knows is not a time in ns.
func TestUnknownTimeUnit(t *testing.T) {
	l := recorded(t, [5]string{"1", "1", "1", "1", "1"})[0]
	l.values.(*rawRow).table.units[11] = baseUnit("fortnight")
	v, err := Derive("", l, "ncu.duration")
	if err != nil || v.Kind != Missing || !strings.Contains(v.Reason, `"fortnight"`) {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestMedian(t *testing.T) {
	row := func(us string) [5]string { return [5]string{us, "1", "1", "1", "1"} }
	for _, c := range []struct {
		rows [][5]string
		want float64
	}{
		{[][5]string{row("3.00")}, 3000},
		{[][5]string{row("3.00"), row("1.00")}, 2000},
		{[][5]string{row("3.00"), row("1.00"), row("900.00")}, 3000},
		{[][5]string{row("4.00"), row("1.00"), row("900.00"), row("3.00")}, 3500},
	} {
		v, err := Median("9.0", recorded(t, c.rows...), "ncu.duration")
		if err != nil || v.Kind != Number || v.Number != c.want || v.Unit != "ns" {
			t.Errorf("%v: %+v, %v; want %v", c.rows, v, err, c.want)
		}
	}
}
