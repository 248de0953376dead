package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Key names one record: a tier at an address. Tool is one of Sanitizers in that
// tier, and "" in every other. Base is the address of the other arm of a latency
// experiment, and zero for every other record.
type Key struct {
	Tier     Tier
	Tool     string
	At, Base Address
}

// Name is that of the kind of record: its tier, and of the sanitizer the tool.
func (k Key) Name() string {
	if k.Tool == "" {
		return string(k.Tier)
	}
	return string(k.Tier) + "-" + k.Tool
}

// Key is the name under which the record is kept.
func (r *Record) Key() Key {
	k := Key{Tier: r.Tier, Tool: r.Tool, At: r.Address}
	if r.Base != nil {
		k.Base = *r.Base
	}
	return k
}

// Compares reports whether the key is that of two arms that ran together.
func (k Key) Compares() bool { return k.Base != Address{} }

// On is the key of the same record on another machine. Static records are not
// a machine's.
func (k Key) On(machine string) Key {
	if k.Tier == Static {
		return k
	}
	k.At.Machine = machine
	if k.Compares() {
		k.Base.Machine = machine
	}
	return k
}

// A Use says what a question does with a record.
type Use uint8

// The uses, in the order in which records are measured. What is Shown is read
// where it is present, and is neither measured nor counted.
const (
	First   Use = iota // must be there, and correct, before the rest is measured
	Answers            // without it, the question stays open
	Instead            // is read when the other arm of an experiment failed
	Shown
)

// A Need is what a question asks of one record.
type Need struct {
	*Wanted
	Holds string // a metric that the record has to name; "" for none
}

// A Wanted is all of a need but the metric. Many needs share one, many of these
// share a key, and nobody changes either.
type Wanted struct {
	*Key
	Use   Use
	State CacheState // of the caches, in which the record has to hold times; "" for any
	Dated *Window    // when the record has to be from; nil for any time
	Never string     // why no such record can be measured; "" when one can
}

// A Window is the time between two others. Many needs share one.
type Window struct{ From, Until time.Time }

// NeedOf is the need of the record under a key, whatever it holds.
func NeedOf(k Key) *Need { return &Need{Wanted: &Wanted{Key: &k}} }

// Asked reports whether a question stays open without the record.
func (n *Need) Asked() bool { return n.Use == First || n.Use == Answers }

// A Source says where a record came from.
type Source string

// Measured in this run, or found in a store.
const (
	Measured Source = "measured"
	Reused   Source = "reused"
)

// An Entry is what is known under one key: a record, which may carry a failure,
// or the causes why there is none.
type Entry struct {
	Record   *Record
	Source   Source
	Tried    bool     // this run tried to measure it
	Unusable string   // why the record that is stored cannot be used
	Why      []string // causes why nothing was measured
	Earlier  *Record  // which will be continued; until then it does not answer
}

// Failure is how the tier ended when it was not measured, nil otherwise.
func (e Entry) Failure() *Failure {
	if e.Record == nil {
		return nil
	}
	return e.Record.Failure
}

// Measured reports whether there is a record and it carries no failure.
func (e Entry) Measured() bool { return e.Record != nil && e.Record.Failure == nil }

// A Ledger holds what one run knows: the record under each key, its source, and
// the causes why there is none.
type Ledger struct{ entries map[Key]Entry }

// Put enters a record. A record that this run measured has been tried.
func (l *Ledger) Put(r *Record, from Source) {
	l.set(r.Key(), Entry{Record: r, Source: from, Tried: from == Measured})
}

func (l *Ledger) set(k Key, e Entry) {
	if l.entries == nil {
		l.entries = map[Key]Entry{}
	}
	l.entries[k] = e
}

// Refuse enters why a record that is stored cannot be used.
func (l *Ledger) Refuse(k Key, why string) {
	e := l.entries[k]
	e.Record, e.Unusable = nil, why
	l.set(k, e)
}

// Reopen takes away an experiment that decides too little, so that it is
// continued.
func (l *Ledger) Reopen(k Key) {
	e := l.entries[k]
	e.Earlier, e.Record = e.Record, nil
	l.set(k, e)
}

