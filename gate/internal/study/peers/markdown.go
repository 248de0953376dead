package main

import (
	"fmt"
	"github.com/kernelgate/gate/gate/internal/compare"
	"io"
	"strings"
)

// header starts a Markdown table.
func header(columns ...string) string {
	return "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
}

// writeRules writes the table of rules.
func writeRules(w io.Writer, rows []row) error {
	text := header("rule", "reads for a decision", "unchanged kernels red", "unchanged pull requests red", "+1 % found", "+2 %", "+3 %", "+5 %")
	for _, r := range rows {
		text += fmt.Sprintf("| %s | %s | %s | %s |", r.name, r.reads, r.kernels, r.requests)
		for _, s := range r.found[2:] {
			text += fmt.Sprintf(" %s |", s)
		}
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// writeEstimates writes what the gate says of the first twelve rounds.
func writeEstimates(w io.Writer, r recording) error {
	text := header("kind", "contender", "typical", "mean", "excluded by a pass", profiles[0], profiles[1])
	for _, kind := range r.kinds {
		for c := 1; c < len(contenders); c++ {
			line := fmt.Sprintf("| %s | %s |", kind, contenders[c])
			for i, profile := range profiles {
				outcomes, err := request(r, 0, c, profile)
				if err != nil {
					return err
				}
				o := outcomes[kind]
				if i == 0 {
					for _, m := range o.Summaries {
						line += fmt.Sprintf(" %+.2f %% (%+.2f to %+.2f) |", 100*m.Estimate, 100*m.Low, 100*m.High)
					}
					line += excluded(o)
				}
				line += fmt.Sprintf(" %s |", o.Decision)
			}
			text += line + "\n"
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// excluded is the slowdown that a pass refutes in both metrics.
func excluded(o compare.Outcome) string {
	typical, mean := o.Summaries[0].Excluded, o.Summaries[1].Excluded
	if o.Decision != compare.Pass && o.Decision != compare.Improved || typical == nil || mean == nil {
		return " — |"
	}
	return fmt.Sprintf(" %+.2f %% |", 100*max(*typical, *mean))
}

// String writes a share with its count.
func (s share) String() string {
	if s.all == 0 {
		return "none"
	}
	return fmt.Sprintf("%.0f %% (%d of %d)", 100*float64(s.of)/float64(s.all), s.of, s.all)
}
