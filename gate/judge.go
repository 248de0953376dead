package main

import (
	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/bundle"
	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
)

func judgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "judge",
		Usage:     "judge what gate collect measured; runs nothing of the change",
		ArgsUsage: "[BUNDLE…]",
		Description: "The trusted half of a check, to be run in a checkout of the branch that the change goes to: policy,\n" +
			"base, cases and recorded evidence come from there, and of a BUNDLE records are taken by their keys\n" +
			"alone. All bundles of a change are needed. A bundle that is odd in any way is refused as a whole.\n" +
			"On the event workflow_run, bundles and files of the pull request come from GitHub.\n\n" +
			"Exit status: that of gate check.",
		Flags: append(append(githubFlags(),
			&cli.BoolFlag{Name: "doubt", Usage: "leave a kernel open that is called unchanged although the pull request changes what it is built from"},
			&cli.StringFlag{Name: "policy", Usage: "the policy `FILE` (default: policies.yaml at the root of the repository)"},
			&cli.StringFlag{Name: "base", Usage: "refuse bundles that were measured against another `COMMIT`"},
			&cli.StringFlag{Name: "nvcc", Usage: "the compiler's `PATH` (default: $CUDA_HOME, PATH, then gate's own)"},
			&cli.StringFlag{Name: "store", Usage: "the `FOLDER` of recorded evidence (default: the policy's)"},
			&cli.IntFlag{Name: "jobs", Usage: "compile this `NUMBER` of kernels at once", DefaultText: "one for each core"},
		), outputFlags()...),
		Action: runJudge,
	}
}

func runJudge(c *cli.Context) error {
	e, err := event.Read(environment)
	if err != nil {
		return err
	}
	if c.NArg() == 0 && (e == nil || e.Run == nil) {
		return exit.Usagef("gate collect writes one", "judge needs a bundle")
	}
	if e != nil && e.Name == event.PullRequest && e.Foreign() {
		return exit.Usagef("judge on the event workflow_run, which GitHub runs from the default branch", "judge does not run for a pull request from a fork on the event pull_request")
	}
	screen := newScreen(c)
	defer screen.close()
	what, release, err := compared(c, screen)
	if err != nil {
		return err
	}
	defer release()
	what.Kernels = nil // the arguments are bundles
	in, err := handedIn(c, e)
	if err != nil {
		return err
	}
	o := check.Options{Options: what, Attempt: attempt(e)}
	v, err := check.Judge(c.Context, o, in.bundles, in.refused, in.Matter)
	screen.close()
	if err != nil {
		return err
	}
	if err := writeVerdict(c.String("out"), v); err != nil {
		return err
	}
	return show(c, v, report.Options{Announced: screen.readOn(c.App.Writer)})
}

// handed is what there is to judge.
type handed struct {
	check.Matter
	bundles []*bundle.Bundle
	refused string
}

// handedIn reads bundles from files, or from the run that this one follows.
func handedIn(c *cli.Context, e *event.Event) (in handed, err error) {
	if c.NArg() > 0 {
		var files [][]byte
		if files, err = readBundles(c.Args().Slice()); err == nil {
			in.bundles, in.refused = unpackBundles(files)
		}
		return in, err
	}
	client, m, _, err := reach(c, nil)
	if err != nil {
		return in, err
	}
	in.Head, in.Doubt = m.Head, c.Bool("doubt")
	if in.Changes, in.Cut, err = client.Changes(c.Context, m); err != nil {
		return in, err
	}
	files, err := client.Bundles(c.Context, m)
	if err != nil {
		in.refused = err.Error()
		return in, c.Context.Err()
	}
	if in.bundles, in.refused = unpackBundles(files); in.refused != "" {
		return in, nil
	}
	if in.Texts, err = client.Texts(c.Context, m, in.bundles[0].Declaring()); err != nil {
		return in, err
	}
	d, err := client.Distance(c.Context, in.bundles[0].Base, m.Head, e.Repository.DefaultBranch)
	if in.Includes = d.Includes; m.Pull == 0 { // a merge queue's
		in.Changes, in.Cut = d.Changes, d.Cut
	}
	if err == nil && !d.Fits {
		in.refused = "the bundle was measured against an older commit of the branch than the change began at"
	}
	return in, err
}
