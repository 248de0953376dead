package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/ncu"
)

// A scene is one case of a subject on one machine, with the records of the head
// that its figures are shown from, and the base's profile.
type scene struct {
	name, machine                       string
	correctness, profile, base, latency *evidence.Record
}

// scenes are the cases of a subject on each machine, in the order asked.
func (j *judge) scenes(s *plan.Subject, asked []plan.Question) []scene {
	type place struct{ name, machine string }
	var order []place
	by := map[place][]*plan.Question{}
	for i := range asked {
		q := &asked[i]
		at := place{q.Case, orElse(q.On, q.Machine)}
		if q.Case == "" || q.Kind == plan.Settled {
			continue
		}
		if by[at] == nil {
			order = append(order, at)
		}
		by[at] = append(by[at], q)
	}
	var out []scene
	for _, at := range order {
		c := scene{name: at.name, machine: at.machine}
		c.correctness = j.shown(by[at], evidence.Correctness, s.Head.Identity)
		c.profile = j.shown(by[at], evidence.Profile, s.Head.Identity)
		c.base = j.shown(by[at], evidence.Profile, s.Base.Identity)
		c.latency = j.shownTime(by[at])
		out = append(out, c)
	}
	return out
}

// shown is the record of one tier and side that some question of a case found.
func (j *judge) shown(asked []*plan.Question, tier evidence.Tier, id evidence.Identity) *evidence.Record {
	for _, q := range asked {
		for _, n := range q.Needs {
			if n.Tier != tier || n.At.Identity != id || n.Compares() || n.Use == evidence.First {
				continue
			}
			if r := j.ledger.Find(n).Record; r != nil {
				return r
			}
		}
	}
	return nil
}

// shownTime is the record of the head's time: one that a question asks for, an
// experiment against the base before one against a reference, and last a record
// that decides nothing.
func (j *judge) shownTime(asked []*plan.Question) *evidence.Record {
	for _, fits := range []func(*plan.Question, *evidence.Need) bool{
		func(_ *plan.Question, n *evidence.Need) bool { return n.Use == evidence.Answers && !n.Compares() },
		func(q *plan.Question, n *evidence.Need) bool { return n.Compares() && q.Kind == plan.Experiment },
		func(_ *plan.Question, n *evidence.Need) bool { return n.Compares() },
		func(_ *plan.Question, n *evidence.Need) bool { return n.Use == evidence.Shown },
	} {
		for _, q := range asked {
			for _, n := range q.Needs {
				if n.Tier != evidence.Latency || !fits(q, n) {
					continue
				}
				if e := j.ledger.Find(n); e.Measured() {
					return e.Record
				}
			}
		}
	}
	return nil
}

// figures are the head's metrics of every tier, judged or not.
func (j *judge) figures(s *plan.Subject, all []scene) []verdict.CaseFigures {
	static := j.ledger.Find(evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: s.Head.Identity}}))
	out := []verdict.CaseFigures{{}}
	if static.Record != nil {
		out[0].Metrics = static.Record.Metrics
	}
	for _, c := range all {
		merged := merge(c.correctness, c.profile, c.latency)
		maps.Copy(merged, shares(c.latency, workOf(s, c.name)))
		if len(merged) > 0 {
			out = append(out, verdict.CaseFigures{Case: c.name, Machine: c.machine, Metrics: merged})
		}
	}
	return out
}

// merge is the metrics of all records that are there; of one that several hold,
// the last one counts.
func merge(records ...*evidence.Record) evidence.Metrics {
	n := 0
	for _, r := range records {
		if r != nil {
			n += len(r.Metrics)
		}
	}
	out := make(evidence.Metrics, n)
	for _, r := range records {
		if r != nil {
			maps.Copy(out, r.Metrics)
		}
	}
	return out
}

