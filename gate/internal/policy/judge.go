package policy

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Judge applies a policy to facts. Deleting any evidence never improves what
// it returns, and no rule turns a failure into a pass.
func Judge(p *Policy, f Facts) (*Verdict, error) {
	times, err := decideTimes(p, f)
	if err != nil {
		return nil, fmt.Errorf("comparing latencies: %w", err)
	}
	v := &Verdict{Schema: VerdictSchema, Policy: p.File}
	for i := range f.Kernels {
		j := judge{policy: p, facts: f, kernel: &f.Kernels[i], times: times}
		v.add(j.verdict())
	}
	v.countRecords(f)
	v.conclude()
	return v, nil
}

func (v *Verdict) add(k KernelVerdict) {
	v.Kernels = append(v.Kernels, k)
	v.Counts.Kernels++
	switch k.State {
	case Unchanged:
		v.Counts.Unchanged++
	case Changed:
		v.Counts.Changed++
	case New:
		v.Counts.New++
	case Gone:
		v.Counts.Gone++
	}
	switch k.Status {
	case Pass, Warn:
		v.Counts.Passed++
	case Fail:
		v.Counts.Failed++
	default:
		v.Counts.Undecided++
	}
	for _, finding := range k.Findings {
		if finding.Tool && finding.Status == Inconclusive && finding.Severity != Advice {
			v.ToolFailure = true
		}
	}
}

// conclude takes the worst kernel; no kernel at all is no pass. The kernels
// are put worst first.
func (v *Verdict) conclude() {
	if len(v.Kernels) == 0 {
		return
	}
	v.Status = Pass
	for _, k := range v.Kernels {
		if worse(k.Status, v.Status) {
			v.Status = k.Status
		}
	}
	sort.SliceStable(v.Kernels, func(i, j int) bool {
		a, b := v.Kernels[i], v.Kernels[j]
		if a.Status != b.Status {
			return worse(a.Status, b.Status)
		}
		if a.Name != b.Name {
			return a.Name < b.Name
		}
		return a.Arch < b.Arch
	})
}

// countRecords counts every record once, and every place that lacks one.
func (v *Verdict) countRecords(f Facts) {
	seen := map[any]bool{}
	for _, k := range f.Kernels {
		for _, c := range k.Cases {
			for _, arm := range c.Arms() {
				if arm.Record == nil && arm.Missing != "" {
					v.Counts.Missing++
				}
				if arm.Record == nil || seen[placeOf(arm.Record)] {
					continue
				}
				switch arm.Source {
				case Measured:
					v.Counts.Measured++
				case Reused:
					v.Counts.Reused++
				default:
					continue // a figure to show, from a record that has its place elsewhere
				}
				seen[placeOf(arm.Record)] = true
			}
		}
	}
}

// placeOf tells records apart: a reference's is also that of its own kernel.
func placeOf(r *evidence.Record) any {
	if !r.Address.Known() {
		return r
	}
	place := struct {
		tier     evidence.Tier
		at, base evidence.Address
	}{tier: r.Tier, at: r.Address}
	if r.Base != nil {
		place.base = *r.Base
	}
	return place
}

// judge is the judging of one kernel.
type judge struct {
	policy *Policy
	facts  Facts
	kernel *KernelFacts
	times  *times
	found  []Finding
}

func (j *judge) verdict() KernelVerdict {
	k := j.kernel
	v := KernelVerdict{Name: k.Name, File: k.File, Arch: k.Arch, State: k.State, Identity: k.Identity}
	switch {
	case k.State == Gone:
		j.add(Finding{Rule: "present", Status: Fail, Severity: Red,
			Reason: "the base has this kernel and the head does not: a kernel that is gone is red until that is declared"})
	case k.Broken != nil:
		v.Detail = k.Broken.Detail
		j.add(Finding{Rule: "builds", Status: blame(k.Broken.Blame), Severity: Red, Reason: k.Broken.Message, Tool: k.Broken.Tool})
	default:
		j.present()
		j.rules()
		v.Figures, v.Launches = j.figures(), launchChanges(k)
	}
	v.Findings = j.found
	v.Status = statusOf(j.found)
	return v
}

// present misses what the base judges and the head does not.
func (j *judge) present() {
	k := j.kernel
	miss := func(kase string, status Status, reason string) {
		j.add(Finding{Rule: "present", Case: kase, Status: status, Severity: Red, Reason: reason})
	}
	if k.State == NoBase && !j.facts.LimitsOnly {
		// Limits alone cannot pass it: the base may have had kernels that are gone.
		miss("", Inconclusive, j.noBase())
	}
	for _, name := range k.GoneCases {
		miss(name, Fail, "the base measures this case and the head does not: a case that is gone is red until that is declared")
	}
	for _, name := range k.Unselected {
		miss("", Fail, "entries: leaves out "+name+", which the base judges and the sources still hold")
	}
}

func blame(fault bool) Status {
	if fault {
		return Fail
	}
	return Inconclusive
}

// Fails reports whether a kernel breaks a rule of one tier, as far as the
// facts tell.
func Fails(p *Policy, k KernelFacts, tier evidence.Tier) bool {
	j := judge{policy: p, kernel: &k, times: &times{}}
	j.rules()
	for _, f := range j.found {
		if f.Tier == tier && f.Status == Fail && f.Severity == Red {
			return true
		}
	}
	return k.Broken != nil
}

// statusOf is the worst of the findings; a kernel without one has not earned
// a pass. Advice weighs nothing.
func statusOf(findings []Finding) Status {
	status, any := NotCompared, false
	for _, f := range findings {
		if f.Severity == Advice {
			continue
		}
		s := f.Status
		if f.Severity == Warns && (s == Fail || s == Inconclusive) {
			s = Warn
		}
		if worse(s, status) {
			status = s
		}
		any = any || s != NotCompared
	}
	if !any {
		return Inconclusive
	}
	return status
}

