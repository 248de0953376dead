package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// WritePreview renders what a check would ask and measure.
func WritePreview(w io.Writer, p plan.Preview, format string) error {
	if format == "json" {
		return writeJSON(w, p)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KERNEL\tARCH\tCASE\tMACHINE\tRULE\tKIND\tANSWER")
	for _, q := range p.Questions {
		for _, cell := range []string{q.Kernel, q.Arch, q.Case, q.Machine, q.Rule, string(q.Kind)} {
			fmt.Fprintf(tw, "%s\t", cmp.Or(printable.Line(cell), "—"))
		}
		fmt.Fprintln(tw, q.Answer)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, %s to measure, about %.0f GPU seconds\n", plural(len(p.Questions), "question"), plural(p.Measured, "record"), p.GPUSeconds)
	return err
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
