// Package evidence is what was measured, as plain data, and its JSON form.
//
// A Record is one tier of one kernel on one case and one machine. It is
// addressed by identities of machine code and host code, never by the name of
// a kernel, so evidence survives renames and is found again wherever the same
// bytes are built. The package imports nothing of gate: every stage on either
// side of the store speaks it.
package evidence

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unique"
)

// Schema names the layout of a Record.
const Schema = "gate/evidence/v1"

// A Tier is one stage of evidence, in the order in which it is collected.
type Tier string

// The tiers. Static needs no GPU and is rebuilt rather than stored. Calibration
// is of the machine's noise and decides nothing. Sessions are the times of one
// code in one job after another. Sanitizer is measured only where a rule asks.
const (
	Static      Tier = "static"
	Correctness Tier = "correctness"
	Sanitizer   Tier = "sanitizer"
	Profile     Tier = "profile"
	Latency     Tier = "latency"
	Calibration Tier = "calibration"
	Sessions    Tier = "sessions"
)

// Order is that in which tiers are collected, those of a verdict alone.
var Order = []Tier{Static, Correctness, Sanitizer, Profile, Latency}

// Sanitizers are the tools of compute-sanitizer. Only one of them can watch a
// process, so each has records of its own.
var Sanitizers = []string{"memcheck", "racecheck", "initcheck", "synccheck"}

// Names are those of tiers, in one text.
func Names(tiers []Tier, between string) string {
	var names []string
	for _, t := range tiers {
		names = append(names, string(t))
	}
	return strings.Join(names, between)
}

// An Identity says which code was measured: the code id covers the machine
// code, the host id the code that launches it. Both are hex SHA-256.
type Identity struct {
	Code string `json:"code_id"`
	Host string `json:"host_id"`
}

// Known reports whether both halves are present.
func (id Identity) Known() bool { return id.Code != "" && id.Host != "" }

// Short is a readable abbreviation for file names and messages.
func (id Identity) Short() string { return abbreviate(id.Code) + "-" + abbreviate(id.Host) }

func abbreviate(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

// An Address says where a record belongs: which code, on which case of which
// op, measured by which harness, on which machine.
type Address struct {
	Identity
	Op      string `json:"op"`
	Case    string `json:"case"`
	Harness string `json:"harness_id"`
	Machine string `json:"machine_key"`
}

// A Value is a number with its unit, or the reason why there is none. The
// zero Value is missing without a reason; it is never read as 0. There are many,
// and few different texts, so each text is held once.
type Value struct {
	Number float64
	texts  unique.Handle[texts]
}

// texts are what is said of a number. Unless known, there is none.
type texts struct {
	unit, missing, where string
	known                bool
}

// Of is a known value. A number that is not finite is a missing value.
func Of(number float64, unit string) Value {
	if math.IsNaN(number) || math.IsInf(number, 0) {
		return Absent(fmt.Sprintf("the measured value is not finite (%v)", number), unit)
	}
	return Value{number, unique.Make(texts{unit: unit, known: true})}
}

// Absent is a missing value with its reason.
func Absent(reason, unit string) Value {
	if reason == "" {
		reason = "not measured"
	}
	return Value{0, unique.Make(texts{unit: unit, missing: reason})}
}

// In is the value with what it is of, where that is not what one expects.
func (v Value) In(where string) Value {
	t := v.said()
	t.where = where
	return Value{v.Number, unique.Make(t)}
}

func (v Value) said() texts {
	if v.texts == (unique.Handle[texts]{}) {
		return texts{}
	}
	return v.texts.Value()
}

// Known reports whether the value is a number.
func (v Value) Known() bool { return v.said().known }

// Unit is that of the number, or of the number that is missing.
func (v Value) Unit() string { return v.said().unit }

// Missing is why there is no number.
func (v Value) Missing() string { return v.said().missing }

// Where is what the value is of, "" where that is what one expects.
func (v Value) Where() string { return v.said().where }

// A Metrics maps metric names ("ptxas.registers") to values.
type Metrics map[string]Value

// Get returns a missing value for a name that was never recorded.
func (m Metrics) Get(name string) Value {
	if v, ok := m[name]; ok {
		return v
	}
	return Absent("not measured", "")
}

// A Record is the evidence of one tier at one address.
type Record struct {
	Schema  string   `json:"schema"`
	Tier    Tier     `json:"tier"`
	Tool    string   `json:"tool,omitempty"` // of the sanitizer: one of Sanitizers
	Address Address  `json:"address"`
	Base    *Address `json:"base,omitempty"` // the other arm of a latency experiment

	// Continues is the digest of the record that this one goes on with: its first
	// rounds are those of that one.
	Continues string `json:"continues,omitempty"`
	// Open is set while a record is being measured. Such a record answers nothing.
	Open *Open `json:"open,omitempty"`

	Provenance Provenance `json:"provenance"`
	Capacity   *Capacity  `json:"capacity,omitempty"` // of times
	// Absent are the states of the caches in which the case has no time, and why: no
	// run would find one.
	Absent  map[CacheState]string `json:"absent,omitempty"`
	Metrics Metrics               `json:"metrics,omitempty"`
	// Entries are the compiler's figures of each __global__ function, by its
	// name as it is written in the source.
	Entries map[string]Metrics `json:"entries,omitempty"`
	Failure *Failure           `json:"failure,omitempty"`

	Checks     []Check     `json:"checks,omitempty"`
	Launches   []Launch    `json:"launches,omitempty"`
	Samples    []Sample    `json:"samples,omitempty"`
	Experiment *Experiment `json:"experiment,omitempty"`
	AA         *AA         `json:"aa,omitempty"`
	Sessions   []Session   `json:"sessions,omitempty"` // oldest first

	Raw []Raw `json:"raw,omitempty"`
}

// Open says as what a record was begun that is not finished. Only a run that
// would begin it in the same way goes on with it.
type Open struct {
	Plan      string       `json:"plan"` // how it was to be measured
	States    []CacheState `json:"regimes"`
	Processes int          `json:"processes,omitempty"` // finished so far, of a kernel timed alone
}

// Provenance says how a record came about.
type Provenance struct {
	Recorded string  `json:"recorded"` // RFC 3339, UTC
	Kernel   string  `json:"kernel"`   // its name at the time
	Commit   string  `json:"commit,omitempty"`
	Compiler string  `json:"compiler"`
	Profiler string  `json:"profiler,omitempty"`
	Protocol string  `json:"protocol,omitempty"`
	Machine  Machine `json:"machine"`
	Card     string  `json:"card,omitempty"` // tells single cards of one machine key apart
}

// A Capacity is the fastest that a card was seen to be in the processes of a record,
// before a kernel was loaded.
type Capacity struct {
	L2Bytes        int                `json:"l2_bytes"`
	ColdBytesPerNS float64            `json:"cold_bytes_per_ns"` // of its memory
	WarmBytesPerNS float64            `json:"warm_bytes_per_ns"` // of its L2
	FlopsPerNS     map[string]float64 `json:"flops_per_ns"`      // by the arithmetic
	Absent         map[string]string  `json:"absent,omitempty"`  // why there is none of an arithmetic
}

// Raw is an input kept beside the record, compressed with gzip.
type Raw struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of the file as stored
	Bytes  int64  `json:"bytes"`  // of the file as stored
}

