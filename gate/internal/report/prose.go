package report

import (
	"regexp"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// A word stands as it is in Markdown when it holds nothing that Markdown, HTML
// or GitHub acts on. GitHub makes links of names after @, numbers after #, digests
// of commits and addresses without any mark-up, so that escaping does not help.
var (
	plainWord = regexp.MustCompile(`^[\pL\pN.,;%'"?!+()→←±×·µ≤≥—–…-]+(?:_[\pL\pN]+)*[:,;.]?$`)
	linked    = regexp.MustCompile(`(?i)^\W*(?:www\.|[a-z][a-z0-9+.-]*:/|gh-[0-9]|[0-9a-f]{7,64}\W*$)`)
	listStart = regexp.MustCompile(`^(?:[-+=:.]|[0-9]+[.)]$)`)
)

// prose writes a sentence into a paragraph or a cell: what is not plain stands
// as code.
func prose(s string) string {
	var words []string
	for i, w := range strings.Fields(printable.Line(s)) {
		if !plainWord.MatchString(w) || linked.MatchString(w) || i == 0 && listStart.MatchString(w) {
			end := len(strings.TrimRight(w, ",;.:"))
			w = code(w[:end]) + w[end:]
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// code writes a name as code. The fence is longer than any in the name, and a
// bar does not end a cell.
func code(s string) string {
	s = printable.Line(s)
	if strings.TrimSpace(s) == "" {
		return ""
	}
	fence, run := "`", ""
	for _, r := range s + " " {
		if r == '`' {
			run += "`"
			continue
		}
		if len(run) >= len(fence) {
			fence = run + "`"
		}
		run = ""
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + strings.ReplaceAll(s, "|", `\|`) + fence
}

// fenced writes lines as a block of code.
func fenced(text string) string {
	text = strings.TrimRight(printable.Text(text), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + text + "\n" + fence + "\n"
}
