// Package policy reads policies.yaml: which kernels are judged, on which
// machines, by which rules. It reads and refuses, and judges nothing.
package policy

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/verdict"
	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

// A Policy is a policies.yaml, checked.
type Policy struct {
	File         string
	Kernels      []string  // patterns for kernel.yaml files
	Machines     []Machine // the verdict needs evidence from each; none: any one
	Store        string
	Limits       compare.Limits
	Budget       time.Duration // wall time of one change's experiment
	GPUBudget    time.Duration // time of it in timed batches; 0: no bound
	Stored       bool          // times are held against stored sessions; the base is not run
	AfterFailure AfterFailure
	MaxAge       time.Duration // older evidence is not used; 0: any age
	NewOps       Unanswered    // the status of a kernel whose op the base lacks
	BuildHead    BuildHead     // what of a head is built by who judges a bundle
	Rules        []Rule
	Waivers      []Waiver

	kernelsLine, machinesLine int
}

// Unmatched is the error for patterns that no kernel.yaml fits.
func (p *Policy) Unmatched() error {
	return &yamlfile.Error{File: p.File, Line: p.kernelsLine, Msg: "no kernel matches " + strings.Join(p.Kernels, ", "),
		Advice: "kernels: names files called kernel.yaml, from the root of the repository, such as kernels/**/kernel.yaml"}
}

// Unanswered is the status of a question that evidence does not answer.
type Unanswered string

// LeftOpen is the default, and red: the exit status is that of inconclusive.
const (
	LeftOpen  Unanswered = "inconclusive"
	IsBroken  Unanswered = "fail"
	OnlyWarns Unanswered = "warn"
)

// BuildHead says which kernels of a head are built where a bundle is judged, so
// that their identities are not the word of the run that measured.
type BuildHead string

// BuildNever is the default. BuildTouched builds those that are called unchanged
// although a file of the pull request goes into them.
const (
	BuildNever   BuildHead = "never"
	BuildTouched BuildHead = "touched"
	BuildAlways  BuildHead = "always"
)

// AfterFailure says whether a kernel that fails a tier goes on to the next.
type AfterFailure string

// Stop is the default: a kernel that spills is not worth GPU time.
const (
	Stop     AfterFailure = "stop"
	Continue AfterFailure = "continue"
)

type file struct {
	Version      int       `yaml:"version"`
	Extends      texts     `yaml:"extends"`
	Kernels      texts     `yaml:"kernels"`
	Machines     []machine `yaml:"machines"`
	Store        string    `yaml:"store"`
	MaxAge       string    `yaml:"max_age"`
	NewOps       string    `yaml:"new_ops"`
	BuildHead    string    `yaml:"build_head"`
	Latency      latency   `yaml:"latency"`
	AfterFailure string    `yaml:"after_failure"`
	Rules        []rule    `yaml:"rules"`
	Waivers      []waiver  `yaml:"waivers"`
}

type latency struct {
	Profile   string `yaml:"profile"`
	Tolerance Amount `yaml:"tolerance"`
	Detect    Amount `yaml:"detect"`
	Tail      Amount `yaml:"tail"`
	Budget    string `yaml:"budget"`
	GPUBudget string `yaml:"gpu_budget"`
	Base      string `yaml:"base"`
}

// texts is one text or a list of them.
type texts []string

