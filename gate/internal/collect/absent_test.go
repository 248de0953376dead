package collect

import (
	"context"
	"maps"
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

// A unit that is too large for one state of the caches is timed in the other one, and
// said to be so once, whether there is another one or not. One that is lost is out.
func TestStatesThatAreAbsent(t *testing.T) {
	cold := timeMsg{Kernel: "op/k", Case: "small", Regime: "cold"}
	large := absentMsg{Kernel: "op/k", Case: "small", Regime: "warm", Reason: "it is too large"}
	both := []evidence.CacheState{evidence.Warm, evidence.Cold}
	for _, c := range []struct {
		name   string
		s      stream
		states []evidence.CacheState
		want   string
		notes  int
	}{
		{"one of two", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, both, "", 1},
		{"the only one", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, both[:1], "", 1},
		{"of another case", stream{times: []timeMsg{cold}, absent: []absentMsg{{Kernel: "op/k", Case: "large", Regime: "warm", Reason: "it is too large"}}}, both, "the harness sent no warm time of it", 0},
		{"lost", stream{times: []timeMsg{cold}}, both, "the harness sent no warm time of it", 0},
		{"whatever there is", stream{times: []timeMsg{cold}, absent: []absentMsg{large}}, nil, "", 0},
	} {
		b, got := &Bench{}, ""
		for range 2 {
			got = ""
			if f := b.untimed(&c.s, of("op/k", "small"), c.states); f != nil {
				got = f.Message
			}
		}
		if got != c.want || len(b.Notes) != c.notes {
			t.Errorf("%s: %q and notes %q, want %q and %d", c.name, got, b.Notes, c.want, c.notes)
		}
	}
}

// What a record says of times that cannot be is in its raw input, word for word, and of a
// state that has times nothing is said. It may say less.
func TestAuditOfWhatIsAbsent(t *testing.T) {
	const warm = `{"absent":{"kernel":"op/k","case":"small","regime":"warm","reason":"it is too large"}}` + "\n"
	lines := func(raw string) map[string][]byte {
		return map[string][]byte{"harness.jsonl": []byte(configLine + "\n" + raw)}
	}
	says := func(why string) map[evidence.CacheState]string {
		return map[evidence.CacheState]string{evidence.Warm: why}
	}
	timed := []evidence.Sample{{CacheState: evidence.Warm}}
	for _, c := range []struct {
		name string
		r    evidence.Record
		raw  string
		fine bool
	}{
		{"said", evidence.Record{Absent: says("it is too large")}, warm, true},
		{"said by each process", evidence.Record{Absent: says("it is too large")}, warm + warm, true},
		{"left out", evidence.Record{}, warm, true},
		{"for another reason", evidence.Record{Absent: says("nobody knows")}, warm, false},
		{"for no reason", evidence.Record{Absent: says("")}, warm, false},
		{"never said", evidence.Record{Absent: says("it is too large")}, timeLine + "\n", false},
		{"of a state with times", evidence.Record{Absent: says("it is too large"), Samples: timed}, warm + timeLine + "\n", false},
		{"of another state", evidence.Record{Absent: map[evidence.CacheState]string{evidence.Cold: "it is too large"}}, warm, false},
	} {
		if c.r.Tier = evidence.Latency; (auditAbsent(&c.r, lines(c.raw)) == nil) != c.fine {
			t.Errorf("%s: %v", c.name, auditAbsent(&c.r, lines(c.raw)))
		}
		if c.r.Tier = evidence.Correctness; len(c.r.Absent) > 0 && auditAbsent(&c.r, lines(c.raw)) == nil {
			t.Errorf("%s, of a check: accepted", c.name)
		}
	}
}

// A test about a state that the pair has no time in is counted, and not measured: the
// other tests of the pair are.
func TestAbsentStateIsNotATest(t *testing.T) {
	timed := evidence.Sample{CacheState: evidence.Cold, Calls: 8, BatchesNS: []float64{100, 101}}
	asked := func(tests ...plan.Test) *compare.Driver {
		t.Helper()
		x := &experiment{arms: []*arms{{pair: twoPairs()[0], experiment: evidence.Experiment{Pilot: []evidence.Sample{timed}}}}}
		if err := x.plan(tests, compare.Budget{Pairs: 8}, compare.SequentialPlan()); err != nil {
			t.Fatal(err)
		}
		if x.driver != nil && len(x.tests) != 1 {
			t.Errorf("%d tests are measured, want 1", len(x.tests))
		}
		return x.driver
	}
	warm, cold := question(0), question(0)
	cold.CacheState = evidence.Cold
	if asked(warm) != nil {
		t.Error("a test without any time has a driver")
	}
	if asked(warm, cold) == nil {
		t.Error("the test of the state that is there has no driver")
	}
}

// TestTheRecordOfAStateThatIsAbsent: a unit that is too large to be warm has cold times, and a
// note says why it has no others. The record says so, too, and is kept even
// without any time. Without the reason the unit is out.
func TestTheRecordOfAStateThatIsAbsent(t *testing.T) {
	cold := func(line string) string { return strings.Replace(line, "warm", "cold", 1) }
	const warmAbsent = `{"absent":{"kernel":"op/k","case":"small","regime":"warm","reason":"it is too large"}}`
	both := []evidence.CacheState{evidence.Warm, evidence.Cold}
	for name, c := range map[string]struct {
		lines   []string
		why     string // of the failure, "" where there is none
		samples int
		absent  []evidence.CacheState
	}{
		"warm is absent":   {[]string{timedLine, warmAbsent, cold(timedLine), cold(timeLine)}, "", singleProcesses, both[:1]},
		"both are absent":  {[]string{timedLine, warmAbsent, cold(timedLine), cold(warmAbsent)}, "", 0, both},
		"without a reason": {[]string{timedLine, strings.Replace(warmAbsent, "it is too large", "", 1), cold(timedLine), cold(timeLine)}, "the harness sent no warm time of it", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, kept := fake(t, say(append(append([]string{configLine}, c.lines...), endLine(c.lines...))...))
			records, err := b.timeAlone(context.Background(), []unit{of("op/k", "small")}, both)
			if err != nil || len(records) != 1 {
				t.Fatalf("%+v, %v", records, err)
			}
			r := records[0]
			if c.why != "" {
				if r.Failure == nil || r.Failure.Kind != evidence.Tool || r.Failure.Message != c.why || len(*kept) != 0 {
					t.Errorf("%+v, %d kept", r.Failure, len(*kept))
				}
				return
			}
			if r.Failure != nil || len(r.Samples) != c.samples || len(*kept) != 1 || (*kept)[0] != r || len(r.Absent) != len(c.absent) {
				t.Errorf("%+v, %d kept", r, len(*kept))
			}
			if v := r.Metrics.Get("latency.typical"); v.Known() || v.Missing() != "it has no warm time: it is too large" || r.Metrics.Get("latency.cold_typical").Known() != (c.samples > 0) {
				t.Errorf("%+v", r.Metrics)
			}
			if len(b.Notes) != len(c.absent) || b.Notes[0] != "op/k@small has no warm time: it is too large" {
				t.Errorf("noted %q", b.Notes)
			}
		})
	}
}

