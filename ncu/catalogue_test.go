package ncu

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// queried are the chips with a list of `ncu --query-metrics`. There is none of
// ga10x; its counters must be on the chips before and after it.
var queried = map[chip]string{tu102: "tu102", ga100: "ga100", ad10x: "ad102", gh100: "gh100", gb100: "gb100", gb20x: "gb202"}

// unlisted are the families of metrics that the query does not name: launch
// attributes, and figures of instrumentation and of rules.
var unlisted = []string{"launch__", "derived__", "sass__", "memory_l1_", "sm__maximum_warps_per_active_cycle_pct"}

func listed(counter string) bool {
	for _, p := range unlisted {
		if strings.HasPrefix(counter, p) {
			return false
		}
	}
	return true
}

// used calls do for each counter that the catalogue asks for on a chip.
func used(do func(name string, c chip, counter string)) {
	for _, m := range Metrics() {
		for _, c := range chips {
			for _, f := range catalogue()[m.Name].formulas[c] {
				for _, counter := range f.counters {
					do(m.Name, c, counter)
				}
			}
		}
	}
}

type chipCounter struct {
	chip    chip
	counter string
}

// extract reads testdata/counters.tsv: chip, counter and kind of counter.
func extract(t *testing.T) map[chipCounter]string {
	t.Helper()
	b, err := os.ReadFile("testdata/counters.tsv")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[chipCounter]string)
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		f := strings.Split(line, "\t")
		for c, name := range queried {
			if name == f[0] {
				out[chipCounter{c, f[1]}] = f[2]
			}
		}
	}
	if len(out) < 200 {
		t.Fatalf("the extract has %d counters", len(out))
	}
	return out
}

// TestCounters holds every counter of the catalogue against the lists of the
// chips: that it exists there, and has the submetric that is asked for.
func TestCounters(t *testing.T) {
	if *update {
		writeExtract(t)
	}
	known := extract(t)
	checked := 0
	used(func(name string, c chip, counter string) {
		if !listed(counter) {
			return
		}
		base, sub, _ := strings.Cut(counter, ".")
		on := []chip{c}
		if c == ga10x {
			on = []chip{ga100, ad10x}
		}
		for _, c := range on {
			kind := known[chipCounter{c, base}]
			if !suits(kind, sub) {
				t.Errorf("%s: %s has no %s (%q)", name, c, counter, kind)
			}
			checked++
		}
	})
	if checked < 300 {
		t.Errorf("checked %d counters", checked)
	}
}

// suits says whether a kind of counter has a submetric.
func suits(kind, sub string) bool {
	switch kind {
	case "Counter":
		rollup, rest, _ := strings.Cut(sub, ".")
		return (rollup == "sum" || rollup == "avg" || rollup == "max") &&
			(rest == "" || strings.HasPrefix(rest, "pct_of_peak_sustained_") || strings.HasPrefix(rest, "per_"))
	case "Ratio":
		return sub == "ratio" || sub == "pct"
	case "Throughput":
		return strings.HasPrefix(sub, "avg.pct_of_peak_sustained_")
	}
	return false
}