func (t *texts) UnmarshalYAML(n *yamlfile.Node) error {
	if n.Kind == yamlfile.Scalar {
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
	return &yamlfile.Error{File: c.file, Line: line, Msg: fmt.Sprintf(format, args...), Advice: hint}
}

func check(f *file, name string, lines yamlfile.Lines) (*Policy, error) {
	c := checker{name, lines}
	p := &Policy{File: name, Kernels: f.Kernels, Store: f.Store, AfterFailure: Stop, NewOps: LeftOpen, BuildHead: BuildNever, kernelsLine: lines["kernels"], machinesLine: lines["machines"]}
	switch {
	case f.Version == 0:
		return nil, c.bad("", "version: 1", "version is missing")
	case f.Version != 1:
		return nil, c.bad("version", "", "version %d is unknown to this gate, which reads version 1", f.Version)
	case len(f.Kernels) == 0:
		return nil, c.bad("", "kernels: kernels/**/kernel.yaml", "kernels is missing: which kernels does this policy judge?")
	case f.Store == "":
		return nil, c.bad("", "store: kernels/evidence", "store is missing: where is evidence kept?")
	case len(f.Rules) == 0 && len(f.Extends) == 0:
		return nil, c.bad("rules", "", "there is not one rule: a policy without rules passes everything")
	}
	if f.AfterFailure != "" {
		p.AfterFailure = AfterFailure(f.AfterFailure)
		if p.AfterFailure != Stop && p.AfterFailure != Continue {
			return nil, c.bad("after_failure", "stop or continue", "after_failure cannot be %q", f.AfterFailure)
		}
	}
	if f.NewOps != "" {
		if p.NewOps = Unanswered(f.NewOps); p.NewOps != LeftOpen && p.NewOps != OnlyWarns {
			return nil, c.bad("new_ops", "inconclusive or warn", "new_ops cannot be %q", f.NewOps)
		}
	}
	if f.BuildHead != "" {
		if p.BuildHead = BuildHead(f.BuildHead); p.BuildHead != BuildNever && p.BuildHead != BuildTouched && p.BuildHead != BuildAlways {
			return nil, c.bad("build_head", "never, touched or always", "build_head cannot be %q", f.BuildHead)
		}
	}
	if err := c.parts(f, p); err != nil {
		return nil, err
	}
	return p, nil
}

// parts checks the parts of a policy, rules before what speaks of them.
func (c checker) parts(f *file, p *Policy) (err error) {
	if p.MaxAge, err = c.age("max_age", f.MaxAge); err != nil {
		return err
	}
	if err := c.extend(f); err != nil {
		return err
	}
	for _, part := range []func(*file, *Policy) error{c.machines, c.kernels, c.latency, c.rules, c.waivers} {
		if err := part(f, p); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) rules(f *file, p *Policy) error {
	for i := range f.Rules {
		r, err := c.rule(f, i)
		if err == nil {
			err = c.time(&r, p.Limits, i)
		}
		if err != nil {
			return err
		}
		p.Rules = append(p.Rules, r)
	}
	if err := c.trades(p); err != nil {
		return err
	}
	return c.advised(p)
}

// advised refuses a comparison of times that would never be shown: one without a
// say reads the processes of an experiment that another rule asks for.
func (c checker) advised(p *Policy) error {
	asked := func(r Rule) bool {
		return r.Metric.Time() && r.Severity != verdict.Info && r.Compares() && !p.Stored
	}
	for i, r := range p.Rules {
		if r.Metric.Time() && r.Severity == verdict.Info && r.Compares() && !slices.ContainsFunc(p.Rules, asked) {
			return c.bad(fmt.Sprintf("rules[%d].metric", i), "", "rule %q: %s is compared where a rule compares latency.typical or latency.mean with a base that is run", r.ID, r.Metric.Name)
		}
	}
	return nil
}

// kernels requires patterns below the root, of which one matches something.
func (c checker) kernels(f *file, _ *Policy) error {
	named := false
	for _, p := range f.Kernels {
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

func (c checker) latency(f *file, p *Policy) (err error) {
	l := f.Latency
	name := l.Profile
	if name == "" {
		name = "standard"
	}
	if p.Limits, err = compare.Profile(name); err != nil {
		return c.bad("latency.profile", "standard, strict or loose", "%v", err)
	}
	if l.Tolerance.Set || l.Detect.Set {
		if !l.Tolerance.Set || !l.Detect.Set || l.Tolerance.Unit != "%" || l.Detect.Unit != "%" {
			return c.bad("latency", "latency: {tolerance: 0.5%, detect: 2%}", "tolerance and detect go together, both in %%")
		}
		if p.Limits, err = compare.NewLimits(l.Tolerance.Number, l.Detect.Number, p.Limits.Tail); err != nil {
			return c.bad("latency.detect", "", "%v", err)
		}
	}
	if l.Tail.Set {
		p.Limits.Tail = l.Tail.Number
		if err := p.Limits.Valid(); err != nil || l.Tail.Unit != "%" && l.Tail.Number != 0 {
			return c.bad("latency.tail", "tail: 20%, or 0", "a tail is the share of slow runs that a pass has to have seen, from 3.5%% to below 100%%, or 0")
		}
	}
	switch l.Base {
	case "", "run":
	case "stored":
		p.Stored = true
	default:
		return c.bad("latency.base", "run or stored", "latency.base cannot be %q", l.Base)
	}
	if p.Budget, err = c.duration("latency.budget", l.Budget, 120*time.Second); err != nil {
		return err
	}
	p.GPUBudget, err = c.duration("latency.gpu_budget", l.GPUBudget, 0)
	return err
}

// duration reads a time above 0.
func (c checker) duration(key, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, c.bad(key, "120s", "%q is not a time", text)
	}
	return d, nil
}

var agePattern = regexp.MustCompile(`^([1-9][0-9]{0,4})(d|w|h)$`)

// age reads a number of hours, days or weeks.
func (c checker) age(key, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	m := agePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, c.bad(key, "90d", "%q is not an age: a number of hours (h), days (d) or weeks (w)", text)
	}
	n, _ := strconv.Atoi(m[1])
	return time.Duration(n) * map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[m[2]], nil
}

// ProfileMetrics are the profiler's figures: gate's own, and those that rules
// name beside them.
func (p *Policy) ProfileMetrics() []string {
	var out []string
	for _, m := range metric.All() {
		if m.Tier == evidence.Profile {
			out = append(out, m.Name)
		}
	}
	for _, r := range p.Rules {
		if r.Metric.Tier == evidence.Profile && !slices.Contains(out, r.Metric.Name) {
			out = append(out, r.Metric.Name)
		}
	}
	return out
}
