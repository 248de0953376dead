// Package verdict is the product as data: what every rule came to on every
// kernel and case, the figures it rests on, and the exit status. Every report is
// a function of it.
package verdict

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/strictjson"
)

// Schema names the layout of verdict.json.
const Schema = "gate/verdict/v1"

// A Status is the result of a finding, a kernel or a whole run. The zero value
// is Inconclusive: a pass is earned.
type Status int

// The statuses. Warn is a broken rule whose severity is warn; NotCompared is a
// comparison that has no other side, because the kernel is new.
const (
	Inconclusive Status = iota
	NotCompared
	Pass
	Warn
	Fail
)

var statusWords = []string{"inconclusive", "not-compared", "pass", "warn", "fail"}

func (s Status) String() string {
	if s < 0 || int(s) >= len(statusWords) {
		return "inconclusive"
	}
	return statusWords[s]
}

// MarshalText writes the status as a word.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a word back.
func (s *Status) UnmarshalText(text []byte) error {
	for i, w := range statusWords {
		if w == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not a status", text)
}

// worse orders statuses by how much they stand in the way of a merge.
func worse(a, b Status) bool { return rank[a] > rank[b] }

var rank = map[Status]int{NotCompared: 0, Pass: 1, Warn: 2, Inconclusive: 3, Fail: 4}

// A Severity says whether a broken rule is red.
type Severity string

// Red is the default. Info is shown and weighs nothing.
const (
	Red   Severity = "fail"
	Warns Severity = "warn"
	Info  Severity = "info"
)

// A State says how a kernel of the head relates to the base.
type State string

// Unchanged means that machine code and host code have the ids of the base.
// NoBase is not New: there, it is not known whether the base had the kernel.
const (
	Unchanged State = "unchanged"
	Changed   State = "changed"
	New       State = "new"
	Gone      State = "gone"
	NoBase    State = "no-base"
)

// A Verdict is the product: everything that a report says is a function of it.
type Verdict struct {
	Schema      string          `json:"schema"`
	Status      Status          `json:"status"`
	ToolFailure bool            `json:"tool_failure,omitempty"`
	Policy      string          `json:"policy"`
	JudgedBy    string          `json:"judged_by"`       // whose policy, waivers and ops: "base", or "head" at the desk
	Tiers       []evidence.Tier `json:"tiers,omitempty"` // that were asked for; none: all
	Head        Side            `json:"head"`
	Base        Side            `json:"base"`
	Machines    []MachineRef    `json:"machines"`
	Counts      Counts          `json:"counts"`
	Notes       []string        `json:"notes,omitempty"`
	Waivers     []Waiver        `json:"waivers,omitempty"`
	Kernels     []KernelVerdict `json:"kernels"`
	Reproduce   string          `json:"reproduce"`
}

// A Side names one tree that was compared.
type Side struct {
	Commit string `json:"commit,omitempty"`
	Dirty  bool   `json:"dirty,omitempty"`
	How    string `json:"how,omitempty"`
	Why    string `json:"why_none,omitempty"` // why there is no base
}

// A MachineRef is a machine whose evidence was judged.
type MachineRef struct {
	Key         string `json:"key"`
	Description string `json:"description"`
	Oldest      string `json:"oldest,omitempty"` // RFC 3339 times of the evidence used
	Newest      string `json:"newest,omitempty"`
}

// Counts summarises a run. Measured, Reused and Missing count records of
// evidence; the others count kernels.
type Counts struct {
	Kernels   int `json:"kernels"`
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Undecided int `json:"inconclusive"`
	Unchanged int `json:"unchanged"`
	Changed   int `json:"changed"`
	New       int `json:"new"`
	Gone      int `json:"gone"`
	Measured  int `json:"measured"`
	Reused    int `json:"reused"`
	Missing   int `json:"missing"`
}

// A KernelVerdict is the findings of one kernel on one architecture.
type KernelVerdict struct {
	Name     string            `json:"name"`
	File     string            `json:"file,omitempty"`
	Source   string            `json:"source,omitempty"` // where its __global__ function stands
	Line     int               `json:"line,omitempty"`   // in Source, from 1
	Arch     string            `json:"arch,omitempty"`
	State    State             `json:"state"`
	Was      string            `json:"was,omitempty"` // what the base calls it, where the change declares that
	Status   Status            `json:"status"`
	Identity evidence.Identity `json:"identity"`
	Detail   string            `json:"detail,omitempty"` // the compiler's own lines
	Findings []Finding         `json:"findings"`
	Launches []LaunchChange    `json:"launches,omitempty"` // made by one side only
	Figures  []CaseFigures     `json:"figures,omitempty"`
	Entries  []EntryFigures    `json:"entries,omitempty"`
}

// EntryFigures is what the compiler says of one __global__ function of the head.
type EntryFigures struct {
	Entry   string           `json:"entry"`
	Metrics evidence.Metrics `json:"metrics"`
}

// A LaunchChange is a launch of one call that only one side makes: the shape
// of a launch is part of what it is. It is information and decides nothing.
type LaunchChange struct {
	Case    string `json:"case"`
	Machine string `json:"machine,omitempty"`
	Change  string `json:"change"` // "added" or "removed"
	Kernel  string `json:"kernel"`
	Grid    [3]int `json:"grid"`
	Block   [3]int `json:"block"`
	Count   int    `json:"count"`
}

// CaseFigures is the head's figures of one case on one machine, judged or not.
type CaseFigures struct {
	Case    string           `json:"case,omitempty"` // "" for the static tier
	Machine string           `json:"machine,omitempty"`
	Metrics evidence.Metrics `json:"metrics"`
}

// A Finding is one rule applied to one kernel and case.
type Finding struct {
	Rule     string          `json:"rule"`
	Kind     string          `json:"kind,omitempty"` // how the question was answered
	Metric   string          `json:"metric,omitempty"`
	Unit     string          `json:"unit,omitempty"`
	Entry    string          `json:"entry,omitempty"`
	Case     string          `json:"case,omitempty"`
	Machine  string          `json:"machine,omitempty"`
	Tier     evidence.Tier   `json:"tier,omitempty"`
	Status   Status          `json:"status"`
	Severity Severity        `json:"severity"`
	Base     *evidence.Value `json:"base,omitempty"`
	Head     *evidence.Value `json:"head,omitempty"`
	Accepts  string          `json:"accepts,omitempty"` // "limit 0", "max_regression 2%"

	// RelativeTo is the kernel in the base's place: Base and Interval are then
	// of its time.
	RelativeTo string `json:"relative_to,omitempty"`

	// Trade is the rule that took this one's place, Waiver what lets it be
	// broken; a waiver that expired or was exceeded lets nothing.
	Trade  string  `json:"trade,omitempty"`
	Gain   bool    `json:"unexplained_gain,omitempty"` // it is open for being better than it is believed to be
	Waiver *Waiver `json:"waiver,omitempty"`

	Interval *Interval `json:"interval,omitempty"`
	Noise    *Noise    `json:"noise,omitempty"`
	Sessions *Sessions `json:"sessions,omitempty"`
	Reason   string    `json:"reason"`
	Hint     string    `json:"hint,omitempty"` // what to do about a tool that failed
	Tool     bool      `json:"tool_failure,omitempty"`
}

// An Interval is the estimated change of a time, relative, with its 95 %
// interval and what the experiment could have seen.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Pairs    int     `json:"pairs"`
	// Looks are the p values that held after each round, before Holm's procedure.
	Looks []compare.Look `json:"looks,omitempty"`
	Slow  compare.Slow   `json:"slow"`
	// Excluded is the smallest slowdown that a pass refutes, with 99 %.
	Excluded *float64 `json:"excluded,omitempty"`
	MDE90    *float64 `json:"mde90,omitempty"` // of what did not pass
	// Improved says that the time is proven to be less, by more than the tolerance.
	Improved bool `json:"improved,omitempty"`
	// Modes are two groups of processes, as information.
	Modes *compare.Modes `json:"modes,omitempty"`
}

