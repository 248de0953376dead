package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

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
					"to be committed, rather than into this user's cache. What the cache holds already is copied. The compiler's\n" +
					"figures of every kernel are kept beside it, under the compiler's version.",
				Flags: append(append(commonFlags(), outputFlags()...),
					&cli.BoolFlag{Name: "toolchain", Usage: "say how the compiler's figures moved since the toolchain that was recorded before, function by function"}),
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
				Name:      "show",
				Usage:     "show records whole: figures, where they come from, age, and whether they are evidence",
				ArgsUsage: "KERNEL[:CASE[:TIER]]|FILE",
				Description: "KERNEL is the name that a record was made under. Reads the policy's store (or --store) and this user's\n" +
					"cache, and audits each record as a check does; one that is refused is exit status 4.",
				Flags:  recordFlags(),
				Action: showBaseline,
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
	of, release, err := compared(c, screen)
	if err != nil {
		return err
	}
	defer release()
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

// recordFlags are those of commands that look at records.
func recordFlags() []cli.Flag {
	flags := slices.DeleteFunc(commonFlags(), func(f cli.Flag) bool { return !slices.Contains([]string{"policy", "store"}, f.Names()[0]) })
	return append(flags, formatFlag(report.Listings))
}

func showBaseline(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("gate baseline list lists what is recorded", "baseline show takes one kernel, or the file of one record")
	}
	o, err := looking(c)
	if err != nil {
		return err
	}
	found, err := check.Show(c.Context, o, c.Args().First())
	if err != nil {
		return err
	}
	if err := report.WriteShown(c.App.Writer, found[0], time.Now(), c.String("format")); err != nil {
		return err
	}
	if n := len(slices.DeleteFunc(slices.Clone(found[0]), func(f store.Found) bool { return f.Refused == nil })); n > 0 {
		return &exit.Error{Status: exit.Inconclusive, Err: fmt.Errorf("%d of %d records are refused: they are not evidence", n, len(found[0]))}
	}
	return nil
}

// looking are the options of a command that looks at records, and whose
// arguments name no kernel to be built.
func looking(c *cli.Context) (check.Options, error) {
	dir, err := os.Getwd()
	if err != nil {
		return check.Options{}, err
	}
	return check.Options{Options: project.Options{Dir: dir, Policy: c.String("policy"), Store: c.String("store"), Env: environment}}, nil
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
