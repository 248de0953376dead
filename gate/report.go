package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "render a verdict.json again; needs no GPU and no compiler",
		ArgsUsage: "verdict.json",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "text or json"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show rules that hold, too"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return exit.Usagef("", "report needs one verdict.json")
			}
			if err := knownFormat(c.String("format")); err != nil {
				return err
			}
			v, err := verdict.Read(c.Args().First())
			if err != nil {
				return exit.Usagef("gate check --out FOLDER writes one", "%s", err.Error())
			}
			if err := show(c, v); err != nil {
				return err
			}
			if code := v.ExitCode(); code != exit.Pass {
				return exit.Quiet(code)
			}
			return nil
		},
	}
}

func knownFormat(format string) error {
	if slices.Contains(report.Formats, format) {
		return nil
	}
	return exit.Usagef("known: "+strings.Join(report.Formats, ", "), "there is no format %q", format)
}

func writeVerdict(dir string, v *verdict.Verdict) error {
	if dir == "" {
		return nil
	}
	data, err := v.Encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "verdict.json"), data, 0o644); err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	return nil
}