// Sessions is a time held against those of the base's code in earlier jobs: the
// relative change with its 95 % prediction interval, and the two components of
// the noise as standard deviations of logarithms.
type Sessions struct {
	Count        int     `json:"count"`
	Estimate     float64 `json:"estimate"`
	Low          float64 `json:"low"`
	High         float64 `json:"high"`
	SigmaSession float64 `json:"sigma_session"`
	SigmaProcess float64 `json:"sigma_launch"`
}

// Noise is what an A/A run says of a time that passed without an interval of
// its own: the slowdown that would be found with 90 % probability.
type Noise struct {
	MDE90    float64 `json:"mde90"`
	Recorded string  `json:"recorded"` // RFC 3339, UTC
}

// ExitCode is the process's exit status; it does not depend on the format in
// which the verdict is shown.
func (v *Verdict) ExitCode() int {
	switch {
	case v.Status == Fail:
		return exit.Fail
	case v.ToolFailure:
		return exit.Tool
	case v.Status == Pass || v.Status == Warn:
		return exit.Pass
	}
	return exit.Inconclusive
}

// Encode writes the verdict as indented JSON with a final newline.
func (v *Verdict) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the verdict: %w", err)
	}
	return append(printable.JSON(data), '\n'), nil
}

// Bounds of a verdict.json: an object of it takes far more memory than bytes.
const (
	maxVerdict = 64 << 20
	maxObjects = 1 << 19
	maxValues  = 1 << 22
)

