package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// attacks are what a change may put into any name, to be acted on by whoever
// shows a report.
var attacks = []string{
	"@maintainer", "#1", "o/r#1", "GH-7", "https://evil.example/x", "www.evil.example", "mail@evil.example", "[text](https://evil.example)",
	"![](https://evil.example/p.png)", "<img src=x onerror=alert(1)>", "<!-- gate:v1 key= -->", "<script>", "</details>", "`code`", "``two``", "`", "``` fence", "a|b", "\\", "\\|",
	"**bold**", "_it_", "~~no~~", "# head", "> quote", "- item", "1. item", "---", "===", "&lt;b&gt;", "&#64;user", "::error::x", "##[error]x", "%0A::error::x",
	"\n::error::x", "\r::error::x", "x\n\n# head", "\u202etxt", "\u200b", "\x00", "\x1b[2J", "\xff", "0123456789abcdef0123456789abcdef01234567", "```\n```", "$x^2$", ":tada:", "==x==", "[^1]: x", "[x]: y",
}

// hostileVerdict has an attack in every text.
func hostileVerdict(a string) *verdict.Verdict {
	k := kernel("attention/"+a, verdict.Fail, verdict.Finding{Rule: a, Metric: a, Unit: a, Case: a, Machine: a, Status: verdict.Fail, Severity: verdict.Red,
		Base: value(1, a), Head: value(2, a), Accepts: a, Reason: a, Hint: a})
	k.Name, k.Arch, k.State, k.Detail, k.Source, k.Line = a, a, verdict.State(a), a, a, 3
	k.Figures[1].Case, k.Figures[1].Machine = a, a
	k.Figures = append(k.Figures, verdict.CaseFigures{Case: a, Metrics: evidence.Metrics{"ptxas.registers": evidence.Of(1, a)}})
	v := run(verdict.Fail, verdict.Counts{Kernels: 1, Failed: 1}, k)
	v.Notes, v.Reproduce, v.Policy, v.Head.Commit = []string{a}, a, a, a
	v.Base = verdict.Side{Commit: a, How: a}
	v.Machines = []verdict.MachineRef{{Key: a, Description: a, Oldest: a, Newest: a}}
	return v
}

var (
	runs = regexp.MustCompile("`+")
	own  = regexp.MustCompile(`</?(?:details|summary|code)>`)
)

// withoutCode drops what stands between two equal runs of backticks, in which
// nothing is acted on.
func withoutCode(md string) string {
	var b strings.Builder
	md = withoutBlocks(md)
	for {
		at := runs.FindStringIndex(md)
		if at == nil {
			return b.String() + md
		}
		b.WriteString(md[:at[0]])
		fence, rest := md[at[0]:at[1]], md[at[1]:]
		end := -1
		for _, r := range runs.FindAllStringIndex(rest, -1) {
			if rest[r[0]:r[1]] == fence {
				end = r[1]
				break
			}
		}
		if end < 0 {
			return b.String() + fence + rest
		}
		b.WriteString("CODE")
		md = rest[end:]
	}
}

// withoutBlocks drops blocks of code, which end with the fence that they begin
// with.
func withoutBlocks(md string) string {
	var kept []string
	end := ""
	for _, l := range strings.Split(md, "\n") {
		fence, begins := strings.CutSuffix(l, "text")
		switch {
		case end != "":
			if l == end {
				end = ""
			}
		case begins && strings.Trim(fence, "`") == "" && len(fence) >= 3:
			end = fence
		default:
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

func TestNothingInAReportIsActedOn(t *testing.T) {
	acted := regexp.MustCompile("[@\\[\\]<`\\\\*_~&$]|://|www\\.|(?i:gh-[0-9])|:[a-z]+:|[0-9a-f]{40}")
	for _, a := range attacks {
		md := Markdown(hostileVerdict(a), OutputBytes)
		text := own.ReplaceAllString(withoutCode(md), "")
		if strings.Contains(a, "&") || strings.ContainsAny(a, "<") {
			text = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "&lt;", ""), "&gt;", ""), "&amp;", "")
		}
		for _, l := range strings.Split(text, "\n") {
			l = strings.ReplaceAll(l, "What the compiler says of", "")
			l = strings.TrimPrefix(l, "### ")
			if strings.HasPrefix(l, " ") && strings.Contains(md, "<summary>"+"What the compiler says of <code>") { // a name between tags: only its escapes count
				continue
			}
			if m := acted.FindString(l); m != "" || strings.HasPrefix(l, "#") {
				t.Errorf("%q: %q is acted on in %q", a, m, l)
			}
		}
		for _, bad := range []string{"\x1b", "\x00", "\u202e", "\u200b", "\r"} {
			if strings.Contains(md, bad) {
				t.Errorf("%q: the report holds %q", a, bad)
			}
		}
	}
}

