package policy

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

func TestARuleMaySetBothBounds(t *testing.T) {
	for _, keys := range []string{"id: a, metric: ptxas.registers, limit: 128, max_regression: 8, floor: 2", latencyRule + "limit: 8us, max_regression: 2%, floor: 50ns"} {
		r := parse(t, withRule(keys)).Rules[0]
		if !r.Limit.Set || !r.MaxRegression.Set || !r.Floor.Set || !r.Compares() {
			t.Errorf("%s: %+v", keys, r)
		}
	}
	if r := parse(t, withRule(latencyRule+"limit: 8us")).Rules[0]; r.Compares() {
		t.Error("a limit alone compares with the base")
	}
}

func TestSelection(t *testing.T) {
	r := parse(t, withRule(`id: a, metric: ncu.cycles, limit: 1, arch: ["sm_9*", "!sm_90"], cases: ["!long"]`)).Rules[0]
	for arch, want := range map[string]bool{"sm_90a": true, "sm_90": false, "sm_100": false} {
		if r.On(arch) != want {
			t.Errorf("on %s: %v", arch, !want)
		}
	}
	if r.At("long") || !r.At("small") || r.Of(Entry{"f()", "f"}) {
		t.Error("cases or entries")
	}
	r = parse(t, withRule(`id: a, metric: ptxas.registers, limit: 1, entries: ["attn_*", "*<float>*", "!attn_old"]`)).Rules[0]
	for _, c := range []struct {
		name, short string
		want        bool
	}{{"attn_fwd(float*)", "attn_fwd", true}, {"void attn_fwd<int>(float*)", "attn_fwd", true}, {"attn_old(int)", "attn_old", false}, {"void f<float>(int)", "f", true}, {"f(int)", "f", false}} {
		if r.Of(Entry{c.name, c.short}) != c.want {
			t.Errorf("%s: %v", c.name, !c.want)
		}
	}
}

func TestMachinesMayBeDeclared(t *testing.T) {
	p := parse(t, swap("[h200]", `[h200, {name: b200, match: "NVIDIA B200*"}, {name: any-h100}]`))
	if !slices.Equal(p.Machines, []Machine{{"h200", ""}, {"b200", "NVIDIA B200*"}, {"any-h100", ""}}) {
		t.Fatalf("%+v", p.Machines)
	}
	for _, c := range []struct {
		gpu  string
		want []bool
	}{{"NVIDIA H200", []bool{true, false}}, {"NVIDIA B200 SXM", []bool{false, true}}, {"nvidia b200", []bool{false, true}}, {"NVIDIA GB200", []bool{false, false}}} {
		for i, want := range c.want {
			if p.Machines[i].Is(evidence.Machine{GPU: c.gpu}) != want {
				t.Errorf("%s is %s: %v", c.gpu, p.Machines[i].Name, !want)
			}
		}
	}
}

func TestPresets(t *testing.T) {
	own := strings.Replace(small, "version: 1\n", "version: 1\nextends: standard\n", 1)
	p := parse(t, own)
	ids := func(p *Policy) (out []string) {
		for _, r := range p.Rules {
			out = append(out, r.ID)
		}
		return out
	}
	if got := ids(p); got[0] != "spills" || !p.Rules[0].Limit.Set || p.Rules[0].Preset != "" || !slices.Contains(got, "latency") || p.Rules[1].Preset != "standard" {
		t.Errorf("%q", got)
	}
	bare, _, _ := strings.Cut(own, "rules:")
	if p := parse(t, bare); len(p.Rules) != len(ids(p)) || p.Rules[0].ID != "spills" || p.Rules[0].Limit.Set {
		t.Errorf("without rules of its own: %q", ids(p))
	}
	for _, name := range presetNames() {
		if p := parse(t, strings.Replace(bare, "standard", name, 1)); len(p.Rules) == 0 {
			t.Errorf("preset %s is empty", name)
		}
	}
	if len(presetNames()) == 0 {
		t.Error("there is no preset")
	}
}

const tradeText = `
  - id: pay
    replaces: spills
    metric: ptxas.spill_bytes
    limit: 64
    when: {metric: latency.typical, min_improvement: 3%}
`

func TestTrade(t *testing.T) {
	p := parse(t, strings.TrimSuffix(small, "\n")+tradeText)
	r := p.Rules[1]
	if r.Replaces != "spills" || r.When == nil || r.When.Severity != verdict.Info || r.When.ID != "pay" || math.Abs(r.When.Bound.Limits.Detect+0.03) > 1e-12 || !r.When.Bound.Limits.Reference {
		t.Errorf("%+v, when %+v", r, r.When)
	}
}

