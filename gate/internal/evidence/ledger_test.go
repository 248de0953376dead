package evidence

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func at(code string) Address {
	return Address{Identity: Identity{Code: code, Host: "h"}, Op: "op", Case: "small", Harness: "harness", Machine: "h200-1"}
}

func TestKeys(t *testing.T) {
	base := at("c1")
	alone, pair := &Record{Tier: Latency, Address: at("c2")}, &Record{Tier: Latency, Address: at("c2"), Base: &base}
	if alone.Key().Compares() || !pair.Key().Compares() || alone.Key() == pair.Key() || pair.Key().Base != base {
		t.Errorf("%+v, %+v", alone.Key(), pair.Key())
	}
	moved := pair.Key().On("h100-1")
	if moved.At.Machine != "h100-1" || moved.Base.Machine != "h100-1" || moved.On("h200-1") != pair.Key() {
		t.Errorf("%+v", moved)
	}
	if k := alone.Key().On("h100-1"); k.Compares() {
		t.Errorf("a record by itself got another arm: %+v", k)
	}
	static := Key{Tier: Static, At: Address{Identity: at("c2").Identity}}
	if static.On("h100-1") != static {
		t.Error("what the compiler says belongs to a machine")
	}
}

func TestFindRefusesWhatDoesNotAnswer(t *testing.T) {
	now := time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	recent := func(n *Need) { n.Dated = &Window{now.Add(-24 * time.Hour), now} }
	dated := func(at string) func(*Record) { return func(r *Record) { r.Provenance.Recorded = at } }
	ended := func(how string) func(*Record) {
		return func(r *Record) {
			r.Tier, r.Experiment = Latency, &Experiment{Stopped: how, Rounds: []Round{{Head: []Sample{{CacheState: Warm}}}}}
		}
	}
	onlyPilot := func(absent CacheState) func(*Record) {
		return func(r *Record) {
			r.Tier, r.Experiment, r.Absent = Latency, &Experiment{Stopped: "resolved", Pilot: []Sample{{CacheState: Cold}}}, map[CacheState]string{absent: "it is too large"}
		}
	}
	failed := func(also func(*Record)) func(*Record) {
		return func(r *Record) {
			also(r)
			r.Failure = &Failure{Kind: Hang, Message: "hangs"}
		}
	}
	for _, c := range []struct {
		name   string
		record func(*Record)
		need   func(*Need)
		want   string
	}{
		{"a profile", func(*Record) {}, func(*Need) {}, ""},
		{"resolved", ended("resolved"), func(*Need) {}, ""},
		{"used up its pairs", ended("pairs"), func(*Need) {}, ""},
		{"used up its time", ended("wall"), func(*Need) {}, ""},
		{"used up the GPU's time", ended("gpu"), func(*Need) {}, ""},
		{"interrupted", ended(""), func(*Need) {}, "the experiment recorded on h200-1 was interrupted"},
		{"cut short", ended("the device is too warm"), func(*Need) {}, "the experiment recorded on h200-1 was cut short: the device is too warm"},
		{"has the time", func(r *Record) { r.Samples = []Sample{{CacheState: Warm}} }, func(n *Need) { n.State = Warm }, ""},
		{"lacks the time", func(r *Record) { r.Samples = []Sample{{CacheState: Cold}} }, func(n *Need) { n.State = Warm }, "the profile recorded on h200-1 holds no warm times"},
		{"can never have the time", func(r *Record) { r.Absent = map[CacheState]string{Warm: "it is too large"} }, func(n *Need) { n.State = Warm }, ""},
		{"can never have another time", func(r *Record) { r.Absent = map[CacheState]string{Warm: "it is too large"} }, func(n *Need) { n.State = Cold }, "the profile recorded on h200-1 holds no cold times"},
		{"a pilot that has no such time", onlyPilot(Warm), func(n *Need) { n.State = Warm }, ""},
		{"a pilot that has the time", onlyPilot(Warm), func(n *Need) { n.State = Cold }, "the experiment recorded on h200-1 holds no round"},
		{"a pilot, for any time", onlyPilot(Warm), func(*Need) {}, "the experiment recorded on h200-1 holds no round"},
		{"a pilot without a reason", onlyPilot(""), func(n *Need) { n.State = Warm }, "the experiment recorded on h200-1 holds no round"},
		{"holds what is asked", func(*Record) {}, func(n *Need) { n.Holds = "ncu.waves" }, ""},
		{"names what this chip lacks", func(*Record) {}, func(n *Need) { n.Holds = "ncu.none" }, ""},
		{"lacks what is asked", func(*Record) {}, func(n *Need) { n.Holds = "ncu.other" }, "the recorded profile does not hold ncu.other"},
		{"a day old", dated("2026-11-24T10:00:00Z"), recent, ""},
		{"older", dated("2026-11-24T09:59:59Z"), recent, "the profile of h200-1 was recorded on 2026-11-24T09:59:59Z, before the oldest that is asked for"},
		{"of this moment", dated("2026-11-25T10:00:00Z"), recent, ""},
		{"of the future", dated("2026-11-25T10:00:01Z"), recent, "the profile recorded on h200-1 is dated in the future"},
		{"of no date", dated("yesterday"), recent, "the profile recorded on h200-1 does not say when"},
		{"of any age", dated("2001-01-01T00:00:00Z"), func(*Need) {}, ""},
		{"a failure that lacks it", failed(func(*Record) {}), func(n *Need) { n.Holds = "ncu.other" }, ""},
		{"a failure that was not ended", failed(ended("")), func(*Need) {}, ""},
	} {
		r := &Record{Tier: Profile, Address: at("c2"), Metrics: Metrics{"ncu.waves": Of(3, ""), "ncu.none": Absent("this chip has no such counter", "")}}
		c.record(r)
		n := NeedOf(r.Key())
		c.need(n)
		for _, from := range []Source{Reused, Measured} {
			var l Ledger
			l.Put(r, from)
			e := l.Find(n)
			if (e.Record == r) != (c.want == "") || e.Record == nil && e.Source != "" || e.Unusable != c.want || e.Tried != (from == Measured) {
				t.Errorf("%s, %s: %+v, want %q", c.name, from, e, c.want)
			}
			if e := l.Find(NeedOf(r.Key())); c.want != "" && !strings.Contains(c.want, "experiment") && e.Record != r {
				t.Errorf("%s: what one need refuses is hidden from another", c.name)
			}
		}
	}
}

