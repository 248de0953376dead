package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// verdictFile is what a check writes into the folder that --out names.
const verdictFile = "verdict.json"

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "render a verdict.json again; needs no GPU and no compiler",
		ArgsUsage: "VERDICT",
		Description: "VERDICT is a verdict.json, the folder that gate check --out wrote it into, or - for standard input.\n" +
			"The exit status is that of the check.",
		Flags:  reportFlags(),
		Action: renderAgain,
	}
}

// reportFlags say how a verdict is shown.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		formatFlag(report.Formats),
		&cli.StringFlag{Name: "color", Value: "auto", Usage: "when to use colour: `auto|always|never`; auto means on a terminal and without NO_COLOR"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show rules that hold, too, and every kernel by itself"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "of a text, print the last line only; on standard error, print errors only"},
	}
}

func formatFlag(formats []string) cli.Flag {
	return &cli.StringFlag{Name: "format", Value: "text", Usage: "print `" + strings.Join(formats, "|") + "`",
		Action: func(_ *cli.Context, format string) error {
			if slices.Contains(formats, format) {
				return nil
			}
			return exit.Usagef("known: "+strings.Join(formats, ", "), "unknown format %q", format)
		}}
}

func renderAgain(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("gate check --out FOLDER writes one", "report needs one verdict.json")
	}
	if err := knownLook(c); err != nil {
		return err
	}
	v, err := readVerdict(c, c.Args().First())
	if err != nil {
		return exit.Usagef("gate check --out FOLDER writes one", "%w", err)
	}
	return show(c, v, report.Options{})
}

func readVerdict(c *cli.Context, name string) (*verdict.Verdict, error) {
	if name == "-" {
		return verdict.Decode(c.App.Reader, "standard input")
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, verdictFile)
	}
	return verdict.Read(name)
}

// show renders the verdict on standard output. Its status is the command's.
func show(c *cli.Context, v *verdict.Verdict, o report.Options) error {
	o.Format, o.Verbose, o.Quiet = lookOf(c), c.Bool("verbose"), c.Bool("quiet")
	o.Color = colourful(c.App.Writer, c.String("color"))
	if err := report.Write(c.App.Writer, v, o); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if lookOf(c) == "github" {
		if err := summarize(v); err != nil {
			fmt.Fprintf(c.App.ErrWriter, "gate: the step's summary could not be written: %s\n", printable.Line(err.Error()))
		}
	}
	if code := v.ExitCode(); code != exit.Pass {
		return exit.Quiet(code)
	}
	return nil
}

// lookOf is the format of a verdict: the one that is asked for, and in a step of
// a workflow the one that GitHub reads.
func lookOf(c *cli.Context) string {
	if !c.IsSet("format") && environment("GITHUB_ACTIONS") == "true" {
		return "github"
	}
	return c.String("format")
}

// summarize adds the report to the summary of the step, which other programs of
// the step may have begun.
func summarize(v *verdict.Verdict) error {
	path := environment("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(report.Markdown(v, report.SummaryBytes-1<<16))
	return errors.Join(err, f.Close())
}

// knownLook refuses what a report cannot look like.
func knownLook(c *cli.Context) error {
	color := c.String("color")
	switch {
	case color != "" && color != "auto" && color != "always" && color != "never":
		return exit.Usagef("known: auto, always, never", "--color cannot be %q", color)
	case c.Bool("quiet") && c.Bool("verbose"):
		return exit.Usagef("", "--quiet and --verbose exclude each other")
	}
	return nil
}

// noArgument is what commands without arguments ask of a command line.
func noArgument(c *cli.Context) error {
	if c.NArg() > 0 {
		return exit.Usagef("", "%s takes no argument", strings.TrimPrefix(c.Command.HelpName, "gate "))
	}
	return nil
}

func writeVerdict(dir string, v *verdict.Verdict) error {
	if dir == "" {
		return nil
	}
	data, err := v.Encode()
	if err != nil {
		return err
	}
	if err := noLink(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the verdict: %w", err)
	}
	if err := disk.WriteFile(filepath.Join(dir, verdictFile), data); err != nil { // replaces a link, and does not follow it
		return fmt.Errorf("writing the verdict: %w", err)
	}
	return nil
}

// noLink refuses a folder that a link of the working tree leads to: a change
// may have brought it along.
func noLink(dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode().Type() == os.ModeSymlink {
			return exit.Usagef("name the folder that it leads to", "--out: %s is a link, which is not followed", at)
		}
		if filepath.IsAbs(dir) || filepath.Dir(at) == at {
			return nil
		}
	}
}
