package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst puts the flags of a command line before its arguments: the library
// takes everything after the first argument for arguments.
func flagsFirst(commands []*cli.Command, words []string) []string {
	for i, w := range words {
		if strings.HasPrefix(w, "-") {
			continue
		}
		c := commandNamed(commands, w)
		if c == nil {
			return words
		}
		before, after := words[:i+1], words[i+1:]
		if len(c.Subcommands) > 0 {
			return slices.Concat(before, flagsFirst(c.Subcommands, after))
		}
		return slices.Concat(before, reorder(c.Flags, after))
	}
	return words
}

func commandNamed(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// reorder is flagsFirst for the words of one command. The value of a flag goes
// with it, "--" ends the flags, and "-" is an argument.
func reorder(flags []cli.Flag, words []string) []string {
	var front, arguments []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--":
			arguments = append(arguments, words[i+1:]...)
			i = len(words)
		case w == "-" || !strings.HasPrefix(w, "-"):
			arguments = append(arguments, w)
		case !takesValue(flags, w):
			front = append(front, w)
		case i+1 == len(words):
			return append(front, w) // the library says that the value is missing
		default:
			i++
			front = append(front, w, words[i])
		}
	}
	return append(append(front, "--"), arguments...)
}

// takesValue reports whether the word after a flag is its value. A flag that
// nobody knows has none; the library refuses it.
func takesValue(flags []cli.Flag, word string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
	return slices.ContainsFunc(flags, func(f cli.Flag) bool {
		doc, ok := f.(cli.DocGenerationFlag)
		return ok && doc.TakesValue() && slices.Contains(f.Names(), name)
	})
}
