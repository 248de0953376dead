package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// A relay runs processes that time units, one after the other. Where it is told
// what follows, the next process starts when the one before has sent all of its
// results, so that it starts while the one before gives the device back. It is held
// at its first word, the config record, which comes before all that is measured of
// the card and of units, until the one before is gone: its exit status is known then,
// and nothing of it is on the device.
type relay struct {
	c      *Bench
	states []evidence.CacheState
	next   *runner // started and held
}

// A runner is a process of a relay.
type runner struct {
	*started
	hold chan struct{} // nil for one that was never held
	told chan struct{} // closed when all results have come
}

// relay times in the states that are asked for, in all of them where none is named.
// Who has one ends it.
func (c *Bench) relay(states []evidence.CacheState) *relay { return &relay{c: c, states: states} }

// end ends what was started for nothing.
func (r *relay) end() error {
	if r.next == nil {
		return nil
	}
	p := r.next
	r.next = nil
	return p.stop()
}

// process runs one process over all units, in their order. A unit that breaks the
// process is taken out and the process is repeated for the others. What follows it
// where it goes well is nil where that is not known.
func (r *relay) process(ctx context.Context, units, follows []unit, series map[string]*timing) error {
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
		s, end, err := r.run(ctx, left, follows)
		if err != nil {
			return fmt.Errorf("timing: %w", err)
		}
		culprit, fault := r.c.culprit(s, end, left, r.states)
		if fault == nil {
			return take(s, left, series)
		}
		if err := r.end(); err != nil {
			return fmt.Errorf("timing: %w", err)
		}
		if !slices.ContainsFunc(left, func(u unit) bool { return u.run() == culprit }) { // nobody to take out
			return fmt.Errorf("timing: %w", fault)
		}
		series[culprit].failure = fault
		if unsettles(fault) {
			if err := r.c.probe(ctx); err != nil {
				return err
			}
		}
	}
}

// run runs one process to its end. One that was started early and came to no unit
// may have failed because the one before it was still there, on a device that takes
// one process at a time: it runs again, and from then on none is started early.
func (r *relay) run(ctx context.Context, units, follows []unit) (*stream, command.Result, error) {
	p, err := r.taken(ctx, units)
	if err != nil {
		return nil, command.Result{}, err
	}
	if p.hold != nil {
		close(p.hold)
	}
	select {
	case <-p.told:
		r.early(ctx, follows)
	case <-p.ended:
	}
	s, end, err := p.finish()
	if err != nil || p.hold == nil || !neverBegan(s, end) {
		return s, end, err
	}
	r.c.apart = true
	r.c.Notes = append(r.c.Notes, "processes are started only when the one before is gone, because one that was started earlier failed")
	if err := r.end(); err != nil {
		return nil, end, err
	}
	return r.run(ctx, units, follows)
}

// neverBegan reports whether a process failed before it came to a unit.
func neverBegan(s *stream, end command.Result) bool {
	return s.last == nil && len(s.times) == 0 && (len(s.errors) > 0 || failure(s, end, "") != nil)
}

// taken is the process over these units: the one that was started for them, or a
// new one.
func (r *relay) taken(ctx context.Context, units []unit) (*runner, error) {
	if r.next != nil && slices.EqualFunc(r.next.units, units, func(a, b unit) bool { return a.run() == b.run() && a.artifact == b.artifact }) {
		p := r.next
		r.next = nil
		return p, nil
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return r.start(ctx, units, nil)
}

// early starts what follows. An error is left alone here: what could not be started is
// started again in its turn, and an error is told then.
func (r *relay) early(ctx context.Context, units []unit) {
	if len(units) == 0 || r.c.apart {
		return
	}
	if p, err := r.start(ctx, units, make(chan struct{})); err == nil {
		r.next = p
	}
}

func (r *relay) start(ctx context.Context, units []unit, hold chan struct{}) (*runner, error) {
	args := append([]string{"--seed", strconv.FormatUint(uint64(randomUint32()), 10)}, callsArgs(units)...)
	if len(r.states) > 0 {
		args = append(args, "--regimes", words(r.states))
	}
	p := &runner{hold: hold, told: make(chan struct{})}
	awaited := r.awaited(units)
	lines := func(text string) {
		if awaited.take(text) {
			close(p.told)
		}
	}
	var err error
	p.started, err = r.c.launch(ctx, "time", units, hold, lines, args...)
	return p, err
}

// awaited are results that have not come.
type awaited map[unitMsg]bool

func (r *relay) awaited(units []unit) awaited {
	states := r.states
	if len(states) == 0 {
		states = []evidence.CacheState{evidence.Warm, evidence.Cold}
	}
	a := awaited{}
	for _, u := range units {
		for _, s := range states {
			a[unitMsg{Kernel: u.name(), Case: u.on.Name, Regime: string(s)}] = true
		}
	}
	return a
}

// take takes a line, and reports whether the last result came with it. After an error
// that is never so. What is wrong with a line is found where the whole is read.
func (a awaited) take(line string) bool {
	var m message
	if strictjson.Decode([]byte(line), maxLine, &m) != nil || len(a) == 0 {
		return false
	}
	switch {
	case m.Time != nil, m.Absent != nil:
		delete(a, m.about())
	case m.Error != nil:
		a[unitMsg{}] = true
	}
	return len(a) == 0
}

// closing joins how a relay ended to an error.
func (r *relay) closing(err *error) { *err = errors.Join(*err, r.end()) }
