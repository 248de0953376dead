package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/policy"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print what gate's files may hold",
		Subcommands: []*cli.Command{{
			Name:   "metrics",
			Usage:  "the metrics that a policy can name",
			Action: listMetrics,
		}},
	}
}

func listMetrics(c *cli.Context) error {
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "METRIC\tUNIT\tBETTER\tTIER\tMEANING")
	for _, m := range policy.Metrics() {
		better := "lower"
		switch {
		case m.Either:
			better = "neither"
		case m.Better == compare.HigherBetter:
			better = "higher"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Unit, better, m.Tier, m.Doc)
	}
	return w.Flush()
}
