package project

import (
	"context"
	"errors"

	"github.com/kernelgate/gate/gate/internal/build"
)

// checkOps looks at the ops: a broken one is the user's to mend, and found where
// it is written. One that is not all here makes its kernels inconclusive.
func (p *Project) checkOps(ctx context.Context) error {
	for _, op := range p.Ops() {
		err := p.Harness.CheckOp(ctx, p.Tools, op)
		if err != nil && !errors.As(err, new(*build.PointerError)) {
			return err
		}
	}
	return nil
}
