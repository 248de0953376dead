// Package policy reads policies.yaml and turns comparisons into a verdict. It
// is pure: the same facts and the same policy give the same verdict, and every
// status starts as inconclusive until evidence upgrades it.
package policy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
	"gopkg.in/yaml.v3"
)

// A Policy is a policies.yaml, checked.
type Policy struct {
	File         string
	Kernels      []string // patterns for kernel.yaml files
	Machines     []string // the verdict needs evidence from each; none: any one
	Store        string
	Limits       compare.Limits
	Budget       time.Duration
	AfterFailure AfterFailure
	Rules        []Rule
}

// AfterFailure says whether a kernel that fails a tier goes on to the next.
type AfterFailure string

// Stop is the default: a kernel that spills is not worth GPU time.
const (
	Stop     AfterFailure = "stop"
	Continue AfterFailure = "continue"
)

// Severity says whether a broken rule is red.
type Severity string

// Red is the default.
const (
	Red   Severity = "fail"
	Warns Severity = "warn"
)

// A Rule is one line of a policy: a metric and what is accepted of it.
type Rule struct {
	ID            string
	Metric        Metric
	Limit         Amount
	MaxRegression Amount
	Floor         Amount
	Kernels       []string
	Severity      Severity
	Line          int
}

type file struct {
	Version      int      `yaml:"version"`
	Kernels      texts    `yaml:"kernels"`
	Machines     []string `yaml:"machines"`
	Store        string   `yaml:"store"`
	Latency      latency  `yaml:"latency"`
	AfterFailure string   `yaml:"after_failure"`
	Rules        []rule   `yaml:"rules"`
}

type latency struct {
	Profile   string `yaml:"profile"`
	Tolerance Amount `yaml:"tolerance"`
	Detect    Amount `yaml:"detect"`
	Budget    string `yaml:"budget"`
}

type rule struct {
	ID            string   `yaml:"id"`
	Metric        string   `yaml:"metric"`
	Limit         Amount   `yaml:"limit"`
	MaxRegression Amount   `yaml:"max_regression"`
	Floor         Amount   `yaml:"floor"`
	Kernels       []string `yaml:"kernels"`
	Severity      string   `yaml:"severity"`
}

// texts is one text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// Read reads and checks the policy at path; name is what messages call it.
func Read(path, name string) (*Policy, error) {
	var f file
	lines, err := yamlfile.Read(path, name, &f)
	if err != nil {
		return nil, err
	}
	return check(&f, name, lines)
}

// Parse is Read for text in memory.
func Parse(data []byte, name string) (*Policy, error) {
	var f file
	lines, err := yamlfile.Decode(data, name, &f)
	if err != nil {
		return nil, err
	}
	return check(&f, name, lines)
}

type checker struct {
	file  string
	lines yamlfile.Lines
}

