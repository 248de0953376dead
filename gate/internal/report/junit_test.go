package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestJUnitIsRedWhenTheExitStatusIs reads every verdict back as a CI system
// does, and holds its colour to the exit status.
func TestJUnitIsRedWhenTheExitStatusIs(t *testing.T) {
	all := verdicts()
	tool := run(verdict.Pass, verdict.Counts{Kernels: 1, Passed: 1}, kernel("attention/a", verdict.Pass, passed("latency", "mission")))
	tool.ToolFailure = true
	all["tool"], all["empty"] = tool, &verdict.Verdict{Schema: verdict.Schema}
	warns := passed("latency", "mission")
	warns.Status, warns.Severity = verdict.Fail, verdict.Warns
	all["warns"] = run(verdict.Warn, verdict.Counts{Kernels: 1, Passed: 1}, kernel("attention/a", verdict.Warn, warns))
	for name, v := range all {
		text := render(t, v, Options{Format: "junit"})
		var got junitSuites
		if err := xml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(got.Suites) != len(v.Kernels)+1 {
			t.Errorf("%s: %d suites for %d kernels", name, len(got.Suites), len(v.Kernels))
		}
		red := 0
		for _, s := range got.Suites {
			red += s.Failures + s.Errors
			if s.Tests != len(s.Cases) {
				t.Errorf("%s: suite %s counts %d of %d tests", name, s.Name, s.Tests, len(s.Cases))
			}
		}
		if (red > 0) != (v.ExitCode() != exit.Pass) {
			t.Errorf("%s: %d red tests, exit status %d", name, red, v.ExitCode())
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' || r == '\u009b' }); i >= 0 {
			t.Errorf("%s: %q is not escaped", name, text[i:min(i+8, len(text))])
		}
	}
}

// TestJUnitStates holds what each status of a finding becomes.
func TestJUnitStates(t *testing.T) {
	for _, c := range []struct {
		status   verdict.Status
		severity verdict.Severity
		want     string
	}{
		{verdict.Pass, verdict.Red, ""}, {verdict.Fail, verdict.Red, "failure"}, {verdict.Inconclusive, verdict.Red, "error"},
		{verdict.NotCompared, verdict.Red, "skipped"}, {verdict.Fail, verdict.Warns, "warning"}, {verdict.Inconclusive, verdict.Warns, "warning"},
		{verdict.Fail, verdict.Info, "warning"}, {verdict.Status(9), verdict.Red, "error"},
	} {
		got := junitFinding(verdict.KernelVerdict{Name: "k"}, verdict.Finding{Rule: "r", Status: c.status, Severity: c.severity, Reason: "why"})
		var states []string
		for word, is := range map[string]bool{"failure": got.Failure != nil, "error": got.Error != nil, "skipped": got.Skipped != nil, "warning": got.Out == "warning: why"} {
			if is {
				states = append(states, word)
			}
		}
		if state := strings.Join(states, " "); state != c.want {
			t.Errorf("%v %v: %q, want %q", c.status, c.severity, state, c.want)
		}
	}
}
