package judge

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// unanswered gives a question that evidence leaves open the status that its rule
// names for this. A tool that failed stays a failure of the tool.
func (j *judge) unanswered(q *plan.Question, f verdict.Finding) verdict.Finding {
	if f.Status != verdict.Inconclusive || f.Tool || f.Severity != verdict.Red {
		return f
	}
	key, comes := "on_missing", q.Rule.OnMissing
	if j.complete(q, f) {
		key, comes = "on_inconclusive", q.Rule.OnUndecided
	}
	switch comes {
	case policy.IsBroken:
		f.Status, f.Reason = verdict.Fail, f.Reason+" ("+key+": fail)"
	case policy.OnlyWarns:
		f.Severity, f.Reason = verdict.Warns, f.Reason+" ("+key+": warn)"
	}
	return f
}

// complete reports whether all evidence of a question is there, so that more
// would not have answered it.
func (j *judge) complete(q *plan.Question, f verdict.Finding) bool {
	if q.Kind == plan.Uncompared || q.Stopped != "" || f.Head != nil && !f.Head.Known() || f.Base != nil && !f.Base.Known() {
		return false
	}
	for _, n := range q.Needs {
		if !n.Asked() {
			continue
		}
		if e := j.ledger.Find(n); !e.Measured() || e.Record.Untimed(n.State) != "" {
			return false
		}
	}
	return true
}

// waived lets a waiver take the red from a broken rule, or from a gain that goes
// unexplained. One that expired, or that the figure exceeds, changes nothing.
func (j *judge) waived(q *plan.Question, f verdict.Finding) verdict.Finding {
	if q.Waiver == nil || f.Severity != verdict.Red || f.Status != verdict.Fail && !f.Gain {
		return f
	}
	w := q.Waiver
	days := w.DaysLeft(j.plan.Options.Now)
	why := j.exceeds(q, f)
	state := verdict.Used
	switch {
	case days < 0:
		state, why = verdict.Expired, fmt.Sprintf("its waiver by %s expired %s ago, on %s", w.Owner, plural(-days, "day"), w.Until.Format(policy.Day))
	case why != "":
		state = verdict.Exceeded
	default:
		f.Severity, why = verdict.Warns, fmt.Sprintf("waived by %s until %s: %s", w.Owner, w.Until.Format(policy.Day), w.Reason)
	}
	f.Reason += "; " + why
	f.Waiver = waiverOf(w, state, days)
	if rank := map[verdict.WaiverState]int{verdict.Used: 1, verdict.Exceeded: 2, verdict.Expired: 3}; rank[state] > rank[j.waivers[w]] {
		j.waivers[w] = state
	}
	return f
}

// exceeds says why a finding is beyond what a waiver accepts, or "". What has no
// figure was not measured within it.
func (j *judge) exceeds(q *plan.Question, f verdict.Finding) string {
	w := q.Waiver
	if !w.Ceiling.Set {
		return ""
	}
	if f.Head == nil || !f.Head.Known() {
		return "a waiver needs a figure to hold to its ceiling of " + w.Ceiling.Text
	}
	most, is, shown := w.Ceiling.InPercent(), f.Head.Number, metric.Show(f.Head.Number, f.Unit)
	switch {
	case q.Kind == plan.Ratio:
		if f.Base == nil || !f.Base.Known() || f.Base.Number <= 0 {
			return "a waiver needs a ratio to hold to its ceiling of " + w.Ceiling.Text
		}
		most, is = w.Ceiling.Number, f.Head.Number/f.Base.Number
		shown = fmt.Sprintf("%.4g ×", is)
	case w.Ceiling.Unit == "%" && q.Rule.Metric.Unit != "%":
		if f.Base == nil || !f.Base.Known() || f.Base.Number <= 0 {
			return fmt.Sprintf("a ceiling of %s is a share of the base's figure, which is not known", w.Ceiling.Text)
		}
		most, is = w.Ceiling.Number, f.Head.Number/f.Base.Number-1
		if q.Rule.Metric.Better == metric.Higher {
			is = -is
		}
		shown = compare.Percent(is)
	case q.Rule.Metric.Better == metric.Higher:
		most, is = -most, -is
	}
	if !(is <= most) {
		return fmt.Sprintf("%s is beyond the ceiling of its waiver, %s", shown, w.Ceiling.Text)
	}
	return ""
}

func waiverOf(w *policy.Waiver, state verdict.WaiverState, days int) *verdict.Waiver {
	return &verdict.Waiver{Rule: w.Rule, Kernel: w.Kernel, Ceiling: w.Ceiling.Text, Until: w.Until.Format(policy.Day), Owner: w.Owner, Reason: w.Reason,
		State: state, DaysLeft: days}
}

// allWaivers says of each of the policy's waivers what became of it.
func (j *judge) allWaivers() []verdict.Waiver {
	var out []verdict.Waiver
	for i := range j.plan.Policy.Waivers {
		w := &j.plan.Policy.Waivers[i]
		state, met := j.waivers[w]
		if !met {
			state = verdict.Unused
		}
		out = append(out, *waiverOf(w, state, w.DaysLeft(j.plan.Options.Now)))
	}
	return out
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
