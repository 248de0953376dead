package doctor

import (
	"context"
	"fmt"

	"github.com/kernelgate/gate/gate/internal/gpu"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// profilers examines the tools that run kernels under observation.
func (o Options) profilers(ctx context.Context, r *Report, cuda *toolchain.Toolchain) {
	suffix := "13-0"
	if cuda != nil {
		suffix = packageSuffix(cuda.Version)
	}
	for _, c := range []check{
		{Name: "ncu", Without: "no ncu.* metric is collected: rules about them stay inconclusive",
			Fix: "apt-get install cuda-nsight-compute-" + suffix + " (from NVIDIA's CUDA repository)"},
		{Name: "compute-sanitizer", Without: "kernels are not searched for races and out-of-bounds accesses",
			Fix: "apt-get install cuda-sanitizer-" + suffix + " (from NVIDIA's CUDA repository)"},
	} {
		tool, err := toolchain.FindTool(ctx, c.Name, o.find())
		r.add(c.found(tool, err))
	}
	r.add(counters(gpu.ProfilingAllowed()))
}

// packageSuffix is how NVIDIA's packages name a CUDA release: 13.0.88 is 13-0.
func packageSuffix(version string) string {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return "13-0"
	}
	return fmt.Sprintf("%d-%d", major, minor)
}

// counters says whether ncu may read the hardware's counters.
func counters(allowed, known bool) check {
	c := check{
		Name:    "performance counters",
		Without: "ncu ends with ERR_NVGPUCTRPERM: no ncu.* metric is collected",
		Fix: "run as root, with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), or open the counters to all users: " +
			"echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' >/etc/modprobe.d/nvidia-profiling.conf, then reboot",
	}
	switch {
	case !known:
		c.Without = "where they are closed, ncu ends with ERR_NVGPUCTRPERM"
		return c.is(unknown, "the driver's settings cannot be read here")
	case allowed:
		return c.is(fine, "this process may read them")
	}
	return c.is(missing, "the driver keeps them for administrators (NVreg_RestrictProfilingToAdminUsers)")
}
