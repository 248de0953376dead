package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// nameWidth is that of the longest name of a check.
const nameWidth = len("performance counters")

// WriteText writes the report for a terminal: one line for what is well, three
// for what is not.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Checks {
		row(&b, c.Status, c.Name, c.Detail)
		if c.Without != "" {
			row(&b, "", "", "without it: "+c.Without)
		}
		if c.Fix != "" {
			row(&b, "", "", "to get it:  "+c.Fix)
		}
		if c.Name == "driver" {
			r.writeGPUs(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) writeGPUs(b *strings.Builder) {
	for _, g := range r.GPUs {
		for i, line := range g.lines() {
			if i == 0 {
				row(b, g.Status, fmt.Sprintf("gpu %d", g.Index), line)
			} else {
				row(b, "", "", line)
			}
		}
	}
}

func row(b *strings.Builder, status state, name, text string) {
	fmt.Fprintf(b, "%-8s %-*s %s\n", status, nameWidth, name, printable.Line(text))
}