// bad points at the line of a key, or of what the key is missing from.
func (c checker) bad(key, hint, format string, args ...any) error {
	line, ok := c.lines[key]
	if parent := strings.LastIndexByte(key, '.'); !ok && parent >= 0 {
		line = c.lines[key[:parent]]
	}
	return &yamlfile.Error{File: c.file, Line: line, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

func check(f *file, name string, lines yamlfile.Lines) (*Policy, error) {
	c := checker{name, lines}
	p := &Policy{File: name, Kernels: f.Kernels, Machines: f.Machines, Store: f.Store, AfterFailure: Stop}
	switch {
	case f.Version == 0:
		return nil, c.bad("", "version: 1", "version is missing")
	case f.Version != 1:
		return nil, c.bad("version", "", "version %d is unknown to this gate, which reads version 1", f.Version)
	case len(f.Kernels) == 0:
		return nil, c.bad("", "kernels: kernels/**/kernel.yaml", "kernels is missing: which kernels does this policy judge?")
	case f.Store == "":
		return nil, c.bad("", "store: kernels/evidence", "store is missing: where is evidence kept?")
	case len(f.Rules) == 0:
		return nil, c.bad("rules", "", "there is not one rule: a policy without rules passes everything")
	}
	if f.AfterFailure != "" {
		p.AfterFailure = AfterFailure(f.AfterFailure)
		if p.AfterFailure != Stop && p.AfterFailure != Continue {
			return nil, c.bad("after_failure", "stop or continue", "after_failure cannot be %q", f.AfterFailure)
		}
	}
	for i, m := range f.Machines {
		if m == "" || slices.Index(f.Machines, m) != i {
			return nil, c.bad("machines", "", "machines wants names, each once")
		}
	}
	err := c.kernels(f.Kernels)
	if err != nil {
		return nil, err
	}
	if p.Limits, p.Budget, err = c.latency(f.Latency); err != nil {
		return nil, err
	}
	for i := range f.Rules {
		r, err := c.rule(f, i)
		if err == nil {
			err = c.time(r, p.Limits, i)
		}
		if err != nil {
			return nil, err
		}
		p.Rules = append(p.Rules, r)
	}
	return p, nil
}

// kernels wants patterns below the root, of which one names something.
func (c checker) kernels(patterns []string) error {
	named := false
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p, "!")
		if !doublestar.ValidatePattern(pattern) || !filepath.IsLocal(filepath.FromSlash(pattern)) {
			return c.bad("kernels", "", "kernels: %q is not a pattern for files below the root", p)
		}
		named = named || !negated
	}
	if !named {
		return c.bad("kernels", "", "kernels: every pattern takes kernels away, and none names any")
	}
	return nil
}

