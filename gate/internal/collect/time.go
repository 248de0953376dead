package collect

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// A Pair is one kernel and case on both sides: the arms of an experiment.
type Pair struct{ Base, Head Unit }

// timing is the series of samples of one unit, with the lines they came from.
type timing struct {
	samples []evidence.Sample
	raw     bytes.Buffer
	failure *evidence.Failure
}

// singleLaunches is how many fresh processes time a kernel that is compared
// with nothing.
const singleLaunches = 8

// Time measures units that are compared with nothing: every launch is a fresh
// process that all units share. It returns one record a unit, in their order.
func (c *Collector) Time(ctx context.Context, units []Unit) ([]*evidence.Record, error) {
	series := map[string]*timing{}
	for n := range singleLaunches {
		c.say("timing %d kernels, launch %d of %d", len(units), n+1, singleLaunches)
		if err := c.launch(ctx, units, series); err != nil {
			return nil, err
		}
	}
	var records []*evidence.Record
	for _, u := range units {
		r, err := c.timeRecord(u, series[u.run()])
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

func (c *Collector) timeRecord(u Unit, t *timing) (*evidence.Record, error) {
	if t.failure != nil {
		return c.failed(evidence.Latency, u, t.failure), nil
	}
	r := c.record(evidence.Latency, u)
	r.Samples = t.samples
	metrics, err := timeMetrics(t.samples)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.run(), err)
	}
	r.Metrics = metrics
	return r, c.Keep(r, map[string][]byte{"harness.jsonl": t.raw.Bytes()})
}

// timeMetrics are medians over launches of each launch's summaries.
func timeMetrics(samples []evidence.Sample) (evidence.Metrics, error) {
	byRegime := map[string][]compare.Launch{}
	for _, s := range samples {
		l, err := compare.Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		byRegime[s.Regime] = append(byRegime[s.Regime], l)
	}
	out := evidence.Metrics{}
	for regime, prefix := range map[string]string{"warm": "latency.", "cold": "latency.cold_"} {
		for _, m := range []struct {
			name   string
			metric compare.Metric
		}{{"typical", compare.Typical}, {"mean", compare.Mean}} {
			s, err := compare.SummarizeArm(byRegime[regime], m.metric)
			if err != nil {
				out[prefix+m.name] = evidence.Absent(fmt.Sprintf("no %s launches: %v", regime, err), "ns")
				continue
			}
			out[prefix+m.name] = evidence.Of(s.Median, "ns")
		}
	}
	return out, nil
}