// Read reads a verdict.json, strictly.
func Read(path string) (*Verdict, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Decode(f, path)
}

// Decode reads a verdict.json that an error calls by a name.
func Decode(r io.Reader, name string) (*Verdict, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxVerdict+1))
	if err != nil {
		return nil, err
	}
	if bytes.Count(data, []byte("{")) > maxObjects || bytes.Count(data, []byte(",")) > maxValues {
		return nil, fmt.Errorf("%s: the JSON holds more than %d objects or %d values", name, maxObjects, maxValues)
	}
	var v Verdict
	if err := strictjson.Decode(data, maxVerdict, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if v.Schema != Schema {
		return nil, fmt.Errorf("%s: the schema is %q, this gate reads %q", name, v.Schema, Schema)
	}
	if err := v.consistent(); err != nil {
		return nil, fmt.Errorf("%s: the verdict contradicts itself: %w", name, err)
	}
	return &v, nil
}

// consistent reports whether a verdict that was read is what its findings come
// to.
func (v *Verdict) consistent() error {
	if len(v.Kernels) == 0 {
		return errors.New("it judges no kernel")
	}
	again := Verdict{Counts: Counts{Measured: v.Counts.Measured, Reused: v.Counts.Reused, Missing: v.Counts.Missing}, Kernels: slices.Clone(v.Kernels)}
	again.Conclude()
	of := func(k KernelVerdict) string { return k.Name + " " + k.Arch }
	statuses := map[string]Status{}
	for _, k := range again.Kernels {
		statuses[of(k)] = k.Status
	}
	if len(statuses) < len(v.Kernels) {
		return errors.New("it judges one kernel twice")
	}
	for _, k := range v.Kernels {
		if want := statuses[of(k)]; k.Status != want {
			return fmt.Errorf("%s is called %s, and its findings come to %s", k.Name, k.Status, want)
		}
		for _, f := range k.Findings {
			if !slices.Contains([]Severity{Red, Warns, Info}, f.Severity) {
				return fmt.Errorf("a finding of %s has the severity %q, and there are fail, warn and info", k.Name, f.Severity)
			}
		}
	}
	switch c := v.Counts; {
	case v.Status != again.Status:
		return fmt.Errorf("it says %s, and its kernels come to %s", v.Status, again.Status)
	case c != again.Counts || min(c.Measured, c.Reused, c.Missing) < 0:
		return errors.New("its counts do not add up")
	case again.ToolFailure && !v.ToolFailure:
		return errors.New("a finding says that a tool failed, and the whole does not")
	}
	return nil
}

// Conclude sets the status of every kernel and of the whole, and counts
// kernels. It takes the worst kernel; no kernel at all is not a pass. The
// kernels are put worst first.
func (v *Verdict) Conclude() {
	c := &v.Counts
	for i := range v.Kernels {
		k := &v.Kernels[i]
		k.Status = statusOf(k.Findings)
		c.Kernels++
		if n := map[State]*int{Unchanged: &c.Unchanged, Changed: &c.Changed, New: &c.New, Gone: &c.Gone}[k.State]; n != nil {
			*n++
		}
		if n := map[Status]*int{Pass: &c.Passed, Warn: &c.Passed, Fail: &c.Failed}[k.Status]; n != nil {
			*n++
		} else {
			c.Undecided++
		}
		if i == 0 || worse(k.Status, v.Status) {
			v.Status = k.Status
		}
		for _, f := range k.Findings {
			v.ToolFailure = v.ToolFailure || f.Tool && f.Status == Inconclusive && f.Severity != Info
		}
	}
	slices.SortStableFunc(v.Kernels, func(a, b KernelVerdict) int {
		return cmp.Or(cmp.Compare(rank[b.Status], rank[a.Status]), strings.Compare(a.Name, b.Name), strings.Compare(a.Arch, b.Arch))
	})
}

// statusOf is the worst of the findings; a kernel without one has not earned
// a pass. Info weighs nothing.
func statusOf(findings []Finding) Status {
	status, any := NotCompared, false
	for _, f := range findings {
		if f.Severity == Info {
			continue
		}
		s := f.Status
		if f.Severity == Warns && (s == Fail || s == Inconclusive) {
			s = Warn
		}
		if worse(s, status) {
			status = s
		}
		any = any || s != NotCompared
	}
	if !any {
		return Inconclusive
	}
	return status
}