// entries are the compiler's figures of every function of the head, by name.
func (j *judge) entries(s *plan.Subject) []verdict.EntryFigures {
	static := j.ledger.Find(evidence.NeedOf(evidence.Key{Tier: evidence.Static, At: evidence.Address{Identity: s.Head.Identity}}))
	if static.Record == nil {
		return nil
	}
	var out []verdict.EntryFigures
	for _, name := range slices.Sorted(maps.Keys(static.Record.Entries)) {
		out = append(out, verdict.EntryFigures{Entry: name, Metrics: static.Record.Entries[name]})
	}
	return out
}

// launchChanges compares the launches that were profiled on both sides.
func launchChanges(s *plan.Subject, all []scene) []verdict.LaunchChange {
	if s.State != verdict.Changed {
		return nil
	}
	var out []verdict.LaunchChange
	for _, c := range all {
		if c.base == nil || c.profile == nil || len(c.base.Launches) == 0 || len(c.profile.Launches) == 0 {
			continue
		}
		m := ncu.Match(launchesOf(c.base), launchesOf(c.profile))
		for _, l := range m.Added {
			out = count(out, verdict.LaunchChange{Case: c.name, Machine: c.machine, Change: "added", Kernel: l.Kernel, Grid: l.Grid, Block: l.Block})
		}
		for _, l := range m.Removed {
			out = count(out, verdict.LaunchChange{Case: c.name, Machine: c.machine, Change: "removed", Kernel: l.Kernel, Grid: l.Grid, Block: l.Block})
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
func count(changes []verdict.LaunchChange, c verdict.LaunchChange) []verdict.LaunchChange {
	i := slices.IndexFunc(changes, func(x verdict.LaunchChange) bool {
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

// restsOn are the records that the verdict rests on, each once, and, of each kernel,
// every one that is missing; and the machines whose evidence was judged, by key.
func (j *judge) restsOn() (c verdict.Counts, machines []verdict.MachineRef) {
	refs := map[evidence.Machine]verdict.MachineRef{}
	j.eachRecord(func(e evidence.Entry) {
		switch {
		case e.Record == nil:
			c.Missing++
			return
		case e.Source == evidence.Measured:
			c.Measured++
		default:
			c.Reused++
		}
		m, at := e.Record.Provenance.Machine, e.Record.Provenance.Recorded
		ref, ok := refs[m]
		if !ok {
			ref = verdict.MachineRef{Key: m.Key(), Description: m.String(), Oldest: at, Newest: at}
		}
		ref.Oldest, ref.Newest = min(ref.Oldest, at), max(ref.Newest, at)
		refs[m] = ref
	})
	for _, r := range refs {
		machines = append(machines, r)
	}
	slices.SortFunc(machines, func(a, b verdict.MachineRef) int { return strings.Compare(a.Key, b.Key) })
	return c, machines
}

// eachRecord visits what questions rest on, on stored machines alone: the static
// tier is built, and what is only shown does not count.
func (j *judge) eachRecord(visit func(evidence.Entry)) {
	type missing struct {
		of *plan.Subject
		evidence.Key
	}
	found, absent := map[*evidence.Record]bool{}, map[missing]bool{}
	for i := range j.plan.Questions {
		q := &j.plan.Questions[i]
		if q.Kind == plan.Condition && q.Stopped != "" {
			continue // nothing waits for it
		}
		sessions, _, standIn := q.StandIn(j.ledger)
		for _, n := range q.Needs {
			// The head is timed by itself only where there are sessions to hold it against.
			instead := standIn && n.Use == evidence.Instead && (n == sessions || j.ledger.Find(sessions).Measured())
			if n.Tier == evidence.Static || !n.Asked() && !instead {
				continue
			}
			e := j.ledger.Find(n)
			if e.Record == nil {
				if at := (missing{q.Subject, *n.Key}); !absent[at] {
					absent[at] = true
					visit(e)
				}
				continue
			}
			if !found[e.Record] {
				found[e.Record] = true
				visit(e)
			}
		}
	}
}
