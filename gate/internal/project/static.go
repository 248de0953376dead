package project

import (
	"fmt"
	"os"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ptxas"
)

// static is the record of the compiler's report on one artifact: the worst
// figure over the kernel's entries. A figure that one of them lacks is missing.
func static(a *build.Artifact) (*evidence.Record, error) {
	m, err := staticMetrics(a)
	if err != nil {
		return nil, err
	}
	return &evidence.Record{Schema: evidence.Schema, Tier: evidence.Static, Address: evidence.Address{Identity: a.Identity}, Metrics: m}, nil
}

func staticMetrics(a *build.Artifact) (evidence.Metrics, error) {
	f, err := os.Open(a.Log)
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's log: %w", err)
	}
	defer f.Close()
	log, err := ptxas.Parse(f, "ptxas.log")
	if err != nil {
		return nil, fmt.Errorf("reading the compiler's log: %w", err)
	}
	byName := map[string]*ptxas.Entry{}
	for i := range log.Entries {
		e := &log.Entries[i]
		if e.Source != ptxas.SourcePtxas || e.Arch != a.Arch {
			continue
		}
		if byName[e.Name] != nil {
			return nil, fmt.Errorf("the compiler's log reports %s twice for %s", e.Name, e.Arch)
		}
		byName[e.Name] = e
	}
	var all evidence.Metrics
	for _, name := range a.Entries {
		e := byName[name]
		if e == nil {
			return nil, fmt.Errorf("the compiler's log has no report on %s for %s", name, a.Arch)
		}
		m, err := entryMetrics(e)
		if err != nil {
			return nil, err
		}
		all = worstOf(all, m)
	}
	return all, nil
}

func entryMetrics(e *ptxas.Entry) (evidence.Metrics, error) {
	m := evidence.Metrics{
		"ptxas.registers":           count(e.Registers, "registers/thread"),
		"ptxas.registers_allocated": evidence.Absent("the compiler does not report registers", "registers/thread"),
		"ptxas.spill_bytes":         count(e.SpillBytes().Plus(e.CalleeSpillBytes()), "byte"),
		"ptxas.spill_store_bytes":   count(e.SpillStoreBytes, "byte"),
		"ptxas.spill_load_bytes":    count(e.SpillLoadBytes, "byte"),
		"ptxas.stack_bytes":         count(e.StackBytes, "byte"),
		"ptxas.shared_bytes":        count(e.SharedBytes, "byte"),
		"ptxas.barriers":            count(e.Barriers, ""),
	}
	if e.CumulativeStackBytes.Known && e.CumulativeStackBytes.N > e.StackBytes.N {
		m["ptxas.stack_bytes"] = count(e.CumulativeStackBytes, "byte")
	}
	if !e.Registers.Known {
		return m, nil
	}
	n, err := ptxas.AllocatedRegisters(e.Arch, int(e.Registers.N))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	m["ptxas.registers_allocated"] = evidence.Of(float64(n), "registers/thread")
	return m, nil
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
