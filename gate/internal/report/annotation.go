package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// An Annotation is what is said beside a line of a file about one kernel. Its
// texts are printable, and are escaped for where they go by whoever writes them.
type Annotation struct {
	Level string // failure, warning or notice, as GitHub calls them
	File  string
	Line  int // from 1; 0 where only the file is known
	Title string
	Text  string
}

// mostSaid bounds the findings of one annotation.
const mostSaid = 8

// Annotations are those of the kernels that do not pass, worst first.
func Annotations(v *verdict.Verdict) []Annotation {
	var out []Annotation
	for _, k := range worstFirst(v.Kernels) {
		var rules, lines []string
		left := 0
		for _, g := range grouped(order(k.Findings)) {
			if quiet(g.first) {
				continue
			}
			if len(lines) == mostSaid {
				left++
				continue
			}
			rules = append(rules, g.rules...)
			lines = append(lines, sentence(g.first))
		}
		if len(lines) == 0 {
			continue
		}
		if left > 0 {
			lines = append(lines, fmt.Sprintf("and %s", plural(left, "more finding")))
		}
		a := Annotation{Level: level(k.Status), File: cmp.Or(k.Source, k.File), Title: printable.Cut(k.Name+": "+strings.Join(rules, ", "), 200),
			Text: strings.Join(lines, "\n")}
		if k.Source != "" {
			a.Line = k.Line
		}
		out = append(out, a)
	}
	return out
}

func level(s verdict.Status) string {
	switch s {
	case verdict.Fail:
		return "failure"
	case verdict.Pass, verdict.NotCompared:
		return "notice"
	}
	return "warning"
}

// mostLogged are the annotations of one kind that GitHub shows of a step.
const mostLogged = 10

var commands = map[string]string{"failure": "error", "warning": "warning", "notice": "notice"}

var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// writeLog writes the report for the log of a step: the text, in which nothing
// is a command, then annotations as commands, and the last line of the text.
func writeLog(w io.Writer, v *verdict.Verdict, o Options) error {
	t := &text{o: o}
	if !o.Quiet {
		t.body(v)
	}
	out := noCommands(t.out.String())
	logged, left := map[string]int{}, 0
	for _, a := range Annotations(v) {
		if logged[a.Level]++; logged[a.Level] > mostLogged {
			left++
			continue
		}
		out += commandOf(a)
	}
	if left > 0 {
		out += fmt.Sprintf("and %s above that are not annotated\n", plural(left, "kernel"))
	}
	out += fmt.Sprintf("%s: %s\n", v.Status, headline(v))
	_, err := io.WriteString(w, out)
	return err
}

// commandOf is an annotation as a command of the log.
func commandOf(a Annotation) string {
	at := ""
	if a.File != "" {
		at = "file=" + commandProperty.Replace(printable.Line(a.File)) + ","
		if a.Line > 0 {
			at += fmt.Sprintf("line=%d,", a.Line)
		}
	}
	return strings.ReplaceAll(fmt.Sprintf("::%s %stitle=%s::%s\n", commands[a.Level], at, commandProperty.Replace(printable.Line(a.Title)),
		commandText.Replace(printable.Text(a.Text))), "##[", "# #[")
}

// noCommands breaks up what the runner would take for a command: two colons at
// the beginning of a line, and the older form anywhere.
func noCommands(text string) string {
	lines := strings.SplitAfter(strings.ReplaceAll(text, "##[", "# #["), "\n")
	for i, l := range lines {
		if trimmed := strings.TrimLeft(l, " \t\u00a0"); strings.HasPrefix(trimmed, "::") {
			lines[i] = strings.Replace(l, "::", ": :", 1)
		}
	}
	return strings.Join(lines, "")
}
