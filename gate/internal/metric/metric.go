// Package metric is gate's closed list of metrics: what each is called, its
// unit, which direction is better, the tier that measures it, and, for a time,
// the state of the caches and the summary. Which direction is better belongs to
// the metric, so that a policy never says "higher" or "lower".
package metric

import (
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ncu"
)

// A Better is the direction in which a metric improves.
type Better uint8

// The directions. Where neither is better, any change counts.
const (
	Lower Better = iota
	Higher
	Neither
)

func (b Better) String() string { return [...]string{"lower", "higher", "neither"}[b] }

// A Metric is one name of the list.
type Metric struct {
	Name   string
	Unit   string
	Better Better
	Tier   evidence.Tier
	Chips  string // where it can be measured: "all", or families of GPUs
	Doc    string // one sentence

	// Of a time: the state of the caches, and the summary of a process's
	// batches. Advice is shown and never red.
	CacheState evidence.CacheState
	Summary    compare.Summary
	Advice     bool
}

// Exactness says how far a figure repeats: "exact" follows from the code,
// "repeatable" from the code and its inputs, "counted" may differ a little from run
// to run, and "tested" is a time, which only a statistical test compares.
func (m Metric) Exactness() string {
	switch m.Tier {
	case evidence.Static:
		return "exact"
	case evidence.Correctness, evidence.Sanitizer:
		return "repeatable"
	case evidence.Profile:
		return "counted"
	}
	return "tested"
}

// Time reports whether the metric is the time of a call.
func (m Metric) Time() bool { return m.Tier == evidence.Latency }

// Tool is the tool of compute-sanitizer that counts the metric, "" for any other.
func (m Metric) Tool() string {
	if m.Tier != evidence.Sanitizer {
		return ""
	}
	return strings.TrimPrefix(m.Name, "sanitizer.")
}

var own = slices.Concat([]Metric{
	{Name: "ptxas.registers", Unit: "registers/thread", Tier: evidence.Static, Doc: "Registers a thread uses, as ptxas prints them; the largest over the kernel's entries."},
	{Name: "ptxas.registers_allocated", Unit: "registers/thread", Tier: evidence.Static, Doc: "Registers a thread is given, rounded up to the unit in which the chip allocates them."},
	{Name: "ptxas.spill_bytes", Unit: "byte", Tier: evidence.Static, Doc: "Spill stores and loads together, functions that the entry calls included."},
	{Name: "ptxas.spill_store_bytes", Unit: "byte", Tier: evidence.Static, Doc: "Bytes of spill stores in the code of the entry."},
	{Name: "ptxas.spill_load_bytes", Unit: "byte", Tier: evidence.Static, Doc: "Bytes of spill loads in the code of the entry."},
	{Name: "ptxas.stack_bytes", Unit: "byte", Tier: evidence.Static, Doc: "Stack frame of a thread; an array with a run-time index lies there without being a spill."},
	{Name: "ptxas.shared_bytes", Unit: "byte", Tier: evidence.Static, Doc: "Static shared memory of a block; ncu.shared_bytes is all of it."},
	{Name: "ptxas.barriers", Unit: "", Tier: evidence.Static, Doc: "Named barriers of a block."},
	{Name: "check.relative_error", Unit: "", Tier: evidence.Correctness, Doc: "The relative error ‖out−ref‖/‖ref‖ against the float64 reference, the worst input class."},
	{Name: "check.max_abs_error", Unit: "", Tier: evidence.Correctness, Doc: "Largest absolute error, the worst input class."},
	{Name: "check.failed_classes", Unit: "", Tier: evidence.Correctness, Doc: "Input classes on which the kernel is wrong."},
	{Name: "sanitizer.memcheck", Unit: "", Tier: evidence.Sanitizer, Doc: "Accesses outside of memory that the kernel was given, as compute-sanitizer counts them in one call."},
	{Name: "sanitizer.racecheck", Unit: "", Tier: evidence.Sanitizer, Doc: "Hazards between threads in shared memory, as compute-sanitizer counts them in one call."},
	{Name: "sanitizer.initcheck", Unit: "", Tier: evidence.Sanitizer, Doc: "Reads of global memory that nothing has written, as compute-sanitizer counts them in one call."},
	{Name: "sanitizer.synccheck", Unit: "", Tier: evidence.Sanitizer, Doc: "Barriers and other synchronisation used wrongly, as compute-sanitizer counts them in one call."},
}, times(evidence.Warm, "", "inputs in L2"), times(evidence.Cold, "cold_", "inputs not in L2"))

// times are the metrics of one state of the caches.
func times(state evidence.CacheState, prefix, inputs string) []Metric {
	list := []Metric{
		{Name: "typical", Summary: compare.Typical, Doc: "mean of the faster half of a process's batches"},
		{Name: "mean", Summary: compare.Mean, Doc: "mean of all batches, tails included"},
		{Name: "p99", Summary: compare.P99, Advice: true, Doc: "99th percentile of a process's batches; advice, never red"},
	}
	for i := range list {
		m := &list[i]
		m.Name, m.Doc = "latency."+prefix+m.Name, "Time of one call, "+inputs+": "+m.Doc+"."
		m.Unit, m.Tier, m.CacheState = "ns", evidence.Latency, state
	}
	return list
}

// All is the whole list, by name.
func All() []Metric {
	list := slices.Clone(own)
	for i := range list {
		list[i].Chips = everyChip
	}
	for _, m := range ncu.Metrics() {
		list = append(list, fromNCU(m))
	}
	slices.SortFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Lookup finds a metric; "ncu.raw.<counter>" is any counter of Nsight Compute.
func Lookup(name string) (Metric, bool) {
	for _, m := range own {
		if m.Name == name {
			m.Chips = everyChip
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

const everyChip = "all"

func fromNCU(m ncu.Metric) Metric {
	out := Metric{Name: m.Name, Unit: m.Unit, Tier: evidence.Profile, Doc: m.Doc, Chips: "those that have the counter"}
	switch chips := m.Chips(); {
	case len(chips) == len(ncu.AllChips()):
		out.Chips = everyChip
	case len(chips) > 0:
		out.Chips = strings.Join(chips, ", ")
	}
	switch m.Better {
	case ncu.Higher:
		out.Better = Higher
	case ncu.Neither:
		out.Better = Neither
	}
	return out
}

// Names are those of the list.
func Names() []string {
	var names []string
	for _, m := range All() {
		names = append(names, m.Name)
	}
	return names
}

// UnitName is a unit as messages name it.
func UnitName(unit string) string {
	if unit == "" {
		return "plain numbers"
	}
	return unit
}
