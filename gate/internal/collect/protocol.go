package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/strictjson"
	"github.com/kernelgate/gate/kernels/harness"
)

// The harness speaks JSON lines: config first, end last with a count of what
// was sent. A stream without its end, or with a line that is not understood,
// is not evidence.

type message struct {
	Config  *configMsg  `json:"config,omitempty"`
	Peaks   *peaksMsg   `json:"peaks,omitempty"`
	Begin   *unitMsg    `json:"begin,omitempty"`
	Check   *checkMsg   `json:"check,omitempty"`
	Time    *timeMsg    `json:"time,omitempty"`
	Profile *profileMsg `json:"profile,omitempty"`
	Absent  *absentMsg  `json:"absent,omitempty"`
	Alive   *struct{}   `json:"alive,omitempty"`
	Error   *errorMsg   `json:"error,omitempty"`
	End     *endMsg     `json:"end,omitempty"`
}

type configMsg struct {
	Protocol string          `json:"protocol"`
	Mode     string          `json:"mode"`
	Seed     json.Number     `json:"seed"`
	Device   json.RawMessage `json:"device"`
}

// peaksMsg is what the card was seen to do at best.
type peaksMsg struct {
	Cold   trafficMsg         `json:"cold_bytes_per_ns"`
	Warm   trafficMsg         `json:"warm_bytes_per_ns"`
	Flops  map[string]float64 `json:"flops_per_ns"`
	Absent map[string]string  `json:"absent"`
	SMMHz  map[string]float64 `json:"sm_mhz"`
}

// trafficMsg is by what is done with the bytes; one that is copied counts twice.
type trafficMsg struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
	Copy  float64 `json:"copy"`
}

type unitMsg struct {
	Kernel string `json:"kernel"`
	Case   string `json:"case"`
	Class  string `json:"class"`
	Regime string `json:"regime"`
}

type checkMsg struct {
	Kernel string `json:"kernel"`
	Case   string `json:"case"`
	evidence.Check
}

type timeMsg struct {
	Kernel      string    `json:"kernel"`
	Case        string    `json:"case"`
	Regime      string    `json:"regime"`
	Calls       int       `json:"calls"`
	KernelNodes int       `json:"kernel_nodes"`
	Sets        int       `json:"sets"`
	BatchesNS   []float64 `json:"batches_ns"`
	SMMHz       []float64 `json:"sm_mhz"`
	FreshNS     float64   `json:"fresh_ns"`
	SingleNS    float64   `json:"single_ns"`
	Before      stateMsg  `json:"before"`
	After       stateMsg  `json:"after"`
}

type stateMsg struct {
	evidence.DeviceState
	ThrottleBits json.Number `json:"throttle_bits"`
}

type profileMsg struct {
	Kernel      string `json:"kernel"`
	Case        string `json:"case"`
	Calls       int    `json:"calls"`
	KernelNodes int    `json:"kernel_nodes"` // kernel launches of the call as it is captured
	// Launches are those launches in order; nil is one that the harness could not read.
	Launches []*launchMsg `json:"launches"`
}

type launchMsg struct {
	Grid  [3]int `json:"grid"`
	Block [3]int `json:"block"`
}

// absentMsg says why a unit has no time in a state of the caches.
type absentMsg struct {
	Kernel string `json:"kernel"`
	Case   string `json:"case"`
	Regime string `json:"regime"`
	Reason string `json:"reason"`
}

