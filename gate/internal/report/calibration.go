package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// WriteCalibration renders a calibration in one format.
func WriteCalibration(w io.Writer, c *verdict.Calibration, format string) error {
	if format == "json" {
		return writeJSON(w, c)
	}
	var b strings.Builder
	calibrationTable(&b, c)
	gateable := 0
	for _, k := range c.Kernels {
		if k.Gateable {
			gateable++
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", subject(k), printable.Line(k.Reason))
		for _, r := range k.Remedies {
			fmt.Fprintf(&b, "    would help: %s\n", r)
		}
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", printable.Line(n))
	}
	fmt.Fprintf(&b, "machine: %s (%s)\n", printable.Line(c.Description), printable.Line(c.Machine))
	fmt.Fprintf(&b, "run: %d rounds of 8 processes, %d discarded; a process of all kernels takes %.2f s\n", c.Rounds, c.Discarded, c.ProcessSeconds)
	budget := time.Duration(c.BudgetSeconds * float64(time.Second))
	fmt.Fprintf(&b, "budget: %s pays for %d pairs; questions of a change to all of them: %d\n", budget, c.BudgetPairs, c.Tests)
	fmt.Fprintf(&b, "%d of %d rows can be gated\n", gateable, len(c.Kernels))
	_, err := io.WriteString(w, b.String())
	return err
}

func subject(k verdict.Calibrated) string {
	words := []string{k.Kernel, k.Case, string(k.CacheState)}
	return printable.Line(strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " "))
}

// calibrationTable prints a line for every kernel that was timed.
func calibrationTable(w io.Writer, c *verdict.Calibration) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KERNEL\tARCH\tCASE\tCACHES\tPROCESSES σ\tBATCHES σ\tBETWEEN\tLAG-1\tMODES\tMDE90\tDETECT\tPAIRS\tTIMED")
	for _, k := range c.Kernels {
		f := k.Figures
		if f == nil {
			continue
		}
		modes, mde := "1", "—"
		if f.Modes != nil {
			modes = "2"
		}
		if f.MDE90 != nil {
			mde = fmt.Sprintf("%.2f %%", 100**f.MDE90)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%.2f %%\t%.2f %%\t%.0f %%\t%.2f\t%s\t%s\t%.2f %%\t%d\t%.1f ms\n",
			printable.Line(k.Kernel), printable.Line(k.Arch), printable.Line(k.Case), printable.Line(string(k.CacheState)),
			100*f.SigmaProcess, 100*f.SigmaBatch, 100*f.BetweenShare, f.Autocorrelation, modes, mde, 100*k.Limits.Detect, f.NeedPairs, 1e3*k.TimedSeconds)
	}
	tw.Flush()
}
