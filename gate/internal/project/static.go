package project

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/ptxas"
)

// static is the record of what the compiler made of one artifact: the worst
// figure over all of its kernels, those that entries: leaves out included. A
// figure that one of them lacks is missing.
func static(a *build.Artifact) (*evidence.Record, error) {
	f, err := os.Open(a.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's log: %w", err)
	}
	defer f.Close()
	log, err := ptxas.Parse(f, "ptxas.log")
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's log: %w", err)
	}
	worst, entries, err := figuresOf(a, log)
	if err != nil {
		return nil, err
	}
	return &evidence.Record{Schema: evidence.Schema, Tier: evidence.Static, Address: evidence.Address{Identity: a.Identity}, Metrics: worst, Entries: entries}, nil
}

// A compiled kernel is one in what runs, with the compiler's report on it.
type compiled struct {
	identity.Function
	report *ptxas.Entry
}

// figuresOf are the worst figures over all kernels, and those of each by its name.
// Where there are several, a figure says of which it is.
func figuresOf(a *build.Artifact, log *ptxas.Log) (worst evidence.Metrics, entries map[string]evidence.Metrics, err error) {
	kernels, err := reported(a, log)
	if err != nil {
		return nil, nil, err
	}
	if a.Linked != nil {
		if kernels, err = linked(a, kernels); err != nil {
			return nil, nil, err
		}
	}
	// Among equals, one that the kernel reports is named before one that it leaves out.
	slices.SortStableFunc(kernels, func(x, y compiled) int { return cmp.Compare(leftOut(a, x), leftOut(a, y)) })
	entries = map[string]evidence.Metrics{}
	for _, k := range kernels {
		m, err := figures(a, log, k)
		if err != nil {
			return nil, nil, err
		}
		name := build.Demangle(k.Name)
		entries[name] = worstOf(entries[name], m) // two units can hold one of the same name
		where := ""
		switch {
		case leftOut(a, k) > 0:
			where = name + ", which entries: leaves out"
		case len(kernels) > 1:
			where = name
		}
		worst = worstOf(worst, at(m, where))
	}
	return worst, entries, nil
}

// leftOut is 1 for a kernel that entries: leaves out, else 0.
func leftOut(a *build.Artifact, k compiled) int {
	if slices.Contains(a.Rest, k.Name) {
		return 1
	}
	return 0
}

// at is the figures with the function that they are of.
func at(m evidence.Metrics, where string) evidence.Metrics {
	out := evidence.Metrics{}
	for name, v := range m {
		out[name] = v.In(where)
	}
	return out
}

// reported pairs the kernels of every unit with the compiler's reports, which
// it printed in the order of the units. A report that disagrees with the code
// is not the compiler's.
func reported(a *build.Artifact, log *ptxas.Log) ([]compiled, error) {
	reports := map[string][]*ptxas.Entry{}
	for i := range log.Entries {
		if e := &log.Entries[i]; e.Source == ptxas.SourcePtxas {
			reports[e.Name] = append(reports[e.Name], e)
		}
	}
	var kernels []compiled
	for _, u := range a.Units {
		for _, f := range u.Functions {
			if !f.Entry {
				continue
			}
			left := reports[f.Name]
			if len(left) == 0 {
				return nil, fmt.Errorf("the compiler's log has no report on %s for %s", f.Name, a.Arch)
			}
			reports[f.Name] = left[1:]
			if err := agree(a, f, left[0]); err != nil {
				return nil, err
			}
			kernels = append(kernels, compiled{f, left[0]})
		}
	}
	for name, left := range reports {
		if len(left) > 0 {
			return nil, fmt.Errorf("the compiler's log reports %s more often than the code holds it", name)
		}
	}
	return kernels, nil
}

// agree holds a report against the code.
func agree(a *build.Artifact, f identity.Function, e *ptxas.Entry) error {
	if e.Arch != a.Arch {
		return fmt.Errorf("the compiler's log reports %s for %s, not for %s", e.Name, e.Arch, a.Arch)
	}
	for _, x := range []struct {
		what string
		log  ptxas.Count
		code int64
	}{
		{"registers", e.Registers, f.Registers}, {"bytes of stack frame", e.StackBytes, f.Frame},
		{"bytes of shared memory", e.SharedBytes, shared(a, f, a.Linked == nil)}, {"bytes of local memory", e.LocalBytes, f.Local},
	} {
		if !x.log.Known || x.log.N != x.code {
			return fmt.Errorf("the compiler's log says %s %s of %s, and its code says %d: the log is not the compiler's alone", x.log, x.what, e.Name, x.code)
		}
	}
	return nil
}

