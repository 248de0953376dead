// Package gpu knows the GPUs of this machine: what they are, what state they
// are in, who else uses them, and who may measure on them.
//
// It asks NVML, the driver's management library, or else nvidia-smi, reads the
// driver's files under /proc, and does no GPU work. What a driver does not tell
// is a named absence, never 0.
package gpu

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Errors that a caller tells apart.
var (
	ErrNoDriver = errors.New("no working NVIDIA driver") // neither NVML nor nvidia-smi is here, or the one asked cannot talk to the driver
	ErrNoDevice = errors.New("the NVIDIA driver sees no GPU")
)

// A Device is one GPU and its state at the time of asking.
type Device struct {
	Index             int    `json:"index"`
	UUID              string `json:"uuid"` // "GPU-…"
	Name              string `json:"name"` // "NVIDIA H200"
	Driver            string `json:"driver"`
	PCI               string `json:"pci"`                // "00000000:0F:00.0"
	ComputeCapability string `json:"compute_capability"` // "9.0"; "" when the driver does not tell

	MIG         Switch `json:"mig"`
	Persistence Switch `json:"persistence"`

	PowerLimit  Reading  `json:"power_limit_w"`
	PowerDraw   Reading  `json:"power_draw_w"`
	Temperature Reading  `json:"temperature_c"`
	SMClock     Reading  `json:"sm_clock_mhz"`
	MemoryClock Reading  `json:"memory_clock_mhz"`
	MaxSMClock  Reading  `json:"max_sm_clock_mhz"`
	MaxMemClock Reading  `json:"max_memory_clock_mhz"`
	MemoryTotal Reading  `json:"memory_total_mib"`
	MemoryUsed  Reading  `json:"memory_used_mib"`
	Utilization Reading  `json:"utilization_percent"`
	Throttle    Throttle `json:"throttle"`

	Source Source `json:"source,omitempty"` // who told all this
}

// Fault is what the driver says instead of readings when a GPU is lost or
// needs a reset, "" when it says nothing of the kind.
func (d *Device) Fault() string {
	for _, r := range d.readings() {
		why := strings.ToLower(r.Why)
		for _, sign := range []string{"lost", "reset", "unknown error", "err!"} {
			if strings.Contains(why, sign) {
				return r.Why
			}
		}
	}
	return ""
}

func (d *Device) readings() []Reading {
	return []Reading{
		d.PowerLimit, d.PowerDraw, d.Temperature, d.SMClock, d.MemoryClock, d.MaxSMClock, d.MaxMemClock,
		d.MemoryTotal, d.MemoryUsed, d.Utilization, {Why: d.Throttle.Why},
	}
}

// A Reading is a number that the driver may not tell. The zero value is
// unknown.
type Reading struct {
	Value float64
	Known bool
	Why   string // the driver's word when it is not known: "N/A", "Not Supported"
}

// MarshalJSON writes {"value": 700} or {"absent": "N/A"}.
func (r Reading) MarshalJSON() ([]byte, error) {
	if r.Known {
		return json.Marshal(map[string]float64{"value": r.Value})
	}
	return json.Marshal(map[string]string{"absent": absence(r.Why)})
}

// absence gives a missing reason a name.
func absence(why string) string {
	if why == "" {
		return "not asked"
	}
	return why
}

// A Switch is a setting of the driver.
type Switch string

// The states of a Switch.
const (
	On     Switch = "on"
	Off    Switch = "off"
	Absent Switch = "absent" // this GPU does not have it, or the driver does not tell
)

// Throttle says what holds the clocks down.
type Throttle struct {
	Known  bool
	Active []string // names of the active reasons, sorted: "gpu_idle", "sw_power_cap"
	Why    string   // the driver's word when it is not known
}

// MarshalJSON writes {"active": […]} or {"absent": "N/A"}.
func (t Throttle) MarshalJSON() ([]byte, error) {
	if t.Known {
		return json.Marshal(map[string][]string{"active": append([]string{}, t.Active...)})
	}
	return json.Marshal(map[string]string{"absent": absence(t.Why)})
}

// Slowing are the active reasons that make measurements slow: all but the
// idle state and clocks that somebody set on purpose.
func (t Throttle) Slowing() []string {
	return slices.DeleteFunc(slices.Clone(t.Active), func(r string) bool {
		return r == "gpu_idle" || r == "app_clocks"
	})
}

// Forces reports whether a reason is that of clocks that the device holds down by
// force. The power cap is not one: a kernel that reaches it does so always.
func Forces(reason string) bool {
	return slices.Contains([]string{"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}, reason)
}

// eventReasons are the bits of clocks_event_reasons.active, as NVML's
// nvmlClocksEventReason constants number them, in the harness's words.
var eventReasons = []string{
	"gpu_idle", "app_clocks", "sw_power_cap", "hw_slowdown", "sync_boost",
	"sw_thermal", "hw_thermal", "hw_power_brake", "display_clock",
}
