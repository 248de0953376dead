// Package report renders a verdict. A renderer decides nothing: it is a
// function of the verdict alone, and fails only when writing does.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Formats are the names that Write knows, and Listings those of everything
// that is not a verdict.
var (
	Formats  = []string{"text", "json", "junit", "markdown", "github"}
	Listings = Formats[:2:2]
)

// Options say how a report may look.
type Options struct {
	Format    string
	Color     bool
	Verbose   bool     // passing findings too, and every kernel by itself
	Quiet     bool     // of a text, the last line only
	Below     string   // of a text: the folder, from the root, that names of files are shown from
	Announced []string // notes that the same reader has read already
}

// Write renders the verdict in one format.
func Write(w io.Writer, v *verdict.Verdict, o Options) error {
	switch o.Format {
	case "", "text":
		return writeText(w, v, o)
	case "markdown":
		_, err := io.WriteString(w, Markdown(v, mostMarkdown))
		return err
	case "github":
		return writeLog(w, v, o)
	case "json":
		data, err := v.Encode()
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case "junit":
		return writeJUnit(w, v)
	}
	return fmt.Errorf("unknown format %q: known are %s", o.Format, strings.Join(Formats, ", "))
}

// headline says in one line what the run came to.
func headline(v *verdict.Verdict) string {
	text := summary(v)
	if v.ToolFailure {
		text += ", and a tool failed"
	}
	return text
}

func summary(v *verdict.Verdict) string {
	c := v.Counts
	kernels := plural(c.Kernels, "kernel")
	switch v.Status {
	case verdict.Fail:
		return fmt.Sprintf("%d of %s failed", c.Failed, kernels)
	case verdict.Pass:
		return fmt.Sprintf("%s passed", kernels)
	case verdict.Warn:
		return fmt.Sprintf("%s passed, with warnings", kernels)
	}
	if c.Kernels == 0 {
		return "no kernel was judged"
	}
	return fmt.Sprintf("%d of %s could not be decided", c.Undecided, kernels)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// order puts findings worst first and keeps the policy's order among equals.
func order(findings []verdict.Finding) []verdict.Finding {
	var by [5][]verdict.Finding
	for _, f := range findings {
		n := len(by) - 1 - weight(f)
		by[n] = append(by[n], f)
	}
	return slices.Concat(by[:]...)
}

func weight(f verdict.Finding) int {
	switch {
	case f.Severity == verdict.Info:
		return 0
	case f.Status == verdict.Fail && f.Severity != verdict.Warns:
		return 4
	case f.Status == verdict.Inconclusive && f.Severity != verdict.Warns:
		return 3
	case f.Status != verdict.Pass && f.Severity == verdict.Warns:
		return 2
	case f.Status == verdict.Pass:
		return 1
	}
	return 0
}
