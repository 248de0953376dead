package compare

import (
	"math"
	"testing"
)

// alike is a session whose processes take all the same time.
func alike(log float64, processes int) Job {
	var s Job
	for range processes {
		s.Processes = append(s.Processes, Process{Typical: 1e5 * math.Exp(log), Mean: 1e5 * math.Exp(log)})
	}
	return s
}

// split is a session of four processes, two of them d above the others, around a level.
func split(log, d float64) Job {
	return Job{Processes: append(alike(log-d/2, 2).Processes, alike(log+d/2, 2).Processes...)}
}

// TestPredictionByHand: eight sessions at ±a have a variance of 8a²/7, and one
// more lies within t·√(8/7·9/8)·a; with seven degrees of freedom the t of 95 % is
// 2.364624 and that of 90 % is 1.894579.
func TestPredictionByHand(t *testing.T) {
	const a = 0.01
	limits := Limits{Tolerance: 0.005, Detect: 0.06}
	scale := a * math.Sqrt(9.0/7)
	var history []Job
	for i := range 8 {
		history = append(history, alike(a*float64(2*(i%2)-1), 3))
	}
	for _, c := range []struct{ shift, regressed, passed float64 }{
		{limits.tolerated(), 0.5, -1},
		{limits.tolerated() + 2.364624*scale, 0.025, -1},
		{limits.tolerated() - 2.364624*scale, 0.975, -1},
		{limits.detected(), -1, 0.5},
		{limits.detected() - 1.894579*scale, -1, 0.05},
		{limits.detected() + 1.894579*scale, -1, 0.95},
	} {
		m := Stored{Limits: limits, History: history, Now: alike(c.shift, 3)}.metric(Typical)
		half := 2.364624 * scale
		for name, pair := range map[string][2]float64{
			"base": {m.Base, 1e5}, "head": {m.Head, 1e5 * math.Exp(c.shift)}, "estimate": {m.Estimate, math.Expm1(c.shift)},
			"low": {m.Low, math.Expm1(c.shift - half)}, "high": {m.High, math.Expm1(c.shift + half)},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-5*max(1e-3, math.Abs(pair[1])) {
				t.Errorf("%v: %s is %v, want %v", c.shift, name, pair[0], pair[1])
			}
		}
		if c.regressed >= 0 && math.Abs(m.PRegressed-c.regressed) > 1e-6 || c.passed >= 0 && math.Abs(m.PPass-c.passed) > 1e-6 || !m.known {
			t.Errorf("%v: %+v, want %+v", c.shift, m, c)
		}
	}
	seven := Stored{Limits: limits, History: history[:7], Now: alike(0, 3)}.metric(Typical)
	if seven.known || seven.PRegressed != 1 || seven.PPass != 1 {
		t.Errorf("seven sessions: %+v", seven)
	}
}

// TestSmallerSession: what this session's value varies more because it holds fewer
// processes than those of the history: 1/3 − (1/4 + 1/6)/2, and nothing where it has more.
func TestSmallerSession(t *testing.T) {
	history := []Job{alike(0, 4), alike(0, 6)}
	for now, want := range map[int]float64{3: 1.0/3 - 5.0/24, 4: 1.0/4 - 5.0/24, 5: 0, 9: 0} {
		if got := (Stored{History: history, Now: alike(0, now)}).sizes(); math.Abs(got-want) > 1e-15 {
			t.Errorf("%d processes: %v, want %v", now, got, want)
		}
	}
	// Four processes at ±d/2 have d²/3 within, and three of one session are 1/12 of it more.
	const a, d = 0.01, 0.03
	limits := Limits{Tolerance: 0.005, Detect: 0.06}
	k := Stored{Limits: limits, Now: alike(0, 3)}
	for i := range 8 {
		k.History = append(k.History, split(a*float64(2*(i%2)-1), d))
	}
	m := k.metric(Typical)
	if math.Abs(m.SigmaProcess-d/math.Sqrt(3)) > 1e-12 {
		t.Errorf("between processes %v, want %v", m.SigmaProcess, d/math.Sqrt(3))
	}
	scale := math.Sqrt(a*a*9/7 + d*d/3/12)
	if got := (math.Log1p(m.High) - math.Log1p(m.Low)) / 2; math.Abs(got/(2.364624*scale)-1) > 1e-5 {
		t.Errorf("an interval of ±%v, want ±%v", got, 2.364624*scale)
	}
}

