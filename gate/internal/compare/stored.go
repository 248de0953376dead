package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/montanaflynn/stats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Stored mode judges one session against the sessions before it, where the
// base cannot be run. It pays for that with the variance between sessions.
const (
	FewestSessions  = 8    // below, the variance between sessions is not known
	fewestProcesses = 3    // of a session, so that trimming leaves a mean
	sessionTrimming = 0.1  // of the processes at either end
	maxSessions     = 4096 // a longer history is a malformed input
)

// constantBelow is the spread of logarithms below which values are one value:
// finer than any timer, coarser than the rounding of a mean.
const constantBelow = 1e-9

// A Job is one job's processes of one kernel, under one machine key.
type Job struct {
	Processes []Process `json:"launches"`
}

// Stored is a kernel with its history. The history holds the sessions since
// the last change, of one machine key; finding them is the caller's.
type Stored struct {
	Limits  Limits `json:"limits"`
	History []Job  `json:"history"`
	Now     Job    `json:"now"`
	// Summaries are the gated ones; none means Typical and Mean.
	Summaries []Summary `json:"metrics,omitempty"`
}

// A StoredOutcome is what stored mode proved. With fewer than eight sessions it
// is advisory: the decision is Inconclusive.
type StoredOutcome struct {
	Decision  Decision               `json:"verdict"`
	Reason    Reason                 `json:"reason"`
	Invalid   error                  `json:"-"` // why its times cannot be used, of InvalidProcess
	Advisory  bool                   `json:"advisory"`
	Sessions  int                    `json:"sessions"`  // in the history
	Processes int                    `json:"processes"` // of the session that is judged
	Summaries []StoredSummaryOutcome `json:"metrics,omitempty"`
}

// A StoredSummaryOutcome belongs to one gated metric.
type StoredSummaryOutcome struct {
	Summary  Summary `json:"metric"`
	Base     float64 `json:"base_ns"`  // geometric mean of the sessions
	Head     float64 `json:"head_ns"`  // this session
	Estimate float64 `json:"estimate"` // of this session against the mean of the history
	Low      float64 `json:"low"`      // 95 % prediction interval
	High     float64 `json:"high"`
	// SigmaSession and SigmaProcess are the two components of the noise, as
	// standard deviations of logarithms, from a one-way analysis of variance.
	SigmaSession float64 `json:"sigma_session"`
	SigmaProcess float64 `json:"sigma_launch"`
	PRegressed   float64 `json:"p_regressed"`
	PPass        float64 `json:"p_pass"`
	known        bool    // p values exist: enough sessions, not constant
}

// DecideStored judges all kernels of a pull request that have no base binary:
// Holm at Alpha over all of them, a pass at Beta for each.
// Outcomes stand in the order of the kernels.
func DecideStored(kernels []Stored, plan Plan) ([]StoredOutcome, error) {
	if err := plan.valid(); err != nil {
		return nil, err
	}
	var outcomes []StoredOutcome
	var ps []float64
	for i, k := range kernels {
		if err := k.Valid(); err != nil {
			return nil, fmt.Errorf("history %d: %w", i+1, err)
		}
		o := k.outcome()
		outcomes = append(outcomes, o)
		for i := range k.summaries() { // each counts, measured or not
			p := 1.0
			if i < len(o.Summaries) {
				p = o.Summaries[i].PRegressed
			}
			ps = append(ps, p)
		}
	}
	red := holmThreshold(ps, plan.Elsewhere, plan.Alpha)
	for i := range outcomes {
		outcomes[i].judge(red, plan)
	}
	return outcomes, nil
}

// Valid reports what DecideStored refuses.
func (k Stored) Valid() error {
	if err := k.Limits.Valid(); err != nil {
		return err
	}
	if k.Limits.Reference {
		return errors.New("a reference is measured in the same run, not stored")
	}
	if len(k.History) > maxSessions {
		return fmt.Errorf("there are %d sessions, at most %d are read", len(k.History), maxSessions)
	}
	return nil
}

// outcome computes figures and p values; judge turns them into a decision.
func (k Stored) outcome() StoredOutcome {
	o := StoredOutcome{Sessions: len(k.History), Processes: len(k.Now.Processes)}
	if len(k.Now.Processes) == 0 || len(k.History) == 0 {
		return o
	}
	for i, s := range append(slices.Clone(k.History), k.Now) {
		if err := s.valid(); err != nil {
			o.Reason, o.Invalid = InvalidProcess, fmt.Errorf("session %d: %w", i, err)
			return o
		}
	}
	o.Advisory = len(k.History) < FewestSessions
	for _, m := range k.summaries() {
		o.Summaries = append(o.Summaries, k.metric(m))
	}
	return o
}

