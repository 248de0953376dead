package report

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// judgedBy says whose policy it was.
func judgedBy(v *verdict.Verdict) string {
	whose := "the working tree's"
	if v.JudgedBy == "base" {
		whose = "the base's, with its waivers and its ops"
	}
	return printable.Line(v.Policy) + ", " + whose
}

// tiers names those that were asked for, as the subject of a sentence.
func tiers(list []evidence.Tier) string {
	if len(list) == 1 {
		return "the " + string(list[0]) + " tier was"
	}
	return "the tiers " + evidence.Names(list, ", ") + " were"
}

// waivers says of every waiver what became of it.
func (t *text) waivers(v *verdict.Verdict) {
	for _, w := range v.Waivers {
		ceiling := ""
		if w.Ceiling != "" {
			ceiling = " up to " + w.Ceiling
		}
		t.line("waiver: %s", printable.Line(fmt.Sprintf("%s of %s%s, %s, by %s: %s (%s)", w.Rule, w.Kernel, ceiling, until(w), w.Owner, fate(w), w.Reason)))
	}
}

func until(w verdict.Waiver) string {
	switch {
	case w.DaysLeft < 0:
		return fmt.Sprintf("expired %s ago (%s)", plural(-w.DaysLeft, "day"), w.Until)
	case w.EndsSoon():
		return fmt.Sprintf("expires in %s (%s)", plural(w.DaysLeft, "day"), w.Until)
	}
	return "until " + w.Until
}

func fate(w verdict.Waiver) string {
	switch w.State {
	case verdict.Unused:
		return "unused, nothing is broken that it is about"
	case verdict.Proposed:
		return "proposed by the change, which it does not count for"
	}
	return string(w.State)
}

// entries prints the compiler's figures of every function of kernels that have
// several.
func (t *text) entries(v *verdict.Verdict) {
	if !t.o.Verbose {
		return
	}
	var buf bytes.Buffer
	tw := tabwriter.NewWriter(&buf, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "kernel\tarch\tfunction\tregs\tspills\tstack\tshared")
	rows := 0
	for _, k := range v.Kernels {
		if len(k.Entries) < 2 {
			continue
		}
		for _, e := range k.Entries {
			rows++
			words := []string{printable.Line(k.Name), printable.Line(k.Arch), printable.Line(e.Entry)}
			for _, c := range []struct{ metric, unit string }{{"ptxas.registers", ""}, {"ptxas.spill_bytes", "byte"}, {"ptxas.stack_bytes", "byte"}, {"ptxas.shared_bytes", "byte"}} {
				words = append(words, cell(e.Metrics, nil, c.metric, c.unit))
			}
			fmt.Fprintln(tw, strings.Join(words, "\t"))
		}
	}
	if tw.Flush(); rows > 0 {
		t.out.Write(buf.Bytes())
		t.out.WriteByte('\n')
	}
}
