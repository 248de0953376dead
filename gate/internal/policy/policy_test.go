package policy

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

const small = `version: 1
kernels: kernels/**/kernel.yaml
machines: [h200]
store: kernels/evidence
rules:
  - {id: spills, metric: ptxas.spill_bytes, limit: 0}
`

// withRule is small with another rule: its keys.
func withRule(keys string) string {
	return strings.Replace(small, "{id: spills, metric: ptxas.spill_bytes, limit: 0}", "{"+keys+"}", 1)
}

func parse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text), "policies.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func TestParse(t *testing.T) {
	p := parse(t, `version: 1
kernels: [kernels/**/kernel.yaml, "!kernels/fixtures/**"]
store: s3
latency: {profile: strict, budget: 90s}
after_failure: continue
rules:
  - {id: spills, metric: ptxas.spill_bytes, limit: 1KiB, severity: warn}
  - id: latency
    metric: latency.typical
    max_regression: 2%
    floor: 0.05us
    kernels: ["a/*", "!a/b"]
`)
	strict, _ := compare.Profile("strict")
	if p.File != "policies.yaml" || fmt.Sprint(p.Kernels) != "[kernels/**/kernel.yaml !kernels/fixtures/**]" || p.Machines != nil || p.NewOps != LeftOpen || p.MaxAge != 0 || p.Store != "s3" ||
		p.Limits != strict || p.Budget != 90*time.Second || p.AfterFailure != Continue || len(p.Rules) != 2 {
		t.Errorf("%+v", p)
	}
	spills, _ := metric.Lookup("ptxas.spill_bytes")
	if want := (Rule{ID: "spills", Metric: spills, Limit: Amount{1024, "byte", "1KiB", true}, Severity: verdict.Warns, OnMissing: LeftOpen, OnUndecided: LeftOpen, Line: 7}); !reflect.DeepEqual(p.Rules[0], want) {
		t.Errorf("got  %+v\nwant %+v", p.Rules[0], want)
	}
	if r := p.Rules[1]; r.MaxRegression.Number != 0.02 || r.Floor.Number != 50 || r.Floor.Unit != "ns" || r.Severity != verdict.Red || r.Line != 8 || r.Limit.Set {
		t.Errorf("%+v", r)
	}
	p = parse(t, small)
	standard, _ := compare.Profile("standard")
	if p.Limits != standard || p.Budget != 2*time.Minute || p.AfterFailure != Stop || fmt.Sprint(p.Kernels) != "[kernels/**/kernel.yaml]" {
		t.Errorf("defaults: %+v", p)
	}
	p = parse(t, strings.Replace(small, "rules:", "latency: {tolerance: 1%, detect: 4%}\nrules:", 1))
	if p.Limits.Tolerance != 0.01 || p.Limits.Detect != 0.04 {
		t.Errorf("limits %+v", p.Limits)
	}
}