func (k Stored) summaries() []Summary { return Series{Summaries: k.Summaries}.summaries() }

// valid reports the first process of a session that cannot be used.
func (s Job) valid() error {
	if len(s.Processes) < fewestProcesses {
		return fmt.Errorf("%w: %d processes, at least %d are needed", errInvalidProcess, len(s.Processes), fewestProcesses)
	}
	for i, l := range s.Processes {
		if err := l.valid(); err != nil {
			return fmt.Errorf("process %d: %w", i, err)
		}
	}
	return nil
}

// value is the logarithm of a session's trimmed mean.
func (s Job) value(m Summary) float64 {
	var values []float64
	for _, l := range s.Processes {
		values = append(values, m.of(l))
	}
	mean, err := stats.TrimmedMean(values, sessionTrimming)
	if err != nil {
		return math.NaN()
	}
	return math.Log(mean)
}

// metric compares this session with the prediction from the history: a value
// of the same distribution lies within t·s·√(1+1/H) of the mean.
func (k Stored) metric(m Summary) StoredSummaryOutcome {
	var history []float64
	for _, s := range k.History {
		history = append(history, s.value(m))
	}
	o := StoredSummaryOutcome{Summary: m, PRegressed: 1, PPass: 1}
	o.SigmaSession, o.SigmaProcess = sessionComponents(k.History, m)
	mean, now := average(history), k.Now.value(m)
	shift := now - mean
	o.Base, o.Head = math.Exp(mean), math.Exp(now)
	o.Estimate, o.Low, o.High = relative(shift), relative(shift), relative(shift)
	sd, err := stats.StandardDeviationSample(history)
	if err != nil || !(sd > constantBelow) {
		return o
	}
	n := float64(len(history))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	scale := math.Sqrt(sd*sd*(1+1/n) + o.SigmaProcess*o.SigmaProcess*k.sizes())
	half := t.Quantile((1+intervalConfidence)/2) * scale
	o.Low, o.High = relative(shift-half), relative(shift+half)
	o.PRegressed = t.Survival((shift - k.Limits.tolerated()) / scale)
	o.PPass = t.CDF((shift - k.Limits.detected()) / scale)
	o.known = len(history) >= FewestSessions
	if !o.known {
		o.PRegressed, o.PPass = 1, 1
	}
	return o
}

// sizes is what the variance of this session's value has more of the variance
// between processes than those of the history have, because it holds fewer.
func (k Stored) sizes() float64 {
	then := 0.0
	for _, s := range k.History {
		then += 1 / float64(len(s.Processes)) / float64(len(k.History))
	}
	return max(0, 1/float64(len(k.Now.Processes))-then)
}

// sessionComponents is the one-way analysis of variance over sessions. Unequal
// numbers of processes enter by their usual effective number.
func sessionComponents(sessions []Job, m Summary) (between, within float64) {
	groups := make([][]float64, len(sessions))
	for i, s := range sessions {
		for _, l := range s.Processes {
			groups[i] = append(groups[i], math.Log(m.of(l)))
		}
	}
	c := varianceComponents(groups)
	return math.Sqrt(c.between), math.Sqrt(c.within)
}

// judge sets decision and reason.
func (o *StoredOutcome) judge(red float64, plan Plan) {
	if len(o.Summaries) == 0 {
		return
	}
	regressed, passed, known, collapsed := false, true, true, false
	for _, m := range o.Summaries {
		regressed = regressed || m.known && m.PRegressed <= red
		passed = passed && m.known && m.PPass <= plan.Beta && m.PRegressed > plan.Alpha // as in an experiment
		known = known && m.known
		collapsed = collapsed || m.Estimate <= CollapseBelow
	}
	switch {
	case o.Advisory:
		o.Reason = TooFewPairs
	case regressed:
		o.Decision, o.Reason = Regressed, AboveTolerance
	case collapsed:
		o.Reason = SuspectCollapse
	case !known:
		o.Reason = ZeroVariance
	case passed:
		o.Decision, o.Reason = Pass, BelowDetect
	default:
		o.Reason = NotDecided
	}
}
