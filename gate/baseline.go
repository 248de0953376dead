package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/store"
)

func baselineCommand() *cli.Command {
	return &cli.Command{
		Name:  "baseline",
		Usage: "record evidence that later changes are judged by, and look at it",
		Subcommands: []*cli.Command{
			{
				Name:        "record",
				Usage:       "check, and write what is measured into the policy's store",
				ArgsUsage:   "[KERNEL…]",
				Description: "As gate check, but evidence goes into the store that the policy names (or --store),\nto be committed, rather than into this user's cache.",
				Flags:       append(commonFlags(), outputFlags()...),
				Action:      func(c *cli.Context) error { return runCheck(c, true) },
			},
			{
				Name:      "list",
				Usage:     "list the records of a store",
				ArgsUsage: "[FOLDER]",
				Action:    listBaseline,
			},
		},
	}
}

func listBaseline(c *cli.Context) error {
	dir := "kernels/evidence"
	if c.NArg() > 0 {
		dir = c.Args().First()
	}
	if _, err := os.Stat(dir); err != nil {
		return &usageError{fmt.Sprintf("there is no store at %s", dir), "gate baseline record makes one"}
	}
	records, err := store.Open(dir).Records()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KERNEL\tCASE\tTIER\tCODE\tHOST\tMACHINE\tRECORDED")
	for _, r := range records {
		a := r.Address
		fmt.Fprintf(w, "%s\t%s\t%s\t%.12s\t%.12s\t%s\t%s\n", report.Clean(r.Provenance.Kernel, false), report.Clean(a.Case, false),
			r.Tier, a.Code, a.Host, report.Clean(a.Machine, false), report.Clean(r.Provenance.Recorded, false))
	}
	return w.Flush()
}