func TestWaivers(t *testing.T) {
	p := parse(t, small+`waivers:
  - {rule: spills, kernel: a/b, ceiling: 64, until: 2027-03-01, owner: "@k", reason: "why"}
  - {rule: present, kernel: a/c, until: 2027-03-01, owner: "@k", reason: "gone"}
`)
	if len(p.Waivers) != 2 || p.Waivers[0].Ceiling.Number != 64 || p.Waivers[0].Line != 8 {
		t.Fatalf("%+v", p.Waivers)
	}
	for at, want := range map[string]int{"2027-02-27T23:59:00Z": 2, "2027-03-01T00:00:00Z": 0, "2027-03-01T23:59:59Z": 0, "2027-03-02T00:00:00Z": -1, "2027-03-10T12:00:00Z": -9} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Waivers[0].DaysLeft(now); got != want {
			t.Errorf("at %s: %d days left, want %d", at, got, want)
		}
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "36h": 36 * time.Hour} {
		if p := parse(t, swap("rules:", "max_age: "+text+"\nnew_ops: warn\nrules:")); p.MaxAge != want || p.NewOps != OnlyWarns {
			t.Errorf("%s: %v", text, p.MaxAge)
		}
	}
}

func TestLanguageRefuses(t *testing.T) {
	const two = "id: a, metric: ptxas.registers, "
	trade := func(old, new string) string {
		if strings.Count(tradeText, old) != 1 {
			panic(old)
		}
		return strings.TrimSuffix(small, "\n") + strings.Replace(tradeText, old, new, 1)
	}
	const held = `rule: spills, kernel: a/b, ceiling: 64, until: 2027-03-01, owner: "@k", reason: why`
	waived := func(old, new string) string {
		if strings.Count(held, old) != 1 {
			panic(old)
		}
		return small + "waivers:\n  - {" + strings.Replace(held, old, new, 1) + "}\n"
	}
	for _, c := range []struct{ name, text, want, hint string }{
		{"arch pattern", withRule(two + `limit: 1, arch: ["sm_["]`), `:6: rule "a": "sm_[" is not a pattern`, ""},
		{"empty pattern", withRule(two + `limit: 1, arch: ["!"]`), `:6: rule "a": "!" is not a pattern`, ""},
		{"cases of the compiler", withRule(two + `limit: 1, cases: [small]`), `:6: rule "a": ptxas.registers does not depend on a case`, ""},
		{"entries of a call", withRule(`id: a, metric: ncu.cycles, limit: 1, entries: [f]`), `:6: rule "a": ncu.cycles is of a whole call, not of one __global__ function`, "entries: goes with ptxas.*"},
		{"on_missing", withRule(two + `limit: 1, on_missing: pass`), `:6: rule "a": on_missing cannot be "pass"`, "inconclusive, fail or warn"},
		{"unchecked and warned", withRule(`id: a, metric: check.max_abs_error, limit: 1, on_missing: warn`), `:6: rule "a": a kernel that was never found correct has not earned anything`, ""},
		{"info ratio", withRule(latencyRule + "relative_to: r, limit: 1, severity: info"), `:6: rule "t": a ratio is measured for a rule that has a say, and one of severity info has none`, "warn is shown as well"},
		{"info time alone", withRule(latencyRule + "max_regression: 2%, severity: info"), `:6: rule "t": latency.typical is compared where a rule compares latency.typical or latency.mean with a base that is run`, ""},
		{"gain of a limit", withRule(two + "limit: 1, unexplained_gain: 5"), `:6: rule "a": unexplained_gain goes with max_regression`, ""},
		{"gain of a time in ns", withRule(latencyRule + "max_regression: 2%, unexplained_gain: 5us"), `:6: rule "t": unexplained_gain of 5us does not fit latency.typical`, "unexplained_gain: 30%"},
		{"gain where none is better", withRule("id: a, metric: ncu.waves, max_regression: 1, unexplained_gain: 1"), `:6: rule "a": ncu.waves has no gain`, ""},
		{"preset", swap("version: 1", "version: 1\nextends: standrad"), `:2: extends: "standrad" is not a preset, or is named twice`, `did you mean "standard"?`},
		{"preset twice", swap("version: 1", "version: 1\nextends: [static, static]"), `:2: extends: "static" is not a preset, or is named twice`, `did you mean "static"?`},
		{"machine without a name", swap("[h200]", `[{match: "NVIDIA B200"}]`), ":3: machines needs names, each once", ""},
		{"machine of two cases", swap("[h200]", `[h200, H200]`), ":3: machines needs names, each once", ""},
		{"machine's key", swap("[h200]", `[{name: b200, mtach: x}]`), `:3: unknown key "mtach"`, `did you mean "match"?`},
		{"machine's pattern", swap("[h200]", `[{name: b200, match: "["}]`), `:3: machines: "[" is not a pattern over the names of GPUs`, ""},
		{"age", swap("rules:", "max_age: 3 months\nrules:"), `:5: "3 months" is not an age: a number of hours (h), days (d) or weeks (w)`, "90d"},
		{"build_head", swap("rules:", "build_head: yes\nrules:"), `:5: build_head cannot be "yes"`, "never, touched or always"},
		{"new_ops", swap("rules:", "new_ops: fail\nrules:"), `:5: new_ops cannot be "fail"`, "inconclusive or warn"},
		{"trade without when", trade("    when: {metric: latency.typical, min_improvement: 3%}\n", ""), `:7: rule "pay": replaces and when go together`, "replaces: spills, when: {metric: latency.typical, min_improvement: 3%}"},
		{"trade for nothing known", trade("replaces: spills", "replaces: spill"), `:8: rule "pay": unknown rule "spill": there is nothing to replace`, `did you mean "spills"?`},
		{"trade on another metric", trade("ptxas.spill_bytes", "ptxas.stack_bytes"), `:8: rule "pay": a trade is on the metric of the rule that it replaces, ptxas.spill_bytes`, ""},
		{"trade of itself", trade("replaces: spills", "replaces: pay"), `:8: rule "pay": "pay" is a trade itself`, ""},
		{"trade of a time", strings.Replace(trade("ptxas.spill_bytes", "latency.mean"), "metric: ptxas.spill_bytes, limit: 0", "metric: latency.mean, max_regression: 2%", 1), `:10: rule "pay": a limit of 64 does not fit latency.mean, which is in ns`, ""},
		{"severe trade", trade("limit: 64", "limit: 64\n    severity: warn"), `:7: rule "pay": a trade has the severity, the entries and the rest of the rule that it replaces`, ""},
		{"when on nothing", trade("latency.typical", "latency.typcial"), `:11: rule "pay": unknown metric "latency.typcial"`, `did you mean "latency.typical"?`},
		{"when without amount", trade(", min_improvement: 3%", ""), `:11: rule "pay": when needs either min_improvement or limit`, "when: {metric: latency.typical, min_improvement: 3%}"},
		{"when in ns", trade("3%", "3ns"), `:11: rule "pay": min_improvement of 3ns does not fit latency.typical`, "3%"},
		{"when of 100 %", trade("3%", "100%"), `:11: rule "pay": 100% cannot be an improvement of a time`, "3%"},
		{"when of nothing", trade("3%", "0%"), `:11: rule "pay": min_improvement needs an amount above 0`, ""},
		{"when on a tail", trade("latency.typical", "latency.p99"), `:11: rule "pay": latency.p99 pays for nothing`, ""},
		{"when misspelt", trade("min_improvement", "min_improvment"), `:11: unknown key "min_improvment"`, `did you mean "min_improvement"?`},
		{"when on stored times", strings.Replace(trade("limit: 64", "limit: 64"), "rules:", "latency: {base: stored}\nrules:", 1), `:9: rule "pay": an improvement of a time is proven beside the base, which latency.base: stored does not run`, ""},
		{"waiver of nothing", waived("rule: spills", "rule: spill"), `:8: unknown rule "spill": there is nothing to waive`, `did you mean "spills"?`},
		{"waiver of correctness", waived("rule: spills", "rule: correctness"), `:8: rule "correctness" says that a kernel is correct, which no waiver hides`, ""},
		{"waiver of many kernels", waived("kernel: a/b", `kernel: "a/*"`), `:8: waiver 1 needs the name of one kernel, not "a/*"`, "kernel: attention/r11_fa2_mma"},
		{"waiver without ceiling", waived("ceiling: 64, ", ""), `:8: the waiver of rule "spills" needs a ceiling: the worst ptxas.spill_bytes that is accepted`, "ceiling: 168"},
		{"ceiling of another unit", waived("ceiling: 64", "ceiling: 1us"), `:8: a ceiling of 1us does not fit ptxas.spill_bytes, which is in byte`, ""},
		{"ceiling as a share", waived("ceiling: 64", "ceiling: 5%"), `:8: a ceiling of 5% is a share of the base's, and rule "spills" does not compare with the base`, ""},
		{"waiver without a day", waived("2027-03-01", "2027-02-30"), `:8: waiver 1: "2027-02-30" is not the last day on which it holds`, "until: 2027-03-01"},
		{"waiver without owner", waived(`owner: "@k", `, ""), `:8: waiver 1 has no owner`, "who answers for it"},
		{"waiver without reason", waived(`, reason: why`, `, reason: " "`), `:8: waiver 1 has no reason`, "why it is accepted"},
		{"waiver twice", waived("reason: why", "reason: why") + "  - {" + held + "}\n", `:9: rule "spills" of a/b is waived twice`, ""},
		{"waiver of another kernel", strings.Replace(waived("reason: why", "reason: why"), "limit: 0}", `limit: 0, kernels: ["c/*"]}`, 1), `:8: rule "spills" is not about a/b, so there is nothing to waive`, ""},
		{"present with a ceiling", waived("rule: spills", "rule: present"), `:8: rule "present" has no figure, so a waiver of it has no ceiling`, ""},
		{"waiver's key", waived("reason: why", "resaon: why"), `:8: unknown key "resaon"`, `did you mean "reason"?`},
	} {
		p, err := Parse([]byte(c.text), "policies.yaml")
		var e *yamlfile.Error
		if !errors.As(err, &e) || p != nil {
			t.Errorf("%s: got %v (policy: %v), want a *yamlfile.Error", c.name, err, p != nil)
			continue
		}
		if e.Error() != "policies.yaml"+c.want || e.Advice != c.hint {
			t.Errorf("%s: got  %s (hint %q)\nwant policies.yaml%s (hint %q)", c.name, e, e.Advice, c.want, c.hint)
		}
	}
}