// TestStoredAtItsBounds: the longest history, and the shortest that decides.
func TestStoredAtItsBounds(t *testing.T) {
	plan := SequentialPlan()
	ok := Stored{Limits: storedLimits}
	for _, c := range []struct {
		history int
		want    string
	}{{maxSessions, ""}, {maxSessions + 1, "history 2: there are 4097 sessions, at most 4096 are read"}} {
		_, err := DecideStored([]Stored{ok, {Limits: storedLimits, History: make([]Job, c.history)}}, plan)
		if (c.want == "") != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("%d sessions: %v, want %q", c.history, err, c.want)
		}
	}
	for n, advisory := range map[int]bool{7: true, 8: false} {
		k := Stored{Limits: storedLimits, Now: alike(0, 3)}
		for i := range n {
			k.History = append(k.History, alike(0.002*float64(i%2), 3))
		}
		if o := storedOne(t, k); o.Advisory != advisory || (o.Decision == Inconclusive) != advisory {
			t.Errorf("%d sessions: %+v", n, o)
		}
	}
}

// TestJudgeStored: p values that are exactly at their bounds, for two metrics.
func TestJudgeStored(t *testing.T) {
	plan := SequentialPlan() // alpha and beta are 0.01
	const red = 0.005
	pass := StoredSummaryOutcome{Summary: Typical, Estimate: 0.01, Low: -0.01, High: 0.03, SigmaSession: 0.0125, SigmaProcess: 0.0025, PRegressed: 1, PPass: 0.01, known: true}
	with := func(change func(*StoredSummaryOutcome)) StoredSummaryOutcome { m := pass; change(&m); return m }
	for name, c := range map[string]struct {
		metrics []StoredSummaryOutcome
		want    Decision
		reason  Reason
	}{
		"passes at beta":              {[]StoredSummaryOutcome{pass}, Pass, BelowDetect},
		"both pass":                   {[]StoredSummaryOutcome{pass, pass}, Pass, BelowDetect},
		"above beta":                  {[]StoredSummaryOutcome{pass, with(func(m *StoredSummaryOutcome) { m.PPass = 0.0101 })}, Inconclusive, NotDecided},
		"red at the threshold":        {[]StoredSummaryOutcome{with(func(m *StoredSummaryOutcome) { m.PRegressed = red }), pass}, Regressed, AboveTolerance},
		"red alone at alpha":          {[]StoredSummaryOutcome{with(func(m *StoredSummaryOutcome) { m.PRegressed = 0.01 })}, Inconclusive, NotDecided},
		"not quite red alone":         {[]StoredSummaryOutcome{with(func(m *StoredSummaryOutcome) { m.PRegressed = 0.0101 })}, Pass, BelowDetect},
		"90 % faster":                 {[]StoredSummaryOutcome{pass, with(func(m *StoredSummaryOutcome) { m.Estimate = -0.9 })}, Inconclusive, SuspectCollapse},
		"not quite 90 % faster":       {[]StoredSummaryOutcome{with(func(m *StoredSummaryOutcome) { m.Estimate = -0.899 })}, Pass, BelowDetect},
		"unknown, and red if it were": {[]StoredSummaryOutcome{with(func(m *StoredSummaryOutcome) { m.known, m.PRegressed = false, 0 })}, Inconclusive, ZeroVariance},
		"one of two is unknown":       {[]StoredSummaryOutcome{pass, with(func(m *StoredSummaryOutcome) { m.known = false })}, Inconclusive, ZeroVariance},
		"nothing":                     {nil, Inconclusive, NotMeasured},
	} {
		o := StoredOutcome{Sessions: 9, Summaries: c.metrics}
		o.judge(red, plan)
		if o.Decision != c.want || o.Reason != c.reason {
			t.Errorf("%s: %s, %s, want %s, %s", name, o.Decision, o.Reason, c.want, c.reason)
		}
	}
	o := StoredOutcome{Advisory: true, Sessions: 3, Summaries: []StoredSummaryOutcome{pass}}
	if o.judge(red, plan); o.Decision != Inconclusive || o.Reason != TooFewPairs {
		t.Errorf("three sessions: %+v", o)
	}
}
