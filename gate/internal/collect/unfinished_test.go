package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/store"
)

// A cutter is a bench on which runs are cut and continued, with what it keeps.
type cutter struct {
	*testing.T
	*Bench
	kept *[]*evidence.Record
	raw  map[string][]byte // of the record that was kept last
	left string            // the folder of what is not finished
}

func newCutter(t *testing.T, shell string) *cutter {
	b, kept := fake(t, timesOf(shell))
	c := &cutter{T: t, Bench: b, kept: kept, left: t.TempDir()}
	b.made = made()
	b.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	b.open = store.OpenUnfinished(c.left, store.Audit{Now: b.now}) // the fake's lines are not those of an audit
	keep := b.keep
	b.keep = func(r *evidence.Record, against string, raw map[string][]byte) error {
		c.raw = raw
		return keep(r, against, raw)
	}
	return c
}

// measured is a task with the address of a record that can be stored.
func measured(kernel, kase string) plan.Task {
	t := task(evidence.Latency, kernel, kernel, "", kase)
	t.At.Harness, t.At.Machine = strings.Repeat("5", 64), evidence.Machine{}.Key()
	return t
}

// fill measures tasks, alone or against op/k-base, until the process of a number
// begins; 0 is never.
func (c *cutter) fill(cut int, tasks ...plan.Task) ([]evidence.Entry, error) {
	c.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	c.progress = func(float64, string) {
		if n++; n == cut {
			cancel()
		}
	}
	step := plan.Step{Tier: evidence.Latency, Plan: compare.SequentialPlan(), Tasks: tasks, States: []evidence.CacheState{evidence.Warm}}
	for i := range tasks {
		if tasks[i].Compares() {
			step.Tests = append(step.Tests, question(i))
		}
	}
	l := &evidence.Ledger{}
	err := c.Fill(ctx, step, l)
	return entries(l, tasks), err
}

// unfinished are the names of what lies in the folder, records alone.
func (c *cutter) unfinished() int {
	list, err := filepath.Glob(filepath.Join(c.left, "*/*/*/*.json"))
	if err != nil {
		c.Fatal(err)
	}
	return len(list)
}

// Times that a run took before it was cut are not taken again.
func TestCutTimesAreContinued(t *testing.T) {
	for _, cut := range []int{1, 2, 6, 10} {
		c := newCutter(t, "")
		tasks := []plan.Task{measured("op/k", "small"), measured("op/two", "large")}
		if got, err := c.fill(cut, tasks...); !errors.Is(err, context.Canceled) || got[0].Measured() || len(*c.kept) != 0 {
			t.Fatalf("cut at %d: %v, %+v", cut, err, got)
		}
		if want := 2 * min(1, cut-1); c.unfinished() != want {
			t.Errorf("cut at %d: %d records lie there, want %d", cut, c.unfinished(), want)
		}
		got, err := c.fill(0, append(tasks, measured("op/ref", "small"))...) // another kernel joins
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got {
			if !e.Measured() || len(e.Record.Samples) != singleProcesses || e.Record.Open != nil {
				t.Errorf("cut at %d: %+v", cut, e)
			}
		}
		if n := strings.Count(strings.Join(processesOf(t, c.Bench), "\n"), "op/k@small"); n > singleProcesses+1 {
			t.Errorf("cut at %d: %d processes of op/k", cut, n)
		}
		if c.unfinished() != 0 || len(*c.kept) != 3 {
			t.Errorf("cut at %d: %d records are left, %d kept", cut, c.unfinished(), len(*c.kept))
		}
	}
}

// A unit that has all of its processes is a record at once: it is not saved in between,
// and what breaks off after it takes nothing away.
func TestTimesAreKeptWhenTheyAreWhole(t *testing.T) {
	c := newCutter(t, "")
	c.most = 1 // one unit a process
	tasks := []plan.Task{measured("op/k", "small"), measured("op/two", "large")}
	got, err := c.fill(2*singleProcesses, tasks...)
	if !errors.Is(err, context.Canceled) || len(*c.kept) != 1 || c.unfinished() != 1 {
		t.Fatalf("%v, %d kept, %d lie there", err, len(*c.kept), c.unfinished())
	}
	whole := slices.IndexFunc(got, func(e evidence.Entry) bool { return e.Measured() })
	if whole < 0 || got[whole].Record != (*c.kept)[0] || got[1-whole].Record != nil {
		t.Errorf("%+v", got)
	}
	if got, err = c.fill(0, tasks[1-whole]); err != nil || !got[0].Measured() || c.unfinished() != 0 {
		t.Errorf("%v, %+v, %d lie there", err, got, c.unfinished())
	}
	if n := len(processesOf(t, c.Bench)); n > 2*singleProcesses+1 {
		t.Errorf("%d processes", n)
	}
}

