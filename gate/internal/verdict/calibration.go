package verdict

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// CalibrationSchema names the layout of a Calibration.
const CalibrationSchema = "gate/calibration/v1"

// A Calibration says what a comparison on this machine can see within a
// policy's limits and budget.
type Calibration struct {
	Schema         string       `json:"schema"`
	Policy         string       `json:"policy"`
	Machine        string       `json:"machine"` // key
	Description    string       `json:"description"`
	Recorded       string       `json:"recorded"` // RFC 3339, UTC
	Rounds         int          `json:"blocks"`
	Discarded      int          `json:"discarded"`
	Tests          int          `json:"tests"`          // questions of a change to every kernel shown
	ProcessSeconds float64      `json:"launch_seconds"` // wall time of one process that times them all
	BudgetSeconds  float64      `json:"budget_seconds"`
	BudgetPairs    int          `json:"budget_pairs"` // what the budget pays for, at most the plan's last look
	Kernels        []Calibrated `json:"kernels"`
	Notes          []string     `json:"notes,omitempty"`
}

// A Calibrated is one kernel and case in one state of the caches, at the
// limits of the rules that ask for it.
type Calibrated struct {
	Kernel       string              `json:"kernel"`
	Arch         string              `json:"arch"`
	Case         string              `json:"case,omitempty"`
	CacheState   evidence.CacheState `json:"regime,omitempty"`
	Rules        []string            `json:"rules,omitempty"` // none: the profile's limits are shown
	Limits       compare.Limits      `json:"limits"`
	Figures      *compare.Spread     `json:"figures,omitempty"`
	TimedSeconds float64             `json:"timed_seconds"` // on the GPU, in one process
	Gateable     bool                `json:"gateable"`
	Reason       string              `json:"reason"`
	Remedies     []string            `json:"remedies,omitempty"`
}

// Gateable reports whether every kernel is; none at all is not.
func (c *Calibration) Gateable() bool {
	return len(c.Kernels) > 0 && !slices.ContainsFunc(c.Kernels, func(k Calibrated) bool { return !k.Gateable })
}