func queryList(t *testing.T, name string) map[string]string {
	f, err := os.Open(corpus(t, "metrics/"+name+".tsv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	s := bufio.NewScanner(z)
	for s.Scan() {
		if f := strings.Split(s.Text(), "\t"); len(f) == 3 {
			out[f[0]] = f[1]
		}
	}
	if s.Err() != nil || len(out) < 1000 {
		t.Fatalf("%s: %d counters, %v", name, len(out), s.Err())
	}
	return out
}

// TestExtract compares the extract with the lists that it was made from.
func TestExtract(t *testing.T) {
	known := extract(t)
	lists := make(map[chip]map[string]string)
	for c, name := range queried {
		lists[c] = queryList(t, name)
	}
	for k, kind := range known {
		if lists[k.chip][k.counter] != kind {
			t.Errorf("%s %s is %q in the list, %q in the extract", k.chip, k.counter, lists[k.chip][k.counter], kind)
		}
	}
}

func writeExtract(t *testing.T) {
	rows := make(map[string]bool)
	for c, name := range queried {
		list := queryList(t, name)
		used(func(_ string, on chip, counter string) {
			base, _, _ := strings.Cut(counter, ".")
			if kind := list[base]; listed(counter) && (on == c || on == ga10x) && kind != "" {
				rows[fmt.Sprintf("%s\t%s\t%s", name, base, kind)] = true
			}
		})
	}
	lines := make([]string, 0, len(rows))
	for r := range rows {
		lines = append(lines, r)
	}
	sort.Strings(lines)
	out := "chip\tcounter\tkind\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile("testdata/counters.tsv", []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every metric says what it is, has counters somewhere, and gives the same
// figure from each of its formulas that a recording has the counters for.
func TestMetrics(t *testing.T) {
	all := Metrics()
	if len(all) < 50 {
		t.Errorf("%d metrics", len(all))
	}
	for i, m := range all {
		if i > 0 && all[i-1].Name >= m.Name {
			t.Errorf("%s is out of order", m.Name)
		}
		if !strings.HasPrefix(m.Name, "ncu.") || !strings.HasSuffix(m.Doc, ".") || strings.Contains(m.Doc, ". ") {
			t.Errorf("%s: %q", m.Name, m.Doc)
		}
		if got, ok := Lookup(m.Name); !ok || got != m {
			t.Errorf("Lookup(%s) = %+v, %v", m.Name, got, ok)
		}
		if len(catalogue()[m.Name].formulas) == 0 {
			t.Errorf("%s has no formula", m.Name)
		}
	}
}

// TestCatalogue pins the closed list: names, units, directions, aggregations,
// and what each chip is asked for.
func TestCatalogue(t *testing.T) {
	var b strings.Builder
	for _, m := range Metrics() {
		fmt.Fprintf(&b, "%s\t%q\t%s\t%s\n", m.Name, m.Unit, m.Better, m.Over)
		for _, c := range chips {
			if f := catalogue()[m.Name].formulas[c]; len(f) > 0 {
				fmt.Fprintf(&b, "\t%s\t%s\n", c, strings.Join(f[0].counters, " "))
			}
		}
	}
	const golden = "testdata/catalogue.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the catalogue differs from %s at %q", golden, firstDifference(b.String(), string(want)))
	}
}

func TestAlternativeFormulas(t *testing.T) {
	rep, err := readPath(t, "testdata/h200-2025.3.1/raw-full.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, m := range Metrics() {
		for _, l := range rep.Launches {
			var first Value
			for _, f := range catalogue()[m.Name].formulas[gh100] {
				v, err := f.eval(l, m.Unit)
				if err != nil {
					t.Fatal(err)
				}
				if first.Kind == Number && v.Kind == Number {
					compared++
					if v != first {
						t.Errorf("%s of launch %d is %v or %v", m.Name, l.ID, first.Number, v.Number)
					}
				}
				first = v
			}
		}
	}
	if compared < 2*len(rep.Launches) {
		t.Errorf("compared %d values", compared)
	}
}

func TestLookupRaw(t *testing.T) {
	for counter, want := range map[string]Aggregation{
		"smsp__inst_executed.sum": Sum, "sm__cycles_active.max": Max, "sm__cycles_active.min": Min, "sm__cycles_active.avg": Mean,
		"dram__bytes_read.sum.per_second": Mean, "sm__cycles_active.max.per_second": Mean, "launch__registers_per_thread": Max,
	} {
		m, ok := Lookup(RawPrefix + counter)
		if !ok || m.Over != want || m.Better != Neither {
			t.Errorf("%s: %+v, %v", counter, m, ok)
		}
	}
	for _, name := range []string{"ncu.raw.", "ncu.raw.a b", "ncu.raw.--set", "ncu.raw.a,b", "ncu.raw.$(x)", "ncu.raw", "ncu.nothing", "", "ncu.raw." + strings.Repeat("a", 300)} {
		if m, ok := Lookup(name); ok {
			t.Errorf("Lookup(%q) = %+v", name, m)
		}
	}
}

func TestCountersForChip(t *testing.T) {
	counters, unavailable := Counters("9.0", "ncu.tensor_pipe_utilization", "ncu.dram_bytes", "ncu.dram_read_bytes", "ncu.raw.sm__cycles_active.avg")
	want := "dram__bytes_read.sum dram__bytes_write.sum gpu__time_duration.sum sm__cycles_active.avg" +
		" sm__pipe_tensor_op_dmma_cycles_active.avg.pct_of_peak_sustained_elapsed" +
		" sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
	if got := strings.Join(counters, " "); got != want || len(unavailable) != 0 {
		t.Errorf("%s, %v\nwant %s", got, unavailable, want)
	}
	for _, c := range []struct{ cc, name, reason string }{
		{"8.0", "ncu.tensor_wgmma_instructions", "ga100 (compute capability 8.0) has no counter for it"},
		{"6.1", "ncu.duration", `compute capability "6.1" is not in the catalogue`},
		{"9.0", "ncu.duratoin", `there is no metric "ncu.duratoin"`},
		{"9.0", "ncu.raw.--x", `there is no metric "ncu.raw.--x"`},
	} {
		counters, unavailable := Counters(c.cc, c.name)
		if unavailable[c.name] != c.reason || len(counters) != 1 || counters[0] != durationCounter {
			t.Errorf("%s on %s: %v, %v", c.name, c.cc, counters, unavailable)
		}
		if v, err := Derive(c.cc, &Launch{values: &longValues{index: newLongIndex()}}, c.name); err != nil || v.Kind == Number || c.name[:8] != RawPrefix && v.Reason != c.reason {
			t.Errorf("%s on %s: %+v, %v", c.name, c.cc, v, err)
		}
	}
}

func TestChipOf(t *testing.T) {
	for cc, want := range map[string]chip{
		"7.5": tu102, "8.0": ga100, "8.6": ga10x, "8.7": ga10x, "8.9": ad10x, "9.0": gh100, "10.0": gb100, "10.3": gb100, "12.0": gb20x, "12.1": gb20x,
		"sm_75": tu102, "sm_90a": gh100, "sm_100f": gb100, "sm_120a": gb20x,
		"": unknownChip, "9": unknownChip, "sm_": unknownChip, "sm_9": unknownChip, "7.0": unknownChip, "90": unknownChip,
	} {
		if got := chipOf(cc); got != want {
			t.Errorf("%q is %s, want %s", cc, got, want)
		}
	}
}
