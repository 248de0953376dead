package policy

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/ncu"
)

// A LaunchChange is a launch of one call that only one side makes: the shape
// of a launch is part of what it is. It is information and decides nothing.
type LaunchChange struct {
	Case    string `json:"case"`
	Machine string `json:"machine,omitempty"`
	Change  string `json:"change"` // "added" or "removed"
	Kernel  string `json:"kernel"`
	Grid    [3]int `json:"grid"`
	Block   [3]int `json:"block"`
	Count   int    `json:"count"`
}

// launchChanges compares the launches that were profiled on both sides.
func launchChanges(k *KernelFacts) []LaunchChange {
	if k.State != Changed {
		return nil
	}
	var out []LaunchChange
	for _, c := range k.Cases {
		base, head := c.Profile.Base, c.Profile.Head
		if !measuredWell(base) || !measuredWell(head) || len(base.Record.Launches) == 0 || len(head.Record.Launches) == 0 {
			continue
		}
		m := ncu.Match(launchesOf(base.Record), launchesOf(head.Record))
		for _, side := range []struct {
			change   string
			launches []*ncu.Launch
		}{{"added", m.Added}, {"removed", m.Removed}} {
			for _, l := range side.launches {
				out = count(out, LaunchChange{Case: c.Name, Machine: c.Machine, Change: side.change, Kernel: l.Kernel, Grid: l.Grid, Block: l.Block})
			}
		}
	}
	return out
}

// launchesOf are a record's launches as the profiler's package names them.
func launchesOf(r *evidence.Record) []*ncu.Launch {
	var out []*ncu.Launch
	for _, l := range r.Launches {
		out = append(out, &ncu.Launch{Kernel: l.Kernel, Key: ncu.NameKey(l.Kernel), Block: l.Block, Grid: l.Grid})
	}
	return out
}

// count adds one to a change that is there already, else the change.
func count(changes []LaunchChange, c LaunchChange) []LaunchChange {
	i := slices.IndexFunc(changes, func(x LaunchChange) bool {
		x.Count = 0
		return x == c
	})
	if i < 0 {
		i = len(changes)
		changes = append(changes, c)
	}
	changes[i].Count++
	return changes
}