func (j *judge) add(f Finding) { j.found = append(j.found, f) }

func (j *judge) rules() {
	if len(j.kernel.Cases) == 0 {
		j.add(Finding{Rule: "correctness", Tier: evidence.Correctness, Severity: Red, Reason: "no case was judged"})
	}
	for _, c := range j.kernel.Cases {
		j.correctness(c)
	}
	for _, r := range j.policy.Rules {
		if !r.Matches(j.kernel.Name) {
			continue
		}
		if r.Metric.Tier == evidence.Static {
			j.apply(r, nil)
			continue
		}
		for i := range j.kernel.Cases {
			j.apply(r, &j.kernel.Cases[i])
		}
	}
}

// apply judges one rule on the static tier (nil) or on one case.
func (j *judge) apply(r Rule, c *CaseFacts) {
	f := Finding{Rule: r.ID, Metric: r.Metric.Name, Unit: r.Metric.Unit, Tier: r.Metric.Tier, Severity: r.Severity, Accepts: j.policy.accepts(r)}
	if c != nil {
		f.Case, f.Machine = c.Name, c.Machine
	}
	if r.RelativeTo != "" {
		j.applyReference(r, c, &f)
		j.add(f)
		return
	}
	head, arm := j.value(r.Metric, c, false)
	f.Head = &head
	failure := arm.failure()
	f.Tool = failure != nil && !failure.Blames()
	switch {
	case failure != nil && failure.Blames():
		// What the kernel did is red whether or not there is a base to compare with.
		f.Status, f.Reason = Fail, failure.Message
	case isLatency(r.Metric) && r.Compares():
		j.applyTime(r, c, &f)
	case !head.Known():
		f.Reason = head.Missing
	case r.Limit.Set && isLatency(r.Metric):
		applyTimeLimit(r, c, &f)
	case r.Limit.Set:
		applyLimit(r, &f)
	default:
		j.applyRegression(r, c, &f)
	}
	if f.Reason == "" {
		f.Reason = "not measured"
	}
	if failure != nil {
		f.Hint = failure.Hint
	}
	if c != nil && isLatency(r.Metric) {
		j.addNoise(r, c, &f)
	}
	j.add(f)
}

// failure is how the tier of an arm ended, nil when it was measured.
func (a *Arm) failure() *evidence.Failure {
	if a == nil || a.Record == nil {
		return nil
	}
	return a.Record.Failure
}

func (p *Policy) accepts(r Rule) string {
	if r.RelativeTo != "" {
		return "limit " + r.Limit.Text + " of " + r.RelativeTo
	}
	if r.Limit.Set {
		return "limit " + r.Limit.Text
	}
	text := "max_regression " + r.MaxRegression.Text
	if !r.MaxRegression.Set {
		text = fmt.Sprintf("detect %g%%", inMetricUnit(Amount{Number: p.Limits.Detect, Unit: "%"}))
	}
	if r.Floor.Set {
		text += ", floor " + r.Floor.Text
	}
	return text
}

func (j *judge) noBase() string {
	if j.facts.NoBase != "" {
		return "there is no base: " + j.facts.NoBase
	}
	return "there is no base to compare with"
}

// value is the figure of a metric on one side, with the record it comes from.
func (j *judge) value(m Metric, c *CaseFacts, base bool) (evidence.Value, *Arm) {
	if m.Tier == evidence.Static {
		metrics := j.kernel.Head
		if base {
			metrics = j.kernel.Old
			if j.kernel.BaseProblem != "" {
				return evidence.Absent(j.kernel.BaseProblem, m.Unit), nil
			}
		}
		return metrics.Get(m.Name), nil
	}
	arm := &c.Correctness
	switch {
	case m.Tier == evidence.Profile && base:
		arm = &c.Profile.Base
	case m.Tier == evidence.Profile:
		arm = &c.Profile.Head
	case m.Tier == evidence.Latency:
		arm = &c.Latency.Head
	}
	return arm.get(m), arm
}

func (a *Arm) get(m Metric) evidence.Value {
	switch {
	case a.Record == nil && a.Missing != "":
		return evidence.Absent(a.Missing, m.Unit)
	case a.Record == nil:
		return evidence.Absent("not measured", m.Unit)
	case a.Record.Failure != nil:
		return evidence.Absent(a.Record.Failure.Message, m.Unit)
	}
	return inItsUnit(a.Record.Metrics.Get(m.Name), m)
}

// inItsUnit refuses a figure in another unit than the metric's: a record comes
// from a file. A raw counter has the unit that the profiler gave it.
func inItsUnit(v evidence.Value, m Metric) evidence.Value {
	if !v.Known() || v.Unit == m.Unit || strings.HasPrefix(m.Name, "ncu.raw.") {
		return v
	}
	return evidence.Absent(fmt.Sprintf("it is recorded in %s, and %s is in %s", unitName(v.Unit), m.Name, unitName(m.Unit)), m.Unit)
}

// figures are the head's metrics of every tier, judged or not.
func (j *judge) figures() []CaseFigures {
	out := []CaseFigures{{Metrics: j.kernel.Head}}
	for _, c := range j.kernel.Cases {
		merged := evidence.Metrics{}
		for _, arm := range []Arm{c.Correctness, c.Profile.Head, c.Latency.Head} {
			if arm.Record == nil {
				continue
			}
			for name, v := range arm.Record.Metrics {
				merged[name] = v
			}
		}
		if len(merged) > 0 {
			out = append(out, CaseFigures{Case: c.Name, Machine: c.Machine, Metrics: merged})
		}
	}
	return out
}
