package main

import (
	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
)

func judgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "judge",
		Usage:     "judge what gate collect measured; runs nothing of the change",
		ArgsUsage: "BUNDLE…",
		Description: "The trusted half of a check, to be run in a checkout of the branch that the change goes to: policy,\n" +
			"base, cases and recorded evidence come from there, and of a BUNDLE records are taken by their keys\n" +
			"alone. All bundles of a change are needed. A bundle that is odd in any way is refused as a whole.\n\n" +
			"Exit status: that of gate check.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "policy", Usage: "the policy `FILE` (default: policies.yaml at the root of the repository)"},
			&cli.StringFlag{Name: "base", Usage: "refuse bundles that were measured against another `COMMIT`"},
			&cli.StringFlag{Name: "nvcc", Usage: "the compiler's `PATH` (default: $CUDA_HOME, PATH, then gate's own)"},
			&cli.StringFlag{Name: "store", Usage: "the `FOLDER` of recorded evidence (default: the policy's)"},
			&cli.IntFlag{Name: "jobs", Usage: "compile this `NUMBER` of kernels at once", DefaultText: "one for each core"},
		}, outputFlags()...),
		Action: runJudge,
	}
}

func runJudge(c *cli.Context) error {
	if c.NArg() == 0 {
		return exit.Usagef("gate collect writes one", "judge needs a bundle")
	}
	e, err := event.Read(environment)
	if err != nil {
		return err
	}
	if e != nil && e.Name == event.PullRequest && e.Foreign() {
		return exit.Usagef("judge on the event workflow_run, which GitHub runs from the default branch", "judge does not run for a pull request from a fork on the event pull_request")
	}
	screen := newScreen(c)
	defer screen.close()
	what, err := compared(c, screen)
	if err != nil {
		return err
	}
	what.Kernels = nil // the arguments are bundles
	bundles, refused, err := readBundles(c.Args().Slice())
	if err != nil {
		return err
	}
	dir, release, err := openCache(c)
	if err != nil {
		return err
	}
	defer release()
	o := check.Options{Options: what, Attempt: attempt(e)}
	o.Cache = dir
	v, err := check.Judge(c.Context, o, bundles, refused, check.Matter{})
	screen.close()
	if err != nil {
		return err
	}
	if err := writeVerdict(c.String("out"), v); err != nil {
		return err
	}
	return show(c, v, report.Options{Announced: screen.readOn(c.App.Writer)})
}
