package report

import (
	"cmp"
	"encoding/xml"
	"io"
	"strings"

	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// The layout that CI systems call JUnit XML. They count failures and errors
// alike as red.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Failure *junitState `xml:"failure"`
	Error   *junitState `xml:"error"`
	Skipped *junitState `xml:"skipped"`
	Out     string      `xml:"system-out,omitempty"`
}

type junitState struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes a suite for each kernel, with a test for each finding. The
// first suite is the verdict itself, so that the whole is red whenever the exit
// status is not 0, whatever the findings say.
func writeJUnit(w io.Writer, v *verdict.Verdict) error {
	whole := junitCase{Class: "gate", Name: "verdict"}
	whole.set(exitStatus(v), headline(v), strings.Join(v.Notes, "\n"))
	out := junitSuites{Suites: []junitSuite{suite("gate", []junitCase{whole})}}
	for _, k := range v.Kernels {
		var cases []junitCase
		for _, f := range order(k.Findings) {
			cases = append(cases, junitFinding(k, f))
		}
		out.Suites = append(out.Suites, suite(strings.TrimSpace(printable.Line(k.Name+" "+k.Arch)), cases))
	}
	data, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write([]byte(xml.Header + string(data) + "\n"))
	return err
}

// exitStatus is the status that the exit status stands for.
func exitStatus(v *verdict.Verdict) verdict.Status {
	if v.ToolFailure && v.Status != verdict.Fail {
		return verdict.Inconclusive
	}
	return v.Status
}

func junitFinding(k verdict.KernelVerdict, f verdict.Finding) junitCase {
	var names []string
	for _, part := range []string{f.Rule, f.Metric, f.Entry, f.Case, f.RelativeTo, f.Machine} {
		if part != "" {
			names = append(names, printable.Line(part))
		}
	}
	c := junitCase{Class: printable.Line(k.Name), Name: strings.Join(names, " ")}
	var lines []string
	for _, line := range []string{movement(f), f.Accepts, f.Hint, k.Detail} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	status := f.Status
	if f.Severity != verdict.Red && (status == verdict.Fail || status == verdict.Inconclusive) {
		status = verdict.Warn
	}
	c.set(status, f.Reason, strings.Join(lines, "\n"))
	return c
}

// set enters what a status means to a reader of JUnit XML.
func (c *junitCase) set(status verdict.Status, reason, text string) {
	s := &junitState{Message: cmp.Or(printable.Line(reason), status.String()), Text: printable.Text(text)}
	switch status {
	case verdict.Pass:
	case verdict.Warn:
		c.Out = "warning: " + s.Message
	case verdict.NotCompared:
		c.Skipped = s
	case verdict.Fail:
		c.Failure = s
	default:
		c.Error = s
	}
}

func suite(name string, cases []junitCase) junitSuite {
	s := junitSuite{Name: name, Tests: len(cases), Cases: cases}
	for _, c := range cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	return s
}
