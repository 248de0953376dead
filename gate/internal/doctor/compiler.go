package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func (o Options) find() toolchain.Options {
	return toolchain.Options{NVCC: o.NVCC, Env: o.Env, CacheDir: o.CacheDir}
}

// compiler examines what builds kernels; the result is nil when there is no
// CUDA compiler.
func (o Options) compiler(ctx context.Context, r *Report) *toolchain.Toolchain {
	const noBuild = "no kernel can be built: gate check ends with exit code 3"
	nvcc := check{Name: "nvcc", Without: noBuild}
	ptxas := check{Name: "ptxas", Without: noBuild, Fix: "comes with nvcc"}
	objdump := check{Name: "cuobjdump", Without: "machine code is not shown beside a finding"}
	tc, err := toolchain.FindCompiler(ctx, o.find())
	if err != nil {
		nvcc, ptxas = nvcc.failed(err, ""), ptxas.failed(err, "comes with nvcc")
		ptxas.Detail = "no nvcc to look beside"
		objdump = objdump.is(missing, ptxas.Detail)
		objdump.Fix = "comes with gate toolchain install"
	} else {
		nvcc = nvcc.is(fine, fmt.Sprintf("%s (%s) from %s: %s", tc.Version, tc.Build, tc.Source, tc.NVCC))
		ptxas = ptxas.is(fine, fmt.Sprintf("%s: %s", tc.PtxasBuild, tc.Ptxas))
		objdump = objdump.is(fine, tc.CuObjDump)
		if tc.CuObjDump == "" {
			objdump = objdump.is(missing, "neither beside nvcc nor on PATH")
			objdump.Fix = "apt-get install cuda-cuobjdump-13-0 (from NVIDIA's CUDA repository)"
		}
	}
	r.add(nvcc, ptxas, objdump, o.hostCompiler(ctx))
	return tc
}

func (o Options) hostCompiler(ctx context.Context) check {
	c := check{Name: "host compiler", Without: "nvcc cannot build: it preprocesses and compiles host code with it", Fix: "apt-get install g++"}
	host, err := toolchain.FindHostCompiler(ctx, o.find())
	if err != nil {
		return c.failed(err, c.Fix)
	}
	return c.is(fine, host.Version+": "+host.Path)
}

// found notes a tool, or why there is none.
func (c check) found(tool toolchain.Tool, err error) check {
	if err != nil {
		return c.failed(err, c.Fix)
	}
	return c.is(fine, tool.Version+": "+tool.Path)
}

// failed turns an error of package toolchain into a status, its text and its
// advice; fix is the advice where the error has none.
func (c check) failed(err error, fix string) check {
	c = c.is(broken, err.Error())
	var absent *toolchain.NotFoundError
	var unusable *toolchain.UnusableError
	switch {
	case errors.As(err, &absent):
		c.Status = missing
		if absent.Advice != "" {
			fix = absent.Advice
		}
	case errors.As(err, &unusable) && unusable.Advice != "":
		fix = unusable.Advice
	case errors.As(err, &unusable) && fix == "":
		fix = "correct or unset what names it: " + string(unusable.Source)
	}
	c.Fix = fix
	return c
}
