package plan

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// recordAt is a record under a key that answers any need of it.
func recordAt(k evidence.Key) *evidence.Record {
	r := &evidence.Record{Tier: k.Tier, Address: k.At}
	times := []evidence.Sample{{CacheState: evidence.Warm}, {CacheState: evidence.Cold}}
	switch {
	case k.Compares():
		r.Base, r.Experiment = &k.Base, &evidence.Experiment{Stopped: "resolved", Rounds: []evidence.Round{{Base: times, Head: times}}}
	case k.Tier == evidence.Latency:
		r.Samples = times
	case k.Tier == evidence.Correctness:
		r.Checks = []evidence.Check{{Class: "normal", Elements: 8, RelativeError: new(float64), Guard: "ok", Repeatable: true, Status: "pass"}}
	case k.Tier == evidence.Profile:
		r.Metrics = evidence.Metrics{"ncu.waves": evidence.Of(1, ""), "ncu.achieved_occupancy": evidence.Of(60, "%")}
	}
	return r
}

// answer measures all of a step.
func answer(s *Step, l *evidence.Ledger) {
	for _, task := range s.Tasks {
		l.Put(recordAt(task.Key), evidence.Measured)
	}
}

// steps measures whatever a plan asks for and says what that was.
func steps(p Plan, l *evidence.Ledger) string {
	var out []string
	for s := p.Next(l); s != nil; s = p.Next(l) {
		var tasks []string
		for _, task := range s.Tasks {
			text := task.Subject.Name + " " + task.At.Case
			if task.Reference != "" {
				text += " " + task.Reference
			}
			tasks = append(tasks, text)
		}
		word := string(s.Tier)
		if s.Together() {
			word = fmt.Sprintf("series of %d+%d tests", len(s.Tests), s.Plan.Elsewhere)
		}
		out = append(out, word+": "+strings.Join(tasks, ", "))
		answer(s, l)
	}
	return strings.Join(out, "; ")
}

// TestNextGoesTierByTier: each tier for all kernels of an op before the next
// one, references among what is checked, and each record once.
func TestNextGoesTierByTier(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, rules...), Options{}, []evidence.Machine{h200},
		subject("mul/k", verdict.Changed, "small"), subject("sum/k", verdict.Changed, "small"), subject("mul/u", verdict.Unchanged, "small"))
	want := "correctness: mul/k small, mul/k small, mul/k small mul/ref, mul/u small, mul/u small mul/ref; correctness: sum/k small, sum/k small, sum/k small sum/ref; " +
		"profile: mul/k small, mul/k small, mul/u small; profile: sum/k small, sum/k small; " +
		"latency: mul/k small, mul/u small; latency: sum/k small; " +
		"series of 4+3 tests: mul/k small, mul/k small mul/ref, mul/u small mul/ref; series of 3+4 tests: sum/k small, sum/k small sum/ref"
	if got := steps(p, &evidence.Ledger{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestReferencesAreCheckedFirst: one that was not found correct is not timed.
func TestReferencesAreCheckedFirst(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, rules[len(rules)-1]), Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small"))
	for name, record := range map[string]func(*evidence.Record){
		"wrong": func(r *evidence.Record) { r.Checks[0].Status = "fail" }, "checked on nothing": func(r *evidence.Record) { r.Checks = nil },
		"crashed": func(r *evidence.Record) { r.Failure = &evidence.Failure{Kind: evidence.Crash} },
	} {
		l := &evidence.Ledger{}
		s := p.Next(l)
		for _, task := range s.Tasks {
			r := recordAt(task.Key)
			if task.Reference != "" {
				record(r)
			}
			l.Put(r, evidence.Measured)
		}
		if next := p.Next(l); len(s.Tasks) != 2 || next != nil {
			t.Errorf("%s: then %+v", name, next)
		}
	}
}

// TestTestsBelongToTheirTask: several rules ask one experiment, each its own
// question.
func TestTestsBelongToTheirTask(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, rules...), Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small", "large"))
	l := &evidence.Ledger{}
	var s *Step
	for s = p.Next(l); s != nil && !s.Together(); s = p.Next(l) {
		answer(s, l)
	}
	if s == nil || len(s.Tasks) != 4 || len(s.Tests) != 6 || s.Plan.Elsewhere != 0 || len(s.Keys()) != 4 {
		t.Fatalf("%+v", s)
	}
	for _, test := range s.Tests {
		task := s.Tasks[test.Task]
		found := slices.ContainsFunc(p.Questions, func(q Question) bool {
			return q.Gated() && *q.Test == test.Test && slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool { return *n.Key == task.Key })
		})
		if !found || test.Bound.Limits.Reference != (task.Reference != "") {
			t.Errorf("%+v is not asked of %+v", test, task)
		}
	}
}

