package collect

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A pair is the two arms of an experiment on one case: a kernel and its base,
// or a kernel and a reference in the base's place.
type pair struct {
	Base, Head unit
	Reference  bool
	Earlier    *evidence.Record // that is continued
}

func (p pair) key() evidence.Key {
	return evidence.Key{Tier: evidence.Latency, At: p.Head.address, Base: p.Base.address}
}

// other names the arm that is not the head's, for messages.
func (p pair) other() string {
	if p.Reference {
		return "the reference " + p.Base.kernel
	}
	return "the base"
}

// experiment is one series of rounds over all pairs of a change.
type experiment struct {
	c       *Bench
	arms    []*arms
	coarse  map[string]bool       // what was said to be measured coarsely
	states  []evidence.CacheState // that are timed
	as      evidence.Open         // as what the records are begun
	tests   []plan.Test           // those that the driver decides, in its order
	driver  *compare.Driver
	timed   float64 // seconds
	start   time.Time
	piloted bool // a process has run, so that everything is in place
	guests  guests
}

// timeTogether times pairs in interleaved rounds of 4 + 4 fresh processes, in
// orders drawn at random, until every test is decided or the budget is used.
// Units that several pairs have in common are timed once a process. The plan
// counts the tests of the same change that are judged from other records.
// It returns one record a pair, in their order.
func (c *Bench) timeTogether(ctx context.Context, pairs []pair, tests []plan.Test, states []evidence.CacheState, budget compare.Budget, p compare.Plan) ([]*evidence.Record, error) {
	x := &experiment{c: c, coarse: map[string]bool{}, states: states, as: c.together(p, states), start: time.Now()}
	for _, p := range pairs {
		a, err := c.resume(p, x.as)
		if err != nil {
			return nil, err
		}
		x.arms = append(x.arms, a)
	}
	err := x.pilot(ctx)
	x.fixCalls()
	if err == nil {
		err = x.plan(tests, budget, p)
	}
	if err == nil {
		err = x.rounds(ctx)
	}
	var records []*evidence.Record
	for _, a := range x.arms {
		r, keepErr := x.record(a)
		records = append(records, r)
		err = errors.Join(err, keepErr)
	}
	return records, err
}

// pilot times the base once: a floor in ns becomes a share of that time. The pilot of
// what has a round stays.
func (x *experiment) pilot(ctx context.Context) error {
	if !slices.ContainsFunc(x.arms, func(a *arms) bool { return len(a.experiment.Rounds) == 0 }) {
		return nil
	}
	series, err := x.first(ctx)
	if err != nil {
		return err
	}
	for _, a := range x.arms {
		t := series[a.pair.Base.run()]
		if len(a.experiment.Rounds) == 0 {
			a.experiment.Pilot, a.pilot = t.samples, t.raw.Bytes()
		}
		a.blame(t, false)
	}
	return nil
}

// first times every base before the rounds, so that files and drivers are loaded.
// Its times are not part of a round.
func (x *experiment) first(ctx context.Context) (series map[string]*timing, err error) {
	relay := x.c.relay(x.states)
	defer relay.closing(&err)
	series = map[string]*timing{}
	for _, units := range x.c.groups(unitsOf(x.arms, false)) {
		x.c.say("timing %d kernels, pilot", len(units))
		if err := relay.process(ctx, units, nil, series); err != nil {
			return series, err
		}
	}
	x.piloted = true
	return series, nil
}

// plan hands the tests to a driver. One whose pair failed already, or has no time in
// the state of the caches that it is about, is counted and not measured.
func (x *experiment) plan(tests []plan.Test, budget compare.Budget, p compare.Plan) error {
	var asked []compare.Series
	for _, t := range tests {
		a := x.arms[t.Task]
		a.tested = append(a.tested, t.CacheState)
		if a.failure != nil || !a.holds(t.CacheState) {
			p.Elsewhere++
			continue
		}
		base, err := compare.BaseTime(a.experiment.Pilot, t.CacheState, t.Summary)
		if err != nil {
			return fmt.Errorf("%s: %w", a.pair.Base.run(), err)
		}
		limits, err := t.Bound.At(base)
		if err != nil {
			return fmt.Errorf("%s: %w", a.pair.Base.run(), err)
		}
		one := compare.Series{Limits: limits, Summaries: []compare.Summary{t.Summary}}
		for _, b := range a.experiment.Rounds {
			round, err := compare.RoundOf(b, t.CacheState)
			if err != nil {
				return fmt.Errorf("%s: %w", a.pair.Head.run(), err)
			}
			one.Rounds = append(one.Rounds, round)
		}
		x.tests, asked = append(x.tests, t), append(asked, one)
	}
	if len(asked) == 0 {
		return nil
	}
	var err error
	x.driver, err = compare.NewDriver(p, budget, asked)
	return err
}

