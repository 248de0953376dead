package collect

import (
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
)

// mostArgs bounds, in bytes, what the units of one process add to its arguments and
// to the list of files that it may read. Linux takes 128 KiB of arguments and
// variables, whatever the limit of the stack; half of it is left for what does not
// grow with the units. About a hundred units fit, which is also enough to have loaded
// at once, and to repeat when one of them breaks the process.
const mostArgs = 64 << 10

// perArg is what an argument takes beside its text: its end, its place in the list,
// and quotes where the list of files is written.
const perArg = 12

// weight is what a unit adds at most: all arguments of a process of that unit alone.
func weight(u unit) int {
	n := 0
	for _, text := range slices.Concat(harnessArgs("time", "", []unit{u}), callsArgs([]unit{u}), files("", []unit{u})) {
		n += len(text) + perArg
	}
	return n
}

func (c *Bench) mostArgs() int {
	if c.most > 0 {
		return c.most
	}
	return mostArgs
}

// groups shares units out, in their order, to as many processes as they need. One
// unit is never too much.
func (c *Bench) groups(units []unit) [][]unit {
	var groups [][]unit
	sum := 0
	for _, u := range units {
		n := weight(u)
		if sum += n; len(groups) == 0 || sum > c.mostArgs() {
			groups, sum = append(groups, nil), n
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], u)
	}
	return groups
}

// part is as much of a step as its processes can take: all tests of the pairs that
// come first in the order drawn. The driver has the others measured in steps that
// follow, so that all tests stay in one family.
func (x *experiment) part(step compare.Step) compare.Step {
	var kept []*arms
	sum := 0
	for _, a := range x.inOrder(step.Experiments) {
		sum += max(weight(a.pair.Base), weight(a.pair.Head))
		if len(kept) > 0 && sum > x.c.mostArgs() {
			break
		}
		kept = append(kept, a)
	}
	step.Experiments = slices.DeleteFunc(slices.Clone(step.Experiments), func(i int) bool { return !slices.Contains(kept, x.arms[x.tests[i].Task]) })
	return step
}
