package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/cache"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

func cacheCommand() *cli.Command {
	return &cli.Command{
		Name:  "cache",
		Usage: "show what lies in gate's cache, or clean it",
		Description: "The cache is the folder $GATE_CACHE (default: $XDG_CACHE_HOME/gate, then ~/.cache/gate). It holds builds,\n" +
			"the harness, bases, gate's own compiler, and the evidence that gate check has measured for this user.",
		Flags:  []cli.Flag{formatFlag(report.Listings)},
		Action: listCache,
		Subcommands: []*cli.Command{{
			Name:  "clean",
			Usage: "remove what can be made again",
			Description: "Evidence stays unless --evidence is given: only a GPU makes it again. Nothing is removed while another\n" +
				"gate uses the cache.",
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "all", Usage: "everything, gate's own compiler too"},
				&cli.DurationFlag{Name: "older", Usage: "what was made, or last used, longer than a `DURATION` ago (720h is 30 days); compilers stay", DefaultText: "none"},
				&cli.BoolFlag{Name: "evidence", Usage: "this user's evidence, too"},
			},
			Action: cleanCache,
		}},
	}
}

func listCache(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	dir, err := toolchain.CacheDir(environment)
	if err != nil {
		return err
	}
	l, err := cache.List(dir)
	if err != nil {
		return err
	}
	return report.WriteCache(c.App.Writer, l, c.String("format"))
}

func cleanCache(c *cli.Context) error {
	if err := noArgument(c); err != nil {
		return err
	}
	older := c.Duration("older")
	switch {
	case c.Bool("all") == c.IsSet("older"):
		return exit.Usagef("--all removes everything, --older 720h what is older than 30 days", "cache clean needs either --all or --older")
	case c.IsSet("older") && older <= 0:
		return exit.Usagef("", "--older needs a time above 0, not %s", older)
	}
	dir, err := toolchain.CacheDir(environment)
	if err != nil {
		return err
	}
	s := cache.Selection{Evidence: c.Bool("evidence")}
	if c.IsSet("older") {
		s.Before = time.Now().Add(-older)
	}
	removed, err := cache.Clean(dir, s)
	if err != nil {
		return err
	}
	return report.WriteCleaned(c.App.Writer, removed, s.Evidence)
}

// openCache is the folder of the cache, which nobody cleans until release is
// called.
func openCache(c *cli.Context) (dir string, release func(), err error) {
	if dir, err = toolchain.CacheDir(environment); err != nil {
		return "", nil, err
	}
	release, err = cache.Use(c.Context, dir)
	return dir, release, err
}
