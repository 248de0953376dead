package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// times are the answers to all latency questions of a change. A record that
// holds no comparison leaves its own question open, with the reason in unread,
// and not those of the others.
type times struct {
	decided map[plan.ID]compare.Outcome
	stored  map[plan.ID]compare.StoredOutcome
	unread  map[plan.ID]string
}

// decideTimes puts every latency question of the change to the test at once,
// because the error rate is that of the whole change and not of one kernel. Each
// call counts the tests of the family that it does not judge itself. Advice has
// an error rate of its own, so that asking for it costs the others nothing.
func (j *judge) decideTimes() (times, error) {
	t := times{decided: map[plan.ID]compare.Outcome{}, stored: map[plan.ID]compare.StoredOutcome{}, unread: map[plan.ID]string{}}
	var gated, advice series
	var stored histories
	for i := range j.plan.Questions {
		q := &j.plan.Questions[i]
		if q.Test == nil || q.Stopped != "" {
			continue // what was stopped left the family
		}
		var err error
		switch sessions, alone, standIn := q.StandIn(j.ledger); {
		case q.Kind == plan.History:
			err = stored.add(j, q, q.Need(evidence.Answers, evidence.Sessions), q.Need(evidence.Answers, evidence.Latency))
		case standIn:
			err = stored.add(j, q, sessions, alone)
		case !q.Gated():
			err = advice.add(j, q)
		default:
			err = gated.add(j, q)
		}
		if err != nil {
			t.unread[q.ID()] = err.Error()
		}
	}
	p := j.plan.Tests()
	if err := t.decide(advice, p); err != nil {
		return t, err
	}
	p.Elsewhere = j.plan.Family() - len(gated.all)
	if err := t.decide(gated, p); err != nil {
		return t, err
	}
	p.Elsewhere = j.plan.Family() - len(stored.all)
	outcomes, err := compare.DecideStored(stored.all, p)
	for i, o := range outcomes {
		t.stored[stored.ids[i]] = o
	}
	return t, err
}

func (t times) decide(s series, p compare.Plan) error {
	outcomes, err := compare.Decide(s.all, p)
	for i, o := range outcomes {
		t.decided[s.ids[i]] = o
	}
	return err
}

// series are experiments with the questions that they answer.
type series struct {
	ids []plan.ID
	all []compare.Series
}

// pairOf is the need of the experiment that a question asks for.
func pairOf(q *plan.Question) *evidence.Need {
	for _, n := range q.Needs {
		if n.Compares() {
			return n
		}
	}
	return nil
}

// add takes over the experiment of a question, where it was measured. A gated
// question that was not is still counted, as one of the family.
func (s *series) add(j *judge, q *plan.Question) error {
	n := pairOf(q)
	if n == nil {
		return nil
	}
	e := j.ledger.Find(n)
	if !e.Measured() || e.Record.Experiment == nil {
		return nil
	}
	if why := e.Record.Untimed(q.Test.CacheState); why != "" {
		return errors.New(why)
	}
	x, err := experimentOf(e.Record.Experiment, q.Test)
	if err == nil {
		err = x.Valid(j.plan.Tests())
	}
	if err != nil {
		return fmt.Errorf("the experiment cannot be judged: %w", err)
	}
	s.ids, s.all = append(s.ids, q.ID()), append(s.all, x)
	return nil
}

func experimentOf(r *evidence.Experiment, t *compare.Test) (compare.Series, error) {
	out := compare.Series{Summaries: []compare.Summary{t.Summary}}
	for _, b := range r.Rounds {
		round, err := compare.RoundOf(b, t.CacheState)
		if err != nil {
			return out, err
		}
		out.Rounds = append(out.Rounds, round)
	}
	base, err := compare.BaseTime(r.Pilot, t.CacheState, t.Summary)
	if err != nil {
		return out, fmt.Errorf("the pilot: %w", err)
	}
	out.Limits, err = t.Bound.At(base)
	return out, err
}

// histories are heads held against stored sessions, with their questions.
type histories struct {
	ids []plan.ID
	all []compare.Stored
}

func (s *histories) add(j *judge, q *plan.Question, sessions, alone *evidence.Need) error {
	if q.Weight == verdict.Info || sessions == nil || alone == nil {
		return nil
	}
	was, now := j.ledger.Find(sessions), j.ledger.Find(alone)
	if !was.Measured() || !now.Measured() {
		return nil
	}
	if why := now.Record.Untimed(q.Test.CacheState); why != "" {
		return errors.New(why)
	}
	one, err := storedOf(was.Record, now.Record, q.Test)
	if err == nil {
		err = one.Valid()
	}
	if err != nil {
		return fmt.Errorf("the sessions of the base's code cannot be judged: %w", err)
	}
	s.ids, s.all = append(s.ids, q.ID()), append(s.all, one)
	return nil
}

