package plan

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// Bound asks every rule of every subject, and puts what it asks about a machine to
// the machines of the policy. All figures of a kernel come from one machine of
// each name: the one of which most is recorded. A machine is asked only for
// architectures that it can run; an architecture that no machine can run keeps its
// questions, without a machine.
func Bound(p *policy.Policy, subjects []*Subject, o Options, known []evidence.Machine, holds func(*evidence.Need) bool) (Plan, error) {
	names := Plan{Policy: p}
	for _, m := range known {
		if err := names.namedOnce(m); err != nil {
			return names, err
		}
	}
	return ask(p, subjects, o, func(a *asker, out []Question) []Question {
		return a.spread(out, a.places(names.machines(), known, holds))
	}), nil
}

// places are where the subject is asked about machines of the policy: those that
// can run it, else all names, without a machine.
func (a *asker) places(of []policy.Machine, known []evidence.Machine, holds func(*evidence.Need) bool) []place {
	var places []place
	for _, m := range of {
		if at, runs := a.choose(m, known, holds); runs {
			places = append(places, place{m.Name, at})
		}
	}
	if len(places) == 0 {
		for _, m := range of {
			places = append(places, place{name: m.Name})
		}
	}
	return places
}

// anyMachine stands for a policy that names none.
var anyMachine = policy.Machine{}

// machines are the policy's; without any, every machine will do.
func (p Plan) machines() []policy.Machine {
	if len(p.Policy.Machines) == 0 {
		return []policy.Machine{anyMachine}
	}
	return p.Policy.Machines
}

// asksFor reports whether the policy names a machine, or any will do.
func (p Plan) asksFor(m evidence.Machine) bool {
	return slices.ContainsFunc(p.machines(), func(x policy.Machine) bool { return x == anyMachine || x.Is(m) })
}

// is reports whether a machine has one of the policy's names.
func (p Plan) is(m evidence.Machine, name string) bool {
	return slices.ContainsFunc(p.Policy.Machines, func(x policy.Machine) bool { return x.Name == name && x.Is(m) })
}

// namedOnce refuses a policy that asks for one machine under two names: its
// evidence would be judged twice.
func (p Plan) namedOnce(m evidence.Machine) error {
	var names []string
	for _, x := range p.Policy.Machines {
		if x.Is(m) {
			names = append(names, x.Name)
		}
	}
	if len(names) > 1 {
		return &yamlfile.Error{File: p.Policy.File, Msg: fmt.Sprintf("machines: %q and %q are one machine, %s", names[0], names[1], m.GPU)}
	}
	return nil
}

// bySubject are the questions of each subject, which stand side by side.
func (p Plan) bySubject() [][]Question {
	var out [][]Question
	for from := 0; from < len(p.Questions); {
		to := from
		for to < len(p.Questions) && p.Questions[to].Subject == p.Questions[from].Subject {
			to++
		}
		out = append(out, p.Questions[from:to])
		from = to
	}
	return out
}

// A place is a machine of the policy, by its name there and its key; the key is
// "" while no such machine is known.
type place struct{ name, key string }

// choose picks the known machine of a name that has most of what is asked of the
// subject. Runs is false where machines of that name are known and none runs the
// code.
func (a *asker) choose(of policy.Machine, known []evidence.Machine, holds func(*evidence.Need) bool) (key string, runs bool) {
	var able []string
	named := false
	for _, m := range known {
		if of != anyMachine && !of.Is(m) {
			continue
		}
		named = true
		if m.Runs(a.subject.Arch) {
			able = append(able, m.Key())
		}
	}
	if len(able) < 2 {
		return slices.Concat(able, []string{""})[0], len(able) > 0 || !named
	}
	best := -1
	for _, k := range able {
		found := 0
		for _, n := range distinct(a.questions(nil, place{key: k})) {
			if n.Asked() && holds(n) {
				found++
			}
		}
		if found > best {
			best, key = found, k
		}
	}
	return key, true
}

func distinct(mine []Question) []*evidence.Need {
	var out []*evidence.Need
	seen := map[*evidence.Need]bool{}
	for i := range mine {
		for _, n := range mine[i].Needs {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
			}
		}
	}
	return out
}