// A FailureKind tells apart the ways in which a kernel or a tool breaks.
type FailureKind string

// Hang, Crash, CUDA and Wrong are the kernel's doing; Permission, Device and
// Tool are not, and leave the question open.
const (
	Hang       FailureKind = "hang"
	Crash      FailureKind = "crash"
	CUDA       FailureKind = "cuda-error"
	Wrong      FailureKind = "wrong-result"
	Permission FailureKind = "permission"
	Device     FailureKind = "device"
	Tool       FailureKind = "tool"
)

// A Failure is a tier that ended without its measurement.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"`
	Hint    string      `json:"hint,omitempty"`
	// OtherArm says that an experiment failed by its base or reference.
	OtherArm bool `json:"other_arm,omitempty"`
}

// Blames reports whether the kernel itself is at fault.
func (f *Failure) Blames() bool {
	switch f.Kind {
	case Hang, Crash, CUDA, Wrong:
		return true
	}
	return false
}

func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// A Check is the comparison with the op's reference on one class of inputs.
type Check struct {
	Class         string   `json:"class"`
	Elements      int64    `json:"elements"`
	Rows          int64    `json:"rows,omitempty"`     // that were compared, of a case of which not all need be
	AllRows       int64    `json:"all_rows,omitempty"` // of such a case
	RelativeError *float64 `json:"relative_error"`     // ‖out−ref‖/‖ref‖; nil when not finite
	MaxAbsError   *float64 `json:"max_abs_error"`
	MaxAbsIndex   int64    `json:"max_abs_index"`
	NonFinite     int64    `json:"nonfinite"`
	Mismatched    int64    `json:"mismatched,omitempty"` // elements of exact outputs that differ
	Unwritten     int64    `json:"unwritten"`
	Seed          uint64   `json:"seed,omitempty"` // of the inputs
	Guard         string   `json:"guard"`
	InputsChanged bool     `json:"inputs_changed"`
	Repeatable    bool     `json:"repeatable"`
	Status        string   `json:"status"`
	Reasons       []string `json:"reasons,omitempty"`
}

// Passed reports whether nothing about a check is wrong. Its status alone does
// not say so: a record comes from a file.
func (c Check) Passed() bool {
	return c.Status == "pass" && c.Elements > 0 && (c.Rows > 0 && c.Rows <= c.AllRows || c.Rows == 0 && c.AllRows == 0) && c.RelativeError != nil && c.NonFinite == 0 && c.Mismatched == 0 && c.Unwritten == 0 &&
		c.Guard == "ok" && !c.InputsChanged && c.Repeatable
}

