package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/store"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func baselineCommand() *cli.Command {
	return &cli.Command{
		Name:  "baseline",
		Usage: "record evidence that later changes are judged by, and look at it",
		Subcommands: []*cli.Command{
			{
				Name:      "record",
				Usage:     "check, and write what is measured into the policy's store",
				ArgsUsage: "[KERNEL…]",
				Description: "As gate check, but evidence goes into the store that the policy names (or --store),\n" +
					"to be committed, rather than into this user's cache. What the cache holds already is copied.",
				Flags:  append(commonFlags(), outputFlags()...),
				Action: func(c *cli.Context) error { return runCheck(c, true) },
			},
			{
				Name:      "list",
				Usage:     "list the records of a store",
				ArgsUsage: "[FOLDER|URL]",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "policy", Usage: "list the store of this policy `FILE` (default: policies.yaml at the root of the repository)"},
					formatFlag(report.Listings),
				},
				Action: listBaseline,
			},
			{
				Name:        "prune",
				Usage:       "remove the records that no code of the working tree or of the base needs",
				Description: "Removes raw files that no record names as well, and nothing else. Git keeps what was committed.",
				Flags:       append(sourceFlags(), &cli.BoolFlag{Name: "dry-run", Usage: "list what would be removed, and remove nothing"}),
				Action:      pruneBaseline,
			},
		},
	}
}

// sourceFlags are those of check that say what the code and the store are.
func sourceFlags() []cli.Flag {
	return slices.DeleteFunc(commonFlags(), func(f cli.Flag) bool {
		return !slices.Contains([]string{"policy", "base", "nvcc", "store", "jobs"}, f.Names()[0])
	})
}

func pruneBaseline(c *cli.Context) error {
	if c.NArg() > 0 {
		return exit.Usagef("", "baseline prune goes through the whole store: it takes no kernel")
	}
	screen := newScreen(c)
	defer screen.close()
	of, err := compared(c, screen)
	if err != nil {
		return err
	}
	of.Judge = project.JudgeHead
	folder, p, err := check.Prune(c.Context, check.Options{Options: of}, c.Bool("dry-run"))
	screen.close()
	for _, name := range slices.Concat(p.Records, p.Raw) {
		fmt.Fprintln(c.App.Writer, printable.Line(filepath.Join(folder, name)))
	}
	if err != nil {
		return err
	}
	did := "removed"
	if c.Bool("dry-run") {
		did = "would remove"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s %s\n", did, check.Pruned(p))
	return err
}

// storeFolder is the one that the command line names, else the policy's.
func storeFolder(c *cli.Context) (string, error) {
	switch c.NArg() {
	case 0:
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		root, path, name, err := project.Find(c.Context, project.Options{Dir: dir, Policy: c.String("policy")})
		if err != nil {
			return "", err
		}
		p, err := policy.Read(path, name)
		if err != nil {
			return "", err
		}
		return project.StoreOf(root, p), nil
	case 1:
		return c.Args().First(), nil
	}
	return "", exit.Usagef("", "baseline list takes one folder at most")
}

// openStore opens the store that the command line or the policy names.
func openStore(c *cli.Context) (*store.Store, error) {
	place, err := storeFolder(c)
	if err != nil {
		return nil, err
	}
	cache, err := toolchain.CacheDir(environment)
	if err != nil {
		return nil, err
	}
	s, err := store.At(place, cache)
	if err != nil {
		return nil, err
	}
	if s.Name() == filepath.Clean(place) {
		if _, err := os.Stat(place); err != nil {
			return nil, exit.Usagef("gate baseline record creates a store", "no store was found at %s", place)
		}
	}
	notes, err := s.Fetch(c.Context)
	for _, n := range notes {
		fmt.Fprintf(c.App.ErrWriter, "gate: %s\n", printable.Line(n))
	}
	return s, err
}

func listBaseline(c *cli.Context) error {
	s, err := openStore(c)
	if err != nil {
		return err
	}
	records, err := s.Records()
	if err != nil {
		return err
	}
	return report.WriteRecords(c.App.Writer, records, c.String("format"))
}