func TestEntriesSayWhatIsKnown(t *testing.T) {
	var l Ledger
	k := Key{Tier: Correctness, At: at("c2")}
	n := NeedOf(k)
	if e := l.Find(n); e.Record != nil || e.Measured() || e.Failure() != nil || e.Tried || len(e.Why) != 0 || e.Unusable != "" {
		t.Errorf("nothing is known: %+v", e)
	}
	l.Because("first", k)
	l.Because("second", k, Key{Tier: Profile, At: at("c2")})
	l.Because("first", k)
	l.Refuse(k, "the JSON is cut short")
	l.Try(k)
	if e := l.Find(n); strings.Join(e.Why, ", ") != "first, second" || e.Unusable != "the JSON is cut short" || !e.Tried || e.Record != nil {
		t.Errorf("%+v", e)
	}
	if e := l.Find(NeedOf(Key{Tier: Profile, At: at("c2")})); strings.Join(e.Why, ", ") != "second" || e.Tried {
		t.Errorf("a cause of its own: %+v", e)
	}
	l.Put(&Record{Tier: Correctness, Address: at("c2")}, Measured)
	if e := l.Find(n); !e.Measured() || e.Source != Measured || !e.Tried || len(e.Why) != 0 || e.Unusable != "" {
		t.Errorf("measured: %+v", e)
	}
	l.Put(&Record{Tier: Correctness, Address: at("c2"), Failure: &Failure{Kind: Tool, Message: "x"}}, Reused)
	if e := l.Find(n); e.Measured() || e.Failure() == nil || e.Tried || e.Source != Reused {
		t.Errorf("a failure: %+v", e)
	}
	l.Refuse(k, "damaged")
	if e := l.Find(n); e.Record != nil || e.Unusable != "damaged" {
		t.Errorf("refused: %+v", e)
	}
}

func TestClonesAreIndependent(t *testing.T) {
	var l Ledger
	k, other := Key{Tier: Correctness, At: at("c2")}, Key{Tier: Correctness, At: at("c3")}
	l.Because("first", k)
	for range 4 { // so that an append would find room in a shared array
		l.Because(strings.Repeat("x", len(l.Find(NeedOf(k)).Why)), k)
	}
	was := slices.Clone(l.Find(NeedOf(k)).Why)
	c := l.Clone()
	c.Because("of the clone", k)
	l.Because("of the ledger", k)
	c.Put(&Record{Tier: Correctness, Address: at("c3")}, Measured)
	c.Try(k)
	if e := l.Find(NeedOf(k)); !slices.Equal(e.Why, append(slices.Clone(was), "of the ledger")) || e.Tried {
		t.Errorf("%+v", e)
	}
	if e := c.Find(NeedOf(k)); !slices.Equal(e.Why, append(slices.Clone(was), "of the clone")) {
		t.Errorf("%+v", e)
	}
	if l.Find(NeedOf(other)).Record != nil || c.Find(NeedOf(other)).Record == nil {
		t.Error("a record of the clone")
	}
	var empty Ledger
	filled := empty.Clone()
	filled.Try(k)
	if empty.Find(NeedOf(k)).Tried || !filled.Find(NeedOf(k)).Tried {
		t.Error("the clone of an empty ledger")
	}
}

// TestJoin: several workers learn from one ledger on, and what each learnt stays.
func TestJoin(t *testing.T) {
	key := func(code string) Key { return Key{Tier: Profile, At: at(code)} }
	find := func(l *Ledger, code string) Entry { return l.Find(NeedOf(key(code))) }
	all := &Ledger{}
	all.Because("nothing was recorded", key("neither"), key("first"))
	first, second := all.Clone(), all.Clone()
	first.Put(&Record{Tier: Profile, Address: at("first")}, Measured)
	second.Put(&Record{Tier: Profile, Address: at("first")}, Reused) // read from the store meanwhile
	second.Put(&Record{Tier: Profile, Address: at("second")}, Reused)
	first.Because("the device is lost", key("neither"))
	second.Because("the library is not here", key("neither"))
	second.Try(key("neither"))
	for _, order := range [][]*Ledger{{first, second}, {second, first}} {
		l := all.Clone()
		for _, clone := range order {
			l.Join(clone)
		}
		if e := find(l, "first"); e.Source != Measured || !e.Tried {
			t.Errorf("what one measured: %+v", e)
		}
		if e := find(l, "second"); e.Record == nil || e.Source != Reused {
			t.Errorf("what one read: %+v", e)
		}
		if e := find(l, "neither"); len(e.Why) != 3 || !e.Tried || e.Record != nil {
			t.Errorf("what none has: %+v", e)
		}
	}
}
