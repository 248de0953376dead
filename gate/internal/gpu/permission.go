package gpu

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
)

const (
	procDriver = "/proc/driver/nvidia"
	procLimit  = 64 << 10 // bytes read of one file
)

// ProfilingAllowed says whether this process may read the GPU's performance
// counters, without which ncu ends with ERR_NVGPUCTRPERM. The driver keeps
// them for administrators unless its module was loaded with
// NVreg_RestrictProfilingToAdminUsers=0; CAP_SYS_ADMIN makes one. known is
// false when the driver's or the process's settings cannot be read.
func ProfilingAllowed() (allowed, known bool) {
	return profilingAllowedIn(procDriver, "/proc/self/status")
}

func profilingAllowedIn(driver, status string) (allowed, known bool) {
	params, err := disk.ReadFile(filepath.Join(driver, "params"), procLimit)
	if err != nil {
		return false, false
	}
	switch valueOf(string(params), "RmProfilingAdminOnly") {
	case "0":
		return true, true
	case "1":
	default:
		return false, false
	}
	text, err := disk.ReadFile(status, procLimit)
	if err != nil {
		return false, false
	}
	effective, err := strconv.ParseUint(valueOf(string(text), "CapEff"), 16, 64)
	if err != nil {
		return false, false
	}
	const capSysAdmin = 21 // include/uapi/linux/capability.h
	return effective&(1<<capSysAdmin) != 0, true
}

// valueOf returns what stands after "key:" on its line.
func valueOf(text, key string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