// Settle puts back what was to be continued and was not.
func (l *Ledger) Settle() {
	for k, e := range l.entries {
		if e.Record == nil && e.Earlier != nil {
			l.set(k, Entry{Record: e.Earlier, Source: Reused, Tried: e.Tried, Why: e.Why})
		}
	}
}

// Because adds a cause why nothing was measured under the keys.
func (l *Ledger) Because(why string, keys ...Key) {
	for _, k := range keys {
		if e := l.entries[k]; !slices.Contains(e.Why, why) {
			e.Why = append(slices.Clone(e.Why), why)
			l.set(k, e)
		}
	}
}

// Try marks keys as tried, so that what could not be measured is not asked for
// again.
func (l *Ledger) Try(keys ...Key) {
	for _, k := range keys {
		e := l.entries[k]
		e.Tried = true
		l.set(k, e)
	}
}

// Find returns what answers a need. A record that was cut short, is too old or
// lacks what the need asks for is not handed out; the entry then says why.
func (l *Ledger) Find(n *Need) Entry {
	e := l.entries[*n.Key]
	if e.Record == nil {
		return e
	}
	if why := n.refuses(e.Record); why != "" {
		return Entry{Tried: e.Tried, Unusable: why, Why: e.Why}
	}
	return e
}

// refuses says why a record does not answer a need, or "".
func (n *Need) refuses(r *Record) string {
	if r.Failure != nil {
		return ""
	}
	if r.Open != nil && r.Experiment == nil {
		return fmt.Sprintf("the %s recorded on %s was never finished", r.Tier, n.At.Machine)
	}
	if x := r.Experiment; x != nil && (r.Open != nil || !x.Ended()) {
		why := "interrupted"
		if x.Stopped != "" {
			why = "cut short: " + x.Stopped
		}
		return fmt.Sprintf("the experiment recorded on %s was %s", n.At.Machine, why)
	}
	if x := r.Experiment; x != nil && len(x.Rounds) == 0 && r.Untimed(n.State) == "" {
		return fmt.Sprintf("the experiment recorded on %s holds no round", n.At.Machine)
	}
	if _, ok := r.Metrics[n.Holds]; !ok && n.Holds != "" {
		return fmt.Sprintf("the recorded %s does not hold %s", r.Tier, n.Holds)
	}
	if n.State != "" && !r.Timed(n.State) && r.Untimed(n.State) == "" {
		return fmt.Sprintf("the %s recorded on %s holds no %s times", r.Tier, n.At.Machine, n.State)
	}
	if n.Dated == nil {
		return ""
	}
	at, err := time.Parse(time.RFC3339, r.Provenance.Recorded)
	switch {
	case err != nil:
		return fmt.Sprintf("the %s recorded on %s does not say when", r.Tier, n.At.Machine)
	case at.Before(n.Dated.From):
		return fmt.Sprintf("the %s of %s was recorded on %s, before the oldest that is asked for", r.Tier, n.At.Machine, r.Provenance.Recorded)
	case at.After(n.Dated.Until):
		return fmt.Sprintf("the %s recorded on %s is dated in the future", r.Tier, n.At.Machine)
	}
	return ""
}

// Timed reports whether a record of times holds any of one state of the caches.
func (r *Record) Timed(state CacheState) bool {
	all := r.Samples
	if r.Experiment != nil && len(r.Experiment.Rounds) > 0 {
		all = r.Experiment.Rounds[0].Head
	}
	return slices.ContainsFunc(all, func(s Sample) bool { return s.CacheState == state })
}

// Clone is a ledger that can be changed without changing this one.
func (l *Ledger) Clone() *Ledger { return &Ledger{entries: maps.Clone(l.entries)} }

// Join takes over what a clone of this ledger has learnt since. What was measured
// stands over what was found in a store.
func (l *Ledger) Join(clone *Ledger) {
	for k, e := range clone.entries {
		mine := l.entries[k]
		switch {
		case e.Record != nil && (mine.Record == nil || e.Source == Measured):
			l.set(k, e)
		case mine.Record == nil:
			e.Tried, e.Unusable = e.Tried || mine.Tried, cmp.Or(e.Unusable, mine.Unusable)
			l.set(k, e)
			for _, why := range mine.Why {
				l.Because(why, k)
			}
		}
	}
}
