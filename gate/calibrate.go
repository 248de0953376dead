package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/report"
)

// mostCalibrationBlocks keeps a record far below the size that is read back.
const mostCalibrationBlocks = 100

func calibrateCommand() *cli.Command {
	own := []cli.Flag{
		&cli.IntFlag{Name: "blocks", Value: compare.FewestCalibrationBlocks, Usage: "run so many blocks of eight processes"},
		&cli.StringFlag{Name: "format", Value: "text", Usage: "text or json"},
	}
	return &cli.Command{
		Name:      "calibrate",
		Usage:     "time kernels against themselves: what a check on this machine can see",
		ArgsUsage: "[KERNEL…]",
		Description: "Runs the working tree's kernels in both arms of an experiment, says how noisy each is and what it\n" +
			"takes to find the slowdown that the policy forbids, and keeps the samples in this user's cache.\n\n" +
			"Exit status: 0 every kernel can be gated, 2 usage or an invalid file, 3 a tool failed or there is no\n" +
			"GPU, 4 a kernel cannot be gated within the policy's budget.",
		Flags:  append(own, chosen(commonFlags(), "policy", "nvcc", "gpu", "wait", "hang", "jobs")...),
		Action: runCalibrate,
	}
}

// chosen are the flags of these names.
func chosen(flags []cli.Flag, names ...string) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool { return !slices.Contains(names, f.Names()[0]) })
}

func runCalibrate(c *cli.Context) error {
	screen := newScreen(c.App.ErrWriter)
	defer screen.clear()
	o, err := options(c, screen)
	if err != nil {
		return err
	}
	blocks := c.Int("blocks")
	if blocks < compare.FewestCalibrationBlocks || blocks > mostCalibrationBlocks {
		return &usageError{fmt.Sprintf("--blocks wants %d to %d, not %d", compare.FewestCalibrationBlocks, mostCalibrationBlocks, blocks), ""}
	}
	found, err := check.Calibrate(c.Context, o, blocks)
	screen.clear()
	if err != nil {
		return err
	}
	if err := showCalibration(c.App.Writer, found, c.String("format")); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if !found.Gateable() {
		return verdictError(exitInconclusive)
	}
	return nil
}

func showCalibration(w io.Writer, c *check.Calibration, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(c)
	}
	var b strings.Builder
	calibrationTable(&b, c)
	gateable := 0
	for _, k := range c.Kernels {
		if k.Gateable {
			gateable++
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", subject(k), report.Clean(k.Reason, false))
		for _, r := range k.Remedies {
			fmt.Fprintf(&b, "    would help: %s\n", r)
		}
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", report.Clean(n, false))
	}
	fmt.Fprintf(&b, "machine: %s (%s)\n", report.Clean(c.Description, false), report.Clean(c.Machine, false))
	fmt.Fprintf(&b, "run: %d blocks of 8 launches, %d discarded; a launch of all kernels takes %.2f s\n", c.Blocks, c.Discarded, c.LaunchSeconds)
	budget := time.Duration(c.BudgetSeconds * float64(time.Second))
	fmt.Fprintf(&b, "budget: %s pays for %d pairs; questions of a change to all of them: %d\n", budget, c.BudgetPairs, c.Tests)
	fmt.Fprintf(&b, "%d of %d rows can be gated\n", gateable, len(c.Kernels))
	_, err := io.WriteString(w, b.String())
	return err
}

func subject(k check.Calibrated) string {
	words := []string{k.Kernel, k.Case, k.Regime}
	return report.Clean(strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " "), false)
}

// calibrationTable prints a line for every kernel that was timed.
func calibrationTable(w io.Writer, c *check.Calibration) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "KERNEL\tARCH\tCASE\tCACHES\tLAUNCHES σ\tBATCHES σ\tBETWEEN\tLAG-1\tMODES\tMDE90\tDETECT\tPAIRS\tTIMED")
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
			report.Clean(k.Kernel, false), report.Clean(k.Arch, false), report.Clean(k.Case, false), report.Clean(k.Regime, false),
			100*f.SigmaLaunch, 100*f.SigmaBatch, 100*f.BetweenShare, f.Autocorrelation, modes, mde, 100*k.Limits.Detect, f.NeedPairs, 1e3*k.TimedSeconds)
	}
	tw.Flush()
}
