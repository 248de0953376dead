package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// places are the machines of each kernel's questions about a machine, by the
// policy's name and the known machine's model, "?" where none is known.
func places(p Plan) string {
	models := map[string]string{"": "?", h200.Key(): "h200", h100.Key(): "h100", a100.Key(): "a100"}
	var out []string
	seen := map[string]bool{}
	for _, q := range p.Questions {
		if q.Kind == Settled || q.Tier == evidence.Static {
			continue
		}
		text := fmt.Sprintf("%s %s@%s", q.Subject.Name, q.Machine, models[q.On])
		if !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func TestBindChoosesMachines(t *testing.T) {
	all := []evidence.Machine{h100, h200, a100}
	old := subject("op/old", verdict.Changed, "small")
	old.Arch = "sm_80"
	next := subject("op/next", verdict.Changed, "small")
	next.Arch = "sm_120"
	k := subject("op/k", verdict.Changed, "small")
	for _, c := range []struct {
		name     string
		machines []string
		known    []evidence.Machine
		holds    string // the model of which most is recorded
		want     string
	}{
		{"nothing is recorded", nil, nil, "", "op/k @?, op/old @?, op/next @?"},
		{"any machine that runs it", nil, all, "", "op/k @h100, op/old @a100, op/next @?"},
		{"the one of which most is recorded", nil, all, "h200", "op/k @h200, op/old @a100, op/next @?"},
		{"by its name", []string{"h200"}, all, "h100", "op/k h200@h200, op/old h200@?, op/next h200@?"},
		{"each by its name", []string{"h200", "h100"}, all, "", "op/k h200@h200, op/k h100@h100, op/old h200@?, op/old h100@?, op/next h200@?, op/next h100@?"},
		{"only those that can run it", []string{"h200", "a100"}, all, "", "op/k h200@h200, op/old a100@a100, op/next h200@?, op/next a100@?"},
		{"one that is not known", []string{"h200", "b300"}, all, "", "op/k h200@h200, op/k b300@?, op/old b300@?, op/next b300@?"},
		{"none that is known", []string{"h200"}, nil, "", "op/k h200@?, op/old h200@?, op/next h200@?"},
	} {
		holds := func(n *evidence.Need) bool { return c.holds != "" && strings.HasPrefix(n.At.Machine, c.holds) }
		got, err := Bound(policyOf(t, false, c.machines, rules...), []*Subject{k, old, next}, Options{Now: now}, c.known, holds)
		if err != nil || places(got) != c.want {
			t.Errorf("%s: got  %s, %v\nwant %s", c.name, places(got), err, c.want)
		}
		wellFormed(t, got)
		for _, q := range got.Questions {
			if (q.Kind == Settled || q.Tier == evidence.Static) && (q.On != "" || q.Machine != "") {
				t.Errorf("%s: %s is about a machine", c.name, q)
			}
		}
	}
}

// TestBindCountsWhatIsAskedFor: what is only shown, and what stands in, does not
// choose the machine; nor does a machine win by one record of two.
func TestBindCountsWhatIsAskedFor(t *testing.T) {
	p := policyOf(t, false, nil, "{id: waves, metric: ncu.waves, max_regression: 1}", "{id: latency, metric: latency.typical, max_regression: 2%}")
	subjects := []*Subject{subject("op/k", verdict.Changed, "small")}
	for name, c := range map[string]struct {
		h100, h200 func(*evidence.Need) bool
		want       string
	}{
		"calibrations and sessions": {
			func(n *evidence.Need) bool { return !n.Asked() },
			func(n *evidence.Need) bool { return n.Tier == evidence.Correctness }, "op/k @h200"},
		"one of two profiles": {
			func(n *evidence.Need) bool {
				return n.Tier == evidence.Profile && n.At.Identity == code("head", "op/k")
			},
			func(n *evidence.Need) bool { return n.Tier == evidence.Profile }, "op/k @h200"},
		"as much of both": {
			func(n *evidence.Need) bool { return n.Tier == evidence.Profile },
			func(n *evidence.Need) bool { return n.Tier == evidence.Profile }, "op/k @h100"},
	} {
		got, err := Bound(p, subjects, Options{Now: now}, []evidence.Machine{h100, h200}, func(n *evidence.Need) bool {
			if n.At.Machine == h100.Key() {
				return c.h100(n)
			}
			return n.At.Machine == h200.Key() && c.h200(n)
		})
		if err != nil || places(got) != c.want {
			t.Errorf("%s: %s, %v", name, places(got), err)
		}
	}
}

// TestOneMachineUnderTwoNamesIsAnError: its evidence would be judged twice.
func TestOneMachineUnderTwoNamesIsAnError(t *testing.T) {
	for _, names := range [][]string{{"h200", h200.Key()}, {h200.Key(), "a100", "H200"}} {
		p, subjects := policyOf(t, false, names, rules...), []*Subject{subject("op/k", verdict.Changed, "small")}
		_, err := Bound(p, subjects, Options{}, []evidence.Machine{a100, h200}, nothing)
		unknown, err3 := Bound(p, subjects, Options{}, []evidence.Machine{a100}, nothing)
		_, err2 := unknown.Move(h200, &evidence.Ledger{})
		for _, err := range []error{err, err2} {
			var bad *yamlfile.Error
			if !errors.As(err, &bad) || !strings.HasSuffix(err.Error(), "are one machine, NVIDIA H200") || bad.File != "policies.yaml" {
				t.Errorf("%v: %v", names, err)
			}
		}
		if err3 != nil {
			t.Errorf("%v: neither is known: %v", names, err3)
		}
	}
}

// TestMoveTakesTheWholeSubject: all figures of a kernel come from one machine, so
// what is answered elsewhere is asked again where one question is open.
func TestMoveTakesTheWholeSubject(t *testing.T) {
	open, done := subject("op/open", verdict.Changed, "small", "large"), subject("op/done", verdict.Changed, "small")
	old := subject("op/old", verdict.Changed, "small")
	old.Arch = "sm_80"
	fill := func(p Plan, l *evidence.Ledger, but string) {
		for _, q := range p.Questions {
			for _, n := range q.Needs {
				if q.Subject.Name != "op/old" && q.On != "" && (q.Name != but || q.Case != "large") && n.Tier != evidence.Static && n.Asked() {
					l.Put(recordAt(*n.Key), evidence.Reused)
				}
			}
		}
	}
	for _, c := range []struct {
		name     string
		machines []string
		to       evidence.Machine
		want     string
	}{
		{"to another machine", nil, h100, "op/open @h100, op/done @h200, op/old @a100"},
		{"to the same", nil, h200, "op/open @h200, op/done @h200, op/old @a100"},
		{"to another of the policy", []string{"h200", "h100", "a100"}, h100, "op/open h200@h200, op/open h100@h100, op/done h200@h200, op/done h100@h100, op/old h100@?, op/old a100@a100"},
		{"to one that it does not name", []string{"h200", "a100"}, h100, "op/open h200@h200, op/done h200@h200, op/old a100@a100"},
	} {
		known := []evidence.Machine{h200, a100}
		p, l := bound(t, policyOf(t, false, c.machines, rules...), Options{}, known, open, done, old), &evidence.Ledger{}
		fill(p, l, "bound")
		moved, err := p.Move(c.to, l)
		if err != nil || places(moved) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, places(moved), err, c.want)
		}
		wellFormed(t, moved)
		if next := moved.Next(l); next != nil {
			for _, task := range next.Tasks {
				if task.At.Machine != c.to.Key() {
					t.Errorf("%s: %+v is to be measured on another machine", c.name, task.Key)
				}
			}
		}
	}
	// A subject that has every answer stays where its evidence is.
	p, l := bound(t, policyOf(t, false, nil, rules...), Options{}, []evidence.Machine{h200}, open, done), &evidence.Ledger{}
	fill(p, l, "none")
	if moved, err := p.Move(h100, l); err != nil || places(moved) != "op/open @h200, op/done @h200" || p.Wants(h100, l) || moved.Next(l) != nil {
		t.Errorf("%s, %v", places(moved), err)
	}
}
