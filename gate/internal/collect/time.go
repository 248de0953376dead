package collect

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
)

func init() {
	tiers[evidence.Latency] = tier{measure: (*Bench).latency, audit: auditLatency, raw: []string{"harness.jsonl"}, sections: []string{"samples"}}
}

// latency measures one step of times.
func (c *Bench) latency(ctx context.Context, s plan.Step, l *evidence.Ledger) error {
	if !s.Together() {
		return enter(l)(c.timeAlone(ctx, c.units(s.Tasks), s.States))
	}
	var pairs []pair
	for _, t := range s.Tasks {
		p := c.pairOf(t)
		p.Earlier = l.Find(evidence.NeedOf(t.Key)).Earlier
		pairs = append(pairs, p)
	}
	return enter(l)(c.timeTogether(ctx, pairs, s.Tests, s.States, c.budget, s.Plan))
}

// timing is the series of samples of one unit, with the lines they came from.
type timing struct {
	samples []evidence.Sample
	absent  map[evidence.CacheState]string // the reason, by state without a sample
	raw     bytes.Buffer
	failure *evidence.Failure
}

// singleProcesses is how many fresh processes time a kernel that is compared
// with nothing.
const singleProcesses = 10

// A solo is what was measured of units that are compared with nothing.
type solo struct {
	c      *Bench
	as     evidence.Open
	asked  []unit
	series map[string]*timing
	done   map[string]int              // processes
	kept   map[string]*evidence.Record // of those that have enough
}

// timeAlone measures units that are compared with nothing: every process is a fresh
// process that all units share, or as many of them as one takes. What an earlier run
// measured of them counts. It returns one record a unit, in their order, and nil for
// those that an error left without enough processes and that did not fail.
func (c *Bench) timeAlone(ctx context.Context, asked []unit, states []evidence.CacheState) ([]*evidence.Record, error) {
	o := &solo{c: c, as: c.alone(states), asked: asked, series: map[string]*timing{}, done: map[string]int{}, kept: map[string]*evidence.Record{}}
	for _, u := range asked {
		o.series[u.run()] = &timing{}
		if r, raw := c.unfinished(evidence.Key{Tier: evidence.Latency, At: u.address}, o.as, ""); r != nil {
			o.series[u.run()].samples, o.done[u.run()] = r.Samples, r.Open.Processes
			o.series[u.run()].raw.Write(raw["harness.jsonl"])
		}
	}
	err := o.run(ctx, states)
	var records []*evidence.Record
	for _, u := range asked {
		if o.kept[u.run()] == nil && (err == nil || o.series[u.run()].failure != nil) {
			err = errors.Join(err, o.keep(u))
		}
		records = append(records, o.kept[u.run()])
	}
	return records, err
}

// run runs processes until every unit has enough of them.
func (o *solo) run(ctx context.Context, states []evidence.CacheState) (err error) {
	relay := o.c.relay(states)
	defer relay.closing(&err)
	for groups := o.draw(nil); len(groups) > 0; {
		units := groups[0]
		if groups = groups[1:]; len(groups) == 0 {
			groups = o.draw(units)
		}
		var follows []unit
		if len(groups) > 0 {
			follows = groups[0]
		}
		o.c.reach(passed(o.asked, o.done))
		o.c.say("timing %d kernels, process %d of %d", len(units), min(o.done[units[0].run()]+1, singleProcesses), singleProcesses)
		if err := relay.process(ctx, units, follows, o.series); err != nil {
			return err
		}
		for _, u := range units {
			o.done[u.run()]++
			if t := o.series[u.run()]; t.failure == nil && len(t.samples) == 0 {
				o.done[u.run()] = singleProcesses // further ones would find no time either
			}
			if err := o.save(u); err != nil {
				return err
			}
		}
		if err := o.finish(); err != nil {
			return err
		}
	}
	return nil
}

// finish keeps the records of units that have enough processes.
func (o *solo) finish() error {
	for _, u := range o.asked {
		if o.kept[u.run()] != nil || o.done[u.run()] < singleProcesses {
			continue
		}
		if err := o.keep(u); err != nil {
			return err
		}
	}
	return nil
}

// save keeps what the processes so far say of a unit that needs more of them.
func (o *solo) save(u unit) error {
	t := o.series[u.run()]
	if t.failure != nil || o.done[u.run()] >= singleProcesses {
		return nil
	}
	r, err := o.c.timesOf(u, t)
	if err != nil {
		return err
	}
	as := o.as
	as.Processes = o.done[u.run()]
	return o.c.save(r, as, map[string][]byte{"harness.jsonl": t.raw.Bytes()})
}

// keep keeps the record of a unit.
func (o *solo) keep(u unit) (err error) {
	o.kept[u.run()], err = o.c.timeRecord(u, o.series[u.run()])
	return err
}

// draw is the next process of every unit that needs one more after those that are
// under way, in an order of its own.
func (o *solo) draw(underWay []unit) [][]unit {
	done := maps.Clone(o.done)
	for _, u := range underWay {
		done[u.run()]++
	}
	units := slices.DeleteFunc(slices.Clone(o.asked), func(u unit) bool { return done[u.run()] >= singleProcesses || o.series[u.run()].failure != nil })
	shuffle(units)
	return o.c.groups(units)
}

