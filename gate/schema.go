package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/metric"
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
	if c.NArg() > 0 {
		return exit.Usagef("", "schema metrics takes no argument")
	}
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "METRIC\tUNIT\tBETTER\tTIER\tMEANING")
	for _, m := range metric.All() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Unit, m.Better, m.Tier, m.Doc)
	}
	return w.Flush()
}
