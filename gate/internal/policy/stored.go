package policy

import (
	"errors"
	"fmt"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// stored reports whether the times of a case are held against sessions of the
// base's code: the policy says so, or the base was run and failed. That an
// experiment is missing is no reason: deleting one must not change the test.
func (p *Policy) stored(c *CaseFacts) bool {
	record := c.Latency.Experiment.Record
	return p.Stored || record != nil && record.Failure != nil && record.Failure.OtherArm
}

// sessions gathers the questions that stored sessions answer.
func (t *times) sessions(p *Policy, f Facts) []compare.Stored {
	var out []compare.Stored
	for i := range f.Kernels {
		k := &f.Kernels[i]
		for j := range k.Cases {
			c := &k.Cases[j]
			if k.State != Changed || !p.stored(c) || !measuredWell(c.Latency.Sessions) || !measuredWell(c.Latency.Head) {
				continue
			}
			for _, r := range p.Rules {
				if !isLatency(r.Metric) || isAdvice(r.Metric) || !r.Compares() || !r.Matches(k.Name) {
					continue
				}
				name := experimentName(r, k, c)
				one, err := p.storedQuestion(r, c, name)
				if err == nil {
					err = one.Valid()
				}
				if err != nil {
					t.unread[name] = "the sessions of the base's code cannot be judged: " + err.Error()
					continue
				}
				out = append(out, one)
			}
		}
	}
	return out
}

func measuredWell(a Arm) bool { return a.Record != nil && a.Record.Failure == nil }

func (p *Policy) storedQuestion(r Rule, c *CaseFacts, name string) (compare.Stored, error) {
	q := compare.Stored{Name: name, Metrics: []compare.Metric{summary(r.Metric)}}
	var err error
	if q.Now.Launches, err = compare.Launches(c.Latency.Head.Record.Samples, regime(r.Metric)); err != nil {
		return q, err
	}
	card, all := c.Latency.Head.Record.Provenance.Card, []compare.Launch(nil)
	for _, s := range c.Latency.Sessions.Record.Sessions {
		if card == "" || s.Card != card {
			continue // its speed is another card's
		}
		session := compare.SessionOf(s, regime(r.Metric))
		q.History, all = append(q.History, session), append(all, session.Launches...)
	}
	if len(all) == 0 {
		return q, errors.New("none is of the card that timed the head")
	}
	base, err := compare.SummarizeArm(all, summary(r.Metric))
	if err != nil {
		return q, err
	}
	q.Limits, err = p.timeLimits(r, base.Median)
	return q, err
}

// applyStored judges a time by the sessions of the base's code.
func (j *judge) applyStored(r Rule, c *CaseFacts, f *Finding) {
	why := "the policy does not run the base"
	if e := c.Latency.Experiment.Record; !j.policy.Stored {
		why = e.Failure.Message
		f.Tool, f.Hint = true, e.Failure.Hint
	}
	name := experimentName(r, j.kernel, c)
	o, ok := j.times.stored[name]
	switch {
	case ok && len(o.Metrics) > 0:
		f.Status, f.Reason = statusOfTimes(o.Verdict), o.Detail
		f.Tool = f.Tool && f.Status == Inconclusive
		sessionFigures(o, f)
	case ok:
		f.Reason = o.Detail
	case j.times.unread[name] != "":
		f.Reason = j.times.unread[name]
	case !f.Head.Known():
		f.Reason = f.Head.Missing
	case c.Latency.Sessions.Record == nil:
		f.Reason = orElse(c.Latency.Sessions.Missing, "no session of the base's code is recorded")
	default:
		f.Reason = "the head was not timed by itself"
	}
	f.Reason = fmt.Sprintf("%s; %s", why, f.Reason)
}

func sessionFigures(o compare.StoredOutcome, f *Finding) {
	m := o.Metrics[0]
	base, head := evidence.Of(m.Base, "ns"), evidence.Of(m.Head, "ns")
	f.Base, f.Head = &base, &head
	f.Sessions = &Sessions{Count: o.Sessions, Estimate: m.Estimate, Low: m.Low, High: m.High, SigmaSession: m.SigmaSession, SigmaLaunch: m.SigmaLaunch}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
