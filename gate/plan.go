package main

import (
	"encoding/json"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/project"
)

func planCommand() *cli.Command {
	return &cli.Command{
		Name:  "plan",
		Usage: "spread what is to be measured over several runners, as a workflow's matrix",
		Description: "Prints JSON for strategy: matrix. Each part names the arguments of gate collect; kernels of which nothing\n" +
			"is missing are in none. gate judge needs the bundles of all parts.",
		Flags: append(commonFlags(),
			&cli.IntFlag{Name: "shards", Value: 1, Usage: "at most this `NUMBER` of parts"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "on standard error, print errors only"}),
		Action: runPlan,
	}
}

func runPlan(c *cli.Context) error {
	n := c.Int("shards")
	if n < 1 || n > 256 {
		return exit.Usagef("a matrix has at most 256 jobs", "--shards needs 1 to 256, not %d", n)
	}
	screen := newScreen(c)
	defer screen.close()
	o, release, err := options(c, screen)
	if err != nil {
		return err
	}
	defer release()
	o.Judge = project.JudgeBase
	m, err := check.Shards(c.Context, o, n)
	screen.close()
	if err != nil {
		return err
	}
	return json.NewEncoder(c.App.Writer).Encode(m)
}
