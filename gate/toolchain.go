package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func toolchainCommand() *cli.Command {
	return &cli.Command{
		Name:  "toolchain",
		Usage: "the CUDA compiler that gate brings along",
		Subcommands: []*cli.Command{
			{
				Name:  "install",
				Usage: "install CUDA " + toolchain.Version + " into the user's cache, without root, through pip",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "python", Usage: "the `PATH` of the python3 whose pip fetches the packages"},
					&cli.BoolFlag{Name: "if-missing", Usage: "install only when no compiler is found"},
				},
				Action: installToolchain,
			},
			{
				Name:   "list",
				Usage:  "list the compiler that builds use, and gate's own where that is another",
				Flags:  []cli.Flag{formatFlag(report.Listings)},
				Action: listToolchains,
			},
		},
	}
}

func listToolchains(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	dir, err := toolchain.CacheDir(environment)
	if err != nil {
		return err
	}
	found, err := toolchain.List(c.Context, toolchain.Options{Env: environment, CacheDir: dir})
	if err != nil {
		return err
	}
	return report.WriteToolchains(c.App.Writer, found, c.String("format"))
}

func installToolchain(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	dir, release, err := openCache(c)
	if err != nil {
		return err
	}
	defer release()
	if c.Bool("if-missing") {
		tc, err := toolchain.FindCompiler(c.Context, toolchain.Options{Env: environment, CacheDir: dir})
		if err == nil {
			fmt.Fprintln(c.App.Writer, tc.NVCC)
			return nil
		}
	}
	tc, err := toolchain.Install(c.Context, toolchain.InstallOptions{Options: toolchain.Options{CacheDir: dir, Env: environment}, Python: c.String("python"),
		Progress: func(line string) { fmt.Fprintf(c.App.ErrWriter, "gate: %s\n", line) }})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, tc.NVCC)
	return nil
}
