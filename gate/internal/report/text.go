package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// writeText writes the verdict for a terminal: worst kernel first, a line a
// finding, the figures, and the command that leads here again.
func writeText(w io.Writer, v *verdict.Verdict, o Options) error {
	t := &text{o: o}
	if !o.Quiet {
		t.body(v)
	}
	t.line("%s: %s", t.paint(v.Status.String(), v.Status), headline(v))
	_, err := w.Write(t.out.Bytes())
	return err
}

func (t *text) body(v *verdict.Verdict) {
	for _, b := range t.blocks(v.Kernels) {
		t.block(b)
	}
	t.figures(v)
	t.entries(v)
	t.evidence(v)
	t.waivers(v)
	for _, n := range v.Notes {
		if !slices.Contains(t.o.Announced, n) {
			t.line("note: %s", printable.Line(t.places(n)))
		}
	}
	t.line("reproduce: %s", printable.Line(v.Reproduce))
}

type text struct {
	out bytes.Buffer
	o   Options
}

func (t *text) line(format string, args ...any) {
	fmt.Fprintf(&t.out, format+"\n", args...)
}

var colours = map[verdict.Status]string{
	verdict.Fail: "31", verdict.Inconclusive: "33", verdict.Warn: "33", verdict.Pass: "32", verdict.NotCompared: "36",
}

func (t *text) paint(s string, status verdict.Status) string {
	if !t.o.Color {
		return s
	}
	return "\x1b[1;" + colours[status] + "m" + s + "\x1b[0m"
}

// A block is kernels of which the same is to be said.
type block struct {
	status            verdict.Status
	arch, state, text string
	names             []string
}

const (
	fewestJoined = 3 // fewer stand by themselves
	mostNamed    = 8
)

// blocks joins kernels with equal findings, and leaves each in its place
// otherwise.
func (t *text) blocks(kernels []verdict.KernelVerdict) []block {
	single := make([]block, len(kernels))
	same := map[string][]string{}
	key := func(b block) string { return fmt.Sprintf("%q", []string{b.status.String(), b.arch, b.state, b.text}) }
	for i, k := range kernels {
		state := string(k.State)
		if k.Was != "" {
			state += ", was " + k.Was
		}
		b := block{k.Status, k.Arch, state, t.findings(k), []string{k.Name}}
		single[i], same[key(b)] = b, append(same[key(b)], k.Name)
	}
	var out []block
	for _, b := range single {
		if names := same[key(b)]; b.text != "" && !t.o.Verbose && len(names) >= fewestJoined {
			if names[0] != b.names[0] {
				continue
			}
			b.names = names
		}
		out = append(out, b)
	}
	return out
}

func (t *text) block(b block) {
	arch, name := cmp.Or(printable.Line(b.arch), "—"), b.names[0]
	if b.state == string(verdict.Gone) {
		arch = "—"
	}
	if len(b.names) > 1 {
		name = plural(len(b.names), "kernel")
	}
	t.line("%s  %s  %s  %s", t.paint(fmt.Sprintf("%-12s", b.status), b.status), printable.Line(name), arch, printable.Line(b.state))
	if len(b.names) > 1 {
		named := strings.Join(b.names[:min(mostNamed, len(b.names))], ", ")
		if more := len(b.names) - mostNamed; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		t.line("  kernels: %s", printable.Line(named))
	}
	if b.text != "" {
		t.line("%s", b.text)
	}
}

// findings are the lines below a kernel's own.
func (t *text) findings(k verdict.KernelVerdict) string {
	below := &text{o: t.o}
	for _, g := range grouped(order(k.Findings)) {
		if !quiet(g.first) || t.o.Verbose {
			below.finding(g)
		}
	}
	for _, l := range k.Launches {
		below.line("  %-12s  launch  %s", printable.Line(l.Change), printable.Line(launch(l)))
	}
	if k.Detail != "" {
		below.line("    %s", strings.ReplaceAll(strings.TrimRight(printable.Text(t.places(k.Detail)), "\n"), "\n", "\n    "))
	}
	return below.out.String()
}

