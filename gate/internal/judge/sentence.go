package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// comparison says in one sentence what an experiment proved and what follows
// from it.
func comparison(o compare.Outcome, plan compare.Plan) string {
	need := needed(o, plan)
	switch o.Reason {
	case compare.NotMeasured:
		return "no round was measured" + need
	case compare.InvalidProcess:
		return o.Invalid.Error()
	case compare.TooFewPairs:
		return fmt.Sprintf("%d pairs cannot decide among %d tests: %s%s", o.Pairs, o.Tests, figuresOf(o), need)
	case compare.ZeroVariance:
		return fmt.Sprintf("one arm gave the same time in all %d processes, so the timer is too coarse or nothing was measured: %s", o.Pairs, figuresOf(o))
	case compare.SuspectCollapse:
		return fmt.Sprintf("at least %.0f %% faster without an explanation, which is how a kernel looks that does nothing: %s", -100*compare.CollapseBelow, figuresOf(o))
	case compare.AboveTolerance:
		if o.Limits.Reference {
			return fmt.Sprintf("above the limit of %s the reference's time: %s", effect(o, o.Limits.Tolerance), figuresOf(o))
		}
		return fmt.Sprintf("slower than the tolerance of %s: %s", compare.Percent(o.Limits.Tolerance), figuresOf(o))
	case compare.BelowDetect:
		return fmt.Sprintf("proven below %s: %s%s", effect(o, o.Limits.Detect), figuresOf(o), excludes(o))
	case compare.ProvenFaster:
		return fmt.Sprintf("faster by more than %s: %s%s", compare.Percent(o.Limits.Tolerance), figuresOf(o), excludes(o))
	}
	if o.Pairs >= plan.LastPairs() {
		need = "; the plan is used up" + need
	}
	return fmt.Sprintf("neither above %s nor below %s is proven: %s%s", effect(o, o.Limits.Tolerance), effect(o, o.Limits.Detect), figuresOf(o), need)
}

// needed says how many pairs would decide, where that is known.
func needed(o compare.Outcome, plan compare.Plan) string {
	switch {
	case o.NeedPairs > plan.LastPairs():
		return fmt.Sprintf("; more than the plan's %d pairs would be needed", plan.LastPairs())
	case o.NeedPairs > 0:
		return fmt.Sprintf("; about %d pairs would decide", o.NeedPairs)
	}
	return ""
}

// excludes says what a pass rules out.
func excludes(o compare.Outcome) string {
	worst := math.Inf(-1)
	for _, m := range o.Summaries {
		if m.Excluded == nil {
			return ""
		}
		worst = max(worst, *m.Excluded)
	}
	text := fmt.Sprintf("; slower by more than %s is excluded (99 %%)", compare.Percent(max(0, worst)))
	if o.Limits.Tail > 0 {
		text += fmt.Sprintf("; a mode in %.3g %% or more of the runs would have been seen", 100*o.Limits.Tail)
	}
	return text
}

// figuresOf lists estimate and interval of each metric, and the slow processes.
func figuresOf(o compare.Outcome) string {
	var parts []string
	slow := ""
	for _, m := range o.Summaries {
		parts = append(parts, fmt.Sprintf("%s %s (%s to %s)", m.Summary, effect(o, m.Estimate), effect(o, m.Low), effect(o, m.High)))
		if m.Slow.Base+m.Slow.Head > 0 {
			slow = fmt.Sprintf("; slow processes: %d of %d of the base, %d of the head", m.Slow.Base, o.Pairs, m.Slow.Head)
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(" after %d pairs", o.Pairs) + slow
}

// effect writes a relative effect in percent, and against a reference as a
// multiple of its time.
func effect(o compare.Outcome, e float64) string {
	if o.Limits.Reference {
		return fmt.Sprintf("%.4g ×", 1+e)
	}
	return compare.Percent(e)
}

// againstSessions says what stored sessions prove of a time.
func againstSessions(o compare.StoredOutcome) string {
	var parts []string
	for _, m := range o.Summaries {
		parts = append(parts, fmt.Sprintf("%s %s (%s to %s; σ between sessions %.2f %%, between processes %.2f %%)",
			m.Summary, compare.Percent(m.Estimate), compare.Percent(m.Low), compare.Percent(m.High), 100*m.SigmaSession, 100*m.SigmaProcess))
	}
	figures := fmt.Sprintf("%s against %d sessions", strings.Join(parts, ", "), o.Sessions)
	switch o.Reason {
	case compare.NotMeasured:
		return fmt.Sprintf("%d processes now against %d sessions: nothing to compare", o.Processes, o.Sessions)
	case compare.InvalidProcess:
		return o.Invalid.Error()
	case compare.TooFewPairs:
		return fmt.Sprintf("%s; fewer than %d sessions are advice only", figures, compare.FewestSessions)
	case compare.AboveTolerance:
		return "slower than the sessions before: " + figures
	case compare.SuspectCollapse:
		return fmt.Sprintf("at least %.0f %% faster without an explanation: %s", -100*compare.CollapseBelow, figures)
	case compare.ZeroVariance:
		return figures + "; all sessions gave the same time"
	case compare.BelowDetect:
		return "proven below the effect to be found: " + figures
	}
	return figures + "; measure base and head together to decide"
}

// againstLimit says how the interval of a time lies to a limit.
func againstLimit(o compare.AbsoluteOutcome, r *policy.Rule) string {
	arm := o.Arm
	figures := fmt.Sprintf("%s %.1f ns (%.1f to %.1f) after %d processes", r.Metric.Summary, arm.Median, arm.Low, arm.High, arm.Processes)
	switch {
	case o.Reason == compare.NotMeasured:
		return "no process was measured"
	case o.Reason == compare.InvalidProcess:
		return o.Invalid.Error()
	case o.Limit == 0:
		return fmt.Sprintf("a limit of %v ns is not a limit: %s", r.Limit.Number, figures)
	case o.Reason == compare.TooFewPairs:
		return "too few processes for an interval, at least 7 are needed: " + figures
	case o.Reason == compare.AboveTolerance:
		return fmt.Sprintf("above the limit of %.1f ns: %s", o.Limit, figures)
	case o.Reason == compare.ZeroVariance:
		return "all inner processes gave the same time: " + figures
	case o.Reason == compare.BelowDetect:
		return fmt.Sprintf("below the limit of %.1f ns: %s", o.Limit, figures)
	}
	return fmt.Sprintf("the interval holds the limit of %.1f ns: %s", o.Limit, figures)
}
