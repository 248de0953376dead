package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestANewNameLeadsOutOfNoRule: a kernel that was renamed, or built for another
// architecture, stays under the rules of what it was, and comes under no trade by
// its new name.
func TestANewNameLeadsOutOfNoRule(t *testing.T) {
	p := policyOf(t, false, nil, strings.Split(`{id: all, metric: ptxas.spill_bytes, limit: 0};{id: old, metric: ptxas.spill_bytes, limit: 0, kernels: ["op/old_*"]};`+
		`{id: new, metric: ptxas.spill_bytes, limit: 0, kernels: ["op/new_*"]};{id: arch, metric: ptxas.spill_bytes, limit: 0, arch: [sm_90]};`+
		`{id: other, metric: ptxas.spill_bytes, limit: 0, kernels: ["op/other"]};`+
		`{id: pays, replaces: all, metric: ptxas.spill_bytes, limit: 64, kernels: ["op/new_*"], when: {metric: ptxas.registers, limit: 255}};`+
		`{id: ratio, metric: latency.typical, relative_to: ref, limit: 1, kernels: ["op/old_*"]}`, ";")...)
	s := subject("op/new_k", verdict.Changed, "small")
	s.Arch, s.Former = "sm_90a", Former{"op/old_k", "sm_90"}
	s.References = map[string]Side{"op/ref": s.Base}
	var asked []string
	for _, q := range Make(p, []*Subject{s}, Options{Now: now}).Questions {
		if q.Rule != nil && !slices.Contains(asked, q.Name) {
			asked = append(asked, q.Name)
		}
		if q.Name == "all" && len(q.Trades) > 0 {
			t.Errorf("%s may be traded by %s", q, q.Trades[0].ID)
		}
	}
	if got := strings.Join(asked, " "); got != "all old new arch ratio" {
		t.Errorf("asked are %q", got)
	}
}
