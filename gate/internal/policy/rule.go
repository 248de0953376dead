package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Rule is one line of a policy: a metric and what is accepted of it. With
// RelativeTo the limit is a share of that kernel's time in the same run.
type Rule struct {
	ID            string
	Metric        metric.Metric
	RelativeTo    string
	Limit         Amount
	MaxRegression Amount
	Floor         Amount
	Kernels       []string
	Severity      verdict.Severity
	Line          int

	// Bound is what the rule accepts of a time that is compared.
	Bound compare.Bound
}

type rule struct {
	ID            string   `yaml:"id"`
	Metric        string   `yaml:"metric"`
	RelativeTo    string   `yaml:"relative_to"`
	Limit         Amount   `yaml:"limit"`
	MaxRegression Amount   `yaml:"max_regression"`
	Floor         Amount   `yaml:"floor"`
	Kernels       []string `yaml:"kernels"`
	Severity      string   `yaml:"severity"`
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reserved are the rules that no policy can leave out.
var reserved = []string{"builds", "present", "correctness"}

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
	m, ok := metric.Lookup(in.Metric)
	if !ok {
		return Rule{}, c.bad(key("metric"), metricMeant(in.Metric), "rule %q: unknown metric %q", in.ID, in.Metric)
	}
	r := Rule{ID: in.ID, Metric: m, RelativeTo: in.RelativeTo, Limit: in.Limit, MaxRegression: in.MaxRegression, Floor: in.Floor,
		Kernels: in.Kernels, Severity: verdict.Red, Line: c.lines[at]}
	if in.Severity != "" {
		r.Severity = verdict.Severity(in.Severity)
		if r.Severity != verdict.Red && r.Severity != verdict.Warns {
			return Rule{}, c.bad(key("severity"), "fail or warn", "rule %q: severity cannot be %q", in.ID, in.Severity)
		}
	}
	if m.Advice {
		if in.Severity != "" {
			return Rule{}, c.bad(key("severity"), "latency.mean sees a tail and can be red", "rule %q: %s is advice and never red", in.ID, m.Name)
		}
		r.Severity = verdict.Advice
	}
	for j, pattern := range in.Kernels {
		if !doublestar.ValidatePattern(strings.TrimPrefix(pattern, "!")) {
			return Rule{}, c.bad(fmt.Sprintf("%s.kernels[%d]", at, j), "", "rule %q: %q is not a pattern", in.ID, pattern)
		}
	}
	return r, c.amounts(r, key)
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
	case r.RelativeTo != "":
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
	if r.RelativeTo != "" {
		return c.relative(r, key)
	}
	if r.Limit.Set && r.MaxRegression.Set || !r.Limit.Set && !r.Compares() {
		return c.bad(key("metric"), "", "rule %q needs either limit or max_regression", r.ID)
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
	if r.Floor.Set && (r.Limit.Set || !sameUnit(r.Floor, m)) {
		return c.bad(key("floor"), "", "rule %q: floor goes with max_regression and is in %s", r.ID, metric.UnitName(m.Unit))
	}
	return nil
}

// relative checks the form of a rule with relative_to.
func (c checker) relative(r Rule, key func(string) string) error {
	switch {
	case !r.Metric.Time() || r.Metric.Advice:
		return c.bad(key("relative_to"), "latency.typical, latency.mean and their cold forms are", "rule %q: %s is not measured beside a reference", r.ID, r.Metric.Name)
	case !r.Limit.Set || r.MaxRegression.Set || r.Floor.Set:
		return c.bad(key("relative_to"), "limit: 0.5", "rule %q: relative_to goes with limit, a share of the reference's time", r.ID)
	case r.Limit.Unit != "" && r.Limit.Unit != "%":
		return c.bad(key("limit"), "limit: 0.5", "rule %q: a limit of %s is not a share of the reference's time", r.ID, r.Limit.Text)
	case !kernelPattern.MatchString(r.RelativeTo):
		return c.bad(key("relative_to"), "", "rule %q: %q is not the name of a kernel", r.ID, r.RelativeTo)
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

// Reference is the kernel that a rule with relative_to compares a kernel with: a
// name without a folder means one beside it. "" without relative_to.
func (r Rule) Reference(kernel string) string {
	if r.RelativeTo == "" || strings.Contains(r.RelativeTo, "/") {
		return r.RelativeTo
	}
	return path.Join(path.Dir(kernel), r.RelativeTo)
}

// Matches reports whether the rule applies to a kernel: some pattern names it
// and no later "!" pattern takes it away. No pattern means every kernel. A
// kernel is not its own reference.
func (r Rule) Matches(kernel string) bool {
	if r.RelativeTo != "" && r.Reference(kernel) == kernel {
		return false
	}
	if len(r.Kernels) == 0 {
		return true
	}
	matched := strings.HasPrefix(r.Kernels[0], "!")
	for _, p := range r.Kernels {
		pattern, negated := strings.CutPrefix(p, "!")
		if ok, _ := doublestar.Match(pattern, kernel); ok || pattern == kernel {
			matched = !negated
		}
	}
	return matched
}

// Idle is the error for a rule that applies to none of the kernels: it would
// never fail, so it is a mistake rather than a pass.
func (p *Policy) Idle(kernels []string) error {
	for _, r := range p.Rules {
		if !slices.ContainsFunc(kernels, r.Matches) {
			return &yamlfile.Error{File: p.File, Line: r.Line,
				Msg:    fmt.Sprintf("rule %q matches none of the %d kernels, so it can never fail", r.ID, len(kernels)),
				Advice: "kernels: patterns match names such as " + first(kernels)}
		}
	}
	return nil
}

func first(names []string) string {
	if len(names) == 0 {
		return "attention/r11_fa2_mma"
	}
	return names[0]
}
