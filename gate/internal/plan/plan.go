// Package plan decides what is asked: from a policy and the kernels of both
// sides it makes questions, each with what it takes to answer it. Nothing else
// decides that. What is measured, what is judged, and what is counted in the
// error rate are functions of the same questions.
package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A Cause is why no evidence can change the answer to a question.
type Cause string

// The causes of a loss, which is red, and after them those of other questions.
const (
	GoneKernel Cause = "the kernel is gone"
	GoneCase   Cause = "a case is gone"
	GoneEntry  Cause = "a function is gone"
	LeftOut    Cause = "entries: leaves a function out"
	OtherOp    Cause = "the kernel computes something else"

	NotBuilt  Cause = "the head was not built"
	NotJudged Cause = "no rule that was asked for judges the kernel"
	NoCase    Cause = "the kernel has no case"
	NoBase    Cause = "the base is not known"
	NewOp     Cause = "the base does not have the op"
)

// An ID identifies a question. Machine is the policy's name for one, Reference
// the kernel that a Ratio is about.
type ID struct {
	Rule      string `json:"rule"`
	Kind      Kind   `json:"kind"`
	Kernel    string `json:"kernel"`
	Arch      string `json:"arch,omitempty"`
	Entry     string `json:"entry,omitempty"`
	Case      string `json:"case,omitempty"`
	Machine   string `json:"machine,omitempty"`
	Reference string `json:"reference,omitempty"`
}

// A Form is what questions of several subjects have in common, and share.
type Form struct {
	Name, Entry, Case, Machine, Reference string // as in an ID, which calls the name a rule

	Rule   *policy.Rule // nil for the rules that no policy can leave out
	Kind   Kind
	Cause  Cause // of Settled
	Weight verdict.Severity
	Tier   evidence.Tier
	On     string // the machine's key, once bound; "" while none is known
}

// A Question is what one rule asks of one kernel, case and machine.
type Question struct {
	*Form
	Subject *Subject
	Needs   []*evidence.Need
	Test    *compare.Test  // of Experiment, History, Ratio and Condition
	Loss    *Loss          // of Settled, where the head lacks something
	Stopped string         // why it goes no further
	Trades  []*policy.Rule // each of which takes the rule's place where its condition holds
	Waiver  *policy.Waiver
}

// ID identifies the question.
func (q *Question) ID() ID {
	return ID{Rule: q.Name, Kind: q.Kind, Kernel: q.Subject.Name, Arch: q.Subject.Arch, Entry: q.Entry, Case: q.Case, Machine: q.Machine, Reference: q.Reference}
}

func (q Question) String() string { return q.ID().String() }

// Need is the question's first need of a use and a tier, nil where there is
// none.
func (q *Question) Need(use evidence.Use, tier evidence.Tier) *evidence.Need {
	for _, n := range q.Needs {
		if n.Use == use && n.Tier == tier {
			return n
		}
	}
	return nil
}

// Gated reports whether the question shares the error rate of the change: it
// puts a time to a test, and it has a say. A condition has one through the rule
// whose place its trade takes.
func (q *Question) Gated() bool {
	return q.Test != nil && (q.Weight != verdict.Info || q.Kind == Condition) && q.Stopped == ""
}

// A Side is a kernel on one side, or the reason why it was not built.
type Side struct {
	Identity evidence.Identity
	Entries  []policy.Entry // its __global__ functions, by name
	Why      string
	Detail   string // the compiler's own lines
	Blame    bool   // the kernel is at fault, not a tool
	Absent   bool   // an input is not here: neither is at fault
}

// A Case is one case of a kernel; Harness identifies how it is measured.
type Case struct {
	Name, Harness string
	CheckOnly     bool // nothing but correctness is asked about it
	Work          roof.Work
}

// A Loss is a case or an entry that the base judges and the head leaves out, or
// a computation that became another.
type Loss struct {
	Cause       Cause
	Case, Entry string
	Op          string // the base's, of OtherOp
	Declared    Retired
}

// Retired is where and why a change declares that something is gone, zero where
// it does not. File is "" where the whole kernel is retired, and Arch that of an
// architecture.
type Retired struct{ File, Arch, Reason string }