// TestOnlyOurCommandsAreInTheLog: the runner acts on a line that begins with two
// colons, and on the older form anywhere.
func TestOnlyOurCommandsAreInTheLog(t *testing.T) {
	for _, a := range attacks {
		v := hostileVerdict(a)
		log := render(t, v, Options{Format: "github", Verbose: true})
		found := 0
		for _, l := range strings.Split(log, "\n") {
			if strings.Contains(l, "##[") {
				t.Errorf("%q: an older command in %q", a, l)
			}
			if !strings.HasPrefix(strings.TrimSpace(l), "::") {
				continue
			}
			if found++; !strings.HasPrefix(l, "::error file=") {
				t.Errorf("%q: a command in %q", a, l)
			}
			head, _, _ := strings.Cut(l[2:], "::")
			if parts := strings.Split(head, ","); len(parts) != 3 {
				t.Errorf("%q: %q has %d properties, want 3", a, l, len(parts))
			}
		}
		if found != 1 {
			t.Errorf("%q: %d commands, want 1", a, found)
		}
	}
}

// TestBudgetsHold with thousands of kernels, each with its own finding, and
// texts of any length.
func TestBudgetsHold(t *testing.T) {
	v := run(verdict.Fail, verdict.Counts{})
	for i := range 3000 {
		f := verdict.Finding{Rule: "latency", Status: verdict.Fail, Severity: verdict.Red, Reason: strings.Repeat("é", i%700), Head: value(float64(i), "ns"), Base: value(1, "ns")}
		v.Kernels = append(v.Kernels, kernel("attention/"+strings.Repeat("k", i%900)+string(rune('a'+i%26)), verdict.Fail, f))
	}
	v.Notes = []string{strings.Repeat("n", 90_000), strings.Repeat("@x ", 90_000)}
	for _, most := range []int{1000, 5000, CommentBytes, SummaryBytes} {
		if md := Markdown(v, most); len(md) > most || most > 5000 && (len(md) < most/3 || !strings.Contains(md, "more finding")) {
			t.Errorf("%d bytes of %d", len(md), most)
		}
	}
	if n := len(Annotations(v)); n != 3000 {
		t.Errorf("%d annotations", n)
	}
	if n := strings.Count(render(t, v, Options{Format: "github", Quiet: true}), "::error "); n != mostLogged {
		t.Errorf("%d commands", n)
	}
}

// TestWorstFirst: what a budget cuts off is what matters least.
func TestWorstFirst(t *testing.T) {
	slower := func(name string, by float64) verdict.KernelVerdict {
		return kernel(name, verdict.Fail, verdict.Finding{Rule: "latency", Status: verdict.Fail, Severity: verdict.Red, Reason: "slower",
			Interval: &verdict.Interval{Estimate: by, Low: by, High: by}})
	}
	open := kernel("open", verdict.Inconclusive, verdict.Finding{Rule: "latency", Severity: verdict.Red, Reason: "never timed"})
	v := run(verdict.Fail, verdict.Counts{}, kernel("fine", verdict.Pass, passed("latency", "a")), open, slower("little", 0.02), slower("much", 0.5),
		kernel("broken", verdict.Fail, verdict.Finding{Rule: "builds", Status: verdict.Fail, Severity: verdict.Red, Reason: "it does not compile"}))
	text := findingTable(v, 1<<16)
	last := -1
	for _, name := range []string{"`broken`", "`much`", "`little`", "`open`"} {
		if at := strings.Index(text, name); at <= last {
			t.Errorf("%s stands at %d, after %d\n%s", name, at, last, text)
		} else {
			last = at
		}
	}
	if a := Annotations(v); len(a) != 4 || !strings.HasPrefix(a[0].Title, "broken") {
		t.Errorf("%+v", a)
	}
}