var place = regexp.MustCompile(`(?m)^(|In file included from )([^\s/(:"][^\s(:"]*)(\(\d+\)|:\d+)`)

// places shows names of files with a line, which are from the root, from the
// folder in which the command was started.
func (t *text) places(lines string) string {
	if t.o.Below == "" || t.o.Below == "." {
		return lines
	}
	return place.ReplaceAllStringFunc(lines, func(found string) string {
		m := place.FindStringSubmatch(found)
		if rel, err := filepath.Rel(t.o.Below, m[2]); err == nil {
			return m[1] + filepath.ToSlash(rel) + m[3]
		}
		return found
	})
}

// launch writes a launch as CUDA's brackets do.
func launch(l verdict.LaunchChange) string {
	name, _, _ := strings.Cut(l.Kernel, "(")
	text := fmt.Sprintf("%s  %s<<<(%d, %d, %d), (%d, %d, %d)>>>", l.Case, name, l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2])
	if l.Count > 1 {
		text += fmt.Sprintf(", %d times", l.Count)
	}
	return text
}

// quiet holds for what a reader need not know. Advice speaks up on proof only,
// and an improvement whatever else is said of its kernel.
func quiet(f verdict.Finding) bool {
	if f.Severity == verdict.Info {
		return f.Status != verdict.Fail
	}
	if f.Interval != nil && f.Interval.Improved {
		return false
	}
	return f.Status == verdict.Pass || f.Status == verdict.NotCompared
}

// A group is findings that say the same of several rules and cases.
type group struct {
	first        verdict.Finding
	rules, cases []string
}

// grouped joins findings without a figure that have one reason, so that one
// missing record is one line.
func grouped(findings []verdict.Finding) []group {
	type line struct {
		status   verdict.Status
		severity verdict.Severity
		reason   string
	}
	type name struct {
		group      int
		rule, kase string
	}
	var out []group
	lines, named := map[line]int{}, map[name]bool{}
	for _, f := range findings {
		l := line{f.Status, f.Severity, f.Reason}
		n, known := lines[l]
		if !known || hasFigure(f) {
			n = len(out)
			out = append(out, group{first: f})
			if !hasFigure(f) {
				lines[l] = n
			}
		}
		g := &out[n]
		if at := (name{group: n, rule: f.Rule}); !named[at] {
			named[at], g.rules = true, append(g.rules, f.Rule)
		}
		if at := (name{group: n, kase: f.Case}); f.Case != "" && !named[at] {
			named[at], g.cases = true, append(g.cases, f.Case)
		}
	}
	return out
}

func hasFigure(f verdict.Finding) bool { return f.Head != nil && f.Head.Known() }

func (t *text) finding(g group) {
	f := g.first
	word, shade := f.Status.String(), f.Status
	switch {
	case f.Severity == verdict.Info && f.Status == verdict.Fail:
		word, shade = string(verdict.Info), verdict.Warn
	case f.Severity == verdict.Warns && (f.Status == verdict.Fail || f.Status == verdict.Inconclusive):
		word, shade = verdict.Warn.String(), verdict.Warn
	}
	var parts []string
	single := len(g.rules) == 1
	if f.Metric != "" && single {
		parts = append(parts, f.Metric)
	}
	if f.Entry != "" && single {
		parts = append(parts, f.Entry)
	}
	if len(g.cases) > 0 {
		parts = append(parts, strings.Join(g.cases, ", "))
	}
	if move := movement(f); move != "" {
		parts = append(parts, move)
	}
	if f.Accepts != "" && single {
		parts = append(parts, f.Accepts)
	}
	where := ""
	if len(parts) > 0 {
		where = "  " + printable.Line(strings.Join(parts, "  "))
	}
	t.line("  %s  %s%s", t.paint(fmt.Sprintf("%-12s", word), shade), printable.Line(strings.Join(g.rules, ", ")), where)
	t.line("                %s", printable.Line(f.Reason))
	if seen := visible(f); seen != "" {
		t.line("                %s", printable.Line(seen))
	}
	if f.Interval != nil && f.Interval.Modes != nil {
		t.line("                %s", modes(f.Interval.Modes))
	}
	if f.Hint != "" {
		t.line("                hint: %s", printable.Line(f.Hint))
	}
}