// A NewPart is what the base lacks of an op: one of its cases, or, without a
// case, the op itself.
type NewPart struct{ Op, Case string }

// A Subject is one kernel on one architecture, on both sides, as plain data.
type Subject struct {
	Name, File, Arch, Op string
	Source               string // where its __global__ function stands, and the line in it
	Line                 int
	State                verdict.State
	Head, Base           Side
	References           map[string]Side // by name
	Cases                []Case
	Lost                 []Loss
	Was                  string   // what the base calls it, where the change declares that; "" for the same name
	Former               Former   // the same, in full; zero for the same name and architecture
	Retired              Retired  // of a kernel that is gone
	NewOp                *NewPart // of its op, which nobody judges yet; nil where the base does
}

// A Former is what the base calls a kernel, where the change declares that it has
// another name or architecture.
type Former struct{ Name, Arch string }

// RuledAs is the name under which a rule applies to a kernel, "" where it does
// not. A kernel stays under the rules of what it was: a new name, or architecture,
// leads out of no pattern. A trade has to fit both, or a new name would lead into it.
func (s *Subject) RuledAs(r *policy.Rule) string {
	fits := func(f Former) bool { return r.Matches(f.Name) && r.On(f.Arch) }
	now, was := Former{s.Name, s.Arch}, s.Former
	switch {
	case was == Former{}:
		was = now
	case r.Replaces != "" && !fits(was):
		return ""
	}
	switch {
	case fits(now):
		return now.Name
	case fits(was) && r.Replaces == "":
		return was.Name
	}
	return ""
}

// A Plan is the questions of one change, grouped by subject.
type Plan struct {
	Policy    *policy.Policy
	Subjects  []*Subject
	Questions []Question
	Options   Options
	at        string // the key of the machine that measures, once chosen
	only      map[string]bool
}

// Tests is the statistical plan by which times are measured and judged.
func (p Plan) Tests() compare.Plan { return compare.SequentialPlan().Attempt(p.Options.Attempt) }

// Only is the plan of a run that measures the kernels of some names and leaves
// the others to other runs. What is asked, and the family of its tests, stays.
func (p Plan) Only(kernels []string) Plan {
	before := p.only
	p.only = map[string]bool{}
	for _, k := range kernels {
		p.only[k] = before == nil || before[k]
	}
	return p
}

// Options say what is asked beyond the policy.
type Options struct {
	NoBase     string // why there is no base; "" when there is one
	LimitsOnly bool   // a base is not asked for
	Force      bool   // times are compared although the code is unchanged
	Now        time.Time
	Tiers      []evidence.Tier // that are asked for; none: all
	Attempt    int
}

// asks reports whether a tier is asked for.
func (o Options) asks(t evidence.Tier) bool { return len(o.Tiers) == 0 || slices.Contains(o.Tiers, t) }

// calibrationAge is how long an A/A run speaks for its machine. Drivers, rooms
// and neighbours change.
const calibrationAge = 30 * 24 * time.Hour

// Make asks every rule of every subject. Questions about a machine are not
// bound to one.
func Make(p *policy.Policy, subjects []*Subject, o Options) Plan {
	return ask(p, subjects, o, func(a *asker, out []Question) []Question { return a.questions(out, place{}) })
}

// ask makes a plan of what is asked of each subject.
func ask(p *policy.Policy, subjects []*Subject, o Options, of func(*asker, []Question) []Question) Plan {
	a := &asker{policy: p, options: o, forms: map[Form]*Form{}, needed: map[need]*evidence.Need{}, wanted: map[evidence.Wanted]*evidence.Wanted{}, keys: map[evidence.Key]*evidence.Key{},
		recent: &evidence.Window{From: o.Now.Add(-calibrationAge), Until: o.Now}}
	if p.MaxAge > 0 {
		a.young = &evidence.Window{From: o.Now.Add(-p.MaxAge), Until: o.Now}
	}
	out := Plan{Policy: p, Subjects: subjects, Options: o}
	for i, s := range subjects {
		a.subject = s
		out.Questions = of(a, out.Questions)
		if i == 0 { // most kernels are asked as much as the first
			out.Questions = slices.Grow(out.Questions, len(out.Questions)*(len(subjects)-1))
		}
	}
	return out
}

