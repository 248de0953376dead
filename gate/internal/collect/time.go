package collect

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
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
	raw     bytes.Buffer
	failure *evidence.Failure
}

// singleProcesses is how many fresh processes time a kernel that is compared
// with nothing.
const singleProcesses = 10

// timeAlone measures units that are compared with nothing: every process is a fresh
// process that all units share. What an earlier run measured of them counts. It
// returns one record a unit, in their order.
func (c *Bench) timeAlone(ctx context.Context, asked []unit, states []evidence.CacheState) ([]*evidence.Record, error) {
	as, series, done := c.alone(states), map[string]*timing{}, map[string]int{}
	for _, u := range asked {
		series[u.run()] = &timing{}
		if r, raw := c.unfinished(evidence.Key{Tier: evidence.Latency, At: u.address}, as, ""); r != nil {
			series[u.run()].samples, done[u.run()] = r.Samples, r.Open.Processes
			series[u.run()].raw.Write(raw["harness.jsonl"])
		}
	}
	for {
		units := slices.DeleteFunc(slices.Clone(asked), func(u unit) bool { return done[u.run()] >= singleProcesses || series[u.run()].failure != nil })
		if len(units) == 0 {
			break
		}
		c.reach(passed(asked, done))
		c.say("timing %d kernels, process %d of %d", len(units), done[units[0].run()]+1, singleProcesses)
		shuffle(units)
		if err := c.process(ctx, units, states, series); err != nil {
			return nil, err
		}
		for _, u := range units {
			done[u.run()]++
			as.Processes = done[u.run()]
			if err := c.saveTimes(u, series[u.run()], as); err != nil {
				return nil, err
			}
		}
	}
	var records []*evidence.Record
	for _, u := range asked {
		r, err := c.timeRecord(u, series[u.run()])
		records = append(records, r)
		if err != nil {
			return records, err
		}
	}
	return records, nil
}

// passed is the part of all processes of units that need no more of them.
func passed(units []unit, done map[string]int) float64 {
	sum := 0
	for _, u := range units {
		sum += min(done[u.run()], singleProcesses)
	}
	return float64(sum) / float64(len(units)*singleProcesses)
}

// saveTimes keeps what the processes so far say of a unit.
func (c *Bench) saveTimes(u unit, t *timing, as evidence.Open) error {
	if t.failure != nil || len(t.samples) == 0 {
		return nil
	}
	r, err := c.timesOf(u, t)
	if err != nil {
		return err
	}
	return c.save(r, as, map[string][]byte{"harness.jsonl": t.raw.Bytes()})
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

// process runs one process over all units, in their order and in the states of
// the caches that are asked for, all of them where none is named. A unit that
// breaks the process is taken out and the process is repeated for the others.
func (c *Bench) process(ctx context.Context, units []unit, states []evidence.CacheState, series map[string]*timing) error {
	for {
		var left []unit
		for _, u := range units {
			if series[u.run()] == nil {
				series[u.run()] = &timing{}
			}
			if series[u.run()].failure == nil {
				left = append(left, u)
			}
		}
		if len(left) == 0 {
			return nil
		}
		args := append([]string{"--seed", strconv.FormatUint(uint64(randomUint32()), 10)}, callsArgs(left)...)
		if len(states) > 0 {
			args = append(args, "--regimes", words(states))
		}
		s, r, err := c.harness(ctx, "time", left, args...)
		if err != nil {
			return fmt.Errorf("timing: %w", err)
		}
		culprit, fault := c.culprit(s, r, left, states)
		if fault == nil {
			return take(s, left, series)
		}
		if !slices.ContainsFunc(left, func(u unit) bool { return u.run() == culprit }) { // nobody to take out
			return fmt.Errorf("timing: %w", fault)
		}
		series[culprit].failure = fault
		if unsettles(fault) {
			if err := c.probe(ctx); err != nil {
				return err
			}
		}
	}
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
		for _, state := range states {
			if !s.timed(u, state) {
				return u.run(), &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("the harness sent no %s time of it", state)}
			}
		}
	}
	return "", nil
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
		series[u.run()].raw.Write(s.raw(u.name(), u.on.Name))
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
