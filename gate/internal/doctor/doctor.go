// Package doctor says what of gate's needs is on this machine, what is
// missing, what does not work without it, and how to get it. It does no GPU
// work and changes nothing but gate's own cache of tool versions.
package doctor

import (
	"context"

	"github.com/kernelgate/gate/gate/internal/gpu"
)

// Schema names the form of a Report in JSON.
const Schema = "gate.doctor/1"

// A Status is what was found.
type Status string

// The words for what was found.
const (
	OK      Status = "ok"
	Missing Status = "missing" // not there
	Broken  Status = "broken"  // there, and does not work
	Unknown Status = "unknown" // cannot be told from here
)

// Options says what to look at.
type Options struct {
	Env         func(string) string     // the environment; nil is an empty one
	NVCC        string                  // the user's flag, "" when not given
	CacheDir    string                  // gate's cache; "" means none
	PolicyPath  string                  // policies.yaml
	StorePath   string                  // a folder or URL
	CheckPolicy func(path string) error // reads the policy file; nil leaves its content unread
	LockDir     string                  // "" is gpu.LockDir
}

// A Check is one thing that gate uses.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Detail  string `json:"detail"`            // what was found, or how it fails
	Without string `json:"without,omitempty"` // what does not work, unless Status is OK
	Fix     string `json:"fix,omitempty"`     // the command that gets it, unless Status is OK
}

// A GPU is a device with the others that use it.
type GPU struct {
	gpu.Device
	Status     Status        `json:"status"`
	Fault      string        `json:"fault,omitempty"` // why Status is not OK
	Processes  []gpu.Process `json:"processes"`       // nil when UsersKnown is false
	UsersKnown bool          `json:"processes_known"`
	LockedBy   string        `json:"locked_by,omitempty"` // "" when nobody measures on it
	LockError  string        `json:"lock_error,omitempty"`
}

// A Report is the state of a machine.
type Report struct {
	Schema string  `json:"schema"`
	Checks []Check `json:"checks"`
	GPUs   []GPU   `json:"gpus"` // by index; empty without a working driver
}

// Ready says whether kernels can be built here, without which no command of
// gate does anything useful.
func (r Report) Ready() bool {
	need := map[string]bool{nameNVCC: true, namePtxas: true, nameHost: true}
	for _, c := range r.Checks {
		if c.Status == OK {
			delete(need, c.Name)
		}
	}
	return len(need) == 0
}

// Examine looks at everything. What fails becomes part of the report.
func Examine(ctx context.Context, o Options) Report {
	r := Report{Schema: Schema, GPUs: []GPU{}}
	cuda := o.compiler(ctx, &r)
	o.profilers(ctx, &r, cuda)
	o.gpus(ctx, &r, cuda)
	o.files(&r)
	o.programs(ctx, &r)
	return r
}

// add notes a check; one that is well needs no advice.
func (r *Report) add(c Check) {
	if c.Status == OK {
		c.Without, c.Fix = "", ""
	}
	r.Checks = append(r.Checks, c)
}
