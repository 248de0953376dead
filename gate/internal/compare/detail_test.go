package compare

import "testing"

// TestDetail holds the sentences of an outcome, each of its figures included.
func TestDetail(t *testing.T) {
	excluded := func(x float64) *float64 { return &x }
	limits := Limits{Tolerance: 0.005, Detect: 0.02}
	tail := Limits{Tolerance: 0.005, Detect: 0.02, Tail: 0.4}
	reference := Limits{Tolerance: -0.25, Detect: -0.25, Reference: true}
	one := []SummaryOutcome{{Summary: Typical, Estimate: 0.0125, Low: -0.005, High: 0.03}}
	passed := []SummaryOutcome{
		{Summary: Typical, Estimate: 0.0025, Low: -0.005, High: 0.01, Excluded: excluded(0.0125)},
		{Summary: Mean, Estimate: 0.005, Low: 0.0025, High: 0.0075, Excluded: excluded(0.01)},
	}
	faster := []SummaryOutcome{{Summary: Mean, Estimate: -0.05, Low: -0.06, High: -0.04, Excluded: excluded(-0.03)}}
	const figures, two = "typical +1.25 % (-0.50 % to +3.00 %)", "typical +0.25 % (-0.50 % to +1.00 %), mean +0.50 % (+0.25 % to +0.75 %)"
	plan := Plan{PerArm: 4, Looks: []int{4, 40}}
	for _, c := range []struct {
		o    Outcome
		want string
	}{
		{Outcome{Reason: notMeasured}, "no round was measured"},
		{Outcome{Reason: notMeasured, NeedPairs: -1}, "no round was measured"},
		{Outcome{Reason: notMeasured, NeedPairs: 1}, "no round was measured; about 1 pairs would decide"},
		{Outcome{Reason: notMeasured, NeedPairs: 40}, "no round was measured; about 40 pairs would decide"},
		{Outcome{Reason: notMeasured, NeedPairs: 41}, "no round was measured; more than the plan's 40 pairs would be needed"},
		{Outcome{Reason: tooFewPairs, Pairs: 4, Tests: 9, NeedPairs: 8, Limits: limits, Summaries: one},
			"4 pairs cannot decide among 9 tests: " + figures + " after 4 pairs; about 8 pairs would decide"},
		{Outcome{Reason: zeroVariance, Pairs: 12, Limits: limits, Summaries: one},
			"one arm gave the same time in all 12 processes, so the timer is too coarse or nothing was measured: " + figures + " after 12 pairs"},
		{Outcome{Reason: suspectCollapse, Pairs: 12, Limits: limits, Summaries: one},
			"at least 90 % faster without an explanation, which is how a kernel looks that does nothing: " + figures + " after 12 pairs"},
		{Outcome{Reason: aboveTolerance, Pairs: 12, Limits: limits, Summaries: one}, "slower than the tolerance of +0.50 %: " + figures + " after 12 pairs"},
		{Outcome{Reason: aboveTolerance, Pairs: 12, Limits: reference, Summaries: one},
			"above the limit of 0.75 × the reference's time: typical 1.012 × (0.995 × to 1.03 ×) after 12 pairs"},
		{Outcome{Reason: belowDetect, Pairs: 8, Limits: limits, Summaries: passed},
			"proven below +2.00 %: " + two + " after 8 pairs; slower by more than +1.25 % is excluded (99 %)"},
		{Outcome{Reason: belowDetect, Pairs: 8, Limits: tail, Summaries: passed},
			"proven below +2.00 %: " + two + " after 8 pairs; slower by more than +1.25 % is excluded (99 %); a mode in 40 % or more of the runs would have been seen"},
		{Outcome{Reason: belowDetect, Pairs: 8, Limits: reference, Summaries: one},
			"proven below 0.75 ×: typical 1.012 × (0.995 × to 1.03 ×) after 8 pairs"},
		{Outcome{Reason: provenFaster, Pairs: 8, Limits: limits, Summaries: faster},
			"faster by more than +0.50 %: mean -5.00 % (-6.00 % to -4.00 %) after 8 pairs; slower by more than +0.00 % is excluded (99 %)"},
		{Outcome{Reason: notDecided, Pairs: 36, NeedPairs: 41, Limits: limits, Summaries: one},
			"neither above +0.50 % nor below +2.00 % is proven: " + figures + " after 36 pairs; more than the plan's 40 pairs would be needed"},
		{Outcome{Reason: notDecided, Pairs: 40, NeedPairs: 41, Limits: limits, Summaries: one},
			"neither above +0.50 % nor below +2.00 % is proven: " + figures + " after 40 pairs; the plan is used up; more than the plan's 40 pairs would be needed"},
	} {
		if got := c.o.detail(plan); got != c.want {
			t.Errorf("%s\n got  %s\n want %s", c.o.Reason, got, c.want)
		}
	}
}

// TestSlowProcessesAreTold: of whichever metric, and as often as they are.
func TestSlowProcessesAreTold(t *testing.T) {
	const alone, told = " after 12 pairs", "; slow processes: 3 of 12 of the base, "
	for _, c := range []struct {
		slow [2]Slow
		want string
	}{
		{[2]Slow{}, alone},
		{[2]Slow{{Base: 3}, {}}, alone + told + "0 of the head"},
		{[2]Slow{{}, {Base: 3, Head: 3}}, alone + told + "3 of the head"},
		{[2]Slow{{Head: 2}, {Base: 3, Head: 1}}, alone + told + "1 of the head"},
	} {
		o := Outcome{Pairs: 12, Summaries: []SummaryOutcome{{Summary: Typical, Slow: c.slow[0]}, {Summary: Mean, Slow: c.slow[1]}}}
		if got, want := o.figures(), "typical +0.00 % (+0.00 % to +0.00 %), mean +0.00 % (+0.00 % to +0.00 %)"+c.want; got != want {
			t.Errorf("%+v\n got  %s\n want %s", c.slow, got, want)
		}
	}
}