// modes says where processes fall apart, and how the arms share the groups.
func modes(m *compare.Modes) string {
	text := fmt.Sprintf("the processes fall into two groups around %s: %.0f %% of the base's and %.0f %% of the head's are in the slow one (Fisher's exact p %.2g)",
		metric.Show(m.Split, "ns"), 100*m.BaseSlow, 100*m.HeadSlow, m.ShareP)
	if m.Fast != nil {
		text += "; " + compare.Percent(*m.Fast) + " in the fast one"
	}
	if m.Slow != nil {
		text += "; " + compare.Percent(*m.Slow) + " in the slow one"
	}
	return text
}

// visible says what a time that passes could not have hidden.
func visible(f verdict.Finding) string {
	switch {
	case f.Status != verdict.Pass:
		return ""
	case f.Noise != nil:
		return fmt.Sprintf("%s would be found with 90 %% probability, by the calibration of %s", compare.Percent(f.Noise.MDE90), f.Noise.Recorded)
	}
	return ""
}

// movement is "base → head" with units, or head and reference side by side.
func movement(f verdict.Finding) string {
	if !hasFigure(f) {
		return ""
	}
	head := metric.Show(f.Head.Number, f.Unit)
	if f.Base == nil || !f.Base.Known() {
		return head
	}
	base := metric.Show(f.Base.Number, f.Unit)
	if f.RelativeTo != "" {
		return head + " beside " + base + " of " + f.RelativeTo
	}
	return base + " → " + head
}

// A column of the table of figures.
type column struct{ title, metric, unit string }

var columns = []column{
	{"latency", "latency.typical", "ns"},
	{"cold", "latency.cold_typical", "ns"},
	{"% of the roof", "latency.roof", "%"},
	{"cold % of the roof", "latency.cold_roof", "%"},
	{"regs", "ptxas.registers", ""},
	{"spills", "ptxas.spill_bytes", "byte"},
	{"stack", "ptxas.stack_bytes", "byte"},
	{"occupancy", "ncu.achieved_occupancy", "%"},
	{"bank conflicts", "ncu.shared_bank_conflicts", ""},
	{"tensor pipe", "ncu.tensor_pipe_utilization", "%"},
	{"rel. error", "check.relative_error", ""},
}

// columnsOf leaves out shares of the roof where no op states its work.
func columnsOf(v *verdict.Verdict) []column {
	stated := map[string]bool{}
	for _, k := range v.Kernels {
		for _, c := range k.Figures {
			for name := range c.Metrics {
				stated[name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return strings.HasSuffix(c.metric, "roof") && !stated[c.metric] })
}

// figures prints the head's figures of every kernel and case, sorted by name.
// Architecture and machine are columns where there are several.
func (t *text) figures(v *verdict.Verdict) {
	kernels := slices.SortedStableFunc(slices.Values(v.Kernels), func(a, b verdict.KernelVerdict) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Arch, b.Arch))
	})
	var rows []row
	columns := columnsOf(v)
	for _, k := range kernels {
		rows = append(rows, rowsOf(k, columns)...)
	}
	if len(rows) == 0 {
		return
	}
	arches := differ(rows, func(r row) string { return r.arch })
	machines := differ(rows, func(r row) string { return r.machine })
	var buf bytes.Buffer
	tw := tabwriter.NewWriter(&buf, 0, 0, 2, ' ', 0)
	line := func(kernel, arch, kase, machine string, cells []string) {
		words := []string{kernel}
		if arches {
			words = append(words, arch)
		}
		words = append(words, kase)
		if machines {
			words = append(words, machine)
		}
		fmt.Fprintln(tw, strings.Join(append(words, cells...), "\t"))
	}
	var titles []string
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	line("kernel", "arch", "case", "machine", titles)
	for _, r := range rows {
		line(printable.Line(r.kernel), printable.Line(r.arch), cmp.Or(printable.Line(r.kase), "—"), cmp.Or(printable.Line(r.machine), "—"), r.cells)
	}
	tw.Flush()
	if !bytes.HasSuffix(t.out.Bytes(), []byte("\n\n")) {
		t.out.WriteByte('\n')
	}
	for _, l := range strings.Split(strings.TrimRight(buf.String(), "\n"), "\n") {
		t.line("%s", strings.TrimRight(l, " "))
	}
	t.out.WriteByte('\n')
}

