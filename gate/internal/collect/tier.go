package collect

import (
	"context"
	"errors"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A tier is how records of one tier are measured and audited, and which raw inputs
// and sections they have.
type tier struct {
	measure       func(*Bench, context.Context, plan.Step, *evidence.Ledger) error // nil where no step asks for it
	audit         func(Auditor, *evidence.Record, map[string][]byte) error
	raw, sections []string
}

// tiers are all that a store may hold. One that steps measure is entered by the
// file that measures it, so that a new tier touches no other.
var tiers = map[evidence.Tier]tier{
	evidence.Static: {audit: func(_ Auditor, r *evidence.Record, _ map[string][]byte) error {
		// Its figures are shown only, and no raw input is kept.
		if r.Provenance.Machine != (evidence.Machine{}) {
			return errors.New("it names the machine of a GPU, and its place says that a compiler reported it")
		}
		return nil
	}},
	evidence.Calibration: {audit: auditCalibration, raw: []string{"harness.jsonl"}, sections: []string{"aa", "samples"}},
	evidence.Sessions:    {audit: auditSessions, sections: []string{"sessions"}},
}
