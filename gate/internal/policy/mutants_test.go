package policy

import (
	"strings"
	"testing"
)

// TestWhatIsAcceptedAndWhatIsNot holds both sides of conditions that stand in a
// switch, where no measure of coverage looks.
func TestWhatIsAcceptedAndWhatIsNot(t *testing.T) {
	const registers = "id: t, metric: ptxas.registers, max_regression: 8, unexplained_gain: "
	latency := func(keys string) string {
		return strings.Replace(withRule("id: t, metric: latency.typical"), "rules:", "latency: {"+keys+"}\nrules:", 1)
	}
	trade := func(more string) string {
		return withRule("id: t, metric: ptxas.spill_bytes, limit: 0") + "  - {id: pays, replaces: t, metric: ptxas.spill_bytes, limit: 64, " + more + "}\n"
	}
	waived := func(ceiling string) string {
		return withRule("id: t, metric: latency.typical, relative_to: ref, limit: 0.5") +
			"waivers: [{rule: t, kernel: a/b, ceiling: " + ceiling + ", until: 2999-01-01, owner: k, reason: known}]\n"
	}
	for _, c := range []struct {
		name, text, refused string // "" where it is accepted
	}{
		{"a ratio as the ceiling", waived("1.1"), ""},
		{"a share as the ceiling of a ratio", waived("110%"), ""},
		{"a time as the ceiling of a ratio", waived("5us"), "a ceiling of 5us is not a share of the reference's time"},
		{"a tail", latency("tail: 20%"), ""},
		{"no tail", latency("tail: 0"), ""},
		{"the least tail", latency("tail: 3.5%"), ""},
		{"a tail that no number of processes shows", latency("tail: 3.4%"), "a tail is the share"},
		{"a tail of all", latency("tail: 100%"), "a tail is the share"},
		{"a tail without a unit", latency("tail: 0.2"), "a tail is the share"},
		{"a gain in the unit", withRule(registers + "8"), ""},
		{"a gain as a share", withRule(registers + "25%"), ""},
		{"no gain", withRule(registers + "0"), "unexplained_gain of 0 does not fit"},
		{"a gain in another unit", withRule(registers + "8KiB"), "unexplained_gain of 8KiB does not fit"},
		{"no gain of what has no direction", withRule("id: t, metric: ncu.waves, max_regression: 10%, unexplained_gain: 10%"), "has no gain"},
		{"a gain of a time", withRule("id: t, metric: latency.typical, max_regression: 2%, unexplained_gain: 10%"), ""},
		{"a gain of a time in ns", withRule("id: t, metric: latency.typical, max_regression: 2%, unexplained_gain: 10ns"), "unexplained_gain of 10ns does not fit"},
		{"a condition of the compiler's", trade("when: {metric: ptxas.registers, limit: 64}"), ""},
		{"a condition of one case", trade("cases: [small], when: {metric: ncu.waves, min_improvement: 3%}"), "has no better direction"},
		{"a condition of the compiler's in one case", trade("cases: [small], when: {metric: ptxas.registers, limit: 64}"), "does not depend on a case"},
		{"a condition on one case of a time", trade("cases: [small], when: {metric: latency.typical, min_improvement: 3%}"), ""},
	} {
		_, err := Parse([]byte(c.text), "policies.yaml")
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q\n%s", c.name, err, c.refused, c.text)
		}
	}
}

// TestStrangeMachinesSayWhatIsThere: with nothing known, and with something.
func TestStrangeMachinesSayWhatIsThere(t *testing.T) {
	p := parse(t, strings.Replace(small, "[h200]", "[hundred]", 1))
	if err := p.Strange(nil); err == nil || !strings.Contains(err.Error(), "the store and this host have none") {
		t.Errorf("%v", err)
	}
}
