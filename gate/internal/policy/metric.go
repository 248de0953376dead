package policy

import (
	"sort"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ncu"
)

// A Metric is one name of gate's closed list. Which direction is better
// belongs to it, so that a policy never says "higher" or "lower".
type Metric struct {
	Name   string
	Unit   string
	Better compare.Better
	Either bool // neither direction is better: any change counts
	Tier   evidence.Tier
	Doc    string
}

var ownMetrics = []Metric{
	{"ptxas.registers", "registers/thread", compare.LowerBetter, false, evidence.Static, "registers a thread uses, as ptxas prints them; the largest over the kernel's entries"},
	{"ptxas.registers_allocated", "registers/thread", compare.LowerBetter, false, evidence.Static, "registers a thread is given, rounded up to the unit in which the chip allocates them"},
	{"ptxas.spill_bytes", "byte", compare.LowerBetter, false, evidence.Static, "spill stores and loads together, functions that the entry calls included"},
	{"ptxas.spill_store_bytes", "byte", compare.LowerBetter, false, evidence.Static, "bytes of spill stores in the code of the entry"},
	{"ptxas.spill_load_bytes", "byte", compare.LowerBetter, false, evidence.Static, "bytes of spill loads in the code of the entry"},
	{"ptxas.stack_bytes", "byte", compare.LowerBetter, false, evidence.Static, "stack frame of a thread; an array with a run-time index lies there without being a spill"},
	{"ptxas.shared_bytes", "byte", compare.LowerBetter, false, evidence.Static, "static shared memory of a block"},
	{"ptxas.barriers", "", compare.LowerBetter, false, evidence.Static, "named barriers of a block"},
	{"check.relative_error", "", compare.LowerBetter, false, evidence.Correctness, "‖out−ref‖/‖ref‖ against the float64 reference, the worst input class"},
	{"check.max_abs_error", "", compare.LowerBetter, false, evidence.Correctness, "largest absolute error, the worst input class"},
	{"check.failed_classes", "", compare.LowerBetter, false, evidence.Correctness, "input classes on which the kernel is wrong"},
	{"latency.typical", "ns", compare.LowerBetter, false, evidence.Latency, "time of one call, inputs in L2: mean of the faster half of a launch's batches"},
	{"latency.mean", "ns", compare.LowerBetter, false, evidence.Latency, "time of one call, inputs in L2: mean of all batches, tails included"},
	{"latency.p99", "ns", compare.LowerBetter, false, evidence.Latency, "advice, never red: 99th percentile of a launch's batches, inputs in L2"},
	{"latency.cold_typical", "ns", compare.LowerBetter, false, evidence.Latency, "as latency.typical with inputs that are not in L2"},
	{"latency.cold_mean", "ns", compare.LowerBetter, false, evidence.Latency, "as latency.mean with inputs that are not in L2"},
	{"latency.cold_p99", "ns", compare.LowerBetter, false, evidence.Latency, "as latency.p99 with inputs that are not in L2"},
}

// Metrics is the whole list, by name.
func Metrics() []Metric {
	list := append([]Metric(nil), ownMetrics...)
	for _, m := range ncu.Metrics() {
		list = append(list, fromNCU(m))
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// LookupMetric finds a metric; "ncu.raw.<counter>" is any counter of Nsight
// Compute.
func LookupMetric(name string) (Metric, bool) {
	for _, m := range ownMetrics {
		if m.Name == name {
			return m, true
		}
	}
	if strings.HasPrefix(name, "ncu.") {
		if m, ok := ncu.Lookup(name); ok {
			return fromNCU(m), true
		}
	}
	return Metric{}, false
}

func fromNCU(m ncu.Metric) Metric {
	out := Metric{Name: m.Name, Unit: m.Unit, Better: compare.LowerBetter, Tier: evidence.Profile, Doc: m.Doc}
	switch m.Better {
	case ncu.Higher:
		out.Better = compare.HigherBetter
	case ncu.Neither:
		out.Either = true
	}
	return out
}

func metricNames() []string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	return names
}
