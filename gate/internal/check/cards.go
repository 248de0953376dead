package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/judge"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A load is kernels that are measured at one place, and about how many seconds of
// a GPU they take.
type load struct {
	seconds float64
	kernels []string
}

// deal spreads the kernels of which something is missing over at most so many
// places, so that each takes about the same time of a GPU.
func (r *run) deal(most int) []load {
	var kernels []load
	for _, s := range r.asked.Subjects {
		if slices.ContainsFunc(kernels, func(l load) bool { return l.kernels[0] == s.Name }) {
			continue
		}
		if seconds := r.asked.Only([]string{s.Name}).Preview(r.ledger).GPUSeconds; seconds > 0 {
			kernels = append(kernels, load{seconds, []string{s.Name}})
		}
	}
	slices.SortStableFunc(kernels, func(a, b load) int { return cmp.Compare(b.seconds, a.seconds) })
	places := make([]load, max(1, min(most, len(kernels))))
	for _, k := range kernels { // the longest first, each to the place that has least
		least := 0
		for i := range places {
			if places[i].seconds < places[least].seconds && !r.continues(k.kernels[0]) {
				least = i
			}
		}
		places[least].seconds += k.seconds
		places[least].kernels = append(places[least].kernels, k.kernels...)
	}
	return places
}

// continues reports whether an experiment of a kernel is gone on with, which
// needs the card that it was begun on: that of the first place.
func (r *run) continues(kernel string) bool {
	return slices.ContainsFunc(r.asked.Questions, func(q plan.Question) bool {
		return q.Subject.Name == kernel && slices.ContainsFunc(q.Needs, func(n *evidence.Need) bool { return r.ledger.Find(n).Earlier != nil })
	})
}

// mostCards is more than a host has.
const mostCards = 64

// fill measures what the ledger lacks, on as many GPUs as there are kernels to
// measure and as nobody else uses. All that is measured of one kernel, head and
// base, comes from one of them: the others are to its worker what other shards
// are, and count in the family of its tests.
func (r *run) fill(ctx context.Context, first *collect.Bench, o collect.Options) error {
	benches := []*collect.Bench{first}
	if n := len(r.deal(mostCards)); n > 1 && o.GPU == "" {
		benches = append(benches, first.Others(ctx, o, n-1)...)
	}
	defer func() {
		for _, b := range benches[1:] {
			b.Close()
		}
	}()
	if len(benches) == 1 {
		asked, err := r.fillOn(ctx, first, r.asked, r.ledger)
		r.asked = asked
		r.notes, r.spans = append(r.notes, first.Notes...), append(r.spans, first.Spans...)
		return err
	}
	r.notes = append(r.notes, fmt.Sprintf("%d GPUs of this machine measured, head and base of a kernel always on the same one", len(benches)))
	loads, errs := r.deal(len(benches)), make([]error, len(benches))
	ledgers := make([]*evidence.Ledger, len(benches))
	var all sync.WaitGroup
	for i, b := range benches {
		ledgers[i] = r.ledger.Clone()
		asked := r.asked.Only(loads[i].kernels)
		all.Go(func() { _, errs[i] = r.fillOn(ctx, b, asked, ledgers[i]) })
	}
	all.Wait()
	for i, b := range benches {
		r.ledger.Join(ledgers[i])
		r.notes, r.spans = append(r.notes, b.Notes...), append(r.spans, b.Spans...)
	}
	r.asked = judge.Stop(r.asked, r.ledger)
	return errors.Join(errs...)
}

// fillOn measures what a plan asks for and a ledger lacks on one GPU.
func (r *run) fillOn(ctx context.Context, b *collect.Bench, asked plan.Plan, l *evidence.Ledger) (plan.Plan, error) {
	for {
		r.keeping.Lock()
		r.shelf.Load(asked.Needs(l), l) // another run may have measured meanwhile
		r.keeping.Unlock()
		asked = judge.Stop(asked, l)
		step := asked.Next(l)
		if step == nil {
			return asked, nil
		}
		if err := b.Fill(ctx, *step, l); err != nil {
			return asked, err
		}
	}
}
