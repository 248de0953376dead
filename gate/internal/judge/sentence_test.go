package judge

import (
	"errors"
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// TestComparison holds the sentences of an experiment, each of its figures included.
func TestComparison(t *testing.T) {
	excluded := func(x float64) *float64 { return &x }
	limits := compare.Limits{Tolerance: 0.005, Detect: 0.02}
	tail := compare.Limits{Tolerance: 0.005, Detect: 0.02, Tail: 0.4}
	reference := compare.Limits{Tolerance: -0.25, Detect: -0.25, Reference: true}
	one := []compare.SummaryOutcome{{Summary: compare.Typical, Estimate: 0.0125, Low: -0.005, High: 0.03}}
	passed := []compare.SummaryOutcome{
		{Summary: compare.Typical, Estimate: 0.0025, Low: -0.005, High: 0.01, Excluded: excluded(0.0125)},
		{Summary: compare.Mean, Estimate: 0.005, Low: 0.0025, High: 0.0075, Excluded: excluded(0.01)},
	}
	faster := []compare.SummaryOutcome{{Summary: compare.Mean, Estimate: -0.05, Low: -0.06, High: -0.04, Excluded: excluded(-0.03)}}
	const figures, two = "typical +1.25 % (-0.50 % to +3.00 %)", "typical +0.25 % (-0.50 % to +1.00 %), mean +0.50 % (+0.25 % to +0.75 %)"
	plan := compare.Plan{PerArm: 4, Looks: []int{4, 40}}
	for _, c := range []struct {
		o    compare.Outcome
		want string
	}{
		{compare.Outcome{Reason: compare.NotMeasured}, "no round was measured"},
		{compare.Outcome{Reason: compare.NotMeasured, NeedPairs: -1}, "no round was measured"},
		{compare.Outcome{Reason: compare.NotMeasured, NeedPairs: 1}, "no round was measured; about 1 pairs would decide"},
		{compare.Outcome{Reason: compare.NotMeasured, NeedPairs: 40}, "no round was measured; about 40 pairs would decide"},
		{compare.Outcome{Reason: compare.NotMeasured, NeedPairs: 41}, "no round was measured; more than the plan's 40 pairs would be needed"},
		{compare.Outcome{Reason: compare.InvalidProcess, Invalid: errors.New("round 1, head process 2: its mean is +Inf ns")}, "round 1, head process 2: its mean is +Inf ns"},
		{compare.Outcome{Reason: compare.TooFewPairs, Pairs: 4, Tests: 9, NeedPairs: 8, Limits: limits, Summaries: one},
			"4 pairs cannot decide among 9 tests: " + figures + " after 4 pairs; about 8 pairs would decide"},
		{compare.Outcome{Reason: compare.ZeroVariance, Pairs: 12, Limits: limits, Summaries: one},
			"one arm gave the same time in all 12 processes, so the timer is too coarse or nothing was measured: " + figures + " after 12 pairs"},
		{compare.Outcome{Reason: compare.SuspectCollapse, Pairs: 12, Limits: limits, Summaries: one},
			"at least 90 % faster without an explanation, which is how a kernel looks that does nothing: " + figures + " after 12 pairs"},
		{compare.Outcome{Reason: compare.AboveTolerance, Pairs: 12, Limits: limits, Summaries: one}, "slower than the tolerance of +0.50 %: " + figures + " after 12 pairs"},
		{compare.Outcome{Reason: compare.AboveTolerance, Pairs: 12, Limits: reference, Summaries: one},
			"above the limit of 0.75 × the reference's time: typical 1.012 × (0.995 × to 1.03 ×) after 12 pairs"},
		{compare.Outcome{Reason: compare.BelowDetect, Pairs: 8, Limits: limits, Summaries: passed},
			"proven below +2.00 %: " + two + " after 8 pairs; slower by more than +1.25 % is excluded (99 %)"},
		{compare.Outcome{Reason: compare.BelowDetect, Pairs: 8, Limits: tail, Summaries: passed},
			"proven below +2.00 %: " + two + " after 8 pairs; slower by more than +1.25 % is excluded (99 %); a mode in 40 % or more of the runs would have been seen"},
		{compare.Outcome{Reason: compare.BelowDetect, Pairs: 8, Limits: reference, Summaries: one},
			"proven below 0.75 ×: typical 1.012 × (0.995 × to 1.03 ×) after 8 pairs"},
		{compare.Outcome{Reason: compare.ProvenFaster, Pairs: 8, Limits: limits, Summaries: faster},
			"faster by more than +0.50 %: mean -5.00 % (-6.00 % to -4.00 %) after 8 pairs; slower by more than +0.00 % is excluded (99 %)"},
		{compare.Outcome{Reason: compare.NotDecided, Pairs: 36, NeedPairs: 41, Limits: limits, Summaries: one},
			"neither above +0.50 % nor below +2.00 % is proven: " + figures + " after 36 pairs; more than the plan's 40 pairs would be needed"},
		{compare.Outcome{Reason: compare.NotDecided, Pairs: 40, NeedPairs: 41, Limits: limits, Summaries: one},
			"neither above +0.50 % nor below +2.00 % is proven: " + figures + " after 40 pairs; the plan is used up; more than the plan's 40 pairs would be needed"},
	} {
		if got := comparison(c.o, plan); got != c.want {
			t.Errorf("%s\n got  %s\n want %s", c.o.Reason, got, c.want)
		}
	}
}

// TestSlowProcessesAreTold: of whichever metric, and as often as they are.
func TestSlowProcessesAreTold(t *testing.T) {
	const alone, told = " after 12 pairs", "; slow processes: 3 of 12 of the base, "
	for _, c := range []struct {
		slow [2]compare.Slow
		want string
	}{
		{[2]compare.Slow{}, alone},
		{[2]compare.Slow{{Base: 3}, {}}, alone + told + "0 of the head"},
		{[2]compare.Slow{{}, {Base: 3, Head: 3}}, alone + told + "3 of the head"},
		{[2]compare.Slow{{Head: 2}, {Base: 3, Head: 1}}, alone + told + "1 of the head"},
	} {
		o := compare.Outcome{Pairs: 12, Summaries: []compare.SummaryOutcome{{Summary: compare.Typical, Slow: c.slow[0]}, {Summary: compare.Mean, Slow: c.slow[1]}}}
		if got, want := figuresOf(o), "typical +0.00 % (+0.00 % to +0.00 %), mean +0.00 % (+0.00 % to +0.00 %)"+c.want; got != want {
			t.Errorf("%+v\n got  %s\n want %s", c.slow, got, want)
		}
	}
}

// TestAgainstSessions holds the sentences about stored sessions.
func TestAgainstSessions(t *testing.T) {
	one := []compare.StoredSummaryOutcome{{Summary: compare.Typical, Estimate: 0.01, Low: -0.01, High: 0.03, SigmaSession: 0.0125, SigmaProcess: 0.0025}}
	const figures = "typical +1.00 % (-1.00 % to +3.00 %; σ between sessions 1.25 %, between processes 0.25 %)"
	for _, c := range []struct {
		o    compare.StoredOutcome
		want string
	}{
		{compare.StoredOutcome{Sessions: 9, Processes: 2}, "2 processes now against 9 sessions: nothing to compare"},
		{compare.StoredOutcome{Reason: compare.InvalidProcess, Invalid: errors.New("session 3: process 1: no time")}, "session 3: process 1: no time"},
		{compare.StoredOutcome{Reason: compare.TooFewPairs, Sessions: 3, Summaries: one}, figures + " against 3 sessions; fewer than 8 sessions are advice only"},
		{compare.StoredOutcome{Reason: compare.AboveTolerance, Sessions: 9, Summaries: one}, "slower than the sessions before: " + figures + " against 9 sessions"},
		{compare.StoredOutcome{Reason: compare.SuspectCollapse, Sessions: 9, Summaries: one}, "at least 90 % faster without an explanation: " + figures + " against 9 sessions"},
		{compare.StoredOutcome{Reason: compare.ZeroVariance, Sessions: 9, Summaries: one}, figures + " against 9 sessions; all sessions gave the same time"},
		{compare.StoredOutcome{Reason: compare.BelowDetect, Sessions: 9, Summaries: append(one, one...)},
			"proven below the effect to be found: " + figures + ", " + figures + " against 9 sessions"},
		{compare.StoredOutcome{Reason: compare.NotDecided, Sessions: 9, Summaries: one}, figures + " against 9 sessions; measure base and head together to decide"},
	} {
		if got := againstSessions(c.o); got != c.want {
			t.Errorf("%s\n got  %s\n want %s", c.o.Reason, got, c.want)
		}
	}
}

// TestAgainstLimit holds the sentences about a limit on a time.
func TestAgainstLimit(t *testing.T) {
	rule := &policy.Rule{Metric: metric.Metric{Summary: compare.Mean}, Limit: policy.Amount{Number: 125}}
	arm := compare.ArmSummary{Processes: 12, Median: 110, Low: 100, High: 120.5}
	const figures = "mean 110.0 ns (100.0 to 120.5) after 12 processes"
	for _, c := range []struct {
		o    compare.AbsoluteOutcome
		want string
	}{
		{compare.AbsoluteOutcome{Limit: 125}, "no process was measured"},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.InvalidProcess, Invalid: errors.New("process 2: no time")}, "process 2: no time"},
		{compare.AbsoluteOutcome{Reason: compare.NotDecided, Arm: arm}, "a limit of 125 ns is not a limit: " + figures},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.TooFewPairs, Arm: arm}, "too few processes for an interval, at least 7 are needed: " + figures},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.AboveTolerance, Arm: arm}, "above the limit of 125.0 ns: " + figures},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.ZeroVariance, Arm: arm}, "all inner processes gave the same time: " + figures},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.BelowDetect, Arm: arm}, "below the limit of 125.0 ns: " + figures},
		{compare.AbsoluteOutcome{Limit: 125, Reason: compare.NotDecided, Arm: arm}, "the interval holds the limit of 125.0 ns: " + figures},
	} {
		if got := againstLimit(c.o, rule); got != c.want {
			t.Errorf("%s\n got  %s\n want %s", c.o.Reason, got, c.want)
		}
	}
}
