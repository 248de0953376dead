package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// roundProcesses is the number of processes in a round.
const roundProcesses = len(compare.AARound{})

// maxAttempts is how often in a row a round is given up before the run is.
const maxAttempts = 3

// A calibration is an A/A run: what an experiment measures, with one artifact
// in the place of both arms.
type calibration struct {
	c         *Bench
	series    map[string]*timing
	discarded []evidence.Discarded
	wall      time.Duration // of the rounds that were kept
	rounds    int
	guests    guests
}

// Calibrate times units against themselves, in rounds of eight fresh processes
// that all of them share, or as many of them as one takes, in an order drawn for
// each round. It returns one record a unit, in their order. A unit that fails is
// taken out and the round is repeated for the others. Whole rounds are kept when a
// later one ends the run with an error; what was kept then is returned beside it, and
// nil in the place of what was not.
func (c *Bench) Calibrate(ctx context.Context, tasks []plan.Task, rounds int) ([]*evidence.Record, error) {
	for _, t := range tasks {
		if err := c.prepare(ctx, t); err != nil {
			return nil, err
		}
	}
	var records []*evidence.Record
	for _, units := range c.groups(c.units(tasks)) {
		some, err := c.calibrate(ctx, units, rounds)
		records = append(records, some...)
		if err != nil {
			return records, err
		}
	}
	return records, nil
}

func (c *Bench) calibrate(ctx context.Context, asked []unit, rounds int) ([]*evidence.Record, error) {
	a := &calibration{c: c}
	if err := a.pilot(ctx, asked); err != nil {
		return nil, err
	}
	err := a.run(ctx, asked, rounds)
	if err != nil && a.rounds == 0 {
		return nil, err
	}
	var records []*evidence.Record
	for _, u := range asked {
		r, keepErr := a.record(u)
		if keepErr != nil {
			r = nil
		}
		err = errors.Join(err, keepErr)
		records = append(records, r)
	}
	return records, err
}

// run runs rounds until there are enough. What an error leaves behind is whole
// rounds.
func (a *calibration) run(ctx context.Context, asked []unit, rounds int) error {
	for attempt := 1; a.rounds < rounds; attempt++ {
		units := a.left(asked)
		if len(units) == 0 {
			return nil
		}
		why, err := a.round(ctx, units, rounds)
		if err != nil {
			return err
		}
		switch {
		case why == "":
			attempt = 0
		case len(a.left(asked)) < len(units):
			attempt = 0 // the round failed by a unit that is out now
		case attempt == maxAttempts:
			return errors.New("the device would not hold still for a round: " + why)
		}
	}
	return nil
}

// pilot is the process after which everything is in place. Its times are not
// used.
func (a *calibration) pilot(ctx context.Context, asked []unit) error {
	a.c.say("calibrating %d kernels, pilot", len(asked))
	a.series = map[string]*timing{}
	if err := a.c.relay(nil).process(ctx, asked, nil, a.series); err != nil {
		return err
	}
	for _, t := range a.series {
		t.samples = nil
		t.raw.Reset()
	}
	a.guests = a.c.guests(ctx)
	return nil
}

// left are the units that have not failed.
func (a *calibration) left(asked []unit) []unit {
	return slices.DeleteFunc(slices.Clone(asked), func(u unit) bool { return a.series[u.run()].failure != nil })
}

// round runs one round and keeps it, or says why it is given up: by a process
// that failed, the device's own words or a process that came, never by a time.
func (a *calibration) round(ctx context.Context, units []unit, of int) (why string, err error) {
	start, series := time.Now(), map[string]*timing{}
	shuffle(units)
	if why, err = a.processes(ctx, units, of, series); err != nil {
		return "", err
	}
	if why == "" {
		why = slowed(series)
	}
	if intruder := a.guests.intruder(ctx); why == "" {
		why = intruder
	}
	if why != "" {
		a.discarded = append(a.discarded, evidence.Discarded{Number: a.rounds, Reason: why})
		return why, nil
	}
	for _, u := range units {
		from, to := series[u.run()], a.series[u.run()]
		to.samples = append(to.samples, from.samples...)
		to.raw.Write(from.raw.Bytes())
	}
	a.wall += time.Since(start)
	a.rounds++
	return "", nil
}

// processes runs those of a round, and none more of one that is lost.
func (a *calibration) processes(ctx context.Context, units []unit, of int, series map[string]*timing) (why string, err error) {
	relay := a.c.relay(nil)
	defer relay.closing(&err)
	for n := range roundProcesses {
		a.c.say("calibrating %d kernels, round %d of %d, process %d of %d", len(units), a.rounds+1, of, n+1, roundProcesses)
		follows := units
		if n == roundProcesses-1 {
			follows = nil
		}
		if err := relay.process(ctx, units, follows, series); err != nil {
			return "", err
		}
		for _, u := range units {
			if f := series[u.run()].failure; f != nil {
				a.series[u.run()].failure = f
				why = u.run() + ": " + f.Message
			}
		}
		if why != "" {
			break
		}
	}
	return why, nil
}

func (a *calibration) record(u unit) (*evidence.Record, error) {
	t := a.series[u.run()]
	if t.failure != nil {
		return a.c.failed(evidence.Calibration, u, t.failure), nil
	}
	r := a.c.record(evidence.Calibration, u)
	r.Samples = t.samples
	processes := float64(a.rounds * roundProcesses)
	r.AA = &evidence.AA{Rounds: a.rounds, Discarded: a.discarded,
		ProcessSeconds: a.wall.Seconds() / processes, TimedSeconds: seconds(t.samples) / processes}
	metrics, err := timeMetrics(t.samples)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.run(), err)
	}
	r.Metrics = metrics
	return r, a.c.keep(r, "", map[string][]byte{"harness.jsonl": t.raw.Bytes()})
}

func auditCalibration(_ Auditor, r *evidence.Record, raw map[string][]byte) error {
	if err := auditTimes(r, raw["harness.jsonl"], "", r.Samples); err != nil {
		return err
	}
	by := map[evidence.CacheState]int{}
	for _, s := range r.Samples {
		by[s.CacheState]++
	}
	processes := r.AA.Rounds * roundProcesses
	for state, n := range by {
		if n != processes {
			return fmt.Errorf("it holds %d %s samples, and %d rounds have %d", n, state, r.AA.Rounds, processes)
		}
	}
	if want := seconds(r.Samples) / float64(processes); !near(r.AA.TimedSeconds, want) {
		return fmt.Errorf("it says %g s of batches a process, and its samples %g", r.AA.TimedSeconds, want)
	}
	return nil
}
