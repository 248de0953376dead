package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// A Machine is what must be equal for two measurements to be comparable.
type Machine struct {
	GPU         string `json:"gpu"`
	Driver      string `json:"driver"`
	Runtime     string `json:"cuda_runtime"`
	PowerLimitW string `json:"power_limit_w"`
	MIG         string `json:"mig"`
	CC          string `json:"cc"`     // compute capability, "9.0"
	Clocks      string `json:"clocks"` // "unlocked": gate never sets clocks
}

// Key names the machine: a readable model and a hash over every field.
func (m Machine) Key() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		"gate/machine/v1", m.GPU, m.Driver, m.Runtime, m.PowerLimitW, m.MIG, m.CC, m.Clocks,
	}, "\x00")))
	return m.Model() + "-" + hex.EncodeToString(sum[:4])
}

// Model is the GPU's model as a word: "NVIDIA H200" is "h200".
func (m Machine) Model() string {
	words := strings.FieldsFunc(strings.ToLower(m.GPU), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	})
	kept := words[:0]
	for _, w := range words {
		if w != "nvidia" {
			kept = append(kept, w)
		}
	}
	if len(kept) == 0 {
		return "unknown"
	}
	return strings.Join(kept, "-")
}

// Is reports whether a name from a policy ("h200") means this machine: the
// model itself, a leading part of it in whole words ("h100" is "NVIDIA H100
// 80GB HBM3"), or the full key.
func (m Machine) Is(name string) bool {
	name = strings.ToLower(name)
	model := m.Model()
	return name == model || name == m.Key() || strings.HasPrefix(model, name+"-")
}

// Runs reports whether code for an architecture runs on the machine: the same
// major version, and a minor version that is not newer. Code for "sm_90a" runs
// on 9.0 alone.
func (m Machine) Runs(arch string) bool {
	major, minor, ok := strings.Cut(m.CC, ".")
	if !ok {
		return false
	}
	number := strings.TrimPrefix(arch, "sm_")
	if exact := strings.TrimRight(number, "af"); exact != number {
		return exact == major+minor
	}
	return strings.HasPrefix(number, major) && len(number) == len(major)+1 && number[len(major):] <= minor
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, driver %s, CUDA %s, %s W, MIG %s, clocks %s",
		m.GPU, m.Driver, m.Runtime, m.PowerLimitW, m.MIG, m.Clocks)
}

// CardOf abbreviates a GPU's UUID, which itself is nobody's business. Two cards
// of one model differ in speed by as much as a change to a kernel does.
func CardOf(uuid string) string {
	if uuid == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("gate/card/v1\x00" + uuid))
	return hex.EncodeToString(sum[:6])
}