// passed is the part of all processes of units that need no more of them.
func passed(units []unit, done map[string]int) float64 {
	sum := 0
	for _, u := range units {
		sum += min(done[u.run()], singleProcesses)
	}
	return float64(sum) / float64(len(units)*singleProcesses)
}

func (c *Bench) timeRecord(u unit, t *timing) (*evidence.Record, error) {
	if t.failure != nil {
		return c.failed(evidence.Latency, u, t.failure), nil
	}
	r, err := c.timesOf(u, t)
	if err != nil {
		return nil, err
	}
	return r, c.finish(r, "", map[string][]byte{"harness.jsonl": t.raw.Bytes()})
}

func (c *Bench) timesOf(u unit, t *timing) (*evidence.Record, error) {
	r := c.record(evidence.Latency, u)
	r.Samples, r.Capacity = t.samples, capacityOf(t.raw.Bytes())
	var err error
	if r.Metrics, err = timeMetrics(t.samples); err != nil {
		return nil, fmt.Errorf("%s: %w", u.run(), err)
	}
	return r, nil
}

// timeMetrics are medians over processes of each process's summaries.
func timeMetrics(samples []evidence.Sample) (evidence.Metrics, error) {
	by := map[evidence.CacheState][]compare.Process{}
	for _, s := range samples {
		l, err := compare.Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		by[s.CacheState] = append(by[s.CacheState], l)
	}
	out := evidence.Metrics{}
	for _, m := range metric.All() {
		if !m.Time() {
			continue
		}
		if len(by[m.CacheState]) == 0 {
			continue // not asked for
		}
		s, err := compare.SummarizeArm(by[m.CacheState], m.Summary)
		if err != nil {
			return nil, err
		}
		out[m.Name] = evidence.Of(s.Median, m.Unit)
	}
	return out, nil
}

// culprit names the unit that broke a process.
func (c *Bench) culprit(s *stream, r command.Result, units []unit, states []evidence.CacheState) (string, *evidence.Failure) {
	if len(s.errors) > 0 {
		m := s.errors[0]
		if m.Kernel == "" {
			return "", m.fault()
		}
		return m.Kernel + "@" + m.Case, m.fault()
	}
	if f := failure(s, r, s.during()); f != nil {
		if s.last == nil {
			return "", f
		}
		return s.last.Kernel + "@" + s.last.Case, f
	}
	for _, t := range s.times {
		if err := t.valid(); err != nil {
			return t.Kernel + "@" + t.Case, &evidence.Failure{Kind: evidence.Wrong, Message: err.Error()}
		}
	}
	for _, u := range units {
		if f := c.untimed(s, u, states); f != nil {
			return u.run(), f
		}
	}
	return "", nil
}

// untimed says which of the states asked for has neither a time of a unit nor a
// reason why there is none. A unit that is too large to be warm has cold times all
// the same, where those are asked for.
func (c *Bench) untimed(s *stream, u unit, states []evidence.CacheState) *evidence.Failure {
	for _, state := range states {
		switch reason := s.absence(u, state); {
		case s.timed(u, state):
		case reason == "":
			return &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("the harness sent no %s time of it", state)}
		default:
			c.noteOnce(fmt.Sprintf("%s has no %s time: %s", u.run(), state, reason))
		}
	}
	return nil
}

// noteOnce adds a note that is not there yet.
func (c *Bench) noteOnce(note string) {
	if !slices.Contains(c.Notes, note) {
		c.Notes = append(c.Notes, note)
	}
}

// absence is why the harness has no time of a unit in a state, "" where it does not
// say that it has none.
func (s *stream) absence(u unit, state evidence.CacheState) string {
	for _, a := range s.absent {
		if a.Kernel == u.name() && a.Case == u.on.Name && a.Regime == string(state) {
			return a.Reason
		}
	}
	return ""
}

func (s *stream) timed(u unit, state evidence.CacheState) bool {
	return slices.ContainsFunc(s.times, func(t timeMsg) bool {
		return t.Kernel == u.name() && t.Case == u.on.Name && t.Regime == string(state)
	})
}

// words are states as the harness reads them.
func words(states []evidence.CacheState) string {
	var list []string
	for _, s := range states {
		list = append(list, string(s))
	}
	return strings.Join(list, ",")
}

func take(s *stream, units []unit, series map[string]*timing) error {
	for _, t := range s.times {
		to := series[t.Kernel+"@"+t.Case]
		if to == nil {
			return fmt.Errorf("timing: the harness reports %s on %s, which was not asked for", t.Kernel, t.Case)
		}
		to.samples = append(to.samples, t.sample())
	}
	for _, u := range units {
		to := series[u.run()]
		to.raw.Write(s.raw(u.name(), u.on.Name))
		to.absent = map[evidence.CacheState]string{}
		for _, state := range []evidence.CacheState{evidence.Warm, evidence.Cold} {
			to.absent[state] = s.absence(u, state)
		}
	}
	return nil
}

func randomUint32() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

func shuffle(units []unit) {
	for i := len(units) - 1; i > 0; i-- {
		j := int(randomUint32() % uint32(i+1))
		units[i], units[j] = units[j], units[i]
	}
}
