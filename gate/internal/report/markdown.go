package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// Budgets of bytes. GitHub counts characters, of which a byte is never more.
const (
	CommentBytes = 65_000   // of an issue's comment
	OutputBytes  = 65_000   // of a check's summary and of its text
	SummaryBytes = 1 << 20  // of a step's summary
	mostMarkdown = 16 << 20 // of --format markdown
)

var symbols = map[verdict.Status]string{
	verdict.Fail: "❌", verdict.Inconclusive: "⚠️", verdict.Warn: "⚠️", verdict.Pass: "✅", verdict.NotCompared: "🆕",
}

// Title says in one line what the run came to, and the largest slowdown among
// what failed.
func Title(v *verdict.Verdict) string {
	text, worst := headline(v), 0.0
	for _, k := range v.Kernels {
		worst = max(worst, slowdown(k))
	}
	if worst > 0 {
		text += fmt.Sprintf(", the slowest by %.1f %%", 100*worst)
	}
	return text
}

// slowdown is the largest one of a kernel among what failed, 0 for none.
func slowdown(k verdict.KernelVerdict) float64 {
	worst := 0.0
	for _, f := range k.Findings {
		if f.Status == verdict.Fail && f.Severity == verdict.Red && f.Interval != nil && f.RelativeTo == "" {
			worst = max(worst, f.Interval.Estimate)
		}
	}
	return worst
}

// gravity orders kernels of one status: what is broken otherwise than by its time
// comes before what is slower, and that by how much.
func gravity(k verdict.KernelVerdict) float64 {
	for _, f := range k.Findings {
		if f.Status == verdict.Fail && f.Severity == verdict.Red && f.Interval == nil {
			return math.Inf(1)
		}
	}
	return slowdown(k)
}

// worstFirst puts kernels in the order in which a budget keeps them.
func worstFirst(kernels []verdict.KernelVerdict) []verdict.KernelVerdict {
	rank := map[verdict.Status]int{verdict.Fail: 3, verdict.Inconclusive: 2, verdict.Warn: 1}
	sorted := slices.Clone(kernels)
	slices.SortStableFunc(sorted, func(a, b verdict.KernelVerdict) int {
		return cmp.Or(cmp.Compare(rank[b.Status], rank[a.Status]), cmp.Compare(gravity(b), gravity(a)))
	})
	return sorted
}

// Markdown is the whole report in at most so many bytes: the headline, what
// does not pass, worst first, then what the verdict rests on, and all figures
// as far as they fit. What was left out is counted.
func Markdown(v *verdict.Verdict, most int) string {
	head := fmt.Sprintf("### %s %s: %s\n\n", symbols[v.Status], v.Status, prose(Title(v)))
	tail := basis(v) + reproduction(v)
	table := findingTable(v, most-len(head)-len(tail))
	text := head + table + tail
	for _, k := range v.Kernels {
		if said := details("What the compiler says of "+html(k.Name), fencedWithin(k.Detail, mostDetail)); len(text)+len(said) <= most {
			text += said
		}
	}
	if figures := details("All figures", figureTable(v, most-len(text)-200)); len(text)+len(figures) <= most {
		text += figures
	}
	return bounded(text, most)
}

// bounded is the last guard of a budget: notes and names can be of any length.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const more = "\n\n… and more, which is left out\n"
	return strings.ToValidUTF8(text[:max(0, most-len(more))], "") + more
}

// findingTable is the table of what does not pass, in at most so many bytes.
func findingTable(v *verdict.Verdict, most int) string {
	rows := findingRows(v)
	if len(rows) == 0 {
		return ""
	}
	const header = "| | kernel | rule | case | base → head | accepted | why |\n|---|---|---|---|---|---|---|\n"
	var b strings.Builder
	b.WriteString(header)
	for i, r := range rows {
		if left := fmt.Sprintf("\n… and %s\n\n", plural(len(rows)-i, "more finding")); b.Len()+len(r)+len(left)+40 > most {
			b.WriteString(left)
			return b.String()
		}
		b.WriteString(r)
	}
	b.WriteString("\n")
	return b.String()
}

// findingRows are the rows of what does not pass. Kernels of which the same is
// to be said share their rows.
func findingRows(v *verdict.Verdict) []string {
	t := &text{}
	var rows []string
	type name struct{ kernel, arch string }
	named := map[name]verdict.KernelVerdict{}
	for _, k := range v.Kernels {
		named[name{k.Name, k.Arch}] = k
	}
	for _, b := range t.blocks(worstFirst(v.Kernels)) {
		if b.text == "" {
			continue
		}
		k, cell := named[name{b.names[0], b.arch}], kernelCell(b)
		for _, g := range grouped(order(k.Findings)) {
			if quiet(g.first) {
				continue
			}
			rows = append(rows, findingRow(cell, g))
			cell = "" // once is enough
		}
	}
	return rows
}

func kernelCell(b block) string {
	name := code(b.names[0])
	if len(b.names) > 1 {
		var names []string
		for _, n := range b.names[:min(mostNamed, len(b.names))] {
			names = append(names, code(n))
		}
		name = plural(len(b.names), "kernel") + ": " + strings.Join(names, ", ")
		if more := len(b.names) - mostNamed; more > 0 {
			name += fmt.Sprintf(" and %d more", more)
		}
	}
	return name + " " + prose(b.arch) + ", " + prose(b.state)
}

