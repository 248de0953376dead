package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/diff"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two records of evidence, figure by figure",
		ArgsUsage: "A B",
		Description: "A and B are KERNEL, KERNEL:CASE, KERNEL:CASE:TIER, or the file of a record. Records of two kernels are\n" +
			"paired by tier, case and machine. A difference is not a verdict, in whichever direction it goes: the exit status\n" +
			"is 0, and 4 where a record is refused or nothing can be compared.",
		Flags:  recordFlags(),
		Action: diffRecords,
	}
}

func diffRecords(c *cli.Context) error {
	if c.NArg() != 2 {
		return exit.Usagef("gate baseline list lists what is recorded", "diff takes two records, A and B")
	}
	o, err := looking(c)
	if err != nil {
		return err
	}
	sides, err := check.Show(c.Context, o, c.Args().Slice()...)
	if err != nil {
		return err
	}
	pairs, err := diff.Between(sides[0], sides[1])
	if err != nil {
		return err
	}
	if err := report.WriteDiff(c.App.Writer, pairs, time.Now(), c.String("format")); err != nil {
		return err
	}
	return pairs.Incomplete()
}
