package main

import (
	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
)

func selftestCommand() *cli.Command {
	return &cli.Command{
		Name:      "selftest",
		Usage:     "plant one violation of every kind into copies of the evidence, and show that each is caught",
		ArgsUsage: "[KERNEL…]",
		Description: "Builds the kernels and plants, into copies of what is recorded of them, a violation of every rule of the\n" +
			"policy and one of every way in which a gate can fail open, and into builds of one kernel flags and code that\n" +
			"kernel.yaml may not hold. Each is judged as gate check does. It measures nothing and changes nothing.\n\n" +
			"Exit status: 0 all were caught, 1 one was not. A rule that can fire on none of the kernels is named.",
		Flags: append(sourceFlags(), formatFlag(report.Listings), &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "list what was caught, too"}),
		Action: func(c *cli.Context) error {
			screen := newScreen(c)
			defer screen.close()
			of, release, err := compared(c, screen)
			if err != nil {
				return err
			}
			defer release()
			result, err := check.Selftest(c.Context, check.Options{Options: of})
			screen.close()
			if err != nil {
				return err
			}
			if err := report.WriteSelftest(c.App.Writer, result, c.String("format"), c.Bool("verbose")); err != nil {
				return err
			}
			if result.Caught() < len(result.Planted) {
				return exit.Quiet(exit.Fail)
			}
			return nil
		},
	}
}