func storedOf(was, now *evidence.Record, t *compare.Test) (compare.Stored, error) {
	out := compare.Stored{Summaries: []compare.Summary{t.Summary}}
	var err error
	if out.Now.Processes, err = compare.Processes(now.Samples, t.CacheState); err != nil {
		return out, err
	}
	card, all := now.Provenance.Card, []compare.Process(nil)
	for _, s := range was.Sessions {
		if card == "" || s.Card != card {
			continue // its speed is another card's
		}
		session := compare.JobOf(s, t.CacheState)
		out.History, all = append(out.History, session), append(all, session.Processes...)
	}
	if len(all) == 0 {
		return out, errors.New("none is of the card that timed the head")
	}
	base, err := compare.SummarizeArm(all, t.Summary)
	if err != nil {
		return out, err
	}
	out.Limits, err = t.Bound.At(base.Median)
	return out, err
}

// headTime is the head's time, with the record it comes from: its own, else
// that of an experiment. Where an experiment failed, the failure comes before a
// time that is only shown.
func (j *judge) headTime(q *plan.Question) (evidence.Value, *evidence.Record) {
	if n := q.Need(evidence.Answers, evidence.Latency); n != nil && !n.Compares() {
		return j.value(q, n)
	}
	if _, alone, ok := q.StandIn(j.ledger); ok && j.ledger.Find(alone).Record != nil {
		return j.value(q, alone)
	}
	if n := pairOf(q); n != nil && j.ledger.Find(n).Record != nil {
		return j.value(q, n)
	}
	if n := q.Need(evidence.Shown, evidence.Latency); n != nil {
		if v, r := j.value(q, n); r != nil || pairOf(q) == nil {
			return v, r
		}
	}
	return j.value(q, pairOf(q))
}

// experiment takes over what an experiment proved, or stored sessions where its
// other arm failed.
func (j *judge) experiment(q *plan.Question, f verdict.Finding) verdict.Finding {
	n := pairOf(q)
	e := j.ledger.Find(n)
	if e.Record == nil {
		f.Reason = j.missing(q, n)
		return f
	}
	if _, _, ok := q.StandIn(j.ledger); ok {
		f.Tool, f.Hint = true, e.Failure().Hint
		return j.history(q, f, e.Failure().Message)
	}
	return j.compared(q, f, e)
}

// compared is the finding of an experiment that has a record.
func (j *judge) compared(q *plan.Question, f verdict.Finding, e evidence.Entry) verdict.Finding {
	if fail := e.Failure(); fail != nil {
		f.Status, f.Reason, f.Tool, f.Hint = blame(fail.Blames()), fail.Message, !fail.Blames(), fail.Hint
		return f
	}
	if why := orElse(q.Stopped, j.times.unread[q.ID()]); why != "" {
		f.Reason = why
		return f
	}
	o, ok := j.times.decided[q.ID()]
	if !ok || len(o.Summaries) == 0 {
		f.Reason = "the experiment holds no comparison"
		return f
	}
	m := o.Summaries[0]
	base, head := evidence.Of(m.Base, "ns"), evidence.Of(m.Head, "ns")
	f.Base, f.Head = &base, &head
	f.Interval = &verdict.Interval{Estimate: m.Estimate, Low: m.Low, High: m.High, Pairs: o.Pairs,
		Looks: m.Looks, Slow: m.Slow, Excluded: m.Excluded, MDE90: m.MDE90, Modes: m.Modes, Improved: o.Decision == compare.Improved}
	f.Status, f.Reason = statusOf(o.Decision), comparison(o, j.plan.Tests())
	f = unexplained(q, f, m.Estimate)
	if budget := budgets[e.Record.Experiment.Stopped]; f.Status == verdict.Inconclusive && budget != "" {
		f.Reason += "; " + budget + " is used up"
	}
	return f
}

// unexplained asks about a time that passes and is faster by more than the rule
// lets go by.
func unexplained(q *plan.Question, f verdict.Finding, estimate float64) verdict.Finding {
	if q.Rule.Gain.Set && f.Status == verdict.Pass && -estimate > q.Rule.Gain.Number {
		return tooGood(q, f)
	}
	return f
}

// budgets are what ends an experiment that is not decided, by the driver's
// words for it.
var budgets = map[string]string{"wall": "latency.budget", "gpu": "latency.gpu_budget"}

// ratio judges a limit on the ratio to a reference's time.
func (j *judge) ratio(q *plan.Question, f verdict.Finding) verdict.Finding {
	f.RelativeTo = q.Reference
	first, n := q.Need(evidence.First, evidence.Correctness), pairOf(q)
	correct, e := j.ledger.Find(first), j.ledger.Find(n)
	status, why := correctness(correct.Record)
	switch {
	case status != verdict.Pass && (correct.Record != nil || e.Record != nil):
		if correct.Record == nil {
			why = j.missing(q, first)
		}
		f.Reason = fmt.Sprintf("the reference %s is not a measure: %s", f.RelativeTo, why)
		if fail := correct.Failure(); fail != nil {
			f.Tool, f.Hint = !fail.Blames(), fail.Hint
		}
	case e.Record == nil:
		// A reference that cannot be had is not timed either, and the cause is
		// known of its check alone.
		f.Reason = strings.Join(append([]string{j.missing(q, n)}, news(correct.Why, e.Why)...), "; ")
	default:
		f = j.compared(q, f, e)
	}
	f.Reason = orElse(f.Reason, "not measured")
	return f
}

