package collect

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// timerStep is what events resolve by CUDA's documentation, in ns. A batch of
// fewer steps than fewestSteps is a coarse figure.
const (
	timerStep   = 500
	fewestSteps = 400
	mostCalls   = 4096 // that the harness takes
)

// callsOf is the number of calls in a batch of each state, which a pilot's
// process fixes for all processes of both arms. It is raised where the pilot's
// batches were shorter than fewestSteps.
func callsOf(pilot []evidence.Sample) map[evidence.CacheState]int {
	out := map[evidence.CacheState]int{}
	for _, s := range pilot {
		out[s.CacheState] = s.Calls
		if took := batchTime(s); took < fewestSteps*timerStep {
			out[s.CacheState] = min(mostCalls, int(math.Ceil(float64(s.Calls)*1.1*fewestSteps*timerStep/took)))
		}
	}
	return out
}

// batchTime is the median time of a batch, in ns.
func batchTime(s evidence.Sample) float64 {
	sorted := slices.Sorted(slices.Values(s.BatchesNS))
	return sorted[len(sorted)/2] * float64(s.Calls)
}

// callsArgs ask the harness for those numbers.
func callsArgs(units []unit) []string {
	var args []string
	for _, u := range units {
		for _, state := range []evidence.CacheState{evidence.Warm, evidence.Cold} {
			if n := u.calls[state]; n > 0 {
				args = append(args, "--calls", fmt.Sprintf("%s/%s=%d", u.run(), state, n))
			}
		}
	}
	return args
}

// fixCalls gives both arms of every pair the number of calls that the base's
// pilot took. A reference has a number of its own: its calls take another time.
// What is held against a reference alone has no pilot, and its processes choose.
func (x *experiment) fixCalls() {
	heads := map[string]map[evidence.CacheState]int{}
	for _, a := range x.arms {
		a.pair.Base.calls = callsOf(a.experiment.Pilot)
		if !a.pair.Reference {
			heads[a.pair.Head.run()] = a.pair.Base.calls
		}
	}
	for _, a := range x.arms {
		a.pair.Head.calls = heads[a.pair.Head.run()]
	}
}

// hold checks the batches of a round: as many calls in both arms, or the pair is
// out, and enough steps of the timer, or it is said.
func (x *experiment) hold(order []*arms, processes []map[string]*timing, word string) {
	for _, a := range order {
		calls := map[evidence.CacheState]int{}
		for i, arm := range word[:len(processes)] {
			t := processes[i][a.unit(arm == 'B').run()]
			if a.failure != nil || t == nil {
				break
			}
			if state := x.lost(a, t.samples); state != "" {
				a.failure = &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("one process has a %s time of this case and another has none, so they cannot be compared", state)}
				break
			}
			for _, s := range t.samples {
				x.short(a, s)
				if calls[s.CacheState] == 0 || a.pair.Reference {
					calls[s.CacheState] = s.Calls
				}
				if n := calls[s.CacheState]; n != s.Calls {
					a.failure = &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("a %s batch holds %d calls in one process and %d in another, so their times cannot be compared", s.CacheState, n, s.Calls)}
				}
			}
		}
	}
}

// lost is a state that is timed, and in which the pilot has a time and these samples
// have none. The pair is out then, and the others keep their round.
func (x *experiment) lost(a *arms, samples []evidence.Sample) evidence.CacheState {
	for _, state := range x.states {
		if a.holds(state) && !slices.ContainsFunc(samples, func(s evidence.Sample) bool { return s.CacheState == state }) {
			return state
		}
	}
	return ""
}

// short notes batches that the timer measures coarsely.
func (x *experiment) short(a *arms, s evidence.Sample) {
	steps := batchTime(s) / timerStep
	where := fmt.Sprintf("%s (%s)", a.pair.Head.run(), s.CacheState)
	if steps >= fewestSteps || x.coarse[where] {
		return
	}
	x.coarse[where] = true
	x.c.Notes = append(x.c.Notes, fmt.Sprintf("batches of %s last %.0f steps of the timer, and %d are needed: their times are coarse", where, steps, fewestSteps))
}
