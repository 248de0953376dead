// Package doctor says what of gate's needs is on this machine, what is
// missing, what does not work without it, and how to get it. It does no GPU
// work and changes nothing but gate's own cache of tool versions.
package doctor

import (
	"context"
	"slices"

	"github.com/kernelgate/gate/gate/internal/gpu"
)

// schema names the form of a Report in JSON.
const schema = "gate/doctor/v1"

// A state is what was found.
type state string

// The words for what was found.
const (
	fine    state = "ok"
	missing state = "missing" // not there
	broken  state = "broken"  // there, and does not work
	unknown state = "unknown" // cannot be told from here
)

// Options says what to look at.
type Options struct {
	Env      func(string) string // the environment; nil is an empty one
	NVCC     string              // the user's flag, "" when not given
	CacheDir string              // gate's cache
	Dir      string              // where the command was started
	Policy   string              // the user's flag, "" for the one that gate check reads
	Store    string              // the user's flag, "" for the policy's
	LockDir  string              // "" is gpu.LockDir
}

// A check is one thing that gate uses.
type check struct {
	Name    string `json:"name"`
	Status  state  `json:"status"`
	Detail  string `json:"detail"`            // what was found, or how it fails
	Without string `json:"without,omitempty"` // what does not work, unless Status is OK
	Fix     string `json:"fix,omitempty"`     // the command that gets it, unless Status is OK
}

// is notes what was found.
func (c check) is(s state, detail string) check {
	c.Status, c.Detail = s, detail
	return c
}

// A device is a GPU with the others that use it.
type device struct {
	gpu.Device
	Status     state         `json:"status"`
	Fault      string        `json:"fault,omitempty"` // why Status is not OK
	Processes  []gpu.Process `json:"processes"`       // nil when UsersKnown is false
	UsersKnown bool          `json:"processes_known"`
	LockedBy   string        `json:"locked_by,omitempty"` // "" when nobody measures on it
	LockError  string        `json:"lock_error,omitempty"`
}

// A Report is the state of a machine.
type Report struct {
	Schema string   `json:"schema"`
	Checks []check  `json:"checks"`
	GPUs   []device `json:"gpus"` // by index; empty without a working driver
}

// Ready says whether kernels can be built here, without which no command of
// gate does anything useful.
func (r Report) Ready() bool {
	here, needed := 0, []string{"nvcc", "ptxas", "host compiler"}
	for _, c := range r.Checks {
		if c.Status == fine && slices.Contains(needed, c.Name) {
			here++
		}
	}
	return here == len(needed)
}

// Examine looks at everything. What fails becomes part of the report.
func Examine(ctx context.Context, o Options) Report {
	r := Report{Schema: schema, GPUs: []device{}}
	cuda := o.compiler(ctx, &r)
	o.profilers(ctx, &r, cuda)
	o.gpus(ctx, &r, cuda)
	r.add(o.policy(ctx), o.store(ctx), o.cache(), confinement())
	o.programs(ctx, &r)
	return r
}

// add notes checks; one that is well needs no advice.
func (r *Report) add(checks ...check) {
	for _, c := range checks {
		if c.Status == fine {
			c.Without, c.Fix = "", ""
		}
		r.Checks = append(r.Checks, c)
	}
}
