package collect

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
)

// mostUnits are loaded at once by a process, and repeated when one of them breaks it.
const mostUnits = 128

// groups shares units out, in their order, to as many processes as they need.
func (c *Bench) groups(units []unit) [][]unit {
	return slices.Collect(slices.Chunk(units, c.most))
}

// part is as much of a step as its processes can take: all tests of the pairs that
// come first in the order drawn. The driver has the others measured in steps that
// follow, so that all tests stay in one family.
func (x *experiment) part(step compare.Step) compare.Step {
	order := x.inOrder(step.Experiments)
	kept := order[:min(len(order), x.c.most)]
	step.Experiments = slices.DeleteFunc(slices.Clone(step.Experiments), func(i int) bool { return !slices.Contains(kept, x.arms[x.tests[i].Task]) })
	return step
}
