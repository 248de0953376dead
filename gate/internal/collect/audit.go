package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// An Auditor goes the way from raw inputs to a record again, and says where it
// comes out elsewhere than the record. Ops are those whose tolerances are known.
type Auditor struct{ Ops []*manifest.Op }

// Knows is what an audit depends on beside the record and its raw inputs.
func (a Auditor) Knows() string {
	var known []string
	for _, op := range a.Ops {
		known = append(known, fmt.Sprintf("%q %v", op.Name, op.Tolerance))
		for _, c := range op.Cases {
			if c.Rows > 0 {
				known = append(known, fmt.Sprintf("%q %q %d", op.Name, c.Name, c.Rows))
			}
		}
	}
	slices.Sort(known)
	return strings.Join(slices.Compact(known), "\n")
}

// Audit says what is inconsistent in a record, given its raw inputs by name.
func (a Auditor) Audit(r *evidence.Record, raw map[string][]byte) error {
	if err := wellFormed(r, slices.Sorted(maps.Keys(raw))); err != nil {
		return err
	}
	if err := errors.Join(auditCapacity(r, raw), auditAbsent(r, raw)); err != nil {
		return err
	}
	return tiers[r.Tier].audit(a, r, raw)
}

func auditLatency(_ Auditor, r *evidence.Record, raw map[string][]byte) error {
	if r.Experiment != nil {
		return auditExperiment(r, raw)
	}
	if err := auditTimes(r, raw["harness.jsonl"], "", r.Samples); err != nil {
		return err
	}
	return openStates(r.Open, r.Samples)
}

