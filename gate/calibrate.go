package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/calibrate"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/report"
)

// mostCalibrationRounds keeps a record far below the size that is read back.
const mostCalibrationRounds = 100

func calibrateCommand() *cli.Command {
	own := []cli.Flag{
		&cli.IntFlag{Name: "rounds", Value: compare.FewestCalibrationRounds, Usage: "run this `NUMBER` of rounds of eight processes"},
		formatFlag(report.Listings),
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
	screen := newScreen(c)
	defer screen.close()
	o, release, err := options(c, screen)
	if err != nil {
		return err
	}
	defer release()
	o.Judge = project.JudgeHead
	rounds := c.Int("rounds")
	if rounds < compare.FewestCalibrationRounds || rounds > mostCalibrationRounds {
		return exit.Usagef("", "--rounds needs %d to %d, not %d", compare.FewestCalibrationRounds, mostCalibrationRounds, rounds)
	}
	found, err := calibrate.Run(c.Context, o, rounds)
	screen.close()
	if found == nil {
		return err
	}
	if wrong := report.WriteCalibration(c.App.Writer, found, c.String("format")); wrong != nil {
		return errors.Join(err, fmt.Errorf("writing the report: %w", wrong))
	}
	if err != nil {
		return err
	}
	if !found.Gateable() {
		return exit.Quiet(exit.Inconclusive)
	}
	return nil
}