// BenchmarkTimesAlone times a hundred units with a place for what is not finished, and
// without one.
func BenchmarkTimesAlone(b *testing.B) {
	for _, saves := range []bool{true, false} {
		b.Run(fmt.Sprintf("saves=%v", saves), func(b *testing.B) {
			for b.Loop() {
				c, _ := fake(b, timesOf(""))
				if saves {
					c.open = store.OpenUnfinished(b.TempDir(), store.Audit{Now: c.now})
				}
				var units []unit
				for i := range 100 {
					u := of(fmt.Sprintf("op/k%d", i), "small")
					u.address = measured("op/k", "small").At
					u.address.Code = strings.Repeat(fmt.Sprintf("%04x", i), 16) // the first of it names the folder
					units = append(units, u)
				}
				if _, err := c.timeAlone(context.Background(), units, []evidence.CacheState{evidence.Warm}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// An experiment goes on with the first round that is not whole, wherever it was
// cut, and its record holds all orders that were drawn.
func TestCutExperimentIsContinued(t *testing.T) {
	const pilot, round = 1, 8
	for _, cut := range []int{1, pilot + 1, pilot + round, pilot + round + 1, pilot + round + 4, pilot + 2*round + 8} {
		c := newCutter(t, "")
		c.budget = compare.Budget{Pairs: 12}
		one := against(measured("op/k", "small"), "op/k-base")
		got, err := c.fill(cut, one)
		if !errors.Is(err, context.Canceled) || got[0].Measured() || len(*c.kept) != 0 {
			t.Fatalf("cut at %d: %v, %+v", cut, err, got)
		}
		got, err = c.fill(0, one, against(measured("op/two", "large"), "op/two-base"))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range got {
			if !e.Measured() || len(e.Record.Experiment.Rounds) != 3 || !e.Record.Experiment.Ended() || e.Record.Open != nil {
				t.Fatalf("cut at %d: failure %+v, %d rounds, stopped for %q, discarded %+v", cut, e.Failure(), len(e.Record.Experiment.Rounds), e.Record.Experiment.Stopped, e.Record.Experiment.Discarded)
			}
			for n, b := range e.Record.Experiment.Rounds {
				if b.Number != n {
					t.Errorf("cut at %d, experiment %d: round %d is numbered %d", cut, i, n, b.Number)
				}
			}
		}
		ran := 0
		for _, l := range processesOf(t, c.Bench) {
			ran += strings.Count(l, "op/k@small")
		}
		lost := max(0, cut-pilot-1) % round // and the process that had just begun
		if most := 2*pilot + 3*round + lost + 1; ran > most {
			t.Errorf("cut at %d: %d processes of op/k, want %d at most", cut, ran, most)
		}
		if c.unfinished() != 0 || len(*c.kept) != 2 {
			t.Errorf("cut at %d: %d records are left, %d kept", cut, c.unfinished(), len(*c.kept))
		}
	}
}

// The order of a round lies on the disk before its first process starts, and
// stays in the record when the round was cut.
func TestOrdersAreOnTheDiskBeforeARound(t *testing.T) {
	c := newCutter(t, "")
	c.budget = compare.Budget{Pairs: 8}
	one := against(measured("op/k", "small"), "op/k-base")
	if _, err := c.fill(4, one); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r, raw, err := c.open.Find(one.Key)
	if err != nil || r == nil || len(r.Experiment.Rounds) != 0 || !strings.HasPrefix(string(raw["orders.txt"]), "0 1 ") {
		t.Fatalf("%+v, %q, %v", r, raw, err)
	}
	drawn := string(raw["orders.txt"])
	if _, err := c.fill(0, one); err != nil {
		t.Fatal(err)
	}
	if all := string(c.raw["orders.txt"]); !strings.HasPrefix(all, drawn) || strings.Count(all, "\n") != 3 {
		t.Errorf("the record holds the orders\n%swant first\n%s", c.raw["orders.txt"], drawn)
	}
}

// What was begun otherwise, or is damaged, is measured anew and named.
func TestStrangeRecordIsNotContinued(t *testing.T) {
	for _, c := range []struct {
		name, note string
		change     func(*cutter)
	}{
		{"the same", "", func(*cutter) {}},
		{"another card", "it was measured on another card", func(c *cutter) { c.device.UUID = "GPU-2" }},
		{"asked anew", "it was begun by another plan (rounds of 4 + 4, looks after [4 8 ", func(c *cutter) { c.force = true }},
		{"damaged", "is refused: ", func(c *cutter) {
			list, _ := filepath.Glob(filepath.Join(c.left, "*/*/*/*head.jsonl.gz"))
			if len(list) != 1 || os.WriteFile(list[0], []byte("torn"), 0o644) != nil {
				c.Fatal(list)
			}
		}},
	} {
		b := newCutter(t, "")
		b.budget = compare.Budget{Pairs: 8}
		one := against(measured("op/k", "small"), "op/k-base")
		if _, err := b.fill(1+8+2, one); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c.change(b)
		b.Notes = nil
		got, err := b.fill(0, one)
		if err != nil || !got[0].Measured() || len(got[0].Record.Experiment.Rounds) != 2 {
			t.Fatalf("%s: %v, %+v", c.name, err, got)
		}
		want := 1 + 8 + 2 + 1 + 8 // the last process of the first run was cut before it said a word
		if c.note != "" {
			want += 8
		}
		if n := len(processesOf(t, b.Bench)); n < want-2 || n > want {
			t.Errorf("%s: %d processes, want about %d", c.name, n, want)
		}
		b.Notes = slices.DeleteFunc(b.Notes, func(n string) bool { return strings.HasPrefix(n, "batches of ") })
		if notes := strings.Join(b.Notes, "\n"); (notes != "") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: noted %q", c.name, notes)
		}
	}
}

// What is stored and undecided is continued by a new record that names it.
func TestStoredExperimentIsContinued(t *testing.T) {
	c := newCutter(t, "")
	c.budget = compare.Budget{Pairs: 4}
	one := against(measured("op/k", "small"), "op/k-base")
	first, err := c.fill(0, one)
	if err != nil || !first[0].Measured() {
		t.Fatal(err)
	}
	old, raw := first[0].Record, c.raw
	c.stored = func(*evidence.Record) (map[string][]byte, error) { return raw, nil }
	c.budget = compare.Budget{Pairs: 12}
	l := &evidence.Ledger{}
	l.Put(old, evidence.Reused)
	l.Reopen(old.Key())
	step := plan.Step{Tier: evidence.Latency, Plan: compare.SequentialPlan(), Tasks: []plan.Task{one}, Tests: []plan.Test{question(0)}, States: []evidence.CacheState{evidence.Warm}}
	if err := c.Fill(context.Background(), step, l); err != nil {
		t.Fatal(err)
	}
	r := entries(l, step.Tasks)[0].Record
	digest, err := evidence.Digest(old)
	if err != nil || r.Continues != digest || len(r.Experiment.Rounds) != 3 || fmt.Sprint(r.Experiment.Rounds[0]) != fmt.Sprint(old.Experiment.Rounds[0]) || fmt.Sprint(r.Experiment.Pilot) != fmt.Sprint(old.Experiment.Pilot) {
		t.Errorf("%v, %+v", err, r)
	}
	if !strings.HasPrefix(string(c.raw["head.jsonl"]), string(raw["head.jsonl"])) || strings.Count(string(c.raw["orders.txt"]), "\n") != 3 {
		t.Error("the raw inputs do not go on with those that were there")
	}
}

// An experiment is continued where its rounds hold the states of the caches that are
// asked for. A state in which the case has no time need not be there.
func TestContinues(t *testing.T) {
	c := newCutter(t, "")
	warm, both := []evidence.CacheState{evidence.Warm}, []evidence.CacheState{evidence.Warm, evidence.Cold}
	timed := func(states ...evidence.CacheState) []evidence.Round {
		var head []evidence.Sample
		for _, s := range states {
			head = append(head, evidence.Sample{CacheState: s})
		}
		return []evidence.Round{{Head: head}}
	}
	large := map[evidence.CacheState]string{evidence.Warm: "it is too large"}
	for _, x := range []struct {
		name   string
		rounds []evidence.Round
		absent map[evidence.CacheState]string
		states []evidence.CacheState
		want   bool
	}{
		{"the same states", timed(both...), nil, both, true},
		{"one state more", timed(evidence.Cold), nil, both, false},
		{"one state less", timed(both...), nil, warm, false},
		{"one state that cannot be", timed(evidence.Cold), large, both, true},
		{"without the one that cannot be", timed(evidence.Cold), large, []evidence.CacheState{evidence.Cold}, true},
		{"another state beside one that cannot be", timed(evidence.Cold), large, warm, false},
		{"no round", nil, large, warm, false},
	} {
		r := &evidence.Record{Experiment: &evidence.Experiment{Rounds: x.rounds}, Absent: x.absent}
		r.Address.Machine, r.Provenance.Card = c.Machine.Key(), evidence.CardOf(c.device.UUID)
		if got := c.Continues(r, x.states); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
		r.Provenance.Card = "another"
		if c.Continues(r, x.states) {
			t.Errorf("%s: on another card", x.name)
		}
	}
}
