package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Rule is one line of a policy: a metric and what is accepted of it. With
// RelativeTo the limit is a share of the time of those kernels in the same run,
// of each: the fastest counts. With Limit and MaxRegression it asks two questions.
type Rule struct {
	ID            string
	Metric        metric.Metric
	RelativeTo    []string
	Limit         Amount
	MaxRegression Amount
	Floor         Amount
	Gain          Amount   // how much better than the base goes without a question
	Kernels       []string // patterns over names of kernels
	Arch          []string // over architectures
	Cases         []string // over names of cases
	Entries       []string // over names of __global__ functions, each of which is asked about
	Severity      verdict.Severity
	OnMissing     Unanswered // its status without evidence
	OnUndecided   Unanswered // and with evidence that does not decide
	Preset        string     // that it is from; "" for the policy's own
	Line          int

	// A trade is a rule that takes the place of another where its condition,
	// which is a rule as well, holds. MinImprovement is a condition's alone.
	Replaces       string
	When           *Rule
	MinImprovement Amount

	// Bound is what the rule accepts of a time that is compared.
	Bound compare.Bound
}

type rule struct {
	ID            string   `yaml:"id"`
	Metric        string   `yaml:"metric"`
	RelativeTo    texts    `yaml:"relative_to"`
	Limit         Amount   `yaml:"limit"`
	MaxRegression Amount   `yaml:"max_regression"`
	Floor         Amount   `yaml:"floor"`
	Gain          Amount   `yaml:"unexplained_gain"`
	Kernels       []string `yaml:"kernels"`
	Arch          []string `yaml:"arch"`
	Cases         []string `yaml:"cases"`
	Entries       []string `yaml:"entries"`
	Severity      string   `yaml:"severity"`
	OnMissing     string   `yaml:"on_missing"`
	OnUndecided   string   `yaml:"on_inconclusive"`
	Replaces      string   `yaml:"replaces"`
	When          *when    `yaml:"when"`
	preset        string
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reserved are the rules that no policy can leave out.
var reserved = []string{"builds", Present, "op", "correctness"}

func (c checker) rule(f *file, i int) (Rule, error) {
	in := f.Rules[i]
	at := fmt.Sprintf("rules[%d]", i)
	key := func(k string) string { return at + "." + k }
	if !idPattern.MatchString(in.ID) {
		return Rule{}, c.bad(at, "", "rule %d needs an id of lower-case letters, digits, '-' and '_'", i+1)
	}
	for j := range f.Rules[:i] {
		if f.Rules[j].ID == in.ID {
			return Rule{}, c.bad(key("id"), "", "rule %q is defined twice", in.ID)
		}
	}
	if slices.Contains(reserved, in.ID) {
		return Rule{}, c.bad(key("id"), "", "%q is a rule that gate always applies: choose another id", in.ID)
	}
	m, err := c.metric(in.Metric, key("metric"), in.ID)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{ID: in.ID, Metric: m, RelativeTo: in.RelativeTo, Limit: in.Limit, MaxRegression: in.MaxRegression, Floor: in.Floor, Gain: in.Gain,
		Kernels: in.Kernels, Arch: in.Arch, Cases: in.Cases, Entries: in.Entries, Severity: verdict.Red, Preset: in.preset, Line: c.lines[at]}
	for _, part := range []func() error{
		func() error { return c.severity(in, &r, key) },
		func() error { return c.unanswered(in, &r, key) },
		func() error { return c.selection(&r, at, in.Replaces != "") },
		func() error { return c.trade(in, &r, at) },
		func() error { return c.amounts(r, key) },
	} {
		if err := part(); err != nil {
			return Rule{}, err
		}
	}
	return r, nil
}

// metric finds a metric of the closed list.
func (c checker) metric(name, key, id string) (metric.Metric, error) {
	m, ok := metric.Lookup(name)
	if !ok {
		return m, c.bad(key, metricMeant(name), "rule %q: unknown metric %q", id, name)
	}
	return m, nil
}

func (c checker) severity(in rule, r *Rule, key func(string) string) error {
	if in.Severity != "" {
		r.Severity = verdict.Severity(in.Severity)
	}
	switch {
	case !slices.Contains([]verdict.Severity{verdict.Red, verdict.Warns, verdict.Info}, r.Severity):
		return c.bad(key("severity"), "fail, warn or info", "rule %q: severity cannot be %q", r.ID, in.Severity)
	case r.Metric.Advice && in.Severity != "" && r.Severity != verdict.Info:
		return c.bad(key("severity"), "latency.mean sees a tail and can be red", "rule %q: %s is advice and never red", r.ID, r.Metric.Name)
	case r.Severity == verdict.Info && r.Beside():
		return c.bad(key("severity"), "warn is shown as well", "rule %q: a ratio is measured for a rule that has a say, and one of severity info has none", r.ID)
	}
	if r.Metric.Advice {
		r.Severity = verdict.Info
	}
	return nil
}

func (c checker) unanswered(in rule, r *Rule, key func(string) string) error {
	for _, x := range []struct {
		key, text string
		to        *Unanswered
	}{{"on_missing", in.OnMissing, &r.OnMissing}, {"on_inconclusive", in.OnUndecided, &r.OnUndecided}} {
		*x.to = Unanswered(x.text)
		switch *x.to {
		case "":
			*x.to = LeftOpen
		case LeftOpen, IsBroken, OnlyWarns:
		default:
			return c.bad(key(x.key), "inconclusive, fail or warn", "rule %q: %s cannot be %q", r.ID, x.key, x.text)
		}
		if *x.to == OnlyWarns && r.Metric.Tier == evidence.Correctness {
			return c.bad(key(x.key), "", "rule %q: a kernel that was never found correct has not earned anything", r.ID)
		}
	}
	return nil
}

// selection checks the patterns of a rule. The cases of a trade are those of its
// condition.
func (c checker) selection(r *Rule, at string, trade bool) error {
	valid := func(p string) bool { return doublestar.ValidatePattern(p) }
	entry := func(p string) bool { _, err := path.Match(p, ""); return err == nil }
	for _, list := range []struct {
		key      string
		patterns []string
		valid    func(string) bool
	}{{"kernels", r.Kernels, valid}, {"arch", r.Arch, valid}, {"cases", r.Cases, valid}, {"entries", r.Entries, entry}} {
		for j, pattern := range list.patterns {
			if p := strings.TrimPrefix(pattern, "!"); p == "" || !list.valid(p) {
				return c.bad(fmt.Sprintf("%s.%s[%d]", at, list.key, j), "", "rule %q: %q is not a pattern", r.ID, pattern)
			}
		}
	}
	static := r.Metric.Tier == evidence.Static
	switch {
	case len(r.Entries) > 0 && !static:
		return c.bad(at+".entries", "entries: goes with ptxas.*", "rule %q: %s is of a whole call, not of one __global__ function", r.ID, r.Metric.Name)
	case len(r.Cases) > 0 && static && !trade:
		return c.bad(at+".cases", "", "rule %q: %s does not depend on a case", r.ID, r.Metric.Name)
	}
	return nil
}

// metricMeant names the metric that a misspelt word most likely meant, or all
// that hold it.
func metricMeant(word string) string {
	if near := yamlfile.Nearest(word, metric.Names()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	var holds, lasts []string
	for _, name := range metric.Names() {
		if word != "" && strings.Contains(name, strings.TrimSuffix(strings.ToLower(word), "s")) {
			holds = append(holds, name)
		}
		lasts = append(lasts, name[strings.IndexByte(name, '.')+1:])
	}
	if near := yamlfile.Nearest(word, lasts); near != "" && len(holds) == 0 {
		holds = append(holds, metric.Names()[slices.Index(lasts, near)])
	}
	if len(holds) == 0 {
		return "see `gate schema metrics` for the list"
	}
	return "did you mean " + strings.Join(holds, ", ") + "?"
}

// percentMeant is a number without a unit as the share that it was meant to be:
// 2 and 0.02 are both 2%.
func percentMeant(a Amount) string {
	share := a.Number
	if share < 1 {
		share *= 100
	}
	return fmt.Sprintf("did you mean %.4g%%?", share)
}

// time works out the bound of a rule on a time.
func (c checker) time(r *Rule, profile compare.Limits, i int) (err error) {
	if !r.Metric.Time() {
		return nil
	}
	key := fmt.Sprintf("rules[%d].limit", i)
	r.Bound = compare.Bound{Limits: profile, FloorNS: r.Floor.Number}
	switch {
	case r.Beside():
		r.Bound.Limits, err = compare.ReferenceLimits(r.Limit.Number)
	case r.Limit.Set && r.Limit.Number == 0:
		err = fmt.Errorf("no time lies below a limit of %s", r.Limit.Text)
	case r.MaxRegression.Set:
		key = fmt.Sprintf("rules[%d].max_regression", i)
		if r.MaxRegression.Number > 99 {
			return c.bad(key, "2%", "rule %q: a time that may grow by %s is not limited: 9900%% is the most", r.ID, r.MaxRegression.Text)
		}
		r.Bound.Limits, err = compare.MaxRegression(profile, r.MaxRegression.Number)
	}
	if err != nil {
		return c.bad(key, "", "rule %q: %v", r.ID, err)
	}
	return nil
}

// amounts checks that what a rule accepts can be compared with its metric.
func (c checker) amounts(r Rule, key func(string) string) error {
	m := r.Metric
	if r.RelativeTo != nil {
		return c.relative(r, key)
	}
	if !r.Limit.Set && !r.Compares() {
		return c.bad(key("metric"), "", "rule %q needs a limit, a max_regression or both", r.ID)
	}
	if r.Limit.Set && m.Better == metric.Neither {
		return c.bad(key("limit"), "max_regression says how much may change", "rule %q: %s has no better direction, so a limit has no side", r.ID, m.Name)
	}
	if r.Limit.Set && !sameUnit(r.Limit, m) {
		return c.bad(key("limit"), "", "rule %q: a limit of %s does not fit %s, which is in %s", r.ID, r.Limit.Text, m.Name, metric.UnitName(m.Unit))
	}
	if r.MaxRegression.Set && r.MaxRegression.Unit != "%" && !sameUnit(r.MaxRegression, m) {
		hint := ""
		if r.MaxRegression.Unit == "" {
			hint = percentMeant(r.MaxRegression)
		}
		return c.bad(key("max_regression"), hint, "rule %q: max_regression of %s does not fit %s, which is in %s", r.ID, r.MaxRegression.Text, m.Name, metric.UnitName(m.Unit))
	}
	if m.Time() && r.MaxRegression.Set && (r.MaxRegression.Unit != "%" || r.MaxRegression.Number <= 0) {
		return c.bad(key("max_regression"), "2%", "rule %q: a time is compared in %%, above 0", r.ID)
	}
	if r.Floor.Set && (!r.Compares() || !sameUnit(r.Floor, m)) {
		return c.bad(key("floor"), "", "rule %q: floor goes with max_regression and is in %s", r.ID, metric.UnitName(m.Unit))
	}
	return c.gain(r, key)
}

// gain checks how much better goes without a question.
func (c checker) gain(r Rule, key func(string) string) error {
	switch m, g := r.Metric, r.Gain; {
	case !g.Set:
		return nil
	case !r.Compares():
		return c.bad(key("unexplained_gain"), "", "rule %q: unexplained_gain goes with max_regression", r.ID)
	case m.Better == metric.Neither || m.Advice:
		return c.bad(key("unexplained_gain"), "", "rule %q: %s has no gain", r.ID, m.Name)
	case g.Number == 0 || m.Time() && g.Unit != "%" || g.Unit != "%" && !sameUnit(g, m):
		return c.bad(key("unexplained_gain"), "unexplained_gain: 30%", "rule %q: unexplained_gain of %s does not fit %s", r.ID, g.Text, m.Name)
	}
	return nil
}

// relative checks the form of a rule with relative_to.
func (c checker) relative(r Rule, key func(string) string) error {
	switch {
	case !r.Metric.Time() || r.Metric.Advice:
		return c.bad(key("relative_to"), "latency.typical, latency.mean and their cold forms are", "rule %q: %s is not measured beside a reference", r.ID, r.Metric.Name)
	case !r.Limit.Set || r.MaxRegression.Set || r.Floor.Set || r.Gain.Set:
		return c.bad(key("relative_to"), "limit: 0.5", "rule %q: relative_to goes with limit, a share of the reference's time", r.ID)
	case r.Limit.Unit != "" && r.Limit.Unit != "%":
		return c.bad(key("limit"), "limit: 0.5", "rule %q: a limit of %s is not a share of the reference's time", r.ID, r.Limit.Text)
	case !r.Beside():
		return c.bad(key("relative_to"), "relative_to: [sdpa_cudnn, sdpa_flash]", "rule %q: relative_to names no kernel", r.ID)
	}
	for i, name := range r.RelativeTo {
		switch {
		case !kernelPattern.MatchString(name):
			return c.bad(key("relative_to"), "", "rule %q: %q is not the name of a kernel", r.ID, name)
		case slices.Contains(r.RelativeTo[:i], name):
			return c.bad(key("relative_to"), "", "rule %q: relative_to names %q twice", r.ID, name)
		}
	}
	return nil
}

var kernelPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,255}$`)

// sameUnit reports whether an amount is in the unit of the metric. A metric in
// % takes points: "5pp", or "62%" for a limit.
func sameUnit(a Amount, m metric.Metric) bool {
	switch a.Unit {
	case "":
		return m.Unit != "ns"
	case "pp", "%":
		return m.Unit == "%"
	default:
		return m.Unit == a.Unit
	}
}

// Compares reports whether the rule compares the head with the base. A time
// without an amount is compared by the policy's own limits.
func (r Rule) Compares() bool {
	return r.MaxRegression.Set || r.Metric.Time() && !r.Limit.Set
}

// Beside reports whether the rule holds a time against that of other kernels.
func (r Rule) Beside() bool { return len(r.RelativeTo) > 0 }

// References are the kernels that a rule with relative_to compares a kernel with,
// each once and never the kernel itself: a name without a folder means one beside
// it.
func (r Rule) References(kernel string) []string {
	var out []string
	for _, name := range r.RelativeTo {
		if !strings.Contains(name, "/") {
			name = path.Join(path.Dir(kernel), name)
		}
		if name != kernel && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Matches reports whether the rule applies to a kernel. One that is the only
// reference of the rule is not compared with itself.
func (r Rule) Matches(kernel string) bool {
	if r.Beside() && len(r.References(kernel)) == 0 {
		return false
	}
	return selects(r.Kernels, named(kernel))
}

// On reports whether the rule applies to code for an architecture.
func (r Rule) On(arch string) bool { return selects(r.Arch, named(arch)) }

// At reports whether the rule applies to a case.
func (r Rule) At(kase string) bool { return selects(r.Cases, named(kase)) }

// Of reports whether the rule asks about a __global__ function by itself.
func (r Rule) Of(e Entry) bool { return len(r.Entries) > 0 && selects(r.Entries, called(e)) }

// A Scope is what a rule may select of one kernel.
type Scope struct {
	Kernel      string
	Arch, Cases []string
}

// Idle is the error for a rule that applies to nothing: it would never fail, so
// it is a mistake rather than a pass.
func (p *Policy) Idle(all []Scope) error {
	for _, r := range p.Rules {
		of := slices.DeleteFunc(slices.Clone(all), func(s Scope) bool { return !r.Matches(s.Kernel) })
		e := &yamlfile.Error{File: p.File, Line: r.Line}
		switch {
		case len(of) == 0:
			e.Msg = fmt.Sprintf("rule %q matches none of the %d kernels, so it can never fail", r.ID, len(all))
			e.Advice = "kernels: patterns match names such as " + first(all)
		case !slices.ContainsFunc(of, func(s Scope) bool { return slices.ContainsFunc(s.Arch, r.On) }):
			e.Msg = fmt.Sprintf("rule %q names no architecture of the kernels that it matches, so it can never fail", r.ID)
			e.Advice = "arch: patterns match " + strings.Join(of[0].Arch, ", ")
		case !slices.ContainsFunc(of, func(s Scope) bool { return slices.ContainsFunc(s.Arch, r.On) && slices.ContainsFunc(s.Cases, r.At) }):
			e.Msg = fmt.Sprintf("rule %q names no case of the kernels that it matches, so it can never fail", r.ID)
			e.Advice = "cases: patterns match " + strings.Join(of[0].Cases, ", ")
		default:
			continue
		}
		return e
	}
	return nil
}

func first(all []Scope) string {
	if len(all) == 0 {
		return "attention/r11_fa2_mma"
	}
	return all[0].Kernel
}
