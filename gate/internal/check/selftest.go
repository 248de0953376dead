package check

import (
	"context"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/selftest"
)

// Selftest plants violations into copies of what is known of a project's
// kernels, and into builds of one of them.
func Selftest(ctx context.Context, o Options) (selftest.Result, error) {
	o.NoGPU = true
	r, err := open(ctx, o)
	if err != nil {
		return selftest.Result{}, err
	}
	out, err := selftest.Run(r.project.Policy, filepath.Join(r.project.Root, r.project.Policy.File), r.asked, r.ledger, r.Now())
	if err != nil {
		return out, err
	}
	return out, out.Build(ctx, r.project, r.asked, r.ledger, r.Now())
}
