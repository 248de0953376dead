package collect

import (
	"bytes"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// arms is what was measured of one pair.
type arms struct {
	pair       pair
	failure    *evidence.Failure
	experiment evidence.Experiment
	base, head bytes.Buffer // protocol lines
}

// blame records why a pair is out. Only the head's kernel can be at fault.
func (a *arms) blame(t *timing, head bool) {
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

func (a *arms) whyNoRound() string {
	if n := len(a.experiment.Discarded); n > 0 {
		return "no round could be measured: " + a.experiment.Discarded[n-1].Reason
	}
	return "no round was measured within the budget"
}