func TestParseTimes(t *testing.T) {
	p := parse(t, swap("rules:", "latency: {base: stored, gpu_budget: 20s}\nrules:"))
	if !p.Stored || p.GPUBudget != 20*time.Second {
		t.Errorf("%+v", p)
	}
	p = parse(t, withRule(`id: r, metric: latency.cold_mean, relative_to: sdpa, limit: 50%, kernels: ["a/*"]`))
	r := p.Rules[0]
	if p.Stored || p.GPUBudget != 0 || !slices.Equal(r.RelativeTo, []string{"sdpa"}) || r.Limit.Number != 0.5 {
		t.Errorf("%+v, %+v", p, r)
	}
	for _, c := range []struct{ written, want []string }{
		{[]string{"sdpa"}, []string{"a/sdpa"}}, {[]string{"x/y"}, []string{"x/y"}}, {nil, nil},
		{[]string{"sdpa", "x/y"}, []string{"a/sdpa", "x/y"}}, {[]string{"sdpa", "a/sdpa", "b"}, []string{"a/sdpa"}},
	} {
		if got := (Rule{RelativeTo: c.written}).References("a/b"); !slices.Equal(got, c.want) {
			t.Errorf("the references of a/b by %q are %q", c.written, got)
		}
	}
	if (Rule{RelativeTo: []string{"b"}}).Matches("a/b") || !(Rule{RelativeTo: []string{"b", "c"}}).Matches("a/b") {
		t.Error("the reference is another")
	}
	if r.Matches("a/sdpa") || !r.Matches("a/b") {
		t.Error("a kernel is its own reference, or the rule matches nothing")
	}
	// Without an amount the policy's own limits hold, as they are.
	p = parse(t, strings.Replace(withRule("id: t, metric: latency.mean, floor: 10us"), "rules:", "latency: {tolerance: 0.3%, detect: 0.7%}\nrules:", 1))
	limits, err := p.Rules[0].Bound.At(1e6)
	if err != nil || !p.Rules[0].Compares() || math.Abs(limits.Tolerance-0.01) > 1e-12 || math.Abs(limits.Detect-0.014) > 1e-12 {
		t.Errorf("%+v, %v", limits, err)
	}
	for _, base := range []string{"base: run, ", ""} {
		p = parse(t, swap("limit: 0}", "limit: 0}\n  - {id: p99, metric: latency.cold_p99, max_regression: 5%}\n  - {id: t, metric: latency.mean, max_regression: 2%}\nlatency: {"+base+"profile: strict}"))
		if p.Rules[1].Severity != verdict.Info || p.Stored {
			t.Errorf("%+v", p.Rules[1])
		}
	}
}

// TestDocumentedPolicy keeps the examples of the documentation readable.
func TestDocumentedPolicy(t *testing.T) {
	text, err := os.ReadFile("../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("found 0 examples")
	}
	for _, b := range blocks {
		example, _, _ := strings.Cut(b, "```")
		if p := parse(t, example); len(p.Rules) == 0 {
			t.Errorf("no rule in\n%s", example)
		}
	}
}