// A row is the figures of one case on one machine.
type row struct {
	kernel, arch, kase, machine string
	cells                       []string
}

// rowsOf are those of a kernel. Of one that was measured, the compiler's figures
// stand beside the others.
func rowsOf(k verdict.KernelVerdict, columns []column) []row {
	var static evidence.Metrics
	for _, c := range k.Figures {
		if c.Case == "" {
			static = c.Metrics
		}
	}
	var rows []row
	for _, c := range k.Figures {
		if c.Case == "" && len(k.Figures) > 1 {
			continue
		}
		r := row{k.Name, k.Arch, c.Case, c.Machine, nil}
		for _, col := range columns {
			r.cells = append(r.cells, cell(static, c.Metrics, col.metric, col.unit))
		}
		rows = append(rows, r)
	}
	return rows
}

// differ reports whether rows have several values of something; none is no
// value.
func differ(rows []row, of func(row) string) bool {
	seen := ""
	return slices.ContainsFunc(rows, func(r row) bool {
		x := of(r)
		seen = cmp.Or(seen, x)
		return x != "" && x != seen
	})
}

func cell(static, metrics evidence.Metrics, name, unit string) string {
	v := metrics.Get(name)
	if strings.HasPrefix(name, "ptxas.") {
		v = static.Get(name)
	}
	if !v.Known() {
		return "—"
	}
	return metric.Show(v.Number, unit)
}

// evidence says on what the verdict rests.
func (t *text) evidence(v *verdict.Verdict) {
	c := v.Counts
	if len(v.Tiers) > 0 {
		t.line("tiers: only %s asked for; nothing else was judged", tiers(v.Tiers))
	}
	t.line("kernels: %d unchanged, %d changed, %d new, %d gone", c.Unchanged, c.Changed, c.New, c.Gone)
	t.line("evidence: %d measured now, %d reused, %d missing", c.Measured, c.Reused, c.Missing)
	for _, m := range v.Machines {
		when := m.Oldest
		if m.Newest != m.Oldest {
			when = m.Oldest + " to " + m.Newest
		}
		t.line("machine: %s (%s), evidence from %s", printable.Line(m.Description), printable.Line(m.Key), printable.Line(when))
	}
	t.line("%s", sides(v))
	t.line("policy: %s", judgedBy(v))
}

func sides(v *verdict.Verdict) string {
	head := "head: no commit"
	if v.Head.Commit != "" {
		head = "head: " + abbreviate(v.Head.Commit)
		if v.Head.Dirty {
			head += " with uncommitted changes"
		}
	}
	if v.Base.Commit == "" {
		return head + "; base: none (" + printable.Line(v.Base.Why) + ")"
	}
	return fmt.Sprintf("%s; base: %s (%s)", head, abbreviate(v.Base.Commit), printable.Line(v.Base.How))
}

func abbreviate(commit string) string { return printable.Line(commit[:min(12, len(commit))]) }
