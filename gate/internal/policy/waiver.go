package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Waiver lets one kernel break one rule, up to a ceiling, until the end of a
// day (UTC).
type Waiver struct {
	Rule, Kernel  string
	Ceiling       Amount // not set for the rule "present", which has no figure
	Until         time.Time
	Owner, Reason string
	Line          int
}

type waiver struct {
	Rule    string `yaml:"rule"`
	Kernel  string `yaml:"kernel"`
	Ceiling Amount `yaml:"ceiling"`
	Until   string `yaml:"until"`
	Owner   string `yaml:"owner"`
	Reason  string `yaml:"reason"`
}

// Present is the rule that a kernel, case, entry or architecture of the base is
// still there.
const Present = "present"

// Day is the form of a waiver's last day.
const Day = "2006-01-02"

// DaysLeft is the number of days that a waiver still holds after today; below 0,
// it expired so many days ago.
func (w Waiver) DaysLeft(now time.Time) int {
	today := now.UTC().Truncate(24 * time.Hour)
	return int(w.Until.Sub(today) / (24 * time.Hour))
}

func (c checker) waivers(f *file, p *Policy) error {
	for i, in := range f.Waivers {
		w, err := c.waiver(in, p, i)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(p.Waivers, func(x Waiver) bool { return x.Rule == w.Rule && x.Kernel == w.Kernel }) {
			return c.bad(fmt.Sprintf("waivers[%d]", i), "", "rule %q of %s is waived twice", w.Rule, w.Kernel)
		}
		p.Waivers = append(p.Waivers, w)
	}
	return nil
}

func (c checker) waiver(in waiver, p *Policy, i int) (Waiver, error) {
	at := fmt.Sprintf("waivers[%d]", i)
	key := func(k string) string { return at + "." + k }
	w := Waiver{Rule: in.Rule, Kernel: in.Kernel, Ceiling: in.Ceiling, Owner: in.Owner, Reason: in.Reason, Line: c.lines[at]}
	var err error
	if w.Until, err = time.Parse(Day, in.Until); err != nil {
		return w, c.bad(key("until"), "until: 2027-03-01", "waiver %d: %q is not the last day on which it holds", i+1, in.Until)
	}
	switch {
	case !kernelPattern.MatchString(in.Kernel):
		return w, c.bad(key("kernel"), "kernel: attention/r11_fa2_mma", "waiver %d needs the name of one kernel, not %q", i+1, in.Kernel)
	case strings.TrimSpace(in.Owner) == "":
		return w, c.bad(key("owner"), "who answers for it", "waiver %d has no owner", i+1)
	case strings.TrimSpace(in.Reason) == "":
		return w, c.bad(key("reason"), "why it is accepted", "waiver %d has no reason", i+1)
	}
	return w, c.waived(w, p, key)
}

// waived checks that a waiver is of a rule that can be waived.
func (c checker) waived(w Waiver, p *Policy, key func(string) string) error {
	if w.Rule == Present {
		if w.Ceiling.Set {
			return c.bad(key("ceiling"), "", "rule %q has no figure, so a waiver of it has no ceiling", w.Rule)
		}
		return nil
	}
	at := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.ID == w.Rule })
	if slices.Contains(reserved, w.Rule) || at >= 0 && p.Rules[at].Metric.Tier == evidence.Correctness {
		return c.bad(key("rule"), "", "rule %q says that a kernel is correct, which no waiver hides", w.Rule)
	}
	if at < 0 {
		return c.bad(key("rule"), c.nearRule(p, w.Rule), "unknown rule %q: there is nothing to waive", w.Rule)
	}
	switch r := p.Rules[at]; {
	case r.Replaces != "":
		return c.bad(key("rule"), "rule: "+r.Replaces, "rule %q is a trade: the rule that it replaces is waived", r.ID)
	case !r.Matches(w.Kernel):
		return c.bad(key("kernel"), "", "rule %q is not about %s, so there is nothing to waive", r.ID, w.Kernel)
	case !w.Ceiling.Set:
		return c.bad(key("ceiling"), "ceiling: 168", "the waiver of rule %q needs a ceiling: the worst %s that is accepted", r.ID, r.Metric.Name)
	case r.Beside() && w.Ceiling.Unit != "" && w.Ceiling.Unit != "%":
		return c.bad(key("ceiling"), "", "a ceiling of %s is not a share of the reference's time", w.Ceiling.Text)
	case !r.Beside() && w.Ceiling.Unit != "%" && !sameUnit(w.Ceiling, r.Metric):
		return c.bad(key("ceiling"), "", "a ceiling of %s does not fit %s, which is in %s", w.Ceiling.Text, r.Metric.Name, metric.UnitName(r.Metric.Unit))
	case w.Ceiling.Unit == "%" && !r.Beside() && r.Metric.Unit != "%" && !r.Compares():
		return c.bad(key("ceiling"), "", "a ceiling of %s is a share of the base's, and rule %q does not compare with the base", w.Ceiling.Text, r.ID)
	}
	return nil
}

// nearRule is a hint at the rule that a misspelt id most likely meant.
func (c checker) nearRule(p *Policy, id string) string {
	var ids []string
	for _, r := range p.Rules {
		ids = append(ids, r.ID)
	}
	return yamlfile.DidYouMean(id, ids, "there are "+strings.Join(ids, ", "))
}
