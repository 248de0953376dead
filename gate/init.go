package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/scaffold"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:  "init",
		Usage: "write the workflows that measure, judge and record on GitHub",
		Description: "Writes gate-collect.yml, gate-judge.yml and gate-baseline.yml into .github/workflows of this folder. A file\n" +
			"that is there is left as it is.",
		Flags:  []cli.Flag{&cli.StringFlag{Name: "ref", Usage: "the `COMMIT` of gate that the workflows use", DefaultText: "the one that this gate was built from"}},
		Action: runInit,
	}
}

func runInit(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	ref := c.String("ref")
	if ref == "" {
		ref = builtFrom()
	}
	written, kept, err := scaffold.Write(dir, ref)
	for _, f := range written {
		fmt.Fprintf(c.App.Writer, "wrote %s\n", f)
	}
	for _, f := range kept {
		fmt.Fprintf(c.App.Writer, "%s is there already and was left as it is\n", f)
	}
	return err
}

// builtFrom is the commit that this program was built from, as far as the build
// noted it.
func builtFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