// mostReason bounds the characters of a reason in a cell; the log has all of it.
const mostReason = 400

// unbroken keeps a number and its unit on one line.
var unbroken = strings.NewReplacer(" ns", "\u00a0ns", " µs", "\u00a0µs", " ms", "\u00a0ms", " B", "\u00a0B", " %", "\u00a0%")

func findingRow(kernel string, g group) string {
	f, accepts := g.first, ""
	if len(g.rules) == 1 {
		accepts = f.Accepts
	}
	why := prose(printable.Cut(f.Reason, mostReason))
	if f.Hint != "" {
		why += ". " + prose(f.Hint)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", symbols[shown(f)], kernel, codes(g.rules), codes(g.cases),
		unbroken.Replace(prose(movement(f)+change(f))), prose(accepts), why)
}

// shown is the status by which a finding weighs.
func shown(f verdict.Finding) verdict.Status {
	if f.Severity != verdict.Red && f.Status == verdict.Fail {
		return verdict.Warn
	}
	return f.Status
}

func codes(names []string) string {
	var out []string
	for _, n := range names[:min(mostNamed, len(names))] {
		out = append(out, code(n))
	}
	text := strings.Join(out, ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// mostNotes bounds the notes of a report for a reader in a hurry.
const mostNotes = 20

// basis says what was compared and on what evidence.
func basis(v *verdict.Verdict) string {
	c := v.Counts
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d unchanged, %d changed, %d new, %d gone. Evidence: %d measured now, %d reused, %d missing.\n\n",
		plural(c.Kernels, "kernel"), c.Unchanged, c.Changed, c.New, c.Gone, c.Measured, c.Reused, c.Missing)
	for i, n := range v.Notes {
		if i == mostNotes {
			fmt.Fprintf(&b, "- and %s\n", plural(len(v.Notes)-i, "more note"))
			break
		}
		fmt.Fprintf(&b, "- %s\n", prose(printable.Cut(n, 600)))
	}
	if len(v.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, m := range v.Machines {
		fmt.Fprintf(&b, "Machine: %s (%s), evidence from %s to %s.\n", prose(m.Description), code(m.Key), prose(m.Oldest), prose(m.Newest))
	}
	base := "none (" + prose(v.Base.Why) + ")"
	if v.Base.Commit != "" {
		base = code(abbreviate(v.Base.Commit)) + " (" + prose(v.Base.How) + ")"
	}
	fmt.Fprintf(&b, "Head: %s. Base: %s. Policy: %s.\n\n", cmp.Or(code(abbreviate(v.Head.Commit)), "no commit"), base, code(v.Policy))
	return b.String()
}

func reproduction(v *verdict.Verdict) string {
	if v.Reproduce == "" {
		return ""
	}
	return "Again at a desk: " + code(v.Reproduce) + "\n\n"
}

// mostDetail bounds the compiler's lines on one kernel.
const mostDetail = 4000

func fencedWithin(text string, most int) string {
	if text == "" {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "\n…"
	}
	return fenced(text)
}

func details(summary, body string) string {
	if body == "" {
		return ""
	}
	return "<details><summary>" + summary + "</summary>\n\n" + body + "\n</details>\n"
}

// figureTable is the table of all figures, as far as it fits.
func figureTable(v *verdict.Verdict, most int) string {
	var b bytes.Buffer
	columns := columnsOf(v)
	b.WriteString("| kernel | arch | case | machine |")
	rule := "|---|---|---|---|"
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
		rule += "--:|"
	}
	b.WriteString("\n" + rule + "\n")
	n := 0
	for _, k := range v.Kernels {
		for _, r := range rowsOf(k, columns) {
			line := fmt.Sprintf("| %s | %s | %s | %s | %s |\n", code(r.kernel), prose(r.arch), code(r.kase), code(r.machine), strings.Join(r.cells, " | "))
			if b.Len()+len(line) > most {
				return ""
			}
			b.WriteString(line)
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return b.String()
}

// html is a name between tags.
func html(s string) string {
	return "<code>" + template.HTMLEscapeString(printable.Line(s)) + "</code>"
}

// change is the movement of a finding in percent, where a time was compared.
func change(f verdict.Finding) string {
	if f.Interval != nil && f.RelativeTo == "" {
		return " (" + compare.Percent(f.Interval.Estimate) + ")"
	}
	if f.Base != nil && f.Head != nil && f.Base.Known() && f.Head.Known() && f.Base.Number > 0 && f.RelativeTo == "" {
		return fmt.Sprintf(" (%+.1f %%)", 100*(f.Head.Number/f.Base.Number-1))
	}
	return ""
}

// figures of a finding in words for a note beside a line of code.
func sentence(f verdict.Finding) string {
	text := f.Rule
	if f.Case != "" {
		text += ", case " + f.Case
	}
	if move := movement(f); move != "" {
		text += ": " + move + change(f)
	} else if f.Metric != "" {
		text += ": " + f.Metric
	}
	if f.Accepts != "" {
		text += "; " + f.Accepts
	}
	return printable.Line(text + ": " + f.Reason)
}