var (
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexID    = regexp.MustCompile(`^(v[0-9]+)?[0-9a-f]{64}$`) // that of a kernel begins with its scheme
	pairRaw  = []string{"base.jsonl", "head.jsonl", "orders.txt"}
	pilotRaw = []string{"pilot.jsonl"}
	sections = func(r *evidence.Record) []string {
		var out []string
		for name, there := range map[string]bool{"checks": len(r.Checks) > 0, "launches": len(r.Launches) > 0, "samples": len(r.Samples) > 0,
			"experiment": r.Experiment != nil, "aa": r.AA != nil, "sessions": len(r.Sessions) > 0} {
			if there {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
)

// wellFormed checks the address, and that the record holds what its tier holds
// and nothing else.
func wellFormed(r *evidence.Record, raw []string) error {
	want, known := tiers[r.Tier]
	if !known {
		return fmt.Errorf("no record of the tier %q is kept", r.Tier)
	}
	if r.Failure != nil {
		return errors.New("it holds a failure, and failures are never recorded")
	}
	if r.Tool != "" {
		want.raw = []string{r.Tool + ".txt"}
	}
	if r.Tier == evidence.Latency && len(r.Absent) > 0 && len(r.Samples) == 0 {
		want.sections = nil
	}
	if r.Base != nil {
		want.raw, want.sections = pairRaw, []string{"experiment"}
		if onlyPilot(r) {
			want.raw = pilotRaw
		}
		if b := *r.Base; r.Tier != evidence.Latency || b.Op != r.Address.Op || b.Case != r.Address.Case || b.Harness != r.Address.Harness || b.Machine != r.Address.Machine {
			return errors.New("its two arms are not of one op, case, harness and machine")
		}
	}
	if r.Continues != "" && (r.Base == nil || !digest.MatchString(r.Continues)) {
		return errors.New("it says that it continues a record, and has only one arm or no digest of that record")
	}
	if o := r.Open; o != nil {
		if r.Tier != evidence.Latency || o.Processes < 0 || (o.Processes > 0) != (r.Base == nil) {
			return errors.New("it was not begun as a record of its tier")
		}
	}
	if err := addressed(r); err != nil {
		return err
	}
	if r.Provenance.Kernel == "" || r.Provenance.Compiler == "" {
		return errors.New("it does not say which kernel was measured, or what compiled it")
	}
	if !slices.Equal(raw, want.raw) {
		return fmt.Errorf("it has the raw inputs %q, and a record of its tier has %q", raw, want.raw)
	}
	if got := sections(r); !slices.Equal(got, want.sections) {
		return fmt.Errorf("it holds %q, and a record of its tier holds %q", got, want.sections)
	}
	return nil
}

// addressed checks the ids of both addresses of a record.
func addressed(r *evidence.Record) error {
	for _, at := range []*evidence.Address{&r.Address, r.Base} {
		measured := r.Tier != evidence.Static // nothing measures what the compiler reports
		if at != nil && !(hexID.MatchString(at.Code) && hexID.MatchString(at.Host) && hexID.MatchString(at.Harness) == measured) {
			return errors.New("an id of its address is not a SHA-256")
		}
	}
	return nil
}

// onlyPilot reports whether an experiment says that its pilot is all that can be timed.
func onlyPilot(r *evidence.Record) bool {
	return r.Experiment != nil && len(r.Experiment.Rounds) == 0 && r.Open == nil && len(r.Absent) > 0
}

// sameFigures compares metrics with those that follow from the raw input.
func sameFigures(got, want evidence.Metrics) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, there := got[name]
		if !there {
			return fmt.Errorf("it lacks the figure %s", name)
		}
		if g != want[name] {
			return fmt.Errorf("its %s is %s, and by its raw input it is %s", name, word(g), word(want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[name]; !there {
			return fmt.Errorf("nothing in its raw input is a figure %s", name)
		}
	}
	return nil
}

func word(v evidence.Value) string {
	if !v.Known() {
		return "missing (" + v.Missing() + ")"
	}
	return strings.TrimSpace(fmt.Sprint(v.Number, " ", v.Unit()))
}

// A recording is what the lines of one kernel say, process after process.
type recording struct {
	kernel  string
	configs []*configMsg
	peaks   int
	begun   []string // classes
	checks  []evidence.Check
	times   []timeMsg
	absent  int
	ends    []endMsg
}

// readRecording reads raw lines of a record. They are of one kernel, the
// record's unless other, on the record's case and machine.
func readRecording(r *evidence.Record, data []byte, mode string, other bool) (*recording, error) {
	rec := &recording{}
	for n, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		var m message
		err := strictjson.Decode(line, maxLine, &m)
		if err == nil && m.messages() != 1 {
			err = fmt.Errorf("a record holds %d messages, not one", m.messages())
		}
		if err == nil && (n == 0) && m.Config == nil {
			err = errors.New("the config record comes first")
		}
		if err == nil {
			err = rec.take(m, r, mode)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of its raw input: %w", n+1, err)
		}
	}
	kernel, _, _ := strings.Cut(rec.kernel, ":")
	if !other && rec.kernel != "" && kernel != r.Provenance.Kernel {
		return nil, fmt.Errorf("its raw input is of %s, and the record of %s", kernel, r.Provenance.Kernel)
	}
	return rec, nil
}

func (rec *recording) take(m message, r *evidence.Record, mode string) error {
	switch {
	case m.Config != nil:
		rec.configs = append(rec.configs, m.Config)
		if m.Config.Mode != mode {
			return fmt.Errorf("the mode is %q, not %q", m.Config.Mode, mode)
		}
		return sameDevice(m.Config.Device, r.Provenance)
	case m.Peaks != nil && mode == "time":
		if rec.peaks++; rec.peaks != len(rec.configs) {
			return errors.New("every process says the peaks of the card once")
		}
		return m.Peaks.valid()
	case m.End != nil:
		rec.ends = append(rec.ends, *m.End)
		return nil
	case m.Begin != nil:
		rec.begun = append(rec.begun, m.Begin.Class)
	case m.Check != nil:
		rec.checks = append(rec.checks, m.Check.Check)
	case m.Absent != nil:
		rec.absent++
	case m.Time != nil:
		rec.times = append(rec.times, *m.Time)
	default:
		return errors.New("it is not part of what was measured")
	}
	about := m.about()
	if about.Case != r.Address.Case {
		return fmt.Errorf("it is of case %q, and the record of %q", about.Case, r.Address.Case)
	}
	if rec.kernel == "" {
		rec.kernel = about.Kernel
	}
	if about.Kernel != rec.kernel {
		return fmt.Errorf("it is of %q, and others are of %q", about.Kernel, rec.kernel)
	}
	return nil
}

// sameDevice holds what the harness said of the device against the record.
func sameDevice(device json.RawMessage, p evidence.Provenance) error {
	var d struct{ Name, UUID, CC, Driver string }
	if err := json.Unmarshal(device, &d); err != nil {
		return err
	}
	for _, pair := range [][2]string{{d.Name, p.Machine.GPU}, {d.CC, p.Machine.CC}, {d.Driver, p.Machine.Driver}, {evidence.CardOf(d.UUID), p.Card}} {
		if pair[0] != "" && pair[1] != "" && pair[0] != pair[1] {
			return fmt.Errorf("it was measured on %q, and the record says %q", pair[0], pair[1])
		}
	}
	return nil
}

// auditTimes holds the samples of a record against its raw input. Its figures
// are medians over the processes.
func auditTimes(r *evidence.Record, data []byte, what string, samples []evidence.Sample) error {
	if err := sameTimes(r, data, what, samples); err != nil {
		return err
	}
	return timesFollow(r, samples)
}

// openStates holds the samples of a record that is not finished to the states
// of the caches that it was begun with.
func openStates(o *evidence.Open, samples []evidence.Sample) error {
	for _, s := range samples {
		if o != nil && !slices.Contains(o.States, s.CacheState) {
			return fmt.Errorf("it holds %s times, and was begun without", s.CacheState)
		}
	}
	return nil
}

func timesFollow(r *evidence.Record, samples []evidence.Sample) error {
	metrics, err := timeMetrics(samples)
	if err != nil {
		return err
	}
	addAbsent(metrics, r)
	return sameFigures(r.Metrics, metrics)
}

func sameTimes(r *evidence.Record, data []byte, what string, samples []evidence.Sample) error {
	rec, err := readRecording(r, data, "time", what == " of the base")
	if err != nil {
		return err
	}
	if len(rec.times) != len(samples) || len(samples) == 0 && len(r.Absent) == 0 || len(rec.begun) != len(rec.times)+rec.absent {
		return fmt.Errorf("it holds %d samples%s, and its raw input %d", len(samples), what, len(rec.times))
	}
	if len(rec.configs) != len(rec.ends) || len(rec.configs) != rec.peaks || len(rec.times)%len(rec.configs) != 0 {
		return errors.New("its raw input is not of whole processes")
	}
	if o := r.Open; o != nil && o.Processes > 0 && o.Processes != len(rec.configs) {
		return fmt.Errorf("it says %d processes, and its raw input is of %d", o.Processes, len(rec.configs))
	}
	for i, t := range rec.times {
		if err := t.valid(); err != nil {
			return fmt.Errorf("its sample %d%s: %w", i, what, err)
		}
		if !reflect.DeepEqual(t.sample(), samples[i]) {
			return fmt.Errorf("its sample %d%s is not the one in its raw input", i, what)
		}
	}
	return nil
}

// near holds for sums of the same numbers in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

func auditExperiment(r *evidence.Record, raw map[string][]byte) error {
	x := r.Experiment
	orders := map[string]bool{}
	for line := range strings.Lines(string(raw["orders.txt"])) {
		if f := strings.Fields(line); len(f) > 2 {
			orders[f[0]+" "+f[2]] = true
		}
	}
	var base, head []evidence.Sample
	for i, b := range x.Rounds {
		if i > 0 && b.Number <= x.Rounds[i-1].Number || b.Number < 0 {
			return fmt.Errorf("its round %d does not come after the one before it", b.Number)
		}
		if !orders[fmt.Sprint(b.Number, " ", b.Order)] {
			return fmt.Errorf("the order %q of its round %d was never drawn", b.Order, b.Number)
		}
		arm := strings.Count(b.Order, "A")
		if arm == 0 || 2*arm != len(b.Order) || strings.Count(b.Order, "B") != arm || len(b.Base) != len(b.Head) || len(b.Base)%arm != 0 || len(b.Base) == 0 {
			return fmt.Errorf("its round %d, %q, does not hold as many processes of both arms", b.Number, b.Order)
		}
		base, head = append(base, b.Base...), append(head, b.Head...)
	}
	for _, s := range x.Pilot {
		if err := (timeMsg{Calls: s.Calls, KernelNodes: s.KernelNodes, BatchesNS: s.BatchesNS}).valid(); err != nil {
			return fmt.Errorf("its pilot: %w", err)
		}
	}
	if spent := seconds(base) + seconds(head); !(x.TimedSeconds >= spent*(1-1e-9)) || !(x.WallSeconds >= 0) {
		return fmt.Errorf("it says %g s of batches, and its samples %g", x.TimedSeconds, spent)
	}
	if onlyPilot(r) {
		return auditPilot(r, raw["pilot.jsonl"])
	}
	if err := openStates(r.Open, slices.Concat(base, head)); err != nil {
		return err
	}
	if r.Open != nil && len(x.Rounds) == 0 && len(raw["base.jsonl"])+len(raw["head.jsonl"]) == 0 {
		return timesFollow(r, nil) // before its first round
	}
	if err := sameTimes(r, raw["base.jsonl"], " of the base", base); err != nil {
		return err
	}
	if err := sameTimes(r, raw["head.jsonl"], " of the head", head); err != nil {
		return err
	}
	return timesFollow(r, head)
}

// auditPilot holds an experiment that ended with its pilot against what the harness
// said there: a state that is called absent has no time in it, and no round was begun.
func auditPilot(r *evidence.Record, data []byte) error {
	x := r.Experiment
	if len(x.Discarded) > 0 || x.Stopped != "resolved" || r.Continues != "" {
		return errors.New("it holds no round, and was not ended by its pilot")
	}
	for _, s := range x.Pilot {
		if r.Absent[s.CacheState] != "" {
			return fmt.Errorf("its pilot has a %s time, and it says that there can be none", s.CacheState)
		}
	}
	if err := sameTimes(r, data, " of the base", x.Pilot); err != nil {
		return err
	}
	return timesFollow(r, nil)
}

func auditSessions(_ Auditor, r *evidence.Record, _ map[string][]byte) error {
	if late := store.Together(r.Sessions); late != "" {
		return fmt.Errorf("it counts the session of %s twice: it follows another one of its card within the hour", late)
	}
	for _, s := range r.Sessions {
		if len(s.Processes) == 0 {
			return fmt.Errorf("its session of %s holds no process", s.Recorded)
		}
		for _, l := range s.Processes {
			if l.CacheState != evidence.Warm && l.CacheState != evidence.Cold {
				return fmt.Errorf("its session of %s has a cache state %q", s.Recorded, l.CacheState)
			}
		}
	}
	return nil
}