// TestRepositoryPolicy keeps gate's own policy readable.
func TestRepositoryPolicy(t *testing.T) {
	p, err := Read("../../../policies.yaml", "policies.yaml")
	if err != nil || len(p.Rules) == 0 {
		t.Fatalf("%v", err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "policies.yaml"), "policies.yaml"); err == nil || err.Error() != "policies.yaml: cannot be read: no such file or directory" {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Read(path, "p.yaml"); err != nil || p.File != "p.yaml" {
		t.Errorf("%v", err)
	}
}

// swap replaces text in small.
func swap(old, new string) string {
	if strings.Count(small, old) != 1 {
		panic(old)
	}
	return strings.Replace(small, old, new, 1)
}

const latencyRule = "id: t, metric: latency.typical, "

var refusals = []struct{ name, text, want, hint string }{
	{"empty", "", ": is empty", ""},
	{"no version", swap("version: 1\n", ""), ": version is missing", "version: 1"},
	{"version 0", swap("version: 1", "version: 0"), ": version is missing", "version: 1"},
	{"later version", swap("version: 1", "version: 2"), ":1: version 2 is unknown to this gate, which reads version 1", ""},
	{"version between", swap("version: 1", "version: 1.5"), `:1: a whole number is needed here, not "1.5"`, ""},
	{"no kernels", swap("kernels: kernels/**/kernel.yaml\n", ""), ": kernels is missing: which kernels does this policy judge?", "kernels: kernels/**/kernel.yaml"},
	{"kernels without value", swap("kernels: kernels/**/kernel.yaml", "kernels:"), `:2: key "kernels" has no value`, ""},
	{"kernels of nothing", swap("kernels: kernels/**/kernel.yaml", "kernels: []"), ": kernels is missing: which kernels does this policy judge?", "kernels: kernels/**/kernel.yaml"},
	{"kernels above", swap("kernels/**/kernel.yaml", "../**/kernel.yaml"), `:2: kernels: "../**/kernel.yaml" is not a pattern for files below the root`, ""},
	{"kernels elsewhere", swap("kernels/**/kernel.yaml", `[k/kernel.yaml, "!/etc/*"]`), `:2: kernels: "!/etc/*" is not a pattern for files below the root`, ""},
	{"kernels broken", swap("kernels/**/kernel.yaml", `"kernels/["`), `:2: kernels: "kernels/[" is not a pattern for files below the root`, ""},
	{"kernels taken away only", swap("kernels/**/kernel.yaml", `["!kernels/**"]`), `:2: kernels: every pattern takes kernels away, and none names any`, ""},
	{"no store", swap("store: kernels/evidence\n", ""), ": store is missing: where is evidence kept?", "store: kernels/evidence"},
	{"no rules", swap("rules:\n  - {id: spills, metric: ptxas.spill_bytes, limit: 0}\n", ""), ": there is not one rule: a policy without rules passes everything", ""},
	{"rules without value", swap("\n  - {id: spills, metric: ptxas.spill_bytes, limit: 0}", ""), `:5: key "rules" has no value`, ""},
	{"rules of nothing", swap("\n  - {id: spills, metric: ptxas.spill_bytes, limit: 0}", " []"), ":5: there is not one rule: a policy without rules passes everything", ""},
	{"unknown key", swap("store:", "stoer:"), `:4: unknown key "stoer"`, `did you mean "store"?`},
	{"unknown key in a rule", withRule("id: a, metric: ptxas.registers, max_regresion: 1"), `:6: unknown key "max_regresion"`, `did you mean "max_regression"?`},
	{"second document", small + "---\nrules: []\n", ":7: holds a second document, which would be ignored", ""},
	{"machine twice", swap("[h200]", "[h200, h200]"), ":3: machines needs names, each once", ""},
	{"machine without name", swap("[h200]", `[""]`), ":3: machines needs names, each once", ""},
	{"after_failure", swap("rules:", "after_failure: go\nrules:"), `:5: after_failure cannot be "go"`, "stop or continue"},
	{"latency profile", swap("rules:", "latency: {profile: fast}\nrules:"), `:5: unknown latency profile "fast": known are standard, strict and loose`, "standard, strict or loose"},
	{"tolerance alone", swap("rules:", "latency: {tolerance: 1%}\nrules:"), ":5: tolerance and detect go together, both in %", "latency: {tolerance: 0.5%, detect: 2%}"},
	{"tolerance in ns", swap("rules:", "latency: {tolerance: 1ns, detect: 2%}\nrules:"), ":5: tolerance and detect go together, both in %", "latency: {tolerance: 0.5%, detect: 2%}"},
	{"tolerance above detect", swap("rules:", "latency: {tolerance: 3%, detect: 2%}\nrules:"), ":5: limits need 0 < tolerance < detect <= 99, got tolerance 0.03 and detect 0.02", ""},
	{"budget", swap("rules:", "latency: {budget: long}\nrules:"), `:5: "long" is not a time`, "120s"},
	{"budget below 0", swap("rules:", "latency: {budget: -1s}\nrules:"), `:5: "-1s" is not a time`, "120s"},
	{"rule without id", withRule("metric: ptxas.registers, limit: 1"), ":6: rule 1 needs an id of lower-case letters, digits, '-' and '_'", ""},
	{"id with a space", withRule(`id: "a b", metric: ptxas.registers, limit: 1`), ":6: rule 1 needs an id of lower-case letters, digits, '-' and '_'", ""},
	{"id twice", small + "  - {id: spills, metric: ptxas.registers, limit: 1}\n", `:7: rule "spills" is defined twice`, ""},
	{"reserved id", withRule("id: correctness, metric: ptxas.registers, limit: 1"), `:6: "correctness" is a rule that gate always applies: choose another id`, ""},
	{"no metric", withRule("id: a, limit: 1"), `:6: rule "a": unknown metric ""`, "see `gate schema metrics` for the list"},
	{"unknown metric", withRule("id: a, metric: ptxas.register, limit: 1"), `:6: rule "a": unknown metric "ptxas.register"`, `did you mean "ptxas.registers"?`},
	{"no amount", withRule("id: a, metric: ptxas.registers"), `:6: rule "a" needs a limit, a max_regression or both`, ""},
	{"amount without value", withRule("id: a, metric: ptxas.registers, limit: "), `:6: key "limit" has no value`, ""},
	{"amount of words", withRule("id: a, metric: ptxas.registers, limit: few"), `:6: "few" is not an amount such as 8, 1e-3, 2%, 5pp or 50ns`, ""},
	{"amount as a list", withRule("id: a, metric: ptxas.registers, limit: [1]"), `:6: one amount such as 8, 1e-3, 2%, 5pp or 50ns is needed here, not a list or a mapping`, ""},
	{"time compared in nothing", withRule(latencyRule + "max_regression: 2"), `:6: rule "t": max_regression of 2 does not fit latency.typical, which is in ns`, "did you mean 2%?"},
	{"time compared in shares", withRule(latencyRule + "max_regression: 0.02"), `:6: rule "t": max_regression of 0.02 does not fit latency.typical, which is in ns`, "did you mean 2%?"},
	{"comma for a point", withRule(latencyRule + `max_regression: "2,5%"`), `:6: "2,5%" is not an amount such as 8, 1e-3, 2%, 5pp or 50ns`, `did you mean "2.5%"?`},
	{"unit in words", withRule(latencyRule + "max_regression: 2 percent"), `:6: "2 percent" has an unknown unit "percent": known are %, pp, ns, us, ms, s, B, KB, KiB, MB, MiB, GB, GiB`, `did you mean "2%"?`},
	{"unit in capitals", withRule(latencyRule + "floor: 50NS"), `:6: "50NS" has an unknown unit "NS": known are %, pp, ns, us, ms, s, B, KB, KiB, MB, MiB, GB, GiB`, `did you mean "50ns"?`},
	{"part of a metric", withRule("id: a, metric: occupancy, limit: 1"), `:6: rule "a": unknown metric "occupancy"`, "did you mean ncu.achieved_occupancy, ncu.theoretical_occupancy?"},
	{"last word of a metric", withRule("id: a, metric: spils_bytes, limit: 1"), `:6: rule "a": unknown metric "spils_bytes"`, "did you mean ptxas.spill_bytes?"},
	{"NaN", withRule("id: a, metric: ptxas.registers, limit: .nan"), `:6: ".nan" is not a finite number: no value would ever exceed it`, ""},
	{"quoted NaN", withRule(`id: a, metric: ptxas.registers, limit: "nan"`), `:6: "nan" is not an amount such as 8, 1e-3, 2%, 5pp or 50ns`, ""},
	{"infinity", withRule("id: a, metric: ptxas.registers, limit: .inf"), `:6: ".inf" is not a finite number: no value would ever exceed it`, ""},
	{"too large", withRule("id: a, metric: ptxas.registers, limit: 1e999"), `:6: "1e999" is not a finite number`, ""},
	{"too large by its unit", withRule("id: a, metric: ptxas.spill_bytes, limit: 1e305GB"), `:6: "1e305GB" is not a finite number`, ""},
	{"below 0", withRule("id: a, metric: ptxas.registers, limit: -1"), `:6: "-1" is below 0: an amount says how much is accepted, its direction belongs to the metric`, ""},
	{"unknown unit", withRule("id: a, metric: ptxas.registers, limit: 1xs"), `:6: "1xs" has an unknown unit "xs": known are %, pp, ns, us, ms, s, B, KB, KiB, MB, MiB, GB, GiB`, ""},
	{"bytes for registers", withRule("id: a, metric: ptxas.registers, limit: 1KB"), `:6: rule "a": a limit of 1KB does not fit ptxas.registers, which is in registers/thread`, ""},
	{"a share for registers", withRule("id: a, metric: ptxas.registers, limit: 5%"), `:6: rule "a": a limit of 5% does not fit ptxas.registers, which is in registers/thread`, ""},
	{"points for an error", withRule("id: a, metric: check.relative_error, max_regression: 5pp"), `:6: rule "a": max_regression of 5pp does not fit check.relative_error, which is in plain numbers`, ""},
	{"time without unit", withRule(latencyRule + "limit: 5"), `:6: rule "t": a limit of 5 does not fit latency.typical, which is in ns`, ""},
	{"time compared in ns", withRule(latencyRule + "max_regression: 5ns"), `:6: rule "t": a time is compared in %, above 0`, "2%"},
	{"time compared to 0", withRule(latencyRule + "max_regression: 0%"), `:6: rule "t": a time is compared in %, above 0`, "2%"},
	{"time may grow hundredfold", withRule(latencyRule + "max_regression: 9901%"), `:6: rule "t": a time that may grow by 9901% is not limited: 9900% is the most`, "2%"},
	{"limit of no time", withRule(latencyRule + "limit: 0ns"), `:6: rule "t": no time lies below a limit of 0ns`, ""},
	{"floor of a limit", withRule("id: a, metric: ptxas.registers, limit: 1, floor: 1"), `:6: rule "a": floor goes with max_regression and is in registers/thread`, ""},
	{"floor of another unit", withRule(latencyRule + "max_regression: 2%, floor: 1KB"), `:6: rule "t": floor goes with max_regression and is in ns`, ""},
	{"floor in %", withRule("id: a, metric: ptxas.registers, max_regression: 5, floor: 1%"), `:6: rule "a": floor goes with max_regression and is in registers/thread`, ""},
	{"base", swap("rules:", "latency: {base: guess}\nrules:"), `:5: latency.base cannot be "guess"`, "run or stored"},
	{"GPU budget", swap("rules:", "latency: {gpu_budget: 0s}\nrules:"), `:5: "0s" is not a time`, "120s"},
	{"relative without limit", withRule(latencyRule + "relative_to: ref, max_regression: 2%"), `:6: rule "t": relative_to goes with limit, a share of the reference's time`, "limit: 0.5"},
	{"relative in ns", withRule(latencyRule + "relative_to: ref, limit: 5us"), `:6: rule "t": a limit of 5us is not a share of the reference's time`, "limit: 0.5"},
	{"relative to 0", withRule(latencyRule + "relative_to: ref, limit: 0"), `:6: rule "t": a ratio to a reference must be above 0 and at most 100, got 0`, ""},
	{"relative to nobody", withRule(latencyRule + `relative_to: "../ref", limit: 1`), `:6: rule "t": "../ref" is not the name of a kernel`, ""},
	{"relative to an empty list", withRule(latencyRule + `relative_to: [], limit: 1`), `:6: rule "t": relative_to names no kernel`, "relative_to: [sdpa_cudnn, sdpa_flash]"},
	{"relative to one twice", withRule(latencyRule + `relative_to: [a, b, a], limit: 1`), `:6: rule "t": relative_to names "a" twice`, ""},
	{"relative to nobody in a list", withRule(latencyRule + `relative_to: [a, ""], limit: 1`), `:6: rule "t": "" is not the name of a kernel`, ""},
	{"relative occupancy", withRule("id: t, metric: ncu.achieved_occupancy, relative_to: ref, limit: 1"), `:6: rule "t": ncu.achieved_occupancy is not measured beside a reference`, "latency.typical, latency.mean and their cold forms are"},
	{"relative tail", withRule("id: t, metric: latency.p99, relative_to: ref, limit: 1"), `:6: rule "t": latency.p99 is not measured beside a reference`, "latency.typical, latency.mean and their cold forms are"},
	{"red tail", withRule("id: t, metric: latency.p99, max_regression: 2%, severity: fail"), `:6: rule "t": latency.p99 is advice and never red`, "latency.mean sees a tail and can be red"},
	{"tail alone", withRule("id: t, metric: latency.p99, max_regression: 2%"), `:6: rule "t": latency.p99 is compared where a rule compares latency.typical or latency.mean with a base that is run`, ""},
	{"severity", withRule("id: a, metric: ptxas.registers, limit: 1, severity: maybe"), `:6: rule "a": severity cannot be "maybe"`, "fail, warn or info"},
	{"kernel pattern", withRule(`id: a, metric: ptxas.registers, limit: 1, kernels: ["a/["]`), `:6: rule "a": "a/[" is not a pattern`, ""},
	{"limit where no side is better", withRule("id: a, metric: ncu.waves, limit: 1"), `:6: rule "a": ncu.waves has no better direction, so a limit has no side`, "max_regression says how much may change"},
	{"anchor", withRule("id: &a x, metric: ptxas.registers, limit: 1"), ":6: anchors and aliases are not accepted here", ""},
}

func TestParseRefuses(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse([]byte(c.text), "policies.yaml")
			var e *yamlfile.Error
			if !errors.As(err, &e) || p != nil {
				t.Fatalf("got %v (policy: %v), want a *yamlfile.Error", err, p != nil)
			}
			if e.Error() != "policies.yaml"+c.want || e.Advice != c.hint {
				t.Errorf("got  %s (hint %q)\nwant policies.yaml%s (hint %q)", e, e.Advice, c.want, c.hint)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		metric, text, unit string
		number             float64
	}{
		{"ptxas.registers", "8", "", 8}, {"ptxas.registers", "+8", "", 8}, {"ptxas.registers", "1_000", "", 1000}, {"ptxas.registers", "0", "", 0},
		{"check.relative_error", "1e-3", "", 1e-3}, {"check.relative_error", "1.5E+2", "", 150},
		{"ptxas.spill_bytes", "64", "", 64}, {"ptxas.spill_bytes", "64B", "byte", 64}, {"ptxas.spill_bytes", "2 KB", "byte", 2000},
		{"ptxas.spill_bytes", "2KiB", "byte", 2048}, {"ptxas.spill_bytes", "1MiB", "byte", 1 << 20}, {"ptxas.spill_bytes", "1GB", "byte", 1e9},
		{"latency.mean", "50ns", "ns", 50}, {"latency.mean", "1.5us", "ns", 1500}, {"latency.mean", "2ms", "ns", 2e6}, {"latency.mean", "1s", "ns", 1e9},
		{"ncu.achieved_occupancy", "62%", "%", 0.62}, {"ncu.achieved_occupancy", "5pp", "pp", 5},
	} {
		p := parse(t, withRule("id: a, metric: "+c.metric+", limit: "+c.text))
		a := p.Rules[0].Limit
		if math.Abs(a.Number-c.number) > 1e-12*c.number || a.Unit != c.unit || a.Text != c.text || !a.Set {
			t.Errorf("%s: %+v", c.text, a)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		patterns, kernel string
		want             bool
	}{
		{"", "a/b", true}, {"a/*", "a/b", true}, {"a/*", "a/b/c", false}, {"**", "a/b/c", true}, {"b/*", "a/b", false},
		{"!a/b", "a/b", false}, {"!a/b", "a/c", true}, {"a/* !a/b", "a/b", false}, {"a/* !a/b", "a/c", true},
		{"!a/b a/b", "a/b", true}, {"a/b !a/* a/b", "a/b", true}, {"a/r1*", "a/r11", true},
	} {
		r := Rule{Kernels: strings.Fields(c.patterns)}
		if got := r.Matches(c.kernel); got != c.want {
			t.Errorf("%q matches %q: %v", c.patterns, c.kernel, got)
		}
	}
}

func TestIdleRuleIsAnError(t *testing.T) {
	of := func(kernels ...string) []Scope {
		var out []Scope
		for _, k := range kernels {
			out = append(out, Scope{k, []string{"sm_90", "sm_100a"}, []string{"small", "large"}})
		}
		return out
	}
	for _, c := range []struct {
		keys       string
		all        []Scope
		want, hint string
	}{
		{`kernels: ["attention/x*"]`, of("attention/x1"), "", ""},
		{`kernels: ["attention/x*"]`, of("attention/y", "attention/z"), `rule "a" matches none of the 2 kernels, so it can never fail`, "kernels: patterns match names such as attention/y"},
		{`kernels: ["attention/x*"]`, nil, `rule "a" matches none of the 0 kernels, so it can never fail`, "kernels: patterns match names such as attention/r11_fa2_mma"},
		{`arch: [sm_90]`, of("k"), "", ""},
		{`arch: ["sm_1*", "!sm_120"]`, of("k"), "", ""},
		{`arch: [sm_80]`, of("k"), `rule "a" names no architecture of the kernels that it matches, so it can never fail`, "arch: patterns match sm_90, sm_100a"},
		{`cases: ["!small"]`, of("k"), "", ""},
		{`cases: [huge]`, of("k"), `rule "a" names no case of the kernels that it matches, so it can never fail`, "cases: patterns match small, large"},
	} {
		err := parse(t, withRule("id: a, metric: ncu.cycles, limit: 1, "+c.keys)).Idle(c.all)
		if c.want == "" && err == nil {
			continue
		}
		var e *yamlfile.Error
		if !errors.As(err, &e) || e.Error() != "policies.yaml:6: "+c.want || e.Advice != c.hint {
			t.Errorf("%s: %v (hint %q)", c.keys, err, e.Advice)
		}
	}
}

// TestBoundsArePlain: what a rule accepts of a time is known once the policy is
// read, without any base but for a floor.
func TestBoundsArePlain(t *testing.T) {
	for _, c := range []struct {
		keys string
		want compare.Bound
	}{
		{latencyRule + "max_regression: 4%", compare.Bound{Limits: compare.Limits{Tolerance: 0.01, Detect: 0.04, Tail: 0.4}}},
		{latencyRule + "max_regression: 4%, floor: 50ns", compare.Bound{Limits: compare.Limits{Tolerance: 0.01, Detect: 0.04, Tail: 0.4}, FloorNS: 50}},
		{"id: t, metric: latency.cold_mean", compare.Bound{Limits: compare.Limits{Tolerance: 0.005, Detect: 0.02, Tail: 0.4}}},
		{latencyRule + "relative_to: ref, limit: 1.5", compare.Bound{Limits: compare.Limits{Tolerance: 0.5, Detect: 0.5, Reference: true}}},
		{"id: a, metric: ptxas.registers, max_regression: 8", compare.Bound{}},
	} {
		if got := parse(t, withRule(c.keys)).Rules[0].Bound; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.keys, got, c.want)
		}
	}
}

