// Package nvccflags decides which flags a kernel.yaml may hand to nvcc: a
// closed table of every option that nvcc 13.0.88 has, and one for each program
// that nvcc passes options on to. What no table lists is refused.
package nvccflags

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Refusal is the first flag of a list that does not reach nvcc.
type Refusal struct {
	Index int // in the list
	Msg   string
	Hint  string
}

// Check returns why a list of flags is refused, or nil. Each flag is one word
// of nvcc's command line; an option may have its value in the next one.
func Check(flags []string) *Refusal {
	for i, f := range flags {
		if r := characters(f); r != nil {
			r.Index = i
			return r
		}
	}
	for i := 0; i < len(flags); {
		used, r := nvcc.take(flags[i:])
		if r != nil {
			r.Index += i
			return r
		}
		i += used
	}
	return nil
}

// allowed are the characters beside letters and digits that a flag may hold.
// nvcc writes flags into commands for a shell, most of them without quotes, so
// this is a list of what means nothing there, at the start of a word either.
const allowed = "_-+.,=:/@"

func characters(flag string) *Refusal {
	if flag == "" {
		return refuse("a flag is empty")
	}
	for _, c := range flag {
		switch {
		case c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c)), strings.ContainsRune(allowed, c):
		case c == ' ' || c == '\t':
			return &Refusal{Msg: fmt.Sprintf("flag %q holds more than one word", flag),
				Hint: "make each word an entry of its own, or join an option and its value with ="}
		default:
			return refuse("flag %q holds %q: a shell reads nvcc's flags, so they hold letters, digits and %s alone", flag, c, allowed)
		}
	}
	return nil
}

// shellSigns are what a shell may act on in the name of a file, which nvcc
// writes into its commands as well.
const shellSigns = "$`;|&<>()*?~\\'\""

// BadName says why nvcc must not be given a file or folder of this name, or "".
func BadName(name string) string {
	for _, c := range name {
		if strings.ContainsRune(shellSigns, c) || unicode.IsControl(c) {
			return fmt.Sprintf("%q holds %q, on which the shell that nvcc starts could act", name, c)
		}
	}
	return ""
}

func refuse(format string, args ...any) *Refusal {
	return &Refusal{Msg: fmt.Sprintf(format, args...)}
}

// take reads the option that words begin with, and says how many words it used.
func (t *table) take(words []string) (used int, r *Refusal) {
	word := words[0]
	if !strings.HasPrefix(word, "-") {
		return 0, t.noOption(word)
	}
	o, name, rest, glue := t.find(word)
	switch {
	case o == nil:
		return 0, t.unknown(word)
	case o.refused != "":
		return 0, refuse("%s%s is refused: %s", t.in(), name, o.refused)
	case o.value.shown == "" && glue == apart:
		return 1, nil
	case o.value.shown == "":
		return 0, refuse("%s%s takes no value", t.in(), name)
	case glue != apart:
		return 1, t.value(o, name, rest)
	case o.glue&apart == 0:
		return 0, refuse("%s%s needs %s in the same word", t.in(), name, o.value.shown)
	case len(words) == 1:
		return 0, refuse("%s%s needs %s", t.in(), name, o.value.shown)
	}
	if r = t.value(o, name, words[1]); r != nil {
		r.Index = 1
	}
	return 2, r
}

// find is the option of a word: the whole word, the part before "=", or its
// first two characters, each where the program takes it so.
func (t *table) find(word string) (o *option, name, rest string, glue glue) {
	if o = t.named(word); o != nil {
		return o, word, "", apart
	}
	name, rest, _ = strings.Cut(word, "=")
	if o = t.named(name); o != nil && name != word && (o.refused != "" || o.value.shown == "" || o.glue&equals != 0) {
		return o, name, rest, equals
	}
	if len(word) > 2 {
		if o = t.named(word[:2]); o != nil && (o.glue&joined != 0 || strings.Contains(t.joined, word[:2])) {
			return o, word[:2], word[2:], joined
		}
	}
	return nil, "", "", 0
}

func (t *table) named(name string) *option {
	for i := range t.options {
		if slices.Contains(t.options[i].names, name) {
			return &t.options[i]
		}
	}
	return nil
}

func (t *table) value(o *option, name, v string) *Refusal {
	if o.value.phase != nil {
		return o.value.phase.all(strings.Split(v, ","))
	}
	parts := []string{v}
	if o.value.list {
		parts = strings.Split(v, ",")
	}
	for _, p := range parts {
		if !o.value.ok(p) {
			return refuse("%s%s takes %s, not %q", t.in(), name, o.value.shown, p)
		}
	}
	return nil
}

// all reads the words that an option such as -Xptxas passes on.
func (t *table) all(words []string) *Refusal {
	for len(words) > 0 {
		used, r := t.take(words)
		if r != nil {
			r.Index = 0 // all stand in one flag
			return r
		}
		words = words[used:]
	}
	return nil
}

// in names the phase that a message is about.
func (t *table) in() string {
	if t.passedBy == "" {
		return ""
	}
	return t.passedBy + ": "
}

func (t *table) noOption(word string) *Refusal {
	switch {
	case word == "":
		return refuse("%san option is empty", t.in())
	case strings.HasPrefix(word, "@"):
		return refuse("%s%q would read options from a file; flags stand in kernel.yaml", t.in(), word)
	case t.passedBy == "":
		return refuse("%q is not an option; kernel.yaml names files by its other keys, such as sources", word)
	}
	return refuse("%s%q is not an option of %s", t.in(), word, t.program)
}

func (t *table) unknown(word string) *Refusal {
	r := refuse("%s%q is not in gate's table of the options of %s", t.in(), word, t.program)
	var names []string
	for _, o := range t.options {
		names = append(names, o.names...)
	}
	name, _, _ := strings.Cut(word, "=")
	r.Hint = "gate/docs/flags.md lists them"
	if near := yamlfile.Nearest(name, names); near != "" && len(name) > 2 {
		r.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return r
}
