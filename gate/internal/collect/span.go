package collect

import (
	"fmt"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A Span is a part of a check, for its time line.
type Span struct {
	What      string
	Seconds   float64
	Processes int     // on the GPU
	Running   float64 // seconds in which one of them ran
	Timed     float64 // seconds in which a timed batch was on the GPU
}

// String is the span as a line of the time line.
func (s Span) String() string {
	if s.Processes == 0 {
		return fmt.Sprintf("%6.1f s  %s", s.Seconds, s.What)
	}
	return fmt.Sprintf("%6.1f s  %s: %d processes of %.2f s, no process on the GPU for %.0f %% of the time, timed batches %.3f s", s.Seconds, s.What,
		s.Processes, s.Running/float64(s.Processes), 100*(1-min(1, s.Running/s.Seconds)), s.Timed)
}

// span begins a part; the function that it returns ends it.
func (c *Bench) span(s plan.Step) (end func()) {
	what := string(s.Tier)
	if s.Together() {
		what = "latency, two arms"
	}
	start := time.Now()
	c.Spans = append(c.Spans, Span{What: what})
	return func() { c.Spans[len(c.Spans)-1].Seconds = time.Since(start).Seconds() }
}

// ran adds a process to the part that is under way.
func (c *Bench) ran(since time.Time) {
	if n := len(c.Spans); n > 0 {
		c.Spans[n-1].Processes++
		c.Spans[n-1].Running += time.Since(since).Seconds()
	}
}

// timed adds the batches of a process.
func (c *Bench) timed(s *stream) {
	if n := len(c.Spans); n > 0 {
		for _, t := range s.times {
			c.Spans[n-1].Timed += seconds([]evidence.Sample{t.sample()})
		}
	}
}