// Correct reports whether the record shows that a kernel is correct.
func (r *Record) Correct() bool {
	return r != nil && r.Failure == nil && len(r.Checks) > 0 && !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.Passed() })
}

// Untimed says why a record of times has none in a state of the caches and never will,
// "" where that is not so.
func (r *Record) Untimed(state CacheState) string {
	if why := r.Absent[state]; why != "" {
		return fmt.Sprintf("it has no %s time: %s", state, why)
	}
	return ""
}

// A Launch is one kernel launch as the profiler saw it.
type Launch struct {
	Kernel  string  `json:"kernel"`
	Block   [3]int  `json:"block"`
	Grid    [3]int  `json:"grid"`
	Metrics Metrics `json:"metrics"`
}

// A CacheState says where the inputs of a timed call lie before it.
type CacheState string

// Warm inputs are in the L2 cache, Cold ones are not.
const (
	Warm CacheState = "warm"
	Cold CacheState = "cold"
)

// A Sample is what one process launch measured in one state of the caches: the time of one
// call in nanoseconds, one figure a batch.
type Sample struct {
	CacheState  CacheState  `json:"regime"`
	Calls       int         `json:"calls"` // calls in one batch
	KernelNodes int         `json:"kernel_nodes"`
	Sets        int         `json:"sets"`
	BatchesNS   []float64   `json:"batches_ns"`
	ClocksMHz   []float64   `json:"clocks_mhz,omitempty"` // of a multiprocessor, around each batch; 0 where it was not measured
	FreshNS     float64     `json:"fresh_ns,omitempty"`   // a call on inputs that the kernel had not seen
	SingleNS    float64     `json:"single_ns,omitempty"`  // a cold call by itself, after a flush
	Before      DeviceState `json:"before"`
	After       DeviceState `json:"after"`
}

// DeviceState is what the device says of itself around a launch. A reading
// that the device does not offer is nil.
type DeviceState struct {
	SMMHz       *float64 `json:"sm_mhz"`
	MemMHz      *float64 `json:"mem_mhz"`
	Temperature *float64 `json:"temperature_c"`
	PowerW      *float64 `json:"power_w"`
	Throttle    []string `json:"throttle"`
}

// An Experiment is an interleaved comparison of two arms: every launch is a
// fresh process, in the order in which it ran.
type Experiment struct {
	Pilot     []Sample    `json:"pilot"` // the base alone, before the first block: sizes a policy's floor
	Rounds    []Round     `json:"blocks"`
	Discarded []Discarded `json:"discarded,omitempty"`
	Stopped   string      `json:"stopped"` // why no further block was run: resolved, pairs, wall, gpu, or the device in words

	// Seconds of the whole series that the experiment was part of, and those
	// of them in which a batch was on the GPU.
	WallSeconds  float64 `json:"wall_seconds"`
	TimedSeconds float64 `json:"timed_seconds"`
}

// Ended reports whether the plan ended the experiment: by its answers, its last
// look or its budget. What an interrupt or a restless device ended is nobody's
// decision, and has to be run again.
func (e *Experiment) Ended() bool {
	switch e.Stopped {
	case "resolved", "pairs", "wall", "gpu":
		return true
	}
	return false
}

// A Round is a set of processes in random order, as many of the base (A) as of
// the head (B). Order holds the arms as they ran, "ABBA…", and was drawn
// before.
type Round struct {
	Number int      `json:"number"`
	Order  string   `json:"order"`
	Base   []Sample `json:"base"`
	Head   []Sample `json:"head"`
}

// A Discarded block was given up as a whole, for the state of the device or a
// launch that failed, never for a time.
type Discarded struct {
	Number int    `json:"number"`
	Order  string `json:"order"`
	Reason string `json:"reason"`
}

// AA is how a calibration was run. The record's samples are those of its
// blocks, eight launches each of one artifact, in the order measured.
type AA struct {
	Rounds         int         `json:"blocks"`
	Discarded      []Discarded `json:"discarded,omitempty"`
	ProcessSeconds float64     `json:"launch_seconds"` // wall time of a launch, which all kernels of the run share
	TimedSeconds   float64     `json:"timed_seconds"`  // of one launch: batches of this kernel and case on the GPU
}

// A Session is what one job's launches said of one code. Their batches lie with
// the records that the job left.
type Session struct {
	Recorded  string           `json:"recorded"` // RFC 3339, UTC, of its last run
	Commit    string           `json:"commit,omitempty"`
	Card      string           `json:"card,omitempty"`
	Processes []SessionProcess `json:"launches"`
}

// A SessionProcess is the summary of one process launch in one state of the caches, in
// nanoseconds per call.
type SessionProcess struct {
	CacheState CacheState `json:"regime"`
	Typical    float64    `json:"typical"`
	Mean       float64    `json:"mean"`
}
