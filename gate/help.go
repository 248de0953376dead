package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// variables are those of the environment that gate reads.
var variables = [][2]string{
	{"GATE_CACHE", "the folder of builds and of this user's evidence (default: $XDG_CACHE_HOME/gate, then ~/.cache/gate)"},
	{"CUDA_HOME", "the CUDA toolkit to build with, unless --nvcc names a compiler"},
	{"GATE_CONFINE", "\"off\" runs the compiler, the harness and ncu unconfined, and the verdict says so"},
	{"GATE_NVML", "\"off\" asks nvidia-smi alone for the state of GPUs, and not NVML"},
	{"NO_COLOR", "any value that is not empty switches colour off, unless --color is given"},
}

const appHelp = `{{template "helpNameTemplate" .}}

USAGE:
   gate COMMAND [FLAG…] [ARGUMENT…]

COMMANDS:{{template "visibleCommandCategoryTemplate" .}}

OPTIONS:{{template "visibleFlagTemplate" .}}

{{.Description}}
`

// section is a titled list of a page of help.
func section(title string, list [][2]string) string {
	width := 0
	for _, x := range list {
		width = max(width, len(x[0]))
	}
	text := title + ":"
	for _, x := range list {
		text += fmt.Sprintf("\n   %-*s  %s", width, x[0], x[1])
	}
	return text
}

func helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "show how gate or one of its commands is used",
		ArgsUsage: "[COMMAND…]",
		Flags:     []cli.Flag{&cli.StringFlag{Name: "format", Value: "text", Usage: "`text|man`; the manual page is one of all commands"}},
		Action:    help,
	}
}

func help(c *cli.Context) error {
	switch format := c.String("format"); {
	case format == "man" && c.NArg() > 0:
		return exit.Usagef("", "the manual page is one of all commands")
	case format == "man":
		return writeManual(c.App)
	case format != "text":
		return exit.Usagef("known: text, man", "unknown format %q", format)
	}
	commands := c.App.Commands
	for _, name := range c.Args().Slice() {
		of := commandNamed(commands, name)
		if of == nil {
			return unknownCommand(name, commands)
		}
		commands = of.Subcommands
	}
	words := slices.Concat([]string{"gate"}, c.Args().Slice(), []string{"--help"})
	return newApp(c.App.Writer, c.App.ErrWriter).RunContext(c.Context, words)
}

// eachCommand visits the table in its order, subcommands after their command.
func eachCommand(commands []*cli.Command, path string, visit func(path string, c *cli.Command)) {
	for _, c := range commands {
		visit(path+" "+c.Name, c)
		eachCommand(c.Subcommands, path+" "+c.Name, visit)
	}
}

// A flagText is a flag as pages of help name it.
type flagText struct {
	names   []string // with dashes
	value   string   // what it takes; "" for none
	choices []string // of the value, where they are few
	usage   string
}

func textOf(f cli.Flag) flagText {
	doc := f.(cli.DocGenerationFlag) // every flag of the library is one
	var t flagText
	for _, n := range f.Names() {
		t.names = append(t.names, "--"[:min(2, len(n))]+n)
	}
	before, rest, _ := strings.Cut(doc.GetUsage(), "`")
	value, after, _ := strings.Cut(rest, "`")
	t.usage = before + value + after
	if doc.TakesValue() {
		t.value = value
	}
	if strings.Contains(t.value, "|") {
		t.choices = strings.Split(t.value, "|")
	}
	return t
}

// writeManual writes the manual page for man.
func writeManual(app *cli.App) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH GATE 1 \"\" \"gate %s\"\n.SH NAME\ngate \\- %s\n", roff(app.Version), roff(app.Usage))
	b.WriteString(".SH SYNOPSIS\n.B gate\n.I COMMAND\n[\\fIFLAG\\fR…] [\\fIARGUMENT\\fR…]\n.SH OPTIONS\n")
	manualFlags(&b, app.Flags)
	b.WriteString(".SH COMMANDS\n")
	eachCommand(app.Commands, "gate", func(path string, c *cli.Command) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(strings.TrimSpace(path+" "+c.ArgsUsage)), roff(c.Usage))
		for _, paragraph := range strings.Split(c.Description, "\n\n") {
			if paragraph != "" {
				fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
			}
		}
		manualFlags(&b, c.Flags)
	})
	for _, s := range []struct {
		title string
		list  [][2]string
	}{{"ENVIRONMENT", variables}, {"EXIT STATUS", exit.Table}} {
		fmt.Fprintf(&b, ".SH %s\n", s.title)
		for _, x := range s.list {
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(x[0]), roff(x[1]))
		}
	}
	_, err := io.WriteString(app.Writer, b.String())
	return err
}

func manualFlags(w io.Writer, flags []cli.Flag) {
	for _, f := range flags {
		t := textOf(f)
		fmt.Fprintf(w, ".TP\n\\fB%s\\fR %s\n%s\n", roff(strings.Join(t.names, ", ")), roff(t.value), roff(t.usage))
	}
}

// roff writes a text so that no character of it is a command of the format.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
