package plan

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A Task is one record to be measured, of one subject. Reference names the
// contender in the base's place, or the one that is checked.
type Task struct {
	evidence.Key
	Subject   *Subject
	Reference string
}

// A Step is what is measured next. Tasks are of one kind: a tier, whether two
// arms run together, and an op, which is what a process loads.
type Step struct {
	Tier  evidence.Tier
	Tasks []Task

	// Of a series of experiments: the tests with the task that each is about,
	// and the plan of them, which counts the tests of the change that are judged
	// from other records.
	Tests []Test
	Plan  compare.Plan

	States []evidence.CacheState // of latency: those that any question asks for
}

// Together reports whether the step times two arms of each task.
func (s Step) Together() bool { return len(s.Tasks) > 0 && s.Tasks[0].Compares() }

// A Test is a question's test of the times of one task.
type Test struct {
	Task int
	compare.Test
}

// Keys are those of the step's records.
func (s Step) Keys() []evidence.Key {
	var keys []evidence.Key
	for _, t := range s.Tasks {
		keys = append(keys, t.Key)
	}
	return keys
}

// Next is what is measured next, tier by tier, each for all subjects; nil when
// nothing is open.
func (p Plan) Next(l *evidence.Ledger) *Step {
	for _, compares := range []bool{false, true} {
		for _, tier := range evidence.Order[1:] { // the static tier is built
			if s := p.step(l, func(k evidence.Key) bool { return k.Tier == tier && k.Compares() == compares }); s != nil {
				return s
			}
		}
	}
	return nil
}

func (p Plan) step(l *evidence.Ledger, of func(evidence.Key) bool) *Step {
	s, place := &Step{}, map[evidence.Key]int{}
	for i := range p.Questions {
		q := &p.Questions[i]
		for _, n := range p.lacks(q, l) {
			if !of(*n.Key) || n.Compares() && !q.may(l) || len(s.Tasks) > 0 && s.Tasks[0].Subject.Op != q.Subject.Op {
				continue
			}
			at, ok := place[*n.Key]
			if !ok {
				at = len(s.Tasks)
				place[*n.Key], s.Tier = at, n.Tier
				s.Tasks = append(s.Tasks, Task{Key: *n.Key, Subject: q.Subject, Reference: q.reference(n)})
			}
			if n.Compares() && q.Gated() {
				s.Tests = append(s.Tests, Test{at, *q.Test})
			}
		}
	}
	if len(s.Tasks) == 0 {
		return nil
	}
	s.Plan = p.Tests()
	s.Plan.Elsewhere = p.Family() - len(s.Tests)
	s.States = p.States()
	return s
}

// States are the cache states whose times any question asks for. A record holds
// all of them, so that no question takes from it what another needs.
func (p Plan) States() []evidence.CacheState {
	var states []evidence.CacheState
	for i := range p.Questions {
		for _, n := range p.Questions[i].Needs {
			if n.State != "" && (n.Asked() || n.Use == evidence.Instead) && !slices.Contains(states, n.State) {
				states = append(states, n.State)
			}
		}
	}
	slices.Sort(states)
	return states
}

// may reports whether what must come first is there: a reference that was never
// found correct is not timed.
func (q *Question) may(l *evidence.Ledger) bool {
	first := q.Need(evidence.First, evidence.Correctness)
	return first == nil || l.Find(first).Record.Correct()
}

// reference names the contender that a need is about, where it is neither the
// head nor the base.
func (q *Question) reference(n *evidence.Need) string {
	if q.Kind != Ratio || !n.Compares() && n.Use != evidence.First {
		return ""
	}
	return q.Reference
}

// Calibrations are the tasks of timing every case against itself on a machine.
func (p Plan) Calibrations(on evidence.Machine) []Task {
	var tasks []Task
	for i := range p.Questions {
		q := &p.Questions[i]
		n := q.Need(evidence.Answers, evidence.Correctness)
		if q.Kind == Correct && on.Runs(q.Subject.Arch) && p.asksFor(on) {
			k := n.Key.On(on.Key())
			k.Tier = evidence.Calibration
			tasks = append(tasks, Task{Key: k, Subject: q.Subject})
		}
	}
	return tasks
}