type errorMsg struct {
	Kernel  string `json:"kernel"`
	Case    string `json:"case"`
	Class   string `json:"class"`
	Regime  string `json:"regime"`
	Kind    string `json:"kind"`
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

type endMsg struct {
	sentMsg
	MS map[string]float64 `json:"ms"` // how long the program took, by kind of work
}

// sentMsg counts records.
type sentMsg struct {
	Peaks   int `json:"peaks"`
	Begin   int `json:"begin"`
	Check   int `json:"check"`
	Time    int `json:"time"`
	Profile int `json:"profile"`
	Absent  int `json:"absent"`
	Error   int `json:"error"`
}

// A stream is what one harness process sent.
type stream struct {
	config  *configMsg
	peaks   []peaksMsg
	last    *unitMsg // the unit begun last, or in error: where a crash or a hang belongs
	checks  []checkMsg
	times   []timeMsg
	profile []profileMsg
	absent  []absentMsg
	errors  []errorMsg
	ended   bool
	garbled error // what is not of the protocol; what came before it serves attribution only
	lines   []rawLine
	begun   []unitMsg        // input classes and states of the caches, in order
	results map[unitMsg]bool // of what was begun: whether a result came
}

type rawLine struct {
	kernel, kase string // both "" for lines that belong to all units
	text         []byte
}

// maxLine bounds one line of the protocol.
const maxLine = 1 << 20

// parseStream reads what the harness sent. Only a stream that is whole has
// ended.
func parseStream(data []byte) *stream {
	s := &stream{}
	s.garbled = s.read(data)
	s.ended = s.ended && s.garbled == nil
	return s
}

func (s *stream) read(data []byte) error {
	var sent sentMsg
	r := bufio.NewScanner(bytes.NewReader(data))
	r.Buffer(make([]byte, 0, 64<<10), maxLine)
	for n := 1; r.Scan(); n++ {
		line := append([]byte(nil), r.Bytes()...)
		if s.ended {
			return fmt.Errorf("harness output, line %d: data follows the end record", n)
		}
		var m message
		if err := strictjson.Decode(line, maxLine, &m); err != nil {
			if n > 1 && len(line) > 0 && bytes.HasSuffix(data, line) {
				break // the last line was cut by a kill
			}
			return fmt.Errorf("harness output, line %d: %w", n, err)
		}
		if (n == 1) != (m.Config != nil) {
			return fmt.Errorf("harness output, line %d: the config record comes first and once", n)
		}
		if err := s.take(m, line, &sent); err != nil {
			return fmt.Errorf("harness output, line %d: %w", n, err)
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("harness output: %w", err)
	}
	return nil
}

// messages is how many a record holds.
func (m message) messages() int {
	n := 0
	for _, there := range []bool{m.Config != nil, m.Peaks != nil, m.Begin != nil, m.Check != nil, m.Time != nil, m.Profile != nil, m.Absent != nil, m.Alive != nil, m.Error != nil, m.End != nil} {
		if there {
			n++
		}
	}
	return n
}

// about is the part of a unit that a record is about, zero for one about the process.
func (m message) about() unitMsg {
	switch {
	case m.Begin != nil:
		return *m.Begin
	case m.Check != nil:
		return unitMsg{Kernel: m.Check.Kernel, Case: m.Check.Case, Class: m.Check.Class}
	case m.Time != nil:
		return unitMsg{Kernel: m.Time.Kernel, Case: m.Time.Case, Regime: m.Time.Regime}
	case m.Absent != nil:
		return unitMsg{Kernel: m.Absent.Kernel, Case: m.Absent.Case, Regime: m.Absent.Regime}
	case m.Profile != nil:
		return unitMsg{Kernel: m.Profile.Kernel, Case: m.Profile.Case}
	case m.Error != nil:
		return unitMsg{Kernel: m.Error.Kernel, Case: m.Error.Case}
	}
	return unitMsg{}
}

func (s *stream) take(m message, line []byte, sent *sentMsg) (err error) {
	about := m.about()
	switch {
	case m.messages() != 1:
		err = fmt.Errorf("a record holds %d messages, not one", m.messages())
	case m.Config != nil:
		if s.config = m.Config; m.Config.Protocol != harness.Protocol {
			err = fmt.Errorf("the protocol is %q, this gate speaks %q", m.Config.Protocol, harness.Protocol)
		}
	case m.Peaks != nil:
		sent.Peaks, s.peaks = sent.Peaks+1, append(s.peaks, *m.Peaks)
		err = s.beforeAll(*m.Peaks)
	case m.Begin != nil:
		sent.Begin, s.last = sent.Begin+1, m.Begin
		s.begin(about)
	case m.Check != nil:
		sent.Check, s.checks = sent.Check+1, append(s.checks, *m.Check)
		err = s.answer(about)
	case m.Time != nil:
		sent.Time, s.times = sent.Time+1, append(s.times, *m.Time)
		err = s.answer(about)
	case m.Absent != nil:
		sent.Absent, s.absent = sent.Absent+1, append(s.absent, *m.Absent)
		err = s.answer(about)
	case m.Profile != nil:
		sent.Profile, s.profile = sent.Profile+1, append(s.profile, *m.Profile)
	case m.Alive != nil:
		return nil // nothing that is kept: how often it comes depends on the machine
	case m.Error != nil:
		sent.Error, s.errors = sent.Error+1, append(s.errors, *m.Error)
	case m.End != nil:
		err = s.end(*m.End, *sent)
	}
	if err == nil {
		s.lines = append(s.lines, rawLine{about.Kernel, about.Case, line})
	}
	return err
}

// end holds what the last record counts against what was sent.
func (s *stream) end(m endMsg, sent sentMsg) error {
	if m.sentMsg != sent {
		return fmt.Errorf("the end record counts %+v, %+v arrived", m.sentMsg, sent)
	}
	err := s.complete()
	s.ended = err == nil
	return err
}

// beforeAll requires peaks that are possible, once and before a kernel is loaded.
func (s *stream) beforeAll(p peaksMsg) error {
	if len(s.peaks) > 1 || s.last != nil {
		return errors.New("the peaks of the card come once, and before any kernel")
	}
	return p.valid()
}

// begin notes that a part of a unit has no result yet.
func (s *stream) begin(u unitMsg) {
	if s.results == nil {
		s.results = map[unitMsg]bool{}
	}
	if _, known := s.results[u]; !known {
		s.results[u], s.begun = false, append(s.begun, u)
	}
}

// answer takes the result of a part, which comes once.
func (s *stream) answer(u unitMsg) error {
	s.begin(u)
	if s.results[u] {
		s.last = &u
		return fmt.Errorf("a second result of %s", u)
	}
	s.results[u] = true
	return nil
}

func (u unitMsg) String() string {
	text := u.Kernel + " on " + u.Case
	if u.Class != "" {
		text += fmt.Sprintf(", inputs %q", u.Class)
	}
	if u.Regime != "" {
		text += ", " + u.Regime
	}
	return text
}

// complete requires a result of everything that was begun, and of every kernel on
// every case the same input classes and states of the caches: a process goes
// through one op's. A unit with an error is not held to that, and a profile
// announces nothing finer.
func (s *stream) complete() error {
	if s.config.Mode == "time" && len(s.times) > 0 && len(s.peaks) == 0 {
		return errors.New("times came, and no peaks of the card")
	}
	whole := slices.DeleteFunc(slices.Clone(s.begun), func(u unitMsg) bool {
		return u.Class == "" && u.Regime == "" || s.failed(u.Kernel, u.Case)
	})
	seen := map[unitMsg]bool{}
	var sides []unitMsg
	for _, u := range whole {
		if !s.results[u] {
			s.last = &u
			return fmt.Errorf("no result came of %s", u)
		}
		if side := (unitMsg{Class: u.Class, Regime: u.Regime}); !seen[side] {
			seen[side], sides = true, append(sides, side)
		}
	}
	for _, u := range whole {
		for _, side := range sides {
			if u.Class, u.Regime = side.Class, side.Regime; !s.results[u] {
				s.last = &u
				return fmt.Errorf("%s was left out", u)
			}
		}
	}
	return nil
}

func (s *stream) failed(kernel, kase string) bool {
	return slices.ContainsFunc(s.errors, func(m errorMsg) bool { return m.Kernel == "" || m.Kernel == kernel && m.Case == kase })
}

// raw is the part of the stream that belongs to one unit.
func (s *stream) raw(kernel, kase string) []byte {
	var out bytes.Buffer
	for _, l := range s.lines {
		if l.kernel == "" || l.kernel == kernel && l.kase == kase {
			out.Write(l.text)
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

func (t timeMsg) sample() evidence.Sample {
	return evidence.Sample{CacheState: evidence.CacheState(t.Regime), Calls: t.Calls, KernelNodes: t.KernelNodes, Sets: t.Sets,
		BatchesNS: t.BatchesNS, ClocksMHz: t.SMMHz, FreshNS: t.FreshNS, SingleNS: t.SingleNS, Before: t.Before.DeviceState, After: t.After.DeviceState}
}

// valid says what is wrong with a time that cannot be used.
func (t timeMsg) valid() error {
	if t.Calls < 1 || t.KernelNodes < t.Calls || t.KernelNodes%t.Calls != 0 {
		return fmt.Errorf("%d kernel nodes for %d calls: not every call was captured", t.KernelNodes, t.Calls)
	}
	if len(t.BatchesNS) < 2 {
		return fmt.Errorf("%d batches are too few", len(t.BatchesNS))
	}
	for _, b := range t.BatchesNS {
		if !(b > 0 && b <= 1e12) {
			return fmt.Errorf("a batch of %v ns is not a time", b)
		}
	}
	return nil
}
