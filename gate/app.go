package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
		DisableSliceFlagSeparator: true, // names hold commas: gemm<128,64>
		ExitErrHandler:            func(*cli.Context, error) {},
		Action:                    rootAction,
		Commands: []*cli.Command{
			checkCommand(), baselineCommand(), calibrateCommand(), reportCommand(), doctorCommand(), toolchainCommand(), schemaCommand(),
		},
	}
	harden(app)
	return app
}

// rootAction is reached by a bare gate and by an unknown command.
func rootAction(c *cli.Context) error {
	if c.NArg() == 0 {
		return exit.Usagef("gate check judges the kernels of this repository; gate --help lists the commands", "a command is needed")
	}
	return unknownCommand(c, c.App.Commands)
}

func unknownCommand(c *cli.Context, commands []*cli.Command) error {
	var names []string
	for _, cmd := range commands {
		names = append(names, cmd.Name)
	}
	hint := yamlfile.DidYouMean(c.Args().First(), names, "known: "+strings.Join(names, ", "))
	return exit.Usagef(hint, "there is no command %q", c.Args().First())
}

// harden makes every command strict: a wrong flag is an error of ours, and a
// flag behind an argument, which the library ignores, is refused.
func harden(app *cli.App) {
	app.OnUsageError = onUsageError
	for _, cmd := range app.Commands {
		hardenCommand(cmd)
	}
}

func hardenCommand(cmd *cli.Command) {
	cmd.OnUsageError = onUsageError
	cmd.HideHelpCommand = true
	for _, sub := range cmd.Subcommands {
		hardenCommand(sub)
	}
	if len(cmd.Subcommands) > 0 {
		subs := cmd.Subcommands
		cmd.Action = func(c *cli.Context) error {
			if c.NArg() == 0 {
				return exit.Usagef("see "+c.Command.HelpName+" --help", "%s needs a subcommand", c.Command.HelpName)
			}
			return unknownCommand(c, subs)
		}
		return
	}
	before := cmd.Before
	cmd.Before = func(c *cli.Context) error {
		for _, a := range c.Args().Slice() {
			if strings.HasPrefix(a, "-") && a != "-" {
				return exit.Usagef("flags go first", "%s stands after an argument, where it would be ignored", a)
			}
		}
		if before != nil {
			return before(c)
		}
		return nil
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	msg := strings.TrimPrefix(err.Error(), "flag provided but not defined: ")
	if msg == err.Error() {
		return exit.Usagef("", "%s", msg)
	}
	var names []string
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	hint := "see gate --help"
	if near := yamlfile.Nearest("--"+strings.TrimLeft(msg, "-"), names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return exit.Usagef(hint, "there is no flag %s", msg)
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
	fmt.Fprintf(stderr, "gate: %s\n", printable.Text(err.Error()))
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
