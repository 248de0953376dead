package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/collect"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/toolchain"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// Exit statuses. They are the same whatever the output format.
const (
	exitPass         = 0
	exitFail         = 1 // a policy is broken
	exitUsage        = 2 // usage, or a file of the user's is invalid
	exitTool         = 3 // a tool failed
	exitInconclusive = 4 // evidence is missing or too weak to decide
)

// verdictError carries a verdict's exit status out of a command.
type verdictError int

func (e verdictError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is a command line that cannot be meant.
type usageError struct{ msg, hint string }

func (e *usageError) Error() string { return e.msg }

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
		return &usageError{"a command is wanted", "gate check judges the kernels of this repository; gate --help lists the commands"}
	}
	return unknownCommand(c, c.App.Commands)
}

func unknownCommand(c *cli.Context, commands []*cli.Command) error {
	var names []string
	for _, cmd := range commands {
		names = append(names, cmd.Name)
	}
	hint := yamlfile.DidYouMean(c.Args().First(), names, "known: "+strings.Join(names, ", "))
	return &usageError{fmt.Sprintf("there is no command %q", c.Args().First()), hint}
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
				return &usageError{fmt.Sprintf("%s wants a subcommand", c.Command.HelpName), "see " + c.Command.HelpName + " --help"}
			}
			return unknownCommand(c, subs)
		}
		return
	}
	before := cmd.Before
	cmd.Before = func(c *cli.Context) error {
		for _, a := range c.Args().Slice() {
			if strings.HasPrefix(a, "-") && a != "-" {
				return &usageError{fmt.Sprintf("%s comes behind an argument, where it would be ignored", a), "flags go first"}
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
		return &usageError{msg: msg}
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
	return &usageError{fmt.Sprintf("there is no flag %s", msg), hint}
}

// exitCode prints an error with its hint and maps it to an exit status.
func exitCode(err error, stderr io.Writer) int {
	var verdict verdictError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &verdict):
		return int(verdict)
	}
	code, hint := classify(err)
	fmt.Fprintf(stderr, "gate: %s\n", report.Clean(err.Error(), true))
	if hint != "" {
		fmt.Fprintf(stderr, "gate: hint: %s\n", report.Clean(hint, false))
	}
	return code
}

func classify(err error) (code int, hint string) {
	var usage *usageError
	var asked *check.UsageError
	var file *yamlfile.Error
	var entry *build.EntryError
	var header *collect.IncludeError
	var missing *toolchain.NotFoundError
	var unusable *toolchain.UnusableError
	var pip *toolchain.PipError
	switch {
	case errors.As(err, &usage):
		return exitUsage, usage.hint
	case errors.As(err, &asked):
		return exitUsage, asked.Hint
	case errors.As(err, &file):
		return exitUsage, file.Hint
	case errors.As(err, &entry):
		return exitUsage, ""
	case errors.As(err, &header):
		return exitUsage, "a header that several ops share has to be copied into the folder of each"
	case errors.As(err, &missing):
		return exitTool, missing.Hint
	case errors.As(err, &unusable):
		return exitTool, unusable.Hint
	case errors.As(err, &pip):
		return exitTool, pip.Hint
	case errors.Is(err, context.Canceled):
		return exitTool, ""
	}
	return exitTool, ""
}

// version is the module's, or the commit's when gate was built from a tree.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

// environment is the only place where gate reads it.
func environment(name string) string { return os.Getenv(name) }
