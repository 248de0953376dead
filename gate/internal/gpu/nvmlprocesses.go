//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func nvmlProcesses(ctx context.Context) ([]Process, error) {
	return askNVML(ctx, nvmlTimeout, nvml.New(), processesOf)
}

func processesOf(lib nvml.Interface) ([]Process, error) {
	var list []Process
	err := eachDevice(lib, func(h nvml.Device) error {
		uuid, code := h.GetUUID()
		if code != nvml.SUCCESS {
			return fmt.Errorf("uuid: %s", nvmlWord(code))
		}
		if err := checkUUID(uuid); err != nil {
			return err
		}
		running, code := h.GetComputeRunningProcesses()
		if code != nvml.SUCCESS {
			return fmt.Errorf("processes: %s", nvmlWord(code))
		}
		if len(list)+len(running) > maxProcesses {
			return fmt.Errorf("NVML lists more than %d processes", maxProcesses)
		}
		for _, p := range running {
			list = append(list, Process{UUID: uuid, PID: int(p.Pid), Name: processName(lib, p.Pid), Memory: processMemory(p.UsedGpuMemory)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// processName is "" for a process of another container or user, whose name
// NVML does not tell.
func processName(lib nvml.Interface, pid uint32) string {
	name, err := nvmlText(lib.SystemGetProcessName(int(pid)))
	if err != nil {
		return ""
	}
	return name
}

// processMemory knows the value by which NVML says that there is none.
func processMemory(bytes uint64) Reading {
	if bytes == math.MaxUint64 {
		return Reading{Why: nvmlWord(nvml.ERROR_NOT_SUPPORTED)}
	}
	return mebibytes(bytes, nvml.SUCCESS)
}
