package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                      "gate",
		Usage:                     "decide whether a change to CUDA kernels may be merged",
		Version:                   version(),
		Writer:                    stdout,
		ErrWriter:                 stderr,
		HideHelpCommand:           true,
		Flags:                     []cli.Flag{cli.HelpFlag}, // the library adds it only where no command is called help
		CustomAppHelpTemplate:     appHelp,
		Description:               section("ENVIRONMENT", variables) + "\n\n" + section("EXIT STATUS", exit.Table),
		DisableSliceFlagSeparator: true, // names hold commas: gemm<128,64>
		ExitErrHandler:            func(*cli.Context, error) {},
		Action:                    rootAction,
		Commands: []*cli.Command{
			checkCommand(), planCommand(), collectCommand(), judgeCommand(), publishCommand(), initCommand(), baselineCommand(), diffCommand(), selftestCommand(), calibrateCommand(),
			reportCommand(), doctorCommand(), toolchainCommand(),
			schemaCommand(), cacheCommand(), completionCommand(), helpCommand(),
		},
	}
	harden(app)
	return app
}

// rootAction is reached by a bare gate and by an unknown command.
func rootAction(c *cli.Context) error {
	if c.NArg() == 0 {
		return exit.Usagef("gate check judges the kernels of this repository; gate help lists the commands", "a command is needed")
	}
	return unknownCommand(c.Args().First(), c.App.Commands)
}

func unknownCommand(name string, commands []*cli.Command) error {
	var names []string
	for _, cmd := range commands {
		names = append(names, cmd.Name)
	}
	known := "known: " + strings.Join(names, ", ")
	if len(names) == 0 {
		known = ""
	}
	return exit.Usagef(yamlfile.DidYouMean(name, names, known), "unknown command %q", name)
}

// harden makes every command strict: a wrong flag is an error of ours.
func harden(app *cli.App) {
	app.OnUsageError = onUsageError
	eachCommand(app.Commands, "", func(_ string, c *cli.Command) {
		c.OnUsageError = onUsageError
		c.HideHelpCommand = true
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
		if len(c.Subcommands) > 0 {
			c.Action = subcommandAction(c.Subcommands, c.Action)
		}
	})
}

// subcommandAction is reached by a command without its subcommand, which may
// have a meaning, and with one that is not known.
func subcommandAction(commands []*cli.Command, bare cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		switch {
		case c.NArg() > 0:
			return unknownCommand(c.Args().First(), commands)
		case bare != nil:
			return bare(c)
		}
		return exit.Usagef("see "+c.Command.HelpName+" --help", "%s needs a subcommand", c.Command.HelpName)
	}
}

// oneDash finds the long names of flags, which the library writes with one dash.
var oneDash = regexp.MustCompile(`(^|[ (])-([a-z][a-z-]+)`)

func onUsageError(c *cli.Context, err error, _ bool) error {
	text := strings.TrimSuffix(oneDash.ReplaceAllString(err.Error(), "$1--$2"), ": parse error")
	help := "gate help" + strings.TrimPrefix(c.Command.HelpName, "gate") + " lists the flags"
	msg, unknown := strings.CutPrefix(text, "flag provided but not defined: ")
	if !unknown {
		return exit.Usagef(help, "%s", msg)
	}
	var names []string
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	if near := yamlfile.Nearest("--"+strings.TrimLeft(msg, "-"), names); near != "" {
		help = fmt.Sprintf("did you mean %s?", near)
	}
	return exit.Usagef(help, "unknown flag %s", msg)
}

// exitCode prints an error with its hint and maps it to an exit status.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exit.Pass
	}
	code, hint := exit.Of(err)
	if errors.As(err, new(exit.Quiet)) {
		return code
	}
	// A name with a line break in it begins no line of gate's own.
	fmt.Fprintf(stderr, "gate: %s\n", strings.ReplaceAll(printable.Text(err.Error()), "\n", "\n  "))
	if hint != "" {
		fmt.Fprintf(stderr, "gate: hint: %s\n", printable.Line(hint))
	}
	return code
}

// version is the module's release, with the commit that it was built from and
// that commit's date, as far as the build noted them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	release, commit, date := info.Main.Version, "unknown", "unknown"
	if release == "" || release == "(devel)" {
		release = "devel"
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.time":
			date = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += " with uncommitted changes"
		}
	}
	return fmt.Sprintf("%s (commit %s, %s)", release, commit, date)
}

// environment is the only place where gate reads it.
func environment(name string) string { return os.Getenv(name) }
