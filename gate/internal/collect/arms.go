package collect

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// arms is what was measured of one pair.
type arms struct {
	pair       pair
	failure    *evidence.Failure
	experiment evidence.Experiment
	base, head bytes.Buffer                   // protocol lines
	orders     bytes.Buffer                   // drawn, written down before they run
	continues  string                         // digest of the record that this one goes on with
	spent      compare.Cost                   // before this run
	saved      int                            // rounds that lie on the disk
	tested     []evidence.CacheState          // what its tests are about
	pilot      []byte                         // protocol lines
	absent     map[evidence.CacheState]string // why the base has no time
}

// resume makes the arms of a pair, with what earlier runs measured of it.
func (c *Bench) resume(p pair, as evidence.Open) (*arms, error) {
	a := &arms{pair: p}
	if p.Earlier != nil {
		var err error
		if a.continues, err = evidence.Digest(p.Earlier); err != nil {
			return nil, err
		}
	}
	r, raw := c.unfinished(p.key(), as, a.continues)
	if r == nil && p.Earlier != nil {
		var err error
		if r, raw = p.Earlier, nil; c.stored != nil {
			raw, err = c.stored(r)
		}
		if err != nil {
			return nil, fmt.Errorf("continuing %s: %w", p.Head.run(), err)
		}
	}
	if r == nil {
		return a, nil
	}
	a.experiment = *r.Experiment
	a.experiment.Rounds, a.experiment.Discarded, a.experiment.Stopped = slices.Clone(r.Experiment.Rounds), slices.Clone(r.Experiment.Discarded), ""
	a.spent = compare.Cost{WallSeconds: a.experiment.WallSeconds, GPUSeconds: a.experiment.TimedSeconds}
	a.base.Write(raw["base.jsonl"])
	a.head.Write(raw["head.jsonl"])
	a.orders.Write(raw["orders.txt"])
	return a, nil
}

// blame records why a pair is out. Only the head's kernel can be at fault.
func (a *arms) blame(t *timing, head bool) {
	if !head {
		a.absent = t.absent
	}
	if a.failure != nil || t.failure == nil {
		return
	}
	f := *t.failure
	if !head {
		f.Kind, f.OtherArm = evidence.Tool, true
		f.Message = a.pair.other() + " cannot be timed: " + f.Message
	}
	a.failure = &f
}

// holds reports whether the base has a time in a state of the caches. The head is of
// the same case, and what is too large for a state is so for both.
func (a *arms) holds(state evidence.CacheState) bool {
	return slices.ContainsFunc(a.experiment.Pilot, func(s evidence.Sample) bool { return s.CacheState == state })
}

// untimed reports whether the base has a time in none of the states that the tests of
// a pair are about, and the harness says why: no run could decide any of them.
func (a *arms) untimed() bool {
	return a.failure == nil && len(a.tested) > 0 && !slices.ContainsFunc(a.tested, func(s evidence.CacheState) bool { return a.holds(s) || a.absent[s] == "" })
}

func (a *arms) unit(head bool) unit {
	if head {
		return a.pair.Head
	}
	return a.pair.Base
}

// unitsOf are what a process of one arm times, each once.
func unitsOf(order []*arms, head bool) []unit {
	var units []unit
	seen := map[string]bool{}
	for _, a := range order {
		if u := a.unit(head); !seen[u.run()] {
			seen[u.run()] = true
			units = append(units, u)
		}
	}
	return units
}

// whyNoRound says why a pair has no round. Where none of its tests was handed to the
// driver, the base has no time in the state that they are about.
func (x *experiment) whyNoRound(a *arms) string {
	if n := len(a.experiment.Discarded); n > 0 {
		return "no round could be measured: " + a.experiment.Discarded[n-1].Reason
	}
	asked := slices.ContainsFunc(a.tested, a.holds)
	for _, state := range x.states {
		if !asked && (x.piloted || len(a.experiment.Pilot) > 0) && !a.holds(state) {
			why := fmt.Sprintf("%s has no %s time of this case", a.pair.other(), state)
			if a.absent[state] != "" {
				why += ": " + a.absent[state]
			}
			return why
		}
	}
	return "no round was measured within the budget"
}

// raw are the raw inputs of the record, by name.
func (a *arms) raw() map[string][]byte {
	return map[string][]byte{"orders.txt": a.orders.Bytes(), "base.jsonl": a.base.Bytes(), "head.jsonl": a.head.Bytes()}
}
