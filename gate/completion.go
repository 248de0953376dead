package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// shells are those that gate can be completed in.
var shells = map[string]func(completion) string{"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print what lets a shell complete commands and flags",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: source <(gate completion bash) in ~/.bashrc\n" +
			"zsh:  source <(gate completion zsh) in ~/.zshrc, after compinit\n" +
			"fish: gate completion fish >~/.config/fish/completions/gate.fish",
		Action: func(c *cli.Context) error {
			script, ok := shells[c.Args().First()]
			if !ok || c.NArg() != 1 {
				return exit.Usagef("", "completion needs one shell: %s", strings.Join(slices.Sorted(maps.Keys(shells)), ", "))
			}
			_, err := io.WriteString(c.App.Writer, script(complete(c.App.Commands)))
			return err
		},
	}
}

// A completion is what can be completed. After "gate help" the names of commands
// are completed, as at the start of a line.
type completion struct {
	levels []level
	values []flagText // flags that take a value, once each
}

// A level is a command, written as it is typed: " baseline record". The first
// level is gate itself, before any command.
type level struct {
	path  string
	words []choice
	flags []flagText
}

// A choice is a word with what it means.
type choice struct{ word, usage string }

func complete(commands []*cli.Command) completion {
	all := completion{levels: []level{{words: choices(commands)}}}
	eachCommand(commands, "", func(path string, c *cli.Command) {
		if c.Name == "help" {
			return
		}
		p := level{path: path, words: choices(c.Subcommands)}
		if strings.Contains(c.ArgsUsage, "|") {
			for _, word := range strings.Split(c.ArgsUsage, "|") {
				p.words = append(p.words, choice{word, ""})
			}
		}
		for _, f := range c.Flags {
			t := textOf(f)
			if f == cli.HelpFlag { // which only the command that runs has
				continue
			}
			p.flags = append(p.flags, t)
			if t.value != "" && !slices.ContainsFunc(all.values, func(v flagText) bool { return v.names[0] == t.names[0] }) {
				all.values = append(all.values, t)
			}
		}
		all.levels = append(all.levels, p)
	})
	return all
}

func choices(commands []*cli.Command) []choice {
	var out []choice
	for _, c := range commands {
		out = append(out, choice{c.Name, c.Usage})
	}
	return out
}

// all are the words of a level and its flags.
func (p level) all() []choice {
	out := slices.Clone(p.words)
	for _, f := range p.flags {
		for _, n := range f.names {
			out = append(out, choice{n, f.usage})
		}
	}
	return out
}

// patterns are the paths of all commands as a pattern of a shell's case.
func (c completion) patterns() string {
	var out []string
	for _, p := range c.levels[1:] {
		out = append(out, `"`+p.path+`"`)
	}
	return strings.Join(out, "|")
}

func (c completion) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, `_gate() {
  local at="" words="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in %s) at="$at $word" ;; esac
  done
  case "$at" in
`, c.patterns())
	for _, p := range c.levels {
		fmt.Fprintf(&b, "    %q) words=%q ;;\n", p.path, joined(p.all()))
	}
	b.WriteString("  esac\n  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n")
	for _, f := range c.values {
		fmt.Fprintf(&b, "    %s) words=%q ;;\n", strings.Join(f.names, "|"), strings.Join(f.choices, " "))
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _gate gate\n")
	return b.String()
}

func joined(list []choice) string {
	var words []string
	for _, x := range list {
		words = append(words, x.word)
	}
	return strings.Join(words, " ")
}

func (c completion) zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef gate
_gate() {
  local at="" word
  local -a found
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in (%s) at="$at $word" ;; esac
  done
  case "${words[CURRENT-1]}" in
`, c.patterns())
	for _, f := range c.values {
		do := "_files"
		if f.choices != nil {
			do = "compadd " + strings.Join(f.choices, " ")
		}
		fmt.Fprintf(&b, "    (%s) %s; return ;;\n", strings.Join(f.names, "|"), do)
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, p := range c.levels {
		fmt.Fprintf(&b, "    (%q) found=(", p.path)
		for _, x := range p.all() {
			fmt.Fprintf(&b, "\n      '%s'", strings.ReplaceAll(x.word+":"+x.usage, "'", `'\''`))
		}
		b.WriteString(") ;;\n")
	}
	b.WriteString("  esac\n  _describe gate found\n  _files\n}\ncompdef _gate gate\n")
	return b.String()
}

func (c completion) fish() string {
	var b strings.Builder
	for _, p := range c.levels {
		at := "__fish_use_subcommand; or __fish_seen_subcommand_from help"
		if p.path != "" {
			at = "__fish_seen_subcommand_from " + strings.Join(strings.Fields(p.path), "; and __fish_seen_subcommand_from ")
		}
		if p.path != "" && len(p.words) > 0 {
			at += "; and not __fish_seen_subcommand_from " + joined(p.words)
		}
		for _, x := range p.words {
			fmt.Fprintf(&b, "complete -c gate -n %s -f -a %s -d %s\n", fishQuote(at), x.word, fishQuote(x.usage))
		}
		for _, f := range p.flags {
			fmt.Fprintf(&b, "complete -c gate -n %s %s -d %s\n", fishQuote(at), f.fish(), fishQuote(f.usage))
		}
	}
	return b.String()
}

// fish are the options that declare a flag.
func (f flagText) fish() string {
	var words []string
	for _, n := range f.names {
		if long, ok := strings.CutPrefix(n, "--"); ok {
			words = append(words, "-l", long)
		} else {
			words = append(words, "-s", n[1:])
		}
	}
	switch {
	case f.choices != nil:
		words = append(words, "-x", "-a", fishQuote(strings.Join(f.choices, " ")))
	case f.value != "":
		words = append(words, "-r")
	}
	return strings.Join(words, " ")
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