// TestLimitsInPercent: 0.14 has no exact binary form, and 14 % has to meet 14%.
func TestLimitsInPercent(t *testing.T) {
	for n := range 101 {
		if got := (Amount{Number: float64(n) * 0.01, Unit: "%"}).InPercent(); got != float64(n) {
			t.Errorf("%d%% is %v", n, got)
		}
	}
}

func TestProfileMetricsHoldThePolicys(t *testing.T) {
	p := parse(t, small+"  - {id: a, metric: ncu.raw.sm__cycles_active.avg, max_regression: 1}\n  - {id: b, metric: ncu.waves, max_regression: 1}\n")
	names, seen := p.ProfileMetrics(), map[string]bool{}
	for _, n := range names {
		if seen[n] {
			t.Errorf("%s twice", n)
		}
		seen[n] = true
	}
	if !seen["ncu.raw.sm__cycles_active.avg"] || !seen["ncu.waves"] || !seen["ncu.achieved_occupancy"] || seen["ptxas.registers"] {
		t.Errorf("%v", names)
	}
}

// FuzzParse holds: what is refused is refused by an *Error of that file, which
// has a line unless something is missing as a whole; what is accepted has a
// rule, and nothing but finite amounts that fit their metric.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	own, err := os.ReadFile("../../../policies.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	for _, c := range refusals {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data, "policies.yaml")
		if err != nil {
			var e *yamlfile.Error
			if !errors.As(err, &e) || e.File != "policies.yaml" || e.Msg == "" || p != nil {
				t.Fatalf("%T: %v", err, err)
			}
			if text := string(data); e.Line < 0 || e.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+strings.Count(text, "\u0085")+strings.Count(text, "\u2028")+strings.Count(text, "\u2029")+2 {
				t.Fatalf("line %d of %q", e.Line, data)
			}
			return
		}
		if len(p.Rules) == 0 || len(p.Kernels) == 0 || p.Store == "" || p.Budget <= 0 || p.Limits.Valid() != nil {
			t.Fatalf("%+v judges nothing", p)
		}
		for _, r := range p.Rules {
			if !r.Limit.Set && !r.Compares() || r.Metric.Name == "" || r.ID == "" || r.Line < 1 && r.Preset == "" {
				t.Fatalf("%+v", r)
			}
			for _, a := range []Amount{r.Limit, r.MaxRegression, r.Floor} {
				if !(a.Number >= 0 && a.Number <= math.MaxFloat64) {
					t.Fatalf("%+v", a)
				}
			}
		}
	})
}
