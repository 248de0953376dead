//go:build cgo && linux

package gpu

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func nvmlDevices(ctx context.Context) ([]Device, error) {
	return askNVML(ctx, nvmlTimeout, nvml.New(), devicesOf)
}

func devicesOf(lib nvml.Interface) ([]Device, error) {
	driver, err := nvmlText(lib.SystemGetDriverVersion())
	if err != nil {
		return nil, fmt.Errorf("driver version: %w", err)
	}
	var list []Device
	seen := map[string]bool{}
	err = eachDevice(lib, func(handle nvml.Device) error {
		d, err := deviceOf(handle)
		if err != nil {
			return err
		}
		if seen[d.UUID] {
			return fmt.Errorf("%s is listed twice", d.UUID)
		}
		seen[d.UUID] = true
		d.Driver = driver
		list = append(list, d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNoDevice
	}
	slices.SortFunc(list, byIndex)
	return list, nil
}

// deviceOf reads what nvidia-smi's columns of the same names show.
func deviceOf(h nvml.Device) (Device, error) {
	d := Device{Source: NVML}
	if err := identify(&d, h); err != nil {
		return Device{}, err
	}
	if pci, code := h.GetPciInfo(); code == nvml.SUCCESS {
		d.PCI = textOrNothing(strings.ToUpper(busID(pci)))
	}
	if major, minor, code := h.GetCudaComputeCapability(); code == nvml.SUCCESS {
		d.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	}
	mig, _, code := h.GetMigMode()
	d.MIG = nvmlSwitch(mig, code)
	persistence, code := h.GetPersistenceMode()
	d.Persistence = nvmlSwitch(int(persistence), code)
	d.PowerLimit = watts(h.GetPowerManagementLimit())
	d.PowerDraw = watts(h.GetPowerUsage())
	d.Temperature = whole(h.GetTemperature(nvml.TEMPERATURE_GPU))
	d.SMClock = whole(h.GetClockInfo(nvml.CLOCK_SM))
	d.MemoryClock = whole(h.GetClockInfo(nvml.CLOCK_MEM))
	d.MaxSMClock = whole(h.GetMaxClockInfo(nvml.CLOCK_SM))
	d.MaxMemClock = whole(h.GetMaxClockInfo(nvml.CLOCK_MEM))
	memory, code := h.GetMemoryInfo_v2()
	d.MemoryTotal, d.MemoryUsed = mebibytes(memory.Total, code), mebibytes(memory.Used, code)
	busy, code := h.GetUtilizationRates()
	d.Utilization = whole(busy.Gpu, code)
	mask, code := h.GetCurrentClocksEventReasons()
	if d.Throttle = reasons(mask); code != nvml.SUCCESS {
		d.Throttle = Throttle{Why: nvmlWord(code)}
	}
	return d, nil
}

// identify reads what a device cannot be without.
func identify(d *Device, h nvml.Device) error {
	index, code := h.GetIndex()
	if code != nvml.SUCCESS || index < 0 {
		return fmt.Errorf("index: %s", nvmlWord(code))
	}
	uuid, code := h.GetUUID()
	if code != nvml.SUCCESS {
		return fmt.Errorf("uuid: %s", nvmlWord(code))
	}
	if err := checkUUID(uuid); err != nil {
		return fmt.Errorf("uuid: %w", err)
	}
	name, err := nvmlText(h.GetName())
	if err != nil {
		return fmt.Errorf("name: %w", err)
	}
	d.Index, d.UUID, d.Name = index, uuid, name
	return nil
}

func nvmlText(s string, code nvml.Return) (string, error) {
	if code != nvml.SUCCESS {
		return "", fmt.Errorf("%s", nvmlWord(code))
	}
	return parseText(strings.TrimSpace(s))
}

// busID is the address as text, which ends at its first zero.
func busID(pci nvml.PciInfo) string {
	var b strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// nvmlSwitch reads a setting: 1 is on and 0 is off, also for MIG.
func nvmlSwitch(state int, code nvml.Return) Switch {
	switch {
	case code == nvml.SUCCESS && state == int(nvml.FEATURE_ENABLED):
		return On
	case code == nvml.SUCCESS && state == int(nvml.FEATURE_DISABLED):
		return Off
	}
	return Absent
}

func whole(v uint32, code nvml.Return) Reading {
	if code != nvml.SUCCESS {
		return Reading{Why: nvmlWord(code)}
	}
	return Reading{Value: float64(v), Known: true}
}

// watts turns milliwatts into watts with nvidia-smi's two decimals: a power
// limit is part of a machine's identity, whoever told it.
func watts(milliwatts uint32, code nvml.Return) Reading {
	r := whole(milliwatts, code)
	r.Value = math.Round(r.Value/10) / 100
	return r
}

// mebibytes turns bytes into whole MiB, as nvidia-smi shows them.
func mebibytes(bytes uint64, code nvml.Return) Reading {
	if code != nvml.SUCCESS {
		return Reading{Why: nvmlWord(code)}
	}
	return Reading{Value: float64(bytes >> 20), Known: true}
}
