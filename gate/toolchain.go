package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func toolchainCommand() *cli.Command {
	return &cli.Command{
		Name:  "toolchain",
		Usage: "the CUDA compiler that gate brings along",
		Subcommands: []*cli.Command{{
			Name:  "install",
			Usage: "install CUDA " + toolchain.Version + " into the user's cache, without root, through pip",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "python", Usage: "the `PATH` of the python3 whose pip fetches the packages"},
				&cli.BoolFlag{Name: "if-missing", Usage: "install only when no compiler is found"},
			},
			Action: installToolchain,
		}},
	}
}

func installToolchain(c *cli.Context) error {
	if c.NArg() > 0 {
		return exit.Usagef("", "toolchain install takes no argument")
	}
	cache, err := toolchain.CacheDir(environment)
	if err != nil {
		return err
	}
	if c.Bool("if-missing") {
		tc, err := toolchain.FindCompiler(c.Context, toolchain.Options{Env: environment, CacheDir: cache})
		if err == nil {
			fmt.Fprintln(c.App.Writer, tc.NVCC)
			return nil
		}
	}
	tc, err := toolchain.Install(c.Context, toolchain.InstallOptions{Options: toolchain.Options{CacheDir: cache, Env: environment}, Python: c.String("python"),
		Progress: func(line string) { fmt.Fprintf(c.App.ErrWriter, "gate: %s\n", line) }})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, tc.NVCC)
	return nil
}