// launch runs one process over all units that have not failed. A unit that
// breaks the process is taken out and the launch is repeated for the others.
func (c *Collector) launch(ctx context.Context, units []Unit, series map[string]*timing) error {
	for {
		var left []Unit
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
		shuffle(left)
		s, e, err := c.harness(ctx, "time", left, "--pad", "--seed", strconv.FormatUint(uint64(randomUint32()), 10))
		if err != nil {
			return fmt.Errorf("timing: %w", err)
		}
		culprit, fault := c.culprit(s, e, left)
		if fault == nil {
			return take(s, left, series)
		}
		if culprit == "" {
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

// culprit names the unit that broke a launch.
func (c *Collector) culprit(s *stream, e *ending, units []Unit) (string, *evidence.Failure) {
	if len(s.errors) > 0 {
		m := s.errors[0]
		if m.Kernel == "" {
			return "", m.fault()
		}
		return m.Kernel + "@" + m.Case, m.fault()
	}
	if f := failure(s, e, s.during()); f != nil {
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
		if !s.timed(u) {
			return u.run(), &evidence.Failure{Kind: evidence.Tool, Message: "the harness sent no time of it"}
		}
	}
	return "", nil
}

func (s *stream) timed(u Unit) bool {
	return slices.ContainsFunc(s.times, func(t timeMsg) bool { return t.Kernel == u.Kernel && t.Case == u.Case.Name })
}

func take(s *stream, units []Unit, series map[string]*timing) error {
	for _, t := range s.times {
		to := series[t.Kernel+"@"+t.Case]
		if to == nil {
			return fmt.Errorf("timing: the harness reports %s on %s, which was not asked for", t.Kernel, t.Case)
		}
		to.samples = append(to.samples, t.sample())
	}
	for _, u := range units {
		series[u.run()].raw.Write(s.raw(u.Kernel, u.Case.Name))
	}
	return nil
}

// Experiment measures pairs in interleaved blocks of 4 + 4 fresh processes,
// every block in a random order that is written down before it runs.
func (c *Collector) Experiment(ctx context.Context, pairs []Pair, blocks int) ([]*evidence.Record, error) {
	base, head := map[string]*timing{}, map[string]*timing{}
	var orders []string
	for n := range blocks {
		order, err := compare.NewOrder(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("drawing an order: %w", err)
		}
		word := orderWord(order)
		orders = append(orders, word)
		for i := range word {
			c.say("timing %d pairs, block %d of %d (%s), launch %d of %d", len(pairs), n+1, blocks, word, i+1, len(word))
			arm, units := base, unitsOf(pairs, false, base, head)
			if word[i] == 'B' {
				arm, units = head, unitsOf(pairs, true, base, head)
			}
			if err := c.launch(ctx, units, arm); err != nil {
				return nil, err
			}
		}
	}
	return c.experimentRecords(pairs, orders, base, head)
}

// orderWord writes an order as "ABBABAAB": A is the base.
func orderWord(o compare.Order) string {
	word := make([]byte, 0, len(o))
	for _, arm := range o {
		if arm == compare.Head {
			word = append(word, 'B')
		} else {
			word = append(word, 'A')
		}
	}
	return string(word)
}

// unitsOf are one arm's units, without pairs of which either side has failed.
func unitsOf(pairs []Pair, head bool, a, b map[string]*timing) []Unit {
	var units []Unit
	for _, p := range pairs {
		if broken(a[p.Base.run()]) || broken(b[p.Head.run()]) {
			continue
		}
		if head {
			units = append(units, p.Head)
		} else {
			units = append(units, p.Base)
		}
	}
	return units
}

func broken(t *timing) bool { return t != nil && t.failure != nil }

func (c *Collector) experimentRecords(pairs []Pair, orders []string, base, head map[string]*timing) ([]*evidence.Record, error) {
	var records []*evidence.Record
	for _, p := range pairs {
		r := c.record(evidence.Latency, p.Head)
		r.Base = &p.Base.Address
		a, b := base[p.Base.run()], head[p.Head.run()]
		switch {
		case broken(b):
			r.Failure = b.failure
		case broken(a):
			r.Failure = &evidence.Failure{Kind: evidence.Tool, Message: "the base cannot be timed: " + a.failure.Message}
		case a == nil || b == nil:
			r.Failure = &evidence.Failure{Kind: evidence.Tool, Message: "the pair was not timed"}
		default:
			if err := c.keepExperiment(r, orders, a, b); err != nil {
				return nil, err
			}
		}
		records = append(records, r)
	}
	return records, nil
}

func (c *Collector) keepExperiment(r *evidence.Record, orders []string, a, b *timing) error {
	experiment, err := assemble(orders, a.samples, b.samples)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Provenance.Kernel, err)
	}
	r.Experiment = experiment
	metrics, err := timeMetrics(b.samples)
	if err != nil {
		return err
	}
	r.Metrics = metrics
	log, err := json.Marshal(orders)
	if err != nil {
		return err
	}
	return c.Keep(r, map[string][]byte{"orders.json": log, "base.jsonl": a.raw.Bytes(), "head.jsonl": b.raw.Bytes()})
}

// assemble deals the samples of each arm, which came in the order measured,
// out to their blocks.
func assemble(orders []string, base, head []evidence.Sample) (*evidence.Experiment, error) {
	e := &evidence.Experiment{}
	regimes := map[string]bool{}
	for _, s := range base {
		regimes[s.Regime] = true
	}
	for _, word := range orders {
		e.Blocks = append(e.Blocks, evidence.Block{Order: word})
	}
	for _, regime := range sorted(regimes) {
		a, b := ofRegime(base, regime), ofRegime(head, regime)
		for i, word := range orders {
			na, nb := bytes.Count([]byte(word), []byte("A")), bytes.Count([]byte(word), []byte("B"))
			if len(a) < na || len(b) < nb {
				return nil, fmt.Errorf("block %d lacks %s launches", i+1, regime)
			}
			e.Blocks[i].Base = append(e.Blocks[i].Base, a[:na]...)
			e.Blocks[i].Head = append(e.Blocks[i].Head, b[:nb]...)
			a, b = a[na:], b[nb:]
		}
		if len(a)+len(b) > 0 {
			return nil, fmt.Errorf("there are more %s launches than blocks hold", regime)
		}
	}
	return e, nil
}

func ofRegime(samples []evidence.Sample, regime string) []evidence.Sample {
	var out []evidence.Sample
	for _, s := range samples {
		if s.Regime == regime {
			out = append(out, s)
		}
	}
	return out
}

func sorted(set map[string]bool) []string {
	var out []string
	for s := range set {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

func randomUint32() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}

func shuffle(units []Unit) {
	for i := len(units) - 1; i > 0; i-- {
		j := int(randomUint32() % uint32(i+1))
		units[i], units[j] = units[j], units[i]
	}
}