func (c checker) latency(l latency) (compare.Limits, time.Duration, error) {
	name := l.Profile
	if name == "" {
		name = "standard"
	}
	limits, err := compare.Profile(name)
	if err != nil {
		return limits, 0, c.bad("latency.profile", "standard, strict or loose", "%v", err)
	}
	if l.Tolerance.Set || l.Detect.Set {
		if !l.Tolerance.Set || !l.Detect.Set || l.Tolerance.Unit != "%" || l.Detect.Unit != "%" {
			return limits, 0, c.bad("latency", "latency: {tolerance: 0.5%, detect: 2%}", "tolerance and detect go together, both in %%")
		}
		if limits, err = compare.NewLimits(l.Tolerance.Number, l.Detect.Number); err != nil {
			return limits, 0, c.bad("latency.detect", "", "%v", err)
		}
	}
	budget := 120 * time.Second
	if l.Budget != "" {
		if budget, err = time.ParseDuration(l.Budget); err != nil || budget <= 0 {
			return limits, 0, c.bad("latency.budget", "120s", "%q is not a time", l.Budget)
		}
	}
	return limits, budget, nil
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// reserved are the rules that no policy can leave out.
var reserved = []string{"builds", "present", "correctness"}

func (c checker) rule(f *file, i int) (Rule, error) {
	in := f.Rules[i]
	at := fmt.Sprintf("rules[%d]", i)
	key := func(k string) string { return at + "." + k }
	if !idPattern.MatchString(in.ID) {
		return Rule{}, c.bad(at, "", "rule %d wants an id of lower-case letters, digits, '-' and '_'", i+1)
	}
	for j := range f.Rules[:i] {
		if f.Rules[j].ID == in.ID {
			return Rule{}, c.bad(key("id"), "", "rule %q is defined twice", in.ID)
		}
	}
	if slices.Contains(reserved, in.ID) {
		return Rule{}, c.bad(key("id"), "", "%q is a rule that gate always applies: choose another id", in.ID)
	}
	m, ok := LookupMetric(in.Metric)
	if !ok {
		hint := "see `gate schema metrics` for the list"
		if near := yamlfile.Nearest(in.Metric, metricNames()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return Rule{}, c.bad(key("metric"), hint, "rule %q: unknown metric %q", in.ID, in.Metric)
	}
	r := Rule{ID: in.ID, Metric: m, Limit: in.Limit, MaxRegression: in.MaxRegression, Floor: in.Floor,
		Kernels: in.Kernels, Severity: Red, Line: c.lines[at]}
	if in.Severity != "" {
		r.Severity = Severity(in.Severity)
		if r.Severity != Red && r.Severity != Warns {
			return Rule{}, c.bad(key("severity"), "fail or warn", "rule %q: severity cannot be %q", in.ID, in.Severity)
		}
	}
	for j, pattern := range in.Kernels {
		if !doublestar.ValidatePattern(strings.TrimPrefix(pattern, "!")) {
			return Rule{}, c.bad(fmt.Sprintf("%s.kernels[%d]", at, j), "", "rule %q: %q is not a pattern", in.ID, pattern)
		}
	}
	return r, c.amounts(r, key)
}

// time checks that what a rule accepts of a time can be put to a test.
func (c checker) time(r Rule, profile compare.Limits, i int) error {
	if !isLatency(r.Metric) {
		return nil
	}
	if r.Limit.Set && r.Limit.Number == 0 {
		return c.bad(fmt.Sprintf("rules[%d].limit", i), "", "rule %q: no time lies below a limit of %s", r.ID, r.Limit.Text)
	}
	if r.MaxRegression.Set {
		if _, err := compare.MaxRegression(profile, r.MaxRegression.Number); err != nil {
			return c.bad(fmt.Sprintf("rules[%d].max_regression", i), "", "rule %q: %v", r.ID, err)
		}
	}
	return nil
}

// amounts checks that what a rule accepts can be compared with its metric.
func (c checker) amounts(r Rule, key func(string) string) error {
	m := r.Metric
	if r.Limit.Set == r.MaxRegression.Set {
		return c.bad(key("metric"), "", "rule %q wants either limit or max_regression", r.ID)
	}
	if r.Limit.Set && m.Either {
		return c.bad(key("limit"), "max_regression says how much may change", "rule %q: %s has no better direction, so a limit has no side", r.ID, m.Name)
	}
	if r.Limit.Set && !sameUnit(r.Limit, m) {
		return c.bad(key("limit"), "", "rule %q: a limit of %s does not fit %s, which is in %s", r.ID, r.Limit.Text, m.Name, unitName(m.Unit))
	}
	if r.MaxRegression.Set && r.MaxRegression.Unit != "%" && !sameUnit(r.MaxRegression, m) {
		return c.bad(key("max_regression"), "", "rule %q: max_regression of %s does not fit %s, which is in %s", r.ID, r.MaxRegression.Text, m.Name, unitName(m.Unit))
	}
	if isLatency(m) && r.MaxRegression.Set && (r.MaxRegression.Unit != "%" || r.MaxRegression.Number <= 0) {
		return c.bad(key("max_regression"), "2%", "rule %q: a time is compared in %%, above 0", r.ID)
	}
	if r.Floor.Set && (r.Limit.Set || !sameUnit(r.Floor, m)) {
		return c.bad(key("floor"), "", "rule %q: floor goes with max_regression and is in %s", r.ID, unitName(m.Unit))
	}
	return nil
}

// sameUnit reports whether an amount is in the unit of the metric. A metric in
// % takes points: "5pp", or "62%" for a limit.
func sameUnit(a Amount, m Metric) bool {
	switch a.Unit {
	case "":
		return m.Unit != "ns"
	case "pp", "%":
		return m.Unit == "%"
	default:
		return m.Unit == a.Unit
	}
}

func unitName(unit string) string {
	if unit == "" {
		return "plain numbers"
	}
	return unit
}

// Matches reports whether the rule applies to a kernel: some pattern names it
// and no later "!" pattern takes it away. No pattern means every kernel.
func (r Rule) Matches(kernel string) bool {
	if len(r.Kernels) == 0 {
		return true
	}
	matched := strings.HasPrefix(r.Kernels[0], "!")
	for _, p := range r.Kernels {
		pattern, negated := strings.CutPrefix(p, "!")
		if ok, _ := doublestar.Match(pattern, kernel); ok {
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
				Msg:  fmt.Sprintf("rule %q matches none of the %d kernels, so it can never fail", r.ID, len(kernels)),
				Hint: "kernels: patterns match names such as " + first(kernels)}
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
