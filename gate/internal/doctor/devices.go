package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// gpus examines the driver and each GPU.
func (o Options) gpus(ctx context.Context, r *Report, cuda *toolchain.Toolchain) {
	c := check{
		Name:    "driver",
		Without: "nothing is measured here: kernels are built and judged by recorded evidence",
		Fix:     "apt-get install nvidia-open (from NVIDIA's CUDA repository); in a container: docker run --gpus all",
	}
	devices, err := gpu.List(ctx)
	switch {
	case errors.Is(err, gpu.ErrNoDriver):
		c = c.is(missing, err.Error())
	case err != nil:
		c.Fix = "look for Xid lines in dmesg, then reset or reboot"
		c = c.is(broken, err.Error())
	default:
		c = c.is(fine, devices[0].Driver)
		if need := tooOld(cuda, devices[0].Driver); need != "" {
			c.Without = "what nvcc builds here does not start"
			c = c.is(broken, devices[0].Driver+" is "+need)
		}
	}
	r.add(c)
	if err == nil {
		o.examineGPUs(ctx, r, devices)
	}
}

// tooOld says so when a driver cannot run what the compiler builds: NVIDIA's
// release notes ask for driver 580 with CUDA 13 and 525 with CUDA 12.
func tooOld(cuda *toolchain.Toolchain, driver string) string {
	if cuda == nil {
		return ""
	}
	var release, branch int
	fmt.Sscanf(cuda.Version, "%d.", &release)
	if n, _ := fmt.Sscanf(driver, "%d.", &branch); n != 1 {
		return ""
	}
	need := map[int]int{12: 525, 13: 580}[release]
	if branch >= need {
		return ""
	}
	return fmt.Sprintf("older than %d, which CUDA %d needs", need, release)
}

func (o Options) examineGPUs(ctx context.Context, r *Report, devices []gpu.Device) {
	dir := o.LockDir
	if dir == "" {
		dir = gpu.LockDir
	}
	processes, err := gpu.Processes(ctx)
	for _, d := range devices {
		g := device{Device: d, Status: fine, UsersKnown: err == nil}
		if g.Fault = d.Fault(); g.Fault != "" {
			g.Status = broken
		}
		for _, p := range processes {
			if p.UUID == d.UUID {
				g.Processes = append(g.Processes, p)
			}
		}
		holder, held, lockErr := gpu.HeldIn(dir, d.UUID)
		if lockErr != nil {
			g.LockError = lockErr.Error()
		}
		if held {
			g.LockedBy = holder.String()
		}
		r.GPUs = append(r.GPUs, g)
	}
}

// lines describes a GPU in words.
func (g device) lines() []string {
	first := fmt.Sprintf("%s %s, SM %s of %s MHz, memory %s of %s MHz, %s of %s W, %s °C",
		g.Name, g.UUID, number(g.SMClock), number(g.MaxSMClock), number(g.MemoryClock), number(g.MaxMemClock),
		number(g.PowerDraw), number(g.PowerLimit), number(g.Temperature))
	list := []string{first, "throttle: " + g.throttle(), "used by: " + g.users()}
	if g.MIG == gpu.On {
		list = append(list, "MIG is on: measurements hold for one instance only")
	}
	switch {
	case g.LockedBy != "":
		list = append(list, "locked by "+g.LockedBy)
	case g.LockError != "":
		list = append(list, "lock: "+g.LockError)
	}
	if g.Fault != "" {
		list = append(list, "the driver says: "+g.Fault, "without it: nothing is measured on this GPU",
			"to get it:  nvidia-smi --gpu-reset -i "+g.UUID+", else reboot")
	}
	return list
}

func (g device) throttle() string {
	switch slow := g.Throttle.Slowing(); {
	case !g.Throttle.Known:
		return "not told by the driver"
	case len(slow) > 0:
		return strings.Join(slow, ", ")
	case len(g.Throttle.Active) > 0:
		return "none (" + strings.Join(g.Throttle.Active, ", ") + ")"
	}
	return "none"
}

// maxShown bounds the processes named in words; JSON has all.
const maxShown = 8

func (g device) users() string {
	switch {
	case !g.UsersKnown:
		return "not told by the driver"
	case len(g.Processes) == 0:
		return "nobody that can be seen from here"
	}
	var list []string
	for i, p := range g.Processes {
		if i == maxShown {
			list = append(list, fmt.Sprintf("and %d more", len(g.Processes)-i))
			break
		}
		name := p.Name
		if name == "" {
			name = "name not told"
		}
		list = append(list, fmt.Sprintf("process %d (%s), %s MiB", p.PID, name, number(p.Memory)))
	}
	return strings.Join(list, "; ")
}

// number prints a reading, or "?" for one that the driver does not tell.
func number(r gpu.Reading) string {
	if !r.Known {
		return "?"
	}
	return fmt.Sprintf("%.0f", r.Value)
}
