package report

import (
	"fmt"
	"io"

	"github.com/kernelgate/gate/gate/internal/plan"
)

// WritePreview renders what a check would ask and measure.
func WritePreview(w io.Writer, p plan.Preview, format string) error {
	if format == "json" {
		return writeJSON(w, p)
	}
	header, rows := []string{"kernel", "arch", "case", "machine", "rule", "kind", "answer"}, [][]string{}
	for _, q := range p.Questions {
		kind := string(q.Kind)
		if q.Reference != "" {
			kind += " beside " + q.Reference
		}
		rows = append(rows, []string{q.Kernel, q.Arch, q.Case, q.Machine, q.Rule, kind, string(q.Answer)})
	}
	if err := writeTable(w, header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, %s to measure, about %.0f GPU seconds\n", plural(len(p.Questions), "question"), plural(p.Measured, "record"), p.GPUSeconds)
	return err
}
