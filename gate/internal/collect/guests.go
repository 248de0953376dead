package collect

import (
	"context"
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/gpu"
)

// guests are the processes of others on the device, as they were last asked
// for, between processes.
type guests struct {
	c    *Bench
	seen []gpu.Process
}

func (c *Bench) guests(ctx context.Context) guests { return guests{c, c.neighbours(ctx)} }

// intruder names a process that came onto the GPU since it was last asked.
// One that was there from the start disturbs both arms alike and is reported
// by the caller.
func (g *guests) intruder(ctx context.Context) string {
	before := g.seen
	g.seen = g.c.neighbours(ctx)
	for _, p := range g.seen {
		if !slices.ContainsFunc(before, func(q gpu.Process) bool { return q.PID == p.PID }) {
			return fmt.Sprintf("another process came onto the GPU: %s (pid %d)", p.Name, p.PID)
		}
	}
	return ""
}

// neighbours are the processes of others on the device. Who they are is not
// always known; then there are none.
func (c *Bench) neighbours(ctx context.Context) []gpu.Process {
	list := c.processes
	if list == nil {
		list = gpu.Processes
	}
	all, err := list(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(p gpu.Process) bool { return p.UUID != c.device.UUID })
}
