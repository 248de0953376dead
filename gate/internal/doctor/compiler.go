package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// Names of checks that others refer to.
const (
	nameNVCC  = "nvcc"
	namePtxas = "ptxas"
	nameHost  = "host compiler"
)

func (o Options) find() toolchain.Options {
	return toolchain.Options{NVCC: o.NVCC, Env: o.Env, CacheDir: o.CacheDir}
}

// compiler examines what builds kernels; the result is nil when there is no
// CUDA compiler.
func (o Options) compiler(ctx context.Context, r *Report) *toolchain.Toolchain {
	const noBuild = "no kernel can be built: gate check ends with exit code 3"
	nvcc := Check{Name: nameNVCC, Without: noBuild}
	ptxas := Check{Name: namePtxas, Without: noBuild, Fix: "comes with nvcc"}
	objdump := Check{Name: "cuobjdump", Without: "machine code is not shown beside a finding"}
	tc, err := toolchain.FindCompiler(ctx, o.find())
	if err != nil {
		fail(&nvcc, err, "")
		fail(&ptxas, err, "comes with nvcc")
		ptxas.Detail = "no nvcc to look beside"
		objdump.Status, objdump.Detail, objdump.Fix = Missing, "no nvcc to look beside", "comes with gate toolchain install"
	} else {
		nvcc.Status, nvcc.Detail = OK, fmt.Sprintf("%s (%s) from %s: %s", tc.Version, tc.Build, tc.Source, tc.NVCC)
		ptxas.Status, ptxas.Detail = OK, fmt.Sprintf("%s: %s", tc.PtxasBuild, tc.Ptxas)
		objdump.Status, objdump.Detail = OK, tc.CuObjDump
		if tc.CuObjDump == "" {
			objdump.Status, objdump.Detail = Missing, "neither beside nvcc nor on PATH"
			objdump.Fix = "apt-get install cuda-cuobjdump-13-0 (from NVIDIA's CUDA repository)"
		}
	}
	r.add(nvcc)
	r.add(ptxas)
	r.add(objdump)
	r.add(o.hostCompiler(ctx))
	return tc
}

func (o Options) hostCompiler(ctx context.Context) Check {
	c := Check{Name: nameHost, Without: "nvcc cannot build: it preprocesses and compiles host code with it"}
	host, err := toolchain.FindHostCompiler(ctx, o.find())
	if err != nil {
		fail(&c, err, "apt-get install g++")
		return c
	}
	c.Status, c.Detail = OK, host.Version+": "+host.Path
	return c
}

// fail turns an error of package toolchain into a status, its text and its
// advice; fix is the advice where the error has none.
func fail(c *Check, err error, fix string) {
	c.Status, c.Detail = Broken, err.Error()
	var absent *toolchain.NotFoundError
	var unusable *toolchain.UnusableError
	switch {
	case errors.As(err, &absent):
		c.Status = Missing
		if absent.Hint != "" {
			fix = absent.Hint
		}
	case errors.As(err, &unusable) && unusable.Hint != "":
		fix = unusable.Hint
	case errors.As(err, &unusable) && fix == "":
		fix = "correct or unset what names it: " + string(unusable.Source)
	}
	c.Fix = fix
}
