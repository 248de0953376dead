package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// asked names the questions of some rules: rule, kind, entry and case.
func asked(p Plan, rules ...string) string {
	var out []string
	for _, r := range rules {
		for _, q := range of(p, r) {
			words := []string{q.Name, string(q.Kind)}
			for _, w := range []string{q.Entry, q.Case, q.Stopped} {
				if w != "" {
					words = append(words, w)
				}
			}
			out = append(out, strings.Join(words, " "))
		}
	}
	return strings.Join(out, "; ")
}

// withEntries is a changed kernel whose sides hold these functions.
func withEntries(state verdict.State, head, base string) *Subject {
	s := subject("op/k", state, "small", "long")
	entries := func(names string) []policy.Entry {
		var out []policy.Entry
		for _, n := range strings.Fields(names) {
			out = append(out, policy.Entry{Name: n + "(int)", Short: n})
		}
		return out
	}
	s.Head.Entries, s.Base.Entries = entries(head), entries(base)
	return s
}

func TestWhatTheLanguageAsks(t *testing.T) {
	const trade = "{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, "
	const spills = "{id: a, metric: ptxas.spill_bytes, limit: 0}"
	for _, c := range []struct {
		name, rules string
		state       verdict.State
		want        string
	}{
		{"both bounds", "{id: a, metric: ptxas.registers, limit: 128, max_regression: 8}", verdict.Changed, "a limit; a regression"},
		{"both bounds of a time", "{id: a, metric: latency.typical, limit: 8us, max_regression: 2%, cases: [long]}", verdict.Changed, "a time limit long; a experiment long"},
		{"both bounds of what is new", "{id: a, metric: ptxas.registers, limit: 128, max_regression: 8}", verdict.New, "a limit; a new"},
		{"another architecture", "{id: a, metric: ptxas.registers, limit: 128, arch: [sm_100]}", verdict.Changed, ""},
		{"not this architecture", `{id: a, metric: ptxas.registers, limit: 128, arch: ["!sm_90"]}`, verdict.Changed, ""},
		{"this architecture", `{id: a, metric: ptxas.registers, limit: 128, arch: ["sm_9*"]}`, verdict.Changed, "a limit"},
		{"a case", `{id: a, metric: ncu.cycles, limit: 1, cases: ["!small"]}`, verdict.Changed, "a limit long"},
		{"each function", `{id: a, metric: ptxas.registers, limit: 128, entries: ["*"]}`, verdict.Changed, "a limit f(int); a limit g(int); a limit new(int)"},
		{"a new function", `{id: a, metric: ptxas.registers, max_regression: 8, entries: [g, new]}`, verdict.Changed, "a regression g(int); a new new(int)"},
		{"functions of what is unchanged", `{id: a, metric: ptxas.registers, max_regression: 8, entries: [g]}`, verdict.Unchanged, "a unchanged g(int)"},
		{"a trade", spills + ";" + trade + "when: {metric: latency.typical, min_improvement: 3%}}", verdict.Changed, "a limit; pay condition small; pay condition long"},
		{"a trade on one case", spills + ";" + trade + "when: {metric: latency.typical, min_improvement: 3%}, cases: [long]}", verdict.Changed, "a limit; pay condition long"},
		{"a trade by the compiler's figures", spills + ";" + trade + "when: {metric: ptxas.registers, min_improvement: 8}}", verdict.Changed, "a limit; pay condition"},
		{"nothing can have improved", spills + ";" + trade + "when: {metric: latency.typical, min_improvement: 3%}}", verdict.Unchanged, "a limit"},
		{"a bound of the new", spills + ";" + trade + "when: {metric: latency.typical, limit: 8us}}", verdict.New, "a limit; pay condition small; pay condition long"},
		{"a trade of a rule that is not asked", `{id: a, metric: ptxas.spill_bytes, limit: 0, arch: [sm_80]};` + trade + "when: {metric: latency.typical, min_improvement: 3%}}", verdict.Changed, ""},
		{"info asks", "{id: a, metric: ncu.cycles, max_regression: 1%, severity: info}", verdict.Changed, "a regression small; a regression long"},
	} {
		p := bound(t, policyOf(t, false, nil, strings.Split(c.rules, ";")...), Options{}, nil, withEntries(c.state, "f g new", "f g old"))
		if got := asked(p, "a", "pay"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestInfoCostsTheOthersNothing: a time without a say has no part in the error
// rate and asks for no measurement; the condition of a trade has both.
func TestInfoCostsTheOthersNothing(t *testing.T) {
	for _, c := range []struct {
		rules  string
		family int
	}{
		{"{id: t, metric: latency.typical, max_regression: 2%}", 1},
		{"{id: t, metric: latency.typical, max_regression: 2%};{id: a, metric: latency.mean, max_regression: 2%, severity: info}", 1},
		{"{id: t, metric: latency.typical, max_regression: 2%};{id: a, metric: latency.mean, max_regression: 2%, severity: warn}", 2},
		{"{id: a, metric: ptxas.spill_bytes, limit: 0};{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}", 1},
	} {
		p := bound(t, policyOf(t, false, nil, strings.Split(c.rules, ";")...), Options{}, nil, subject("op/k", verdict.Changed, "small"))
		if p.Family() != c.family {
			t.Errorf("%s: a family of %d, want %d", c.rules, p.Family(), c.family)
		}
		for _, q := range of(p, "a") {
			if q.Weight == verdict.Info && q.Need(evidence.Answers, evidence.Latency) != nil {
				t.Errorf("%s: %s asks for a measurement", c.rules, q)
			}
		}
	}
}

// TestTheTimeOfATradeIsTimed: the condition of a trade asks for times of its own state of
// the caches, which no other rule may be about.
func TestTheTimeOfATradeIsTimed(t *testing.T) {
	for _, when := range []string{"min_improvement: 3%", "limit: 8us"} {
		rules := []string{"{id: t, metric: latency.typical, max_regression: 2%}", "{id: a, metric: ptxas.spill_bytes, limit: 0}",
			"{id: pay, replaces: a, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.cold_typical, " + when + "}}"}
		p := bound(t, policyOf(t, false, nil, rules...), Options{}, nil, subject("op/k", verdict.Changed, "small"))
		if got := p.States(); !slices.Equal(got, []evidence.CacheState{evidence.Cold, evidence.Warm}) {
			t.Errorf("%s: %q are timed", when, got)
		}
		q := of(p, "pay")
		if n := q[0].Need(evidence.Answers, evidence.Latency); len(q) != 1 || n.State != evidence.Cold {
			t.Errorf("%s: %+v", when, n)
		}
	}
}

func TestTiersThatAreAskedFor(t *testing.T) {
	all := append([]string{"{id: pay, replaces: spills, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 3%}}"}, rules...)
	for _, c := range []struct {
		tiers []evidence.Tier
		kinds string
	}{
		{[]evidence.Tier{evidence.Static}, "pay condition small not asked for: the latency tier was left out; spills limit; registers regression"},
		{[]evidence.Tier{evidence.Static, evidence.Correctness}, "correctness correct small; growth regression small; pay condition small not asked for: the latency tier was left out; spills limit; registers regression"},
	} {
		p := bound(t, policyOf(t, false, nil, all...), Options{Tiers: c.tiers}, nil, subject("op/k", verdict.Changed, "small"))
		got := asked(p, "correctness", "growth", "pay", "spills", "registers", "occupancy", "latency", "mean", "bound", "tail", "ratio", "builds")
		if got != c.kinds {
			t.Errorf("%v: %s", c.tiers, got)
		}
		for _, q := range p.Questions {
			if len(p.lacks(&q, &evidence.Ledger{})) > 0 && len(c.tiers) == 1 {
				t.Errorf("%s needs a GPU", q)
			}
		}
	}
	p := bound(t, policyOf(t, false, nil, "{id: waves, metric: ncu.waves, max_regression: 10%}"), Options{Tiers: []evidence.Tier{evidence.Static}}, nil, subject("op/k", verdict.Changed, "small"))
	if q := of(p, "builds"); len(p.Questions) != 1 || len(q) != 1 || q[0].Cause != NotJudged {
		t.Errorf("a kernel that no rule judges: %+v", p.Questions)
	}
}

func TestOldEvidenceIsNotUsed(t *testing.T) {
	p := policyOf(t, false, nil, rules...)
	p.MaxAge = 48 * time.Hour
	for _, q := range bound(t, p, Options{}, nil, subject("op/k", verdict.Changed, "small")).Questions {
		for _, n := range q.Needs {
			aged := n.Tier != evidence.Static && n.Tier != evidence.Sessions && n.Tier != evidence.Calibration
			if aged && (n.Dated == nil || *n.Dated != evidence.Window{From: now.Add(-48 * time.Hour), Until: now}) || n.Tier == evidence.Static && n.Dated != nil {
				t.Errorf("%s: %+v", q, n)
			}
		}
	}
}

func TestWhatIsGoneOrNew(t *testing.T) {
	p := policyOf(t, false, nil, rules...)
	gone := subject("op/k", verdict.Gone)
	retired := subject("op/j", verdict.Gone)
	retired.Retired = Retired{Reason: "superseded"}
	lost := subject("op/l", verdict.Changed, "small")
	lost.Lost = []Loss{{Cause: GoneCase, Case: "long"}, {Cause: GoneEntry, Entry: "f()", Declared: Retired{Reason: "not called"}}}
	fresh := subject("op/m", verdict.New, "small")
	fresh.NewOp = &NewPart{Op: "m"}
	var got []string
	for _, q := range bound(t, p, Options{}, nil, gone, retired, lost, fresh).Questions {
		if q.Kind != Settled {
			continue
		}
		text := fmt.Sprintf("%s: %s", q, q.Cause)
		if q.Loss != nil && q.Loss.Declared.Reason != "" {
			text += ", " + q.Loss.Declared.Reason
		}
		got = append(got, text)
	}
	want := []string{
		"present (settled) of op/k for sm_90: the kernel is gone",
		"present (settled) of op/j for sm_90: the kernel is gone, superseded",
		"present (settled) of op/l for sm_90, case long: a case is gone",
		"present (settled) of op/l for sm_90, entry f(): a function is gone, not called",
		"op (settled) of op/m for sm_90: the base does not have the op",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
