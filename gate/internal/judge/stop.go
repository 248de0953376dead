package judge

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Stop ends the questions that a failed tier makes a waste of GPU time, as far
// as they are not answered: of a whole kernel after the static tier, of one case
// on one machine after correctness.
func Stop(p plan.Plan, l *evidence.Ledger) plan.Plan {
	if p.Policy.AfterFailure != policy.Stop {
		return p
	}
	type place struct {
		of            *plan.Subject
		name, machine string
	}
	j := judge{plan: p, ledger: l}
	static, wrong := map[*plan.Subject]bool{}, map[place]bool{}
	for i := range p.Questions {
		q := &p.Questions[i]
		early := q.Tier == evidence.Static || q.Tier == evidence.Correctness
		if !early || q.Weight != verdict.Red {
			continue
		}
		if f := j.finding(q); f.Status == verdict.Fail && q.Tier == evidence.Static {
			static[q.Subject] = true
		} else if f.Status == verdict.Fail {
			wrong[place{q.Subject, q.Case, q.Machine}] = true
		}
	}
	p.Questions = slices.Clone(p.Questions)
	for i := range p.Questions {
		q := &p.Questions[i]
		if q.Settled != nil || q.Tier == evidence.Static || q.Stopped != "" || q.Answered(l) {
			continue
		}
		switch {
		case static[q.Subject]:
			q.Stopped = "not measured: the static tier failed"
		case wrong[place{q.Subject, q.Case, q.Machine}] && q.Tier != evidence.Correctness:
			q.Stopped = "not measured: the correctness tier failed"
		}
	}
	return p
}