// A test about a state of the caches in which the base has no time is not measured,
// and the other tests of the pair are. A pair without any other has a record that says why.
func TestAStateThatTheBaseLacks(t *testing.T) {
	cold := strings.Replace(timeLine, "warm", "cold", 1)
	c, kept := fake(t, `times=0
absent=0
echo '`+configLine+`'
for u in $(echo "$*" | grep -o -e '--run [^ ]*' | sed 's/--run //'); do
  k=${u%@*}
  case "$*" in *cold*) echo '`+cold+`' | sed "s|op/k|$k|"; times=$((times + 1)) ;; esac
  case $k in
  *small) echo '`+timeLine+`' | sed "s|op/k|$k|"; times=$((times + 1)) ;;
  *) echo '{"absent":{"kernel":"op/k","case":"small","regime":"warm","reason":"it is too large"}}' | sed "s|op/k|$k|"; absent=$((absent + 1)) ;;
  esac
done
echo "{\"end\":{\"begin\":0,\"check\":0,\"time\":$times,\"profile\":0,\"absent\":$absent,\"error\":0}}"
`)
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	var pairs []pair
	for _, k := range []string{"op/small", "op/large", "op/huge"} {
		pairs = append(pairs, pair{Base: side(k, "", "base"), Head: side(k, "", "head")})
	}
	largeCold := question(1)
	largeCold.CacheState = evidence.Cold
	tests := []plan.Test{question(0), question(1), largeCold, question(2)}
	records, err := c.timeTogether(context.Background(), pairs, tests, []evidence.CacheState{evidence.Warm, evidence.Cold}, compare.Budget{Pairs: 8}, compare.SequentialPlan())
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, want := range []int{4 + 4, 4} { // times of the head in a round
		if r := records[i]; r.Failure != nil || len(r.Experiment.Rounds) != 2 || len(r.Experiment.Rounds[0].Head) != want {
			t.Errorf("%s: %+v", r.Provenance.Kernel, r)
		}
	}
	// Where nothing else is timed, too.
	alone, err := c.timeTogether(context.Background(), pairs[2:], tests[:1], []evidence.CacheState{evidence.Warm}, compare.Budget{Pairs: 8}, compare.SequentialPlan())
	if err != nil || len(alone) != 1 {
		t.Fatalf("%d records, %v", len(alone), err)
	}
	for _, r := range []*evidence.Record{records[2], alone[0]} {
		if r.Failure != nil || len(r.Experiment.Rounds) != 0 || r.Untimed(evidence.Warm) != "it has no warm time: it is too large" || !slices.Contains(*kept, r) {
			t.Errorf("a pair without a test that can be measured: %+v", r)
		}
	}
	// A pair without a test has nothing that its pilot could answer.
	if none, err := c.timeTogether(context.Background(), pairs[2:], nil, []evidence.CacheState{evidence.Warm}, compare.Budget{Pairs: 8}, compare.SequentialPlan()); err != nil || none[0].Failure == nil || slices.Contains(*kept, none[0]) {
		t.Errorf("a pair without a test: %+v, %v", none[0], err)
	}
}