// news are the causes that were not named yet.
func news(causes, named []string) []string {
	return slices.DeleteFunc(slices.Clone(causes), func(c string) bool { return slices.Contains(named, c) })
}

// nameFastest says of a rule with several references which of them is the
// fastest, and counts: the others are slower, and hold where it does.
func nameFastest(asked []plan.Question, findings []verdict.Finding) {
	of, least := map[plan.ID]int{}, map[plan.ID]int{}
	for i, q := range asked {
		if q.Kind != plan.Ratio || len(q.Rule.References(q.Subject.Name)) < 2 {
			continue
		}
		id := q.ID()
		id.Reference = "" // the question of the whole list
		of[id]++
		base := findings[i].Base
		if base == nil || !base.Known() {
			continue
		}
		if at, known := least[id]; !known || base.Number < findings[at].Base.Number {
			least[id] = i
		}
	}
	for id, i := range least {
		findings[i].Reason += fmt.Sprintf("; the fastest of %d references", of[id])
	}
}

// history judges a time by stored sessions of the base's code.
func (j *judge) history(q *plan.Question, f verdict.Finding, why string) verdict.Finding {
	sessions, alone, standIn := q.StandIn(j.ledger)
	if !standIn {
		sessions, alone = q.Need(evidence.Answers, evidence.Sessions), q.Need(evidence.Answers, evidence.Latency)
	}
	o, ok := j.times.stored[q.ID()]
	switch {
	case ok && len(o.Summaries) > 0:
		m := o.Summaries[0]
		base, head := evidence.Of(m.Base, "ns"), evidence.Of(m.Head, "ns")
		f.Base, f.Head, f.Status, f.Reason = &base, &head, statusOf(o.Decision), againstSessions(o)
		f.Tool = f.Tool && f.Status == verdict.Inconclusive
		f = unexplained(q, f, m.Estimate)
		f.Sessions = &verdict.Sessions{Count: o.Sessions, Estimate: m.Estimate, Low: m.Low, High: m.High, SigmaSession: m.SigmaSession, SigmaProcess: m.SigmaProcess}
	case ok:
		f.Reason = againstSessions(o)
	case q.Stopped != "" || j.times.unread[q.ID()] != "":
		f.Reason = orElse(q.Stopped, j.times.unread[q.ID()])
	case sessions == nil || alone == nil:
		f.Reason = "advice is not held against stored sessions"
	case !standIn && j.ledger.Find(alone).Record == nil:
		f.Reason = j.missing(q, alone)
	case j.ledger.Find(sessions).Record == nil:
		f.Reason = j.missing(q, sessions)
	case j.ledger.Find(alone).Record == nil:
		f.Reason = j.missing(q, alone)
	default:
		f.Reason = "the head was not timed by itself"
	}
	f.Reason = fmt.Sprintf("%s; %s", why, f.Reason)
	return f
}

// timeLimit judges a bound on the time itself: the interval must lie below it.
func timeLimit(r *policy.Rule, head *evidence.Record) (verdict.Status, string) {
	processes, err := compare.Processes(head.Samples, r.Metric.CacheState)
	if err != nil {
		return verdict.Inconclusive, err.Error()
	}
	o := compare.DecideAbsolute(processes, r.Metric.Summary, r.Limit.Number)
	return statusOf(o.Decision), againstLimit(o, r)
}

func statusOf(v compare.Decision) verdict.Status {
	switch v {
	case compare.Regressed:
		return verdict.Fail
	case compare.Pass, compare.Improved:
		return verdict.Pass
	}
	return verdict.Inconclusive
}

// withNoise says of a time that passes what would have been found, by a
// calibration where the times themselves do not tell.
func (j *judge) withNoise(q *plan.Question, f verdict.Finding) verdict.Finding {
	told := f.Sessions != nil || f.Interval != nil && (f.Interval.MDE90 != nil || f.Interval.Excluded != nil)
	if f.Status != verdict.Pass || told {
		return f
	}
	calibration := j.calibration(q)
	if calibration == nil {
		return f
	}
	limits := j.plan.Policy.Limits
	if q.Test != nil {
		var err error
		if limits, err = q.Test.Bound.At(f.Base.Number); err != nil {
			return f // a floor that is not a share of the base's time
		}
	}
	rounds, err := compare.AARounds(calibration.Samples, q.Rule.Metric.CacheState)
	if err != nil {
		return f
	}
	p := j.plan.Tests()
	found, err := compare.SpreadOf(rounds, limits, p, p.LastPairs(), max(1, j.plan.Family()))
	if err == nil && found.MDE90 != nil {
		f.Noise = &verdict.Noise{MDE90: *found.MDE90, Recorded: calibration.Provenance.Recorded}
	}
	return f
}

// calibration is a recent A/A run of the head's code, else of the base's.
func (j *judge) calibration(q *plan.Question) *evidence.Record {
	for _, n := range q.Needs {
		if n.Tier != evidence.Calibration {
			continue
		}
		if e := j.ledger.Find(n); e.Measured() && e.Record.AA != nil {
			return e.Record
		}
	}
	return nil
}
