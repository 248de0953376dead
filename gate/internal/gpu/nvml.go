//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kernelgate/gate/gate/internal/printable"
)

const nvmlTimeout = smiTimeout // for the same reason

// The linker leaves NVML's functions to be found when they are first called.
// One that is set to bind all at the start makes a program that does not start
// without the library; -ldflags=-extldflags=-Wl,-z,lazy undoes that.

// nvmlNeeds are the functions called here, but for nvmlInit. Calling one that
// the library does not have ends the process, so all are looked up first;
// drivers since 535 have them.
var nvmlNeeds = []string{
	"nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlSystemGetProcessName",
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName",
	"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMigMode", "nvmlDeviceGetPersistenceMode",
	"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature",
	"nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetComputeRunningProcesses_v3",
}

// nvmlTurn lets one caller at a time into NVML, so that a device on which its
// calls hang holds one thread and not one for each question.
var nvmlTurn = make(chan struct{}, 1)

// askNVML opens NVML, asks, and closes it. A call that hangs in the driver
// cannot be stopped; it is left behind.
func askNVML[T any](ctx context.Context, limit time.Duration, lib nvml.Interface, ask func(nvml.Interface) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		select {
		case nvmlTurn <- struct{}{}:
		case <-limited.Done():
			return
		}
		defer func() { <-nvmlTurn }()
		value, err := nvmlSession(lib, ask)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-limited.Done():
		if err := ctx.Err(); err != nil {
			return none, err
		}
		return none, fmt.Errorf("%w: NVML gave no answer in %v", ErrNoDriver, limit)
	}
}

func nvmlSession[T any](lib nvml.Interface, ask func(nvml.Interface) (T, error)) (T, error) {
	var none T
	switch code := lib.Init(); code {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_FUNCTION_NOT_FOUND:
		return none, errNVMLUnavailable
	default:
		return none, fmt.Errorf("%w: start NVML: %s", ErrNoDriver, nvmlWord(code))
	}
	defer lib.Shutdown()
	for _, name := range nvmlNeeds {
		if lib.Extensions().LookupSymbol(name) != nil {
			return none, fmt.Errorf("%w: it has no %s", errNVMLUnavailable, name)
		}
	}
	return ask(lib)
}

// nvmlWord is the word that nvidia-smi has for what NVML answers.
func nvmlWord(code nvml.Return) string {
	switch code {
	case nvml.ERROR_NOT_SUPPORTED:
		return "N/A"
	case nvml.ERROR_NO_PERMISSION:
		return "Insufficient Permissions"
	case nvml.ERROR_GPU_IS_LOST:
		return "GPU is lost"
	case nvml.ERROR_RESET_REQUIRED:
		return "GPU requires reset"
	case nvml.ERROR_UNKNOWN:
		return "Unknown Error"
	}
	return printable.Cut(code.Error(), 80)
}

// eachDevice visits the GPUs that this user may talk to.
func eachDevice(lib nvml.Interface, visit func(nvml.Device) error) error {
	n, code := lib.DeviceGetCount()
	if code != nvml.SUCCESS {
		return fmt.Errorf("count GPUs: %s", nvmlWord(code))
	}
	if n > maxDevices {
		return fmt.Errorf("NVML lists more than %d", maxDevices)
	}
	for i := range n {
		d, code := lib.DeviceGetHandleByIndex(i)
		if code == nvml.ERROR_NO_PERMISSION {
			continue
		}
		if code != nvml.SUCCESS {
			return fmt.Errorf("GPU %d: %s", i, nvmlWord(code))
		}
		if err := visit(d); err != nil {
			return fmt.Errorf("GPU %d: %w", i, err)
		}
	}
	return nil
}
