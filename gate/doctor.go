package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/doctor"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what is here, what is missing, and how to get it",
		Description: "The state of GPUs is asked of NVML, and of nvidia-smi where NVML is unavailable;\n" +
			"GATE_NVML=off asks nvidia-smi alone. GATE_CONFINE=off lets gate run compiler, harness and ncu\n" +
			"unconfined, which every verdict then says.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "policy", Usage: "the policy `FILE` (default: policies.yaml at the root of the repository)"},
			&cli.StringFlag{Name: "store", Usage: "the `FOLDER` of recorded evidence (default: the policy's)"},
			&cli.StringFlag{Name: "nvcc", Usage: "the compiler's `PATH`"},
			formatFlag(report.Listings),
		},
		Action: examine,
	}
}

func examine(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	cache, err := toolchain.CacheDir(environment)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	r := doctor.Examine(c.Context, doctor.Options{Env: environment, CacheDir: cache, NVCC: c.String("nvcc"),
		Dir: dir, Policy: c.String("policy"), Store: c.String("store")})
	if c.String("format") == "json" {
		var data []byte
		if data, err = json.MarshalIndent(r, "", "  "); err == nil {
			_, err = c.App.Writer.Write(append(printable.JSON(data), '\n'))
		}
	} else {
		err = r.WriteText(c.App.Writer)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if !r.Ready() {
		return exit.Quiet(exit.Tool)
	}
	return nil
}