// TestNextIsWhatCanBeMeasured: only keys that are open, never one that was tried
// or stopped, of one op and one tier; and it ends.
func TestNextIsWhatCanBeMeasured(t *testing.T) {
	measured := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, l, tried := randomPlan(t, r), &evidence.Ledger{}, map[evidence.Key]bool{}
		at := pick(r, h200, a100)
		wants := p.Wants(at, l)
		p, err := p.Move(at, l)
		if err != nil {
			t.Fatal(err)
		}
		if next := p.Next(l); (next != nil) != wants {
			t.Fatalf("the machine is wanted: %v, and measures %+v", wants, next)
		}
		for i := range p.Questions {
			if r.Intn(10) == 0 && p.Questions[i].Kind != Settled {
				p.Questions[i].Stopped = "stopped"
			}
		}
		for s := p.Next(l); s != nil; s = p.Next(l) {
			if len(s.Tasks) == 0 {
				t.Fatal("an empty step")
			}
			for _, task := range s.Tasks {
				measured++
				if tried[task.Key] {
					t.Fatalf("%+v is offered again", task.Key)
				}
				if task.Tier != s.Tier || task.Tier != s.Tasks[0].Tier || task.Compares() != s.Together() || task.Subject.Op != s.Tasks[0].Subject.Op {
					t.Fatalf("tasks of two kinds: %+v", s.Tasks)
				}
				if task.At.Machine != at.Key() || !at.Runs(task.Subject.Arch) || !task.At.Known() || task.Compares() && !task.Base.Known() {
					t.Fatalf("%+v cannot be measured", task)
				}
				asks := func(q Question) bool {
					return q.Stopped == "" && slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool { return *n.Key == task.Key && n.Use != evidence.Shown })
				}
				if !slices.ContainsFunc(p.Questions, asks) {
					t.Fatalf("nobody asks for %+v", task.Key)
				}
				switch tried[task.Key] = true; r.Intn(4) {
				case 0:
					l.Try(task.Key)
				case 1:
					failed := recordAt(task.Key)
					failed.Failure = &evidence.Failure{Kind: pick(r, evidence.Crash, evidence.Tool), Message: "it broke", OtherArm: task.Compares() && r.Intn(2) == 0}
					l.Put(failed, evidence.Measured)
				default:
					l.Put(recordAt(task.Key), evidence.Measured)
				}
			}
			if s.Together() && (s.Plan.Elsewhere < 0 || s.Plan.Elsewhere+len(s.Tests) != p.Family()) {
				t.Fatalf("%d tests and %d elsewhere in a family of %d", len(s.Tests), s.Plan.Elsewhere, p.Family())
			}
		}
		for i := range p.Questions {
			q := &p.Questions[i]
			if q.Answered(l) != !slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool { return n.Asked() && l.Find(n).Record == nil }) {
				t.Errorf("%s: answered %v", q, q.Answered(l))
			}
		}
	})
	if measured < rounds {
		t.Errorf("only %d records were measured", measured)
	}
}

// TestLacks are the keys that a cause belongs to: of whatever a question asks for
// and has not, unless it was stopped or no such record can exist.
func TestLacks(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, "{id: registers, metric: ptxas.registers, max_regression: 8}", "{id: waves, metric: ncu.waves, max_regression: 1}", "{id: latency, metric: latency.typical, max_regression: 2%}"),
		Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small"))
	names := func(l *evidence.Ledger) string {
		var out []string
		for _, k := range p.Lacks(l) {
			side, _, _ := strings.Cut(k.At.Code, " ")
			if k.Compares() {
				side = "both"
			}
			out = append(out, string(k.Tier)+" "+side)
		}
		return strings.Join(out, ", ")
	}
	l := &evidence.Ledger{}
	if got := names(l); got != "correctness head, profile head, profile base, latency both" {
		t.Errorf("nothing is known: %s", got)
	}
	waves := of(p, "waves")[0]
	l.Try(*waves.Needs[0].Key) // in vain
	l.Put(recordAt(*waves.Needs[1].Key), evidence.Reused)
	if got := names(l); got != "correctness head, profile head, latency both" {
		t.Errorf("half a profile: %s", got)
	}
	of(p, "latency")[0].Stopped = "stopped"
	if got := names(l); got != "correctness head, profile head" {
		t.Errorf("stopped: %s", got)
	}
	waves.Needs[0].Never = "it cannot be measured"
	if got := names(l); got != "correctness head" {
		t.Errorf("never: %s", got)
	}
}

// TestMoveAndBoundAgree: what was measured on one machine, whatever others hold, is
// judged by a later run from that machine: that run binds it to where the run that
// measured had moved it.
func TestMoveAndBoundAgree(t *testing.T) {
	moves := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		first, l, at := randomPlan(t, r), &evidence.Ledger{}, pick(r, h200, h100, a100)
		known := []evidence.Machine{h200, h100, a100}
		for _, m := range known { // some of what any machine could hold
			somewhere, err := Bound(first.Policy, first.Subjects, first.Options, []evidence.Machine{m}, nothing)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range somewhere.Questions {
				for _, n := range q.Needs {
					if n.At.Machine != "" && n.Tier != evidence.Static && n.Never == "" && r.Intn(2) > 0 {
						l.Put(recordAt(*n.Key), evidence.Reused)
					}
				}
			}
		}
		holds := func(n *evidence.Need) bool { return l.Find(n).Record != nil }
		before, err := Bound(first.Policy, first.Subjects, first.Options, known, holds)
		if err != nil {
			t.Fatal(err)
		}
		moved, err := before.Move(at, l)
		if err != nil {
			t.Fatal(err)
		}
		for s := moved.Next(l); s != nil; s = moved.Next(l) {
			answer(s, l)
		}
		after, err := Bound(first.Policy, first.Subjects, first.Options, known, holds)
		if err != nil || len(after.Questions) != len(moved.Questions) {
			t.Fatalf("%d questions, then %d: %v", len(moved.Questions), len(after.Questions), err)
		}
		for i := range moved.Questions {
			was, is := &moved.Questions[i], &after.Questions[i]
			if was.On != before.Questions[i].On {
				moves++
			}
			if was.ID() != is.ID() || was.On != is.On {
				t.Fatalf("%s was measured on %q, and is judged from %q", was, was.On, is.On)
			}
		}
	})
	if moves < rounds/10 {
		t.Errorf("only %d questions were moved", moves)
	}
}