// reserved is what a linked kernel of sm_90 and later holds of shared memory
// for the driver.
const reserved = 1024

func shared(a *build.Artifact, f identity.Function, final bool) int64 {
	number, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(a.Arch, "sm_"), "af"))
	if final && err == nil && number >= 90 && f.Shared >= reserved {
		return f.Shared - reserved
	}
	return f.Shared
}

// linked replaces the kernels of the units by what the device linker made of
// them: it gives them more registers and stack, for what they call elsewhere.
func linked(a *build.Artifact, units []compiled) ([]compiled, error) {
	var kernels []compiled
	for _, f := range a.Linked {
		if !f.Entry {
			continue
		}
		at := slices.IndexFunc(units, func(k compiled) bool { return k.Name == f.Name })
		if at < 0 {
			return nil, fmt.Errorf("no unit holds %s, which the linked code does", f.Name)
		}
		kernels = append(kernels, compiled{f, units[at].report})
	}
	return kernels, nil
}

func figures(a *build.Artifact, log *ptxas.Log, k compiled) (evidence.Metrics, error) {
	e := k.report
	n, err := ptxas.AllocatedRegisters(a.Arch, int(k.Registers))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Name, err)
	}
	spills := e.SpillBytes().Plus(e.CalleeSpillBytes())
	if a.Linked != nil { // it may call what any unit holds
		spills = e.SpillBytes()
		for _, f := range functions(log) {
			spills = spills.Plus(f.SpillStoreBytes).Plus(f.SpillLoadBytes)
		}
	}
	return evidence.Metrics{
		"ptxas.registers":           evidence.Of(float64(k.Registers), "registers/thread"),
		"ptxas.registers_allocated": evidence.Of(float64(n), "registers/thread"),
		"ptxas.spill_bytes":         count(spills, "byte"),
		"ptxas.spill_store_bytes":   count(e.SpillStoreBytes, "byte"),
		"ptxas.spill_load_bytes":    count(e.SpillLoadBytes, "byte"),
		"ptxas.stack_bytes":         stack(log, k),
		"ptxas.shared_bytes":        evidence.Of(float64(shared(a, k.Function, true)), "byte"),
		"ptxas.barriers":            count(e.Barriers, ""),
	}, nil
}

// stack is what a thread takes with all that it calls, as far as the compiler
// and the linker can tell.
func stack(log *ptxas.Log, k compiled) evidence.Value {
	for _, w := range log.Warnings {
		if w.Kind == ptxas.KindStackSizeUnknown && w.Function == k.Name {
			return evidence.Absent("the compiler cannot tell how deep the calls go", "byte")
		}
	}
	most := max(k.Frame, k.Stack)
	for _, f := range slices.Concat(k.report.Callees, k.report.UnitFunctions) {
		most = max(most, f.StackBytes.N)
	}
	if c := k.report.CumulativeStackBytes; c.Known {
		most = max(most, c.N)
	}
	return evidence.Of(float64(most), "byte")
}

// functions are the device functions of all units, each once for every unit.
func functions(log *ptxas.Log) []ptxas.Function {
	list, seen := slices.Clone(log.Functions), map[int]bool{}
	for _, e := range log.Entries {
		for _, f := range slices.Concat(e.Callees, e.UnitFunctions) {
			if e.Source == ptxas.SourcePtxas && !seen[f.Line] {
				seen[f.Line] = true
				list = append(list, f)
			}
		}
	}
	return list
}

func count(c ptxas.Count, unit string) evidence.Value {
	if !c.Known {
		return evidence.Absent("the compiler's log does not say", unit)
	}
	return evidence.Of(float64(c.N), unit)
}

// worstOf keeps the larger figure of each metric: more is worse in all of the
// compiler's.
func worstOf(a, b evidence.Metrics) evidence.Metrics {
	if a == nil {
		return b
	}
	out := evidence.Metrics{}
	for name, x := range a {
		y := b.Get(name)
		switch {
		case !x.Known():
			out[name] = x
		case !y.Known() || y.Number > x.Number:
			out[name] = y
		default:
			out[name] = x
		}
	}
	return out
}
