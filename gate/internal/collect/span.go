package collect

import (
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A Span is a part of a check, for its time line.
type Span struct {
	What    string
	Seconds float64
	Timed   float64 // seconds in which a timed batch was on the GPU

	processes []stretch
}

// A stretch is the time of one process, from its start until it is gone.
type stretch struct{ began, ended time.Time }

// String is the span as a line of the time line.
func (s Span) String() string {
	n := len(s.processes)
	if n == 0 {
		return fmt.Sprintf("%6.1f s  %s", s.Seconds, s.What)
	}
	ran, busy := s.running()
	return fmt.Sprintf("%6.1f s  %s: %d processes of %.2f s, no process on the GPU for %.0f %% of the time, timed batches %.3f s", s.Seconds, s.What,
		n, ran/float64(n), 100*(1-min(1, busy/s.Seconds)), s.Timed)
}

// running is how many seconds the processes ran together, and in how many of them
// at least one ran: one may start while another goes away.
func (s Span) running() (ran, busy float64) {
	var until time.Time
	for _, p := range slices.SortedFunc(slices.Values(s.processes), func(a, b stretch) int { return a.began.Compare(b.began) }) {
		ran += p.ended.Sub(p.began).Seconds()
		if p.began.Before(until) {
			p.began = until
		}
		if p.ended.After(p.began) {
			busy += p.ended.Sub(p.began).Seconds()
			until = p.ended
		}
	}
	return ran, busy
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
func (c *Bench) ran(began, ended time.Time) {
	if n := len(c.Spans); n > 0 {
		c.Spans[n-1].processes = append(c.Spans[n-1].processes, stretch{began, ended})
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
