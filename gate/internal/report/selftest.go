package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/selftest"
)

// WriteSelftest writes what planted violations came to: those that were not
// caught first, and all of them when asked.
func WriteSelftest(w io.Writer, r selftest.Result, format string, all bool) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", " ")
		return enc.Encode(struct {
			Schema string `json:"schema"`
			selftest.Result
		}{"gate/selftest/v1", r})
	}
	t := &text{}
	for _, p := range r.Planted {
		word := "caught"
		if !p.Caught {
			word = "NOT CAUGHT"
		} else if !all {
			continue
		}
		of := ""
		if p.Kernel != "" {
			of = " in " + p.Kernel
		}
		t.line("%-10s  %-11s  %s%s", word, printable.Line(p.Tier), printable.Line(p.Kind), printable.Line(of))
		t.line("                         %s", printable.Line(p.Said))
	}
	for _, n := range slices.Concat(r.Skipped, r.Never) {
		t.line("note: %s", printable.Line(n))
	}
	t.line("selftest: %d of %d planted violations were caught", r.Caught(), len(r.Planted))
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
