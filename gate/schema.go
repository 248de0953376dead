package main

import (
	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/schema"
)

func schemaCommand() *cli.Command {
	of := map[string]string{"policy": "of policies.yaml", "kernel": "of kernel.yaml", "op": "of op.yaml",
		"evidence": "of a record of evidence", "verdict": "of verdict.json"}
	commands := []*cli.Command{{
		Name:   "metrics",
		Usage:  "the metrics that a policy can name",
		Flags:  []cli.Flag{formatFlag(report.Listings)},
		Action: listMetrics,
	}}
	for _, name := range schema.Names {
		commands = append(commands, &cli.Command{Name: name, Usage: "the JSON Schema " + of[name],
			Action: func(c *cli.Context) error { return printSchema(c, name) }})
	}
	return &cli.Command{
		Name:  "schema",
		Usage: "print what gate's files may hold",
		Description: "A line at the top of a file lets editors complete and check it while it is written:\n" +
			"# yaml-language-server: $schema=PATH, where PATH is a file that gate schema policy, kernel or op wrote.",
		Subcommands: commands,
	}
}

func printSchema(c *cli.Context, name string) error {
	if err := noArgument(c); err != nil {
		return err
	}
	data, err := schema.Of(name)
	if err != nil {
		return err
	}
	_, err = c.App.Writer.Write(data)
	return err
}

func listMetrics(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	return report.WriteMetrics(c.App.Writer, metric.All(), c.String("format"))
}