// Family is the number of tests over which the error rate of the change is
// bounded: all gated questions about times, measured or not.
func (p Plan) Family() int {
	n := 0
	for i := range p.Questions {
		if p.Questions[i].Gated() {
			n++
		}
	}
	return n
}

// Needs are the records that are worth reading. Stand-ins are read only where
// the other arm failed.
func (p Plan) Needs(l *evidence.Ledger) []*evidence.Need {
	var out []*evidence.Need
	seen := map[*evidence.Need]bool{}
	for i := range p.Questions {
		q := &p.Questions[i]
		for _, n := range q.Needs {
			if seen[n] || n.Use == evidence.Instead && !q.standsIn(l) {
				continue
			}
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// standsIn reports whether the other arm of the question's experiment failed, so
// that stored sessions may answer instead.
func (q *Question) standsIn(l *evidence.Ledger) bool {
	n := q.Need(evidence.Answers, evidence.Latency)
	if q.Kind != Experiment || n == nil {
		return false
	}
	f := l.Find(n).Failure()
	return f != nil && f.OtherArm
}

// StandIn returns the session record and the head's own times that answer an
// experiment whose other arm failed; false where the experiment stands.
func (q *Question) StandIn(l *evidence.Ledger) (sessions, alone *evidence.Need, ok bool) {
	if !q.standsIn(l) {
		return nil, nil, false
	}
	return q.Need(evidence.Instead, evidence.Sessions), q.Need(evidence.Instead, evidence.Latency), true
}

// open reports whether a need can still be measured. The static tier is built,
// and sessions are what earlier runs left.
func open(n *evidence.Need, l *evidence.Ledger) bool {
	if n.Never != "" || n.Tier == evidence.Static || n.Tier == evidence.Sessions {
		return false
	}
	e := l.Find(n)
	return e.Record == nil && !e.Tried
}

// lacks are the needs of a question that can still be measured on the machine
// that measures.
func (p Plan) lacks(q *Question, l *evidence.Ledger) []*evidence.Need {
	if q.Stopped != "" || p.at != "" && q.On != p.at || p.only != nil && !p.only[q.Subject.Name] {
		return nil
	}
	return slices.DeleteFunc(q.asks(l), func(n *evidence.Need) bool { return !open(n, l) })
}

// asks are the needs without which the question stays open: where stored
// sessions stand in, the head's own time is one.
func (q *Question) asks(l *evidence.Ledger) []*evidence.Need {
	var out []*evidence.Need
	for _, n := range q.Needs {
		if n.Asked() {
			out = append(out, n)
		}
	}
	if sessions, alone, ok := q.StandIn(l); ok && l.Find(sessions).Measured() {
		out = append(out, alone)
	}
	return out
}

// Answered reports whether every record that the question asks for is there.
func (q *Question) Answered(l *evidence.Ledger) bool {
	return !slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool { return n.Asked() && l.Find(n).Record == nil })
}

// Lacks are the keys of all records that questions still ask for, and that some
// run could measure. The static tier is built, whatever is measured.
func (p Plan) Lacks(l *evidence.Ledger) []evidence.Key {
	var keys []evidence.Key
	for i := range p.Questions {
		q := &p.Questions[i]
		for _, n := range q.asks(l) {
			if q.Stopped == "" && n.Never == "" && n.Tier != evidence.Static && l.Find(n).Record == nil {
				keys = append(keys, *n.Key)
			}
		}
	}
	return keys
}

func (id ID) String() string {
	text := fmt.Sprintf("%s (%s) of %s", id.Rule, id.Kind, id.Kernel)
	for _, part := range []struct{ before, what string }{{" for ", id.Arch}, {", entry ", id.Entry}, {", case ", id.Case}, {", beside ", id.Reference}, {" on ", id.Machine}} {
		if part.what != "" {
			text += part.before + part.what
		}
	}
	return text
}
