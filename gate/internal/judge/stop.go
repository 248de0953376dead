package judge

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Stop ends the questions that a failed tier makes a waste of GPU time, as far
// as they are not answered: of a whole kernel after the static tier, of one case
// on one machine after correctness and after the sanitizer. It ends the conditions of trades that nothing
// waits for, whatever the policy says of failures.
func Stop(p plan.Plan, l *evidence.Ledger) plan.Plan {
	j := newJudge(p, l)
	failed := failures{static: map[*plan.Subject]bool{}, wrong: map[place]evidence.Tier{}}
	if p.Policy.AfterFailure == policy.Stop {
		failed = j.failures()
	}
	cloned := false
	for i := range p.Questions {
		q := &p.Questions[i]
		if q.Kind == plan.Settled || q.Stopped != "" || q.Tier == evidence.Static && q.Kind != plan.Condition {
			continue
		}
		why := failed.stop(q)
		if why == "" && q.Kind == plan.Condition && j.unneeded(q) {
			why = "not asked for: nothing is to be traded"
		}
		if why == "" || q.Answered(l) {
			continue
		}
		if !cloned { // the plan that was handed over stays as it is
			p.Questions, cloned = slices.Clone(p.Questions), true
		}
		p.Questions[i].Stopped = why
	}
	return p
}

type place struct {
	of            *plan.Subject
	name, machine string
}

// failures are the tiers after which a kernel goes no further.
type failures struct {
	static map[*plan.Subject]bool
	wrong  map[place]evidence.Tier // the first that failed
}

// stop says which failure makes it useless to answer a question, "" for none.
func (f failures) stop(q *plan.Question) string {
	if f.static[q.Subject] {
		return "not measured: the static tier failed"
	}
	if tier := f.wrong[place{q.Subject, q.Case, q.Machine}]; tier != "" && q.Tier != tier && q.Tier != evidence.Correctness {
		return fmt.Sprintf("not measured: the %s tier failed", tier)
	}
	return ""
}

func (j *judge) failures() failures {
	out := failures{static: map[*plan.Subject]bool{}, wrong: map[place]evidence.Tier{}}
	for i := range j.plan.Questions {
		q := &j.plan.Questions[i]
		if q.Weight != verdict.Red || !slices.Contains([]evidence.Tier{evidence.Static, evidence.Correctness, evidence.Sanitizer}, q.Tier) {
			continue
		}
		f := j.finding(q)
		switch red := f.Status == verdict.Fail && f.Severity == verdict.Red; {
		case red && q.Tier == evidence.Static:
			out.static[q.Subject] = true
		case red && out.wrong[place{q.Subject, q.Case, q.Machine}] != evidence.Correctness:
			out.wrong[place{q.Subject, q.Case, q.Machine}] = q.Tier
		}
	}
	return out
}

// Undecided are the experiments that some gated question is left open by, while
// their plan has looks left: a budget ended them, or other kernels joined and
// raised the bar.
func Undecided(p plan.Plan, l *evidence.Ledger) ([]evidence.Key, error) {
	j, gated, keys := newJudge(p, l), series{}, map[plan.ID]evidence.Key{}
	for i := range p.Questions {
		q := &p.Questions[i]
		if n := pairOf(q); n != nil && q.Gated() && gated.add(j, q) == nil {
			keys[q.ID()] = *n.Key
		}
	}
	tests := p.Tests()
	tests.Elsewhere = p.Family() - len(gated.all)
	open, err := compare.Open(gated.all, tests)
	if err != nil {
		return nil, fmt.Errorf("looking for experiments to continue: %w", err)
	}
	var out []evidence.Key
	for i, id := range gated.ids {
		if open[i] && !slices.Contains(out, keys[id]) {
			out = append(out, keys[id])
		}
	}
	return out, nil
}