func (x *experiment) rounds(ctx context.Context) error {
	if x.driver == nil {
		return nil
	}
	for {
		step, more, err := x.driver.NextRound(rand.Reader)
		if errors.Is(err, compare.ErrRoundFailed) {
			x.stop("the device would not hold still for a round")
			return nil
		}
		if err != nil || !more {
			x.stop(x.driver.Stopped())
			return err
		}
		step = x.part(step)
		if err := x.before(ctx, step); err != nil {
			return err
		}
		if err := x.round(ctx, step); err != nil {
			return err
		}
	}
}

// before puts everything in its place for a round: its order is on the disk, with
// all rounds before it, when its first process starts.
func (x *experiment) before(ctx context.Context, step compare.Step) error {
	order := x.inOrder(step.Experiments)
	for _, a := range order {
		fmt.Fprintf(&a.orders, "%d %d %s %s\n", step.Number, step.Attempt, orderWord(step.Order), x.names(step.Experiments))
	}
	for _, a := range x.arms {
		if !slices.Contains(order, a) && a.saved == len(a.experiment.Rounds) {
			continue
		}
		if err := x.save(a); err != nil {
			return err
		}
	}
	if !x.piloted {
		if _, err := x.first(ctx); err != nil {
			return err
		}
	}
	if x.guests.c == nil {
		x.guests = x.c.guests(ctx)
	}
	return nil
}

func (x *experiment) stop(why string) {
	for _, a := range x.arms {
		a.experiment.Stopped = why
	}
}

// round runs one step. A pair that fails is dropped and the round is repeated
// for the others: a round that is not complete does not count.
func (x *experiment) round(ctx context.Context, step compare.Step) error {
	start := time.Now()
	order, word := x.inOrder(step.Experiments), orderWord(step.Order)
	processes, timed, err := x.processes(ctx, step, order, word)
	if err != nil {
		return err
	}
	x.timed += timed
	x.hold(order, processes, word)
	why := x.unusable(order, processes)
	if intruder := x.guests.intruder(ctx); why == "" {
		why = intruder
	}
	cost := compare.Cost{WallSeconds: time.Since(start).Seconds(), GPUSeconds: timed}
	if why == "" {
		return x.add(step, word, order, processes, cost)
	}
	for _, a := range order {
		a.experiment.Discarded = append(a.experiment.Discarded, evidence.Discarded{Number: step.Number, Order: word, Reason: why})
	}
	if err := x.driver.Discard(step, cost); err != nil {
		return err
	}
	x.dropFailed()
	return nil
}

// worth is the part of an experiment's work that so many rounds are counted as.
// Nobody knows how many it takes, so the first counts as half, and each further one
// as less.
func worth(rounds float64) float64 { return rounds / (rounds + 1) }

// processes runs the processes of a round, and none more once one has failed.
// Timed is the time, in seconds, that their batches were on the GPU.
func (x *experiment) processes(ctx context.Context, step compare.Step, order []*arms, word string) (all []map[string]*timing, timed float64, err error) {
	relay := x.c.relay(x.states)
	defer relay.closing(&err)
	for i, arm := range word {
		head := arm == 'B'
		var follows []unit
		if i+1 < len(word) {
			follows = unitsOf(order, word[i+1] == 'B')
		}
		x.c.reach(worth(float64(step.Number) + float64(i)/float64(len(word))))
		x.c.say("timing %d pairs, round %d (%s), process %d of %d", len(order), step.Number+1, word, i+1, len(word))
		one := map[string]*timing{}
		if err := relay.process(ctx, unitsOf(order, head), follows, one); err != nil {
			return nil, timed, err
		}
		all = append(all, one)
		for _, t := range one {
			timed += seconds(t.samples)
		}
		failed := false
		for _, a := range order {
			a.blame(one[a.unit(head).run()], head)
			failed = failed || a.failure != nil
		}
		if failed {
			break
		}
	}
	return all, timed, nil
}

