package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/roof"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// roofs are the names under which a report has a time's share of what the card can
// do.
var roofs = map[evidence.CacheState]string{evidence.Warm: "latency.roof", evidence.Cold: "latency.cold_roof"}

// held makes a time red that the card cannot reach, whatever its rule says of it: it
// was not measured of the work that the op states, so nothing can accept it.
func (j *judge) held(q *plan.Question, f verdict.Finding) (verdict.Finding, bool) {
	if q.Rule == nil || !q.Rule.Metric.Time() {
		return f, false
	}
	work := workOf(q.Subject, q.Case)
	if work == (roof.Work{}) {
		return f, false
	}
	_, alone, standsIn := q.StandIn(j.ledger)
	for _, n := range q.Needs {
		asked := n.Asked() || standsIn && n == alone
		if !asked || n.Tier != evidence.Latency || n.At.Identity != q.Subject.Head.Identity {
			continue
		}
		e := j.ledger.Find(n)
		if !e.Measured() {
			continue
		}
		took, least, _ := beside(e.Record, work, q.Rule.Metric.CacheState)
		if least.Impossible(took) {
			f.Status, f.Severity, f.Tool, f.Gain = verdict.Fail, verdict.Red, false, false
			f.Reason = fmt.Sprintf("faster than the machine: %s, and %s needs at least %s for %s", metric.Show(took, "ns"),
				orElse(e.Record.Provenance.Machine.GPU, "the card"), metric.Show(least.NS, "ns"), least.For)
			f.Hint = "the kernel leaves out work, or op.yaml states more work than a call needs"
			return f, true
		}
	}
	return f, false
}

// shares are the head's times as shares of what the card can do, where the op states
// its work.
func shares(r *evidence.Record, work roof.Work) evidence.Metrics {
	out := evidence.Metrics{}
	if r == nil || work == (roof.Work{}) {
		return out
	}
	for _, state := range statesOf(headSamples(r)) {
		took, least, err := beside(r, work, state)
		if err != nil {
			out[roofs[state]] = evidence.Absent(err.Error(), "%")
			continue
		}
		out[roofs[state]] = least.Percent(took)
	}
	return out
}

// beside is the typical time of a call of the head, and the least that its card needs
// for the work. The error says what is not known; what is known still bounds.
func beside(r *evidence.Record, work roof.Work, state evidence.CacheState) (took float64, least roof.Bound, err error) {
	samples := headSamples(r)
	processes, err := compare.Processes(samples, state)
	if err != nil {
		return 0, least, err
	}
	s, err := compare.SummarizeArm(processes, compare.Typical)
	if err != nil {
		return 0, least, err
	}
	calls := math.MaxInt
	for _, one := range samples {
		if one.CacheState == state {
			calls = min(calls, one.Calls)
		}
	}
	least, err = roof.Of(work, r, state, calls)
	return s.Median, least, err
}

// headSamples are those of the head in a record of times.
func headSamples(r *evidence.Record) []evidence.Sample {
	if r.Experiment == nil {
		return r.Samples
	}
	var out []evidence.Sample
	for _, round := range r.Experiment.Rounds {
		out = append(out, round.Head...)
	}
	return out
}

func statesOf(samples []evidence.Sample) []evidence.CacheState {
	var out []evidence.CacheState
	for _, s := range samples {
		if roofs[s.CacheState] != "" && !slices.Contains(out, s.CacheState) {
			out = append(out, s.CacheState)
		}
	}
	return out
}

// workOf is what the op states of a case.
func workOf(s *plan.Subject, name string) roof.Work {
	for _, c := range s.Cases {
		if c.Name == name {
			return c.Work
		}
	}
	return roof.Work{}
}