// A pair is untimed where each of its tests is about a state that has no time, for a
// reason, and in no other case.
func TestUntimed(t *testing.T) {
	large := map[evidence.CacheState]string{evidence.Warm: "it is too large"}
	warm, cold := []evidence.CacheState{evidence.Warm}, []evidence.Sample{{CacheState: evidence.Cold}}
	for _, c := range []struct {
		name string
		a    arms
		want bool
	}{
		{"with a reason", arms{tested: warm, absent: large}, true},
		{"with another time", arms{tested: warm, absent: large, experiment: evidence.Experiment{Pilot: cold}}, true},
		{"without a reason", arms{tested: warm, absent: map[evidence.CacheState]string{evidence.Warm: ""}}, false},
		{"of one test out of two", arms{tested: append(warm, evidence.Cold), absent: large, experiment: evidence.Experiment{Pilot: cold}}, false},
		{"without a test", arms{absent: large}, false},
		{"with a failure", arms{tested: warm, absent: large, failure: &evidence.Failure{}}, false},
	} {
		if got := c.a.untimed(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// onlyPilotOf is the record of a pair that has cold times alone and a test on warm ones,
// with its raw inputs. Before says what there is of the pair when it is measured.
func onlyPilotOf(t *testing.T, before func(*Bench, pair, []evidence.CacheState)) (*evidence.Record, map[string][]byte) {
	t.Helper()
	cold := func(line string) string { return strings.Replace(line, "warm", "cold", 1) }
	lines := []string{timedLine, `{"absent":{"kernel":"op/k","case":"small","regime":"warm","reason":"it is too large"}}`, cold(timedLine), cold(timeLine)}
	first := []string{strings.Replace(configLine, `"mode":"check"`, `"mode":"time"`, 1), peaksLine}
	end := strings.Replace(endLine(lines...), `{"end":{`, `{"end":{"peaks":1,`, 1)
	c, _ := fake(t, say(append(append(first, lines...), end)...))
	c.processes = func(context.Context) ([]gpu.Process, error) { return nil, nil }
	var raw map[string][]byte
	c.keep = func(_ *evidence.Record, _ string, inputs map[string][]byte) error { raw = inputs; return nil }
	p := pair{Base: side("op/k", "", strings.Repeat("a", 64)), Head: side("op/k", "", strings.Repeat("b", 64))}
	for _, u := range []*unit{&p.Base, &p.Head} {
		u.address.Host, u.address.Harness, u.address.Machine = strings.Repeat("c", 64), strings.Repeat("d", 64), evidence.Machine{}.Key()
	}
	states := []evidence.CacheState{evidence.Cold, evidence.Warm}
	before(c, p, states)
	records, err := c.timeTogether(context.Background(), []pair{p}, []plan.Test{question(0)}, states, compare.Budget{Pairs: 8}, compare.SequentialPlan())
	if err != nil || len(records) != 1 || records[0].Failure != nil || raw == nil {
		t.Fatalf("%+v, %v", records, err)
	}
	return records[0], raw
}

// What a run was to time, and left before its first round, does not stand in the way.
func TestAPilotAloneAfterARunThatWasCut(t *testing.T) {
	dir := t.TempDir()
	r, raw := onlyPilotOf(t, func(c *Bench, p pair, states []evidence.CacheState) {
		c.open = store.OpenUnfinished(dir, store.Audit{Now: c.now})
		x := &experiment{c: c, states: states, as: c.together(compare.SequentialPlan(), states), start: c.now()}
		pilot := []evidence.Sample{{CacheState: evidence.Cold, Calls: 8, KernelNodes: 8, BatchesNS: []float64{7, 8}}}
		if err := x.save(&arms{pair: p, experiment: evidence.Experiment{Pilot: pilot, Discarded: []evidence.Discarded{{Order: "AB", Reason: "it is warm"}}}}); err != nil {
			t.Fatal(err)
		}
	})
	if err := (Auditor{}).Audit(r, raw); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*/*/*/*")); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// An experiment without a round is one whose pilot says that there can be none, and
// nothing else is.
func TestAuditOfAPilotAlone(t *testing.T) {
	r, raw := onlyPilotOf(t, func(*Bench, pair, []evidence.CacheState) {})
	if err := (Auditor{}).Audit(r, raw); err != nil {
		t.Fatal(err)
	}
	pilot := string(raw["pilot.jsonl"])
	swapped := func(was, is string) func(*evidence.Record, map[string][]byte) {
		return func(_ *evidence.Record, raw map[string][]byte) {
			raw["pilot.jsonl"] = []byte(strings.Replace(pilot, was, is, 1))
		}
	}
	for _, c := range []struct {
		name, want string
		change     func(r *evidence.Record, raw map[string][]byte)
	}{
		{"nothing is absent", "it has the raw inputs", func(r *evidence.Record, _ map[string][]byte) { r.Absent = nil }},
		{"raw inputs of rounds", "it has the raw inputs", func(_ *evidence.Record, raw map[string][]byte) {
			for _, name := range pairRaw {
				raw[name] = raw["pilot.jsonl"]
			}
			delete(raw, "pilot.jsonl")
		}},
		{"rounds", "it has the raw inputs", func(r *evidence.Record, _ map[string][]byte) {
			r.Experiment.Rounds = []evidence.Round{{Order: "AB", Base: r.Experiment.Pilot, Head: r.Experiment.Pilot}}
		}},
		{"not finished", "it has the raw inputs", func(r *evidence.Record, _ map[string][]byte) { r.Open = &evidence.Open{Plan: "p"} }},
		{"another state is absent", "times that it cannot have", func(r *evidence.Record, _ map[string][]byte) {
			r.Absent = map[evidence.CacheState]string{evidence.Cold: "it is too large"}
		}},
		{"the harness said nothing", "times that it cannot have", swapped("it is too large", "")},
		{"the state has a time, too", "its pilot has a warm time", func(r *evidence.Record, raw map[string][]byte) {
			swapped(`{"absent":`, timedLine+"\n"+timeLine+"\n"+`{"absent":`)(r, raw)
			r.Experiment.Pilot = append([]evidence.Sample{r.Experiment.Pilot[0]}, r.Experiment.Pilot...)
			r.Experiment.Pilot[0].CacheState = evidence.Warm
		}},
		{"the state has a time in the raw input alone", "samples of the base", swapped(`{"absent":`, timedLine+"\n"+timeLine+"\n"+`{"absent":`)},
		{"another pilot", "is not the one in its raw input", func(r *evidence.Record, _ map[string][]byte) { r.Experiment.Pilot[0].BatchesNS = []float64{1, 2} }},
		{"no pilot", "samples of the base", func(r *evidence.Record, _ map[string][]byte) { r.Experiment.Pilot = nil }},
		{"a process without its end", "whole processes", swapped(`{"end":`+strings.SplitN(pilot, `{"end":`, 2)[1], "")},
		{"a round that did not count", "was not ended by its pilot", func(r *evidence.Record, _ map[string][]byte) {
			r.Experiment.Discarded = []evidence.Discarded{{Order: "AB", Reason: "it is warm"}}
		}},
		{"ended by its time", "was not ended by its pilot", func(r *evidence.Record, _ map[string][]byte) { r.Experiment.Stopped = "wall" }},
		{"goes on with another", "was not ended by its pilot", func(r *evidence.Record, _ map[string][]byte) { r.Continues = strings.Repeat("e", 64) }},
		{"a figure of its own", "", func(r *evidence.Record, _ map[string][]byte) { r.Metrics["latency.typical"] = evidence.Of(1, "ns") }},
		{"of another case", "", swapped(`"case":"small"`, `"case":"large"`)},
	} {
		changed, x, inputs := *r, *r.Experiment, maps.Clone(raw)
		x.Pilot = slices.Clone(x.Pilot)
		changed.Experiment, changed.Metrics = &x, maps.Clone(r.Metrics)
		c.change(&changed, inputs)
		if err := (Auditor{}).Audit(&changed, inputs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A process without a time that the pilot has takes its own pair out, and no other.
func TestStateThatOneProcessLacks(t *testing.T) {
	warm := evidence.Sample{CacheState: evidence.Warm, Calls: 8, BatchesNS: []float64{1e6}}
	cold := evidence.Sample{CacheState: evidence.Cold, Calls: 8, BatchesNS: []float64{1e6}}
	both := []evidence.Sample{warm, cold}
	x := &experiment{c: &Bench{}, coarse: map[string]bool{}, states: []evidence.CacheState{evidence.Warm, evidence.Cold}}
	for _, p := range []pair{{Base: side("op/a", "", "base"), Head: side("op/a", "", "head")}, {Base: side("op/b", "", "base"), Head: side("op/b", "", "head")}} {
		x.arms = append(x.arms, &arms{pair: p, experiment: evidence.Experiment{Pilot: both}})
	}
	lost, well := x.arms[0], x.arms[1]
	base := map[string]*timing{lost.pair.Base.run(): {samples: both}, well.pair.Base.run(): {samples: both}}
	head := map[string]*timing{lost.pair.Head.run(): {samples: []evidence.Sample{cold}}, well.pair.Head.run(): {samples: both}}
	x.hold(x.arms, []map[string]*timing{base, head}, "AB")
	if lost.failure == nil || !strings.Contains(lost.failure.Message, "one process has a warm time of this case and another has none") || well.failure != nil {
		t.Errorf("%+v, %+v", lost.failure, well.failure)
	}
	lost.failure, x.states = nil, x.states[1:]
	if x.hold(x.arms, []map[string]*timing{base, head}, "AB"); lost.failure != nil {
		t.Errorf("a state that is not timed: %+v", lost.failure)
	}
}