// inOrder are the pairs of a step's tests, in the order drawn.
func (x *experiment) inOrder(tests []int) []*arms {
	var out []*arms
	for _, i := range tests {
		if a := x.arms[x.tests[i].Task]; !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// names are a step's tests as the log of orders writes them.
func (x *experiment) names(tests []int) string {
	var words []string
	for _, i := range tests {
		t := x.tests[i]
		words = append(words, fmt.Sprintf("%s/%s/%s", x.arms[t.Task].pair.Head.run(), t.CacheState, t.Summary))
	}
	return strings.Join(words, " ")
}

// unusable says why a round cannot be used, by the device's state and the
// processes' success, blind to every time.
func (x *experiment) unusable(order []*arms, processes []map[string]*timing) string {
	for _, a := range order {
		if a.failure != nil {
			return a.pair.Head.run() + ": " + a.failure.Message
		}
	}
	for _, l := range processes {
		if why := slowed(l); why != "" {
			return why
		}
	}
	return ""
}

// slowed says how the device held down its clocks around any of the processes.
func slowed(processes map[string]*timing) string {
	for _, unit := range slices.Sorted(maps.Keys(processes)) {
		for _, s := range processes[unit].samples {
			for _, reason := range append(slices.Clone(s.Before.Throttle), s.After.Throttle...) {
				if gpu.Forces(reason) {
					return "the device slowed itself down: " + reason
				}
			}
		}
	}
	return ""
}

func (x *experiment) dropFailed() {
	for i, t := range x.tests {
		if x.arms[t.Task].failure != nil {
			x.driver.Drop(i)
		}
	}
}

// add hands a round to the driver and keeps its samples.
func (x *experiment) add(step compare.Step, word string, order []*arms, processes []map[string]*timing, cost compare.Cost) error {
	whole := map[*arms]evidence.Round{}
	for _, a := range order {
		b := evidence.Round{Number: step.Number, Order: word}
		for i, arm := range word {
			t := processes[i][a.unit(arm == 'B').run()]
			if arm == 'B' {
				b.Head = append(b.Head, t.samples...)
				a.head.Write(t.raw.Bytes())
			} else {
				b.Base = append(b.Base, t.samples...)
				a.base.Write(t.raw.Bytes())
			}
		}
		whole[a] = b
	}
	rounds := map[int]compare.Round{}
	for _, i := range step.Experiments {
		t := x.tests[i]
		b, err := compare.RoundOf(whole[x.arms[t.Task]], t.CacheState)
		if err != nil {
			return fmt.Errorf("%s: %w", x.arms[t.Task].pair.Head.run(), err)
		}
		rounds[i] = b
	}
	for _, a := range order {
		a.experiment.Rounds = append(a.experiment.Rounds, whole[a])
	}
	return x.driver.Add(step, rounds, cost)
}

// seconds is the time that batches were on the GPU.
func seconds(samples []evidence.Sample) float64 {
	sum := 0.0
	for _, s := range samples {
		for _, t := range s.BatchesNS {
			sum += t * float64(s.Calls) * 1e-9
		}
	}
	return sum
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

// record makes the record of a pair, and keeps it where its plan ended it. What
// an error, a failure or a restless device ended stays where the next run goes on
// with it. Where there is a failure, that is handed back.
func (x *experiment) record(a *arms) (*evidence.Record, error) {
	if len(a.experiment.Rounds) == 0 && a.untimed() {
		return x.untimed(a)
	}
	if len(a.experiment.Rounds) == 0 {
		f := a.failure
		if f == nil {
			f = &evidence.Failure{Kind: evidence.Tool, Message: x.whyNoRound(a)}
		}
		return x.failed(a, f), nil
	}
	if a.failure != nil {
		return x.failed(a, a.failure), x.save(a)
	}
	if !a.experiment.Ended() {
		r, err := x.measured(a)
		return r, errors.Join(err, x.save(a))
	}
	r, err := x.measured(a)
	if err == nil {
		err = x.c.finish(r, a.pair.Base.kernel, a.raw())
	}
	return r, err
}

// untimed keeps the record of a pair of which the harness says why nothing that is
// tested can be timed. What it says is in the raw input of the pilot.
func (x *experiment) untimed(a *arms) (*evidence.Record, error) {
	a.experiment = evidence.Experiment{Pilot: a.experiment.Pilot, Stopped: "resolved"}
	r, err := x.measured(a)
	if err == nil {
		r.Capacity = capacityOf(a.pilot)
		err = x.c.finish(r, a.pair.Base.kernel, map[string][]byte{"pilot.jsonl": a.pilot})
	}
	return r, err
}

func (x *experiment) failed(a *arms, f *evidence.Failure) *evidence.Record {
	r := x.c.failed(evidence.Latency, a.pair.Head, f)
	r.Base = &a.pair.Base.address
	return r
}

// measured is the record of what was measured so far.
func (x *experiment) measured(a *arms) (*evidence.Record, error) {
	r, e := x.c.record(evidence.Latency, a.pair.Head), a.experiment
	e.WallSeconds, e.TimedSeconds = a.spent.WallSeconds+time.Since(x.start).Seconds(), a.spent.GPUSeconds+x.timed
	r.Base, r.Continues, r.Experiment, r.Capacity = &a.pair.Base.address, a.continues, &e, capacityOf(a.head.Bytes())
	var head []evidence.Sample
	for _, b := range e.Rounds {
		head = append(head, b.Head...)
	}
	var err error
	r.Metrics, err = timeMetrics(head)
	return r, err
}

// save keeps the rounds of a pair so far, and the order of the next one.
func (x *experiment) save(a *arms) error {
	r, err := x.measured(a)
	if err != nil {
		return err
	}
	r.Experiment.Stopped = ""
	a.saved = len(a.experiment.Rounds)
	return x.c.save(r, x.as, a.raw())
}
