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

// blockLaunches is the number of processes in a block.
const blockLaunches = len(compare.AABlock{})

// maxAttempts is how often in a row a block is given up before the run is.
const maxAttempts = 3

// A calibration is an A/A run: what an experiment measures, with one artifact
// in the place of both arms.
type calibration struct {
	c         *Bench
	series    map[string]*timing
	discarded []evidence.Discarded
	wall      time.Duration // of the blocks that were kept
	blocks    int
	guests    guests
}

// Calibrate times units against themselves, in blocks of eight fresh processes
// that all of them share, in an order drawn for each block. It returns one
// record a unit, in their order. A unit that fails is taken out and the block
// is repeated for the others. Whole blocks are kept when a later one ends the
// run with an error.
func (c *Bench) Calibrate(ctx context.Context, tasks []plan.Task, rounds int) ([]*evidence.Record, error) {
	return c.calibrate(ctx, c.units(tasks), rounds)
}

func (c *Bench) calibrate(ctx context.Context, asked []unit, blocks int) ([]*evidence.Record, error) {
	a := &calibration{c: c}
	if err := a.pilot(ctx, asked); err != nil {
		return nil, err
	}
	err := a.run(ctx, asked, blocks)
	if err != nil && a.blocks == 0 {
		return nil, err
	}
	var records []*evidence.Record
	for _, u := range asked {
		r, keepErr := a.record(u)
		err = errors.Join(err, keepErr)
		records = append(records, r)
	}
	if err != nil {
		return nil, err
	}
	return records, nil
}

// run runs blocks until there are enough. What an error leaves behind is whole
// blocks.
func (a *calibration) run(ctx context.Context, asked []unit, blocks int) error {
	for attempt := 1; a.blocks < blocks; attempt++ {
		units := a.left(asked)
		if len(units) == 0 {
			return nil
		}
		why, err := a.block(ctx, units, blocks)
		if err != nil {
			return err
		}
		switch {
		case why == "":
			attempt = 0
		case len(a.left(asked)) < len(units):
			attempt = 0 // the block failed by a unit that is out now
		case attempt == maxAttempts:
			return errors.New("the device would not hold still for a block: " + why)
		}
	}
	return nil
}

// pilot is the launch after which everything is in place. Its times are not
// used.
func (a *calibration) pilot(ctx context.Context, asked []unit) error {
	a.c.say("calibrating %d kernels, pilot", len(asked))
	a.series = map[string]*timing{}
	if err := a.c.launch(ctx, asked, a.series); err != nil {
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

// block runs one block and keeps it, or says why it is given up: by a launch
// that failed, the device's own words or a process that came, never by a time.
func (a *calibration) block(ctx context.Context, units []unit, of int) (why string, err error) {
	start, series := time.Now(), map[string]*timing{}
	shuffle(units)
	for n := range blockLaunches {
		a.c.say("calibrating %d kernels, block %d of %d, launch %d of %d", len(units), a.blocks+1, of, n+1, blockLaunches)
		if err := a.c.launch(ctx, units, series); err != nil {
			return "", err
		}
		for _, u := range units {
			if f := series[u.run()].failure; f != nil {
				a.series[u.run()].failure = f
				why = u.run() + ": " + f.Message
			}
		}
		if why != "" {
			break // no launch more of a block that is lost
		}
	}
	if why == "" {
		why = slowed(series)
	}
	if intruder := a.guests.intruder(ctx); why == "" {
		why = intruder
	}
	if why != "" {
		a.discarded = append(a.discarded, evidence.Discarded{Number: a.blocks, Reason: why})
		return why, nil
	}
	for _, u := range units {
		from, to := series[u.run()], a.series[u.run()]
		to.samples = append(to.samples, from.samples...)
		to.raw.Write(from.raw.Bytes())
	}
	a.wall += time.Since(start)
	a.blocks++
	return "", nil
}

func (a *calibration) record(u unit) (*evidence.Record, error) {
	t := a.series[u.run()]
	if t.failure != nil {
		return a.c.failed(evidence.Calibration, u, t.failure), nil
	}
	r := a.c.record(evidence.Calibration, u)
	r.Samples = t.samples
	launches := float64(a.blocks * blockLaunches)
	r.AA = &evidence.AA{Blocks: a.blocks, Discarded: a.discarded,
		LaunchSeconds: a.wall.Seconds() / launches, TimedSeconds: seconds(t.samples) / launches}
	metrics, err := timeMetrics(t.samples)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.run(), err)
	}
	r.Metrics = metrics
	return r, a.c.keep(r, "", map[string][]byte{"harness.jsonl": t.raw.Bytes()})
}
