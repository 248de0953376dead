package main

import (
	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/report"
)

func schemaCommand() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print what gate's files may hold",
		Subcommands: []*cli.Command{{
			Name:   "metrics",
			Usage:  "the metrics that a policy can name",
			Flags:  []cli.Flag{formatFlag(report.Listings)},
			Action: listMetrics,
		}},
	}
}

func listMetrics(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	return report.WriteMetrics(c.App.Writer, metric.All(), c.String("format"))
}