// spread adds the questions of the subject, each rule asked on every place, all
// cases of one place together.
func (a *asker) spread(out []Question, places []place) []Question {
	first := len(out)
	out = a.questions(out, places[0])
	if len(places) > 1 {
		return append(out[:first], a.interleaved(slices.Clone(out[first:]), places[1:])...)
	}
	return out
}

// interleaved are the questions of the subject on several places; those on the
// first of them are here.
func (a *asker) interleaved(here []Question, others []place) []Question {
	all := [][]Question{here}
	for _, at := range others {
		all = append(all, a.questions(nil, at))
	}
	var out []Question
	for from := 0; from < len(here); {
		to := from + 1
		if !here[from].ofMachine() {
			out = append(out, here[from])
			from = to
			continue
		}
		for to < len(here) && here[to].Rule == here[from].Rule && here[to].Kind == here[from].Kind {
			to++
		}
		for _, there := range all {
			out = append(out, there[from:to]...)
		}
		from = to
	}
	return out
}

// ofMachine reports whether the question is about a machine.
func (f *Form) ofMachine() bool { return f.Kind != Settled && f.Tier != evidence.Static }

// A binding puts questions to one machine, by its key. What they share stays shared.
type binding struct {
	machine string
	forms   map[*Form]*Form
	needs   map[*evidence.Need]*evidence.Need
	wanted  map[*evidence.Wanted]*evidence.Wanted
	keys    map[*evidence.Key]*evidence.Key
}

func bindingTo(machine string) binding {
	return binding{machine, map[*Form]*Form{}, map[*evidence.Need]*evidence.Need{}, map[*evidence.Wanted]*evidence.Wanted{}, map[*evidence.Key]*evidence.Key{}}
}

func (b binding) form(f *Form) *Form {
	return moved(b.forms, f, func(f *Form) { f.On = b.machine })
}

func (b binding) need(n *evidence.Need) *evidence.Need {
	return moved(b.needs, n, func(n *evidence.Need) { n.Wanted = b.want(n.Wanted) })
}

func (b binding) want(w *evidence.Wanted) *evidence.Wanted {
	return moved(b.wanted, w, func(w *evidence.Wanted) { w.Key = b.key(w.Key) })
}

func (b binding) key(k *evidence.Key) *evidence.Key {
	return moved(b.keys, k, func(k *evidence.Key) { *k = k.On(b.machine) })
}

// moved is the one copy, with a change, of what many hold.
func moved[T any](to map[*T]*T, x *T, change func(*T)) *T {
	if to[x] == nil {
		own := *x
		change(&own)
		to[x] = &own
	}
	return to[x]
}

// on is the question on a machine.
func (q Question) on(b binding) Question {
	q.Form = b.form(q.Form)
	needs := make([]*evidence.Need, len(q.Needs))
	for i, n := range q.Needs {
		needs[i] = b.need(n)
	}
	q.Needs = needs
	return q
}

// measurable reports whether a machine may measure for a question.
func (p Plan) measurable(q *Question, m evidence.Machine) bool {
	return q.ofMachine() && (q.Machine == "" || p.is(m, q.Machine)) && m.Runs(q.Subject.Arch)
}

// Wants reports whether something is open that the machine may measure.
func (p Plan) Wants(m evidence.Machine, l *evidence.Ledger) bool {
	return slices.ContainsFunc(p.Questions, func(q Question) bool { return p.measurable(&q, m) && len(p.lacks(&q, l)) > 0 })
}

// Move turns open subjects to the machine that measures. All figures of a
// kernel come from one machine, so what is recorded on another is set aside for
// all questions of that subject and name.
func (p Plan) Move(to evidence.Machine, l *evidence.Ledger) (Plan, error) {
	if err := p.namedOnce(to); err != nil {
		return p, err
	}
	out := p
	out.at, out.Questions = to.Key(), nil
	for _, mine := range p.bySubject() {
		moves := slices.ContainsFunc(mine, func(q Question) bool { return p.measurable(&q, to) && len(p.lacks(&q, l)) > 0 })
		bound := bindingTo(out.at)
		for _, q := range mine {
			if moves && p.measurable(&q, to) && q.On != out.at {
				q = q.on(bound)
			}
			out.Questions = append(out.Questions, q)
		}
	}
	return out, nil
}
