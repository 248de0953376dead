package policy

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
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

// Facts is everything that a verdict is made of.
type Facts struct {
	Kernels    []KernelFacts
	NoBase     string // why there is no base to compare with; "" when there is one
	LimitsOnly bool   // nobody wants a base
}

// KernelFacts is what is known of one kernel on one architecture.
type KernelFacts struct {
	Name     string
	File     string
	Arch     string
	State    State
	Forced   bool // times are compared although the code is unchanged
	Identity evidence.Identity
	Base     evidence.Identity

	Broken      *Problem // the head does not build
	BaseProblem string   // why the base's figures are not known, when its build failed

	Head  evidence.Metrics // static tier
	Old   evidence.Metrics // static tier of the base
	Cases []CaseFacts

	GoneCases  []string // cases that the base measures and the head does not
	Unselected []string // functions that the base judges and the head's entries leave out
}

// A Problem is a step that failed. Blame says that the kernel is at fault;
// otherwise a tool was, and nothing is known of the kernel.
type Problem struct {
	Message string
	Detail  string // the compiler's own lines
	Blame   bool
	Tool    bool
}

// CaseFacts is the evidence of one case on one machine.
type CaseFacts struct {
	Name        string
	Machine     string // key, or the policy's name for a machine without evidence
	Correctness Arm
	Profile     Pair
	Latency     LatencyFacts

	// Calibration is a recent A/A run of this code, or of the base's, on this
	// machine; nil when there is none. It decides nothing.
	Calibration *evidence.Record
}

// An Arm is the record of one tier, or the reason why there is none.
type Arm struct {
	Record  *evidence.Record
	Missing string
	Source  Source
}

// A Source says where a record came from.
type Source string

// Measured now, or found in a store.
const (
	Measured Source = "measured"
	Reused   Source = "reused"
)

// A Pair is one tier of both sides.
type Pair struct{ Head, Base Arm }

// LatencyFacts is what was timed: the head alone, and, for a kernel that
// changed, head and base interleaved. Sessions are those of the base's code,
// for where it is not run.
type LatencyFacts struct {
	Head       Arm
	Experiment Arm
	Sessions   Arm
	References []ReferenceFacts
}

// ReferenceFacts is a kernel in the base's place: it has to be correct on the
// case, and head and it are timed interleaved.
type ReferenceFacts struct {
	Name        string
	Correctness Arm
	Experiment  Arm
}

func (l LatencyFacts) reference(name string) *ReferenceFacts {
	i := slices.IndexFunc(l.References, func(r ReferenceFacts) bool { return r.Name == name })
	if i < 0 {
		return &ReferenceFacts{Name: name}
	}
	return &l.References[i]
}

// Arms are the places of the records that a case rests on.
func (c *CaseFacts) Arms() []*Arm {
	arms := []*Arm{&c.Correctness, &c.Profile.Head, &c.Profile.Base, &c.Latency.Head, &c.Latency.Experiment, &c.Latency.Sessions}
	for i := range c.Latency.References {
		arms = append(arms, &c.Latency.References[i].Correctness, &c.Latency.References[i].Experiment)
	}
	return arms
}
