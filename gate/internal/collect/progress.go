package collect

import "fmt"

// Progress is told what is being done, and how many records' worth of work more
// has been done since it was told last. What is "" where nothing new began.
type Progress func(more float64, what string)

// work is how far the step under way is.
type work struct {
	records float64 // that the step measures
	part    float64 // of the step that is done, from 0 to 1
	told    float64 // records' worth that was told
}

// begin starts to count the work of a step; the function that it returns counts
// all of it as done.
func (c *Bench) begin(records int) (end func()) {
	c.work = work{records: float64(records)}
	return func() {
		c.reach(1)
		c.tell("")
	}
}

// reach counts a part of the step as done. What was counted stays counted.
func (c *Bench) reach(part float64) { c.work.part = max(c.work.part, min(part, 1)) }

func (c *Bench) say(format string, args ...any) { c.tell(fmt.Sprintf(format, args...)) }

func (c *Bench) tell(what string) {
	if c.progress == nil {
		return
	}
	done := c.work.records * c.work.part
	c.progress(done-c.work.told, what)
	c.work.told = done
}
