package policy

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Judge applies a policy to facts. Deleting any evidence never improves what
// it returns, and no rule turns a failure into a pass.
func Judge(p *Policy, f Facts) (*Verdict, error) {
	times, unread, err := decideTimes(p, f)
	if err != nil {
		return nil, fmt.Errorf("comparing latencies: %w", err)
	}
	v := &Verdict{Schema: VerdictSchema, Policy: p.File}
	for i := range f.Kernels {
		j := judge{policy: p, facts: f, kernel: &f.Kernels[i], times: times, unread: unread}
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
		if finding.Tool && finding.Status == Inconclusive {
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

func (v *Verdict) countRecords(f Facts) {
	for _, k := range f.Kernels {
		for _, c := range k.Cases {
			for _, arm := range c.records() {
				switch {
				case arm.Record == nil && arm.Missing != "":
					v.Counts.Missing++
				case arm.Source == Measured:
					v.Counts.Measured++
				case arm.Source == Reused:
					v.Counts.Reused++
				}
			}
		}
	}
}

// judge is the judging of one kernel.
type judge struct {
	policy *Policy
	facts  Facts
	kernel *KernelFacts
	times  map[string]compare.Outcome
	unread map[string]string // why an experiment could not be judged
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
		v.Figures = j.figures()
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
	j := judge{policy: p, kernel: &k}
	j.rules()
	for _, f := range j.found {
		if f.Tier == tier && f.Status == Fail && f.Severity == Red {
			return true
		}
	}
	return k.Broken != nil
}

// statusOf is the worst of the findings; a kernel without one has not earned
// a pass.
func statusOf(findings []Finding) Status {
	status, any := NotCompared, false
	for _, f := range findings {
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

// correctness is the rule that no policy leaves out: a kernel that was never
// found correct has not earned anything.
func (j *judge) correctness(c CaseFacts) {
	f := Finding{Rule: "correctness", Case: c.Name, Machine: c.Machine, Tier: evidence.Correctness, Severity: Red}
	r := c.Correctness.Record
	switch {
	case r == nil:
		f.Reason = c.Correctness.Missing
	case r.Failure != nil:
		f.Status, f.Reason, f.Tool = blame(r.Failure.Blames()), r.Failure.Message, !r.Failure.Blames()
	case len(r.Checks) == 0:
		f.Reason = "the record holds no check"
	default:
		f.Status, f.Reason = checks(r.Checks)
	}
	if f.Reason == "" {
		f.Reason = "not measured"
	}
	j.add(f)
}

func checks(all []evidence.Check) (Status, string) {
	failed, why := 0, ""
	for _, c := range all {
		if c.Status == "pass" && c.Elements > 0 && c.RelativeError != nil && c.NonFinite == 0 && c.Unwritten == 0 && c.Guard == "ok" && !c.InputsChanged && c.Repeatable {
			continue
		}
		if failed++; failed == 1 {
			why = fmt.Sprintf("inputs %q: %s", c.Class, wrongness(c))
		}
	}
	if failed == 0 {
		return Pass, fmt.Sprintf("correct on %d input classes", len(all))
	}
	return Fail, fmt.Sprintf("wrong on %d of %d input classes; %s", failed, len(all), why)
}

func wrongness(c evidence.Check) string {
	if len(c.Reasons) > 0 {
		return c.Reasons[0]
	}
	if c.Elements <= 0 {
		return "no element was compared"
	}
	if c.NonFinite > 0 {
		return fmt.Sprintf("%d elements are not finite", c.NonFinite)
	}
	return "the check failed"
}

// apply judges one rule on the static tier (nil) or on one case.
func (j *judge) apply(r Rule, c *CaseFacts) {
	f := Finding{Rule: r.ID, Metric: r.Metric.Name, Unit: r.Metric.Unit, Tier: r.Metric.Tier, Severity: r.Severity, Accepts: accepts(r)}
	if c != nil {
		f.Case, f.Machine = c.Name, c.Machine
	}
	head, arm := j.value(r.Metric, c, false)
	f.Head = &head
	failure := arm.failure()
	f.Tool = failure != nil && !failure.Blames()
	switch {
	case failure != nil && failure.Blames():
		// What the kernel did is red whether or not there is a base to compare with.
		f.Status, f.Reason = Fail, failure.Message
	case isLatency(r.Metric) && r.MaxRegression.Set:
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

func accepts(r Rule) string {
	if r.Limit.Set {
		return "limit " + r.Limit.Text
	}
	text := "max_regression " + r.MaxRegression.Text
	if r.Floor.Set {
		text += ", floor " + r.Floor.Text
	}
	return text
}

func applyLimit(r Rule, f *Finding) {
	limit := inMetricUnit(r.Limit)
	broken := f.Head.Number > limit
	word := "above"
	if r.Metric.Better == compare.HigherBetter {
		broken, word = f.Head.Number < limit, "below"
	}
	if broken {
		f.Status, f.Reason = Fail, fmt.Sprintf("%s is %s the limit of %s", Show(f.Head.Number, r.Metric.Unit), word, Show(limit, r.Metric.Unit))
		return
	}
	f.Status, f.Reason = Pass, "within the limit"
}

// inMetricUnit turns "14%" into 14 for a metric in %: not the 14.000000000000002
// that the binary 0.14 makes of it, which a measured 14 does not reach.
func inMetricUnit(a Amount) float64 {
	if a.Unit == "%" {
		return math.Round(a.Number*1e11) / 1e9
	}
	return a.Number
}

// applyRegression compares an exact or a counted quantity with the base's.
func (j *judge) applyRegression(r Rule, c *CaseFacts, f *Finding) {
	switch j.kernel.State {
	case New:
		f.Status, f.Reason = NotCompared, "the kernel is new: there is nothing to compare with"
		return
	case NoBase:
		f.Reason = j.noBase()
		return
	case Unchanged:
		base := *f.Head
		f.Base = &base
		f.Status, f.Reason = Pass, "unchanged code"
		return
	}
	base, arm := j.value(r.Metric, c, true)
	f.Base = &base
	if failure := arm.failure(); failure != nil {
		f.Tool, f.Hint = !failure.Blames(), failure.Hint
	}
	change := compare.Exact(known(base), known(*f.Head))
	if !base.Known() {
		f.Reason = "the base has no figure: " + base.Missing
		return
	}
	f.Status, f.Reason = regression(r, change)
}

func (j *judge) noBase() string {
	if j.facts.NoBase != "" {
		return "there is no base: " + j.facts.NoBase
	}
	return "there is no base to compare with"
}

func known(v evidence.Value) compare.Value { return compare.Value{Number: v.Number, Known: v.Known()} }

// regression decides how much worse is too much. A relative bound says nothing
// about a base of 0, so there any worsening above the floor is a failure.
func regression(r Rule, change compare.Change) (Status, string) {
	amount, ok := change.Worsening(compare.Absolute, r.Metric.Better)
	if r.Metric.Either {
		amount = math.Abs(change.Absolute)
	}
	if !ok {
		return Inconclusive, "the two sides cannot be compared: " + fmt.Sprint(change.State)
	}
	unit := r.Metric.Unit
	moved := fmt.Sprintf("%s → %s", Show(change.Base, unit), Show(change.Head, unit))
	switch {
	case change.State == compare.Unchanged:
		return Pass, "equal"
	case amount <= 0:
		return Pass, "better: " + moved
	case r.Floor.Set && amount <= r.Floor.Number:
		return Pass, "worse by less than the floor: " + moved
	}
	accepted := r.MaxRegression.Number
	if r.MaxRegression.Unit == "%" {
		if change.Base <= 0 {
			return Fail, moved + ": worse, and a share of a base of " + Show(change.Base, unit) + " is not defined"
		}
		accepted *= change.Base
	}
	if amount <= accepted {
		return Pass, "within what is accepted: " + moved
	}
	return Fail, fmt.Sprintf("%s (%s worse, %s accepted)", moved, worsening(r, change, amount), r.MaxRegression.Text)
}

func worsening(r Rule, change compare.Change, amount float64) string {
	switch {
	case r.MaxRegression.Unit == "%":
		return fmt.Sprintf("%.3g %%", 100*amount/change.Base)
	case r.Metric.Unit == "%":
		return fmt.Sprintf("%.3g pp", amount)
	}
	return Show(amount, r.Metric.Unit)
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
	return a.Record.Metrics.Get(m.Name)
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

// Show writes a figure with its unit as a person reads it.
func Show(x float64, unit string) string {
	switch unit {
	case "ns":
		return showTime(x)
	case "byte":
		return showNumber(x) + " B"
	case "%":
		return strconv.FormatFloat(x, 'f', 1, 64) + " %"
	case "", "registers/thread", "register/thread", "inst", "cycle", "block", "warp", "sector":
		return showNumber(x)
	}
	return showNumber(x) + " " + unit
}

func showTime(ns float64) string {
	switch {
	case math.Abs(ns) >= 1e6:
		return strconv.FormatFloat(ns/1e6, 'f', 3, 64) + " ms"
	case math.Abs(ns) >= 1e3:
		return strconv.FormatFloat(ns/1e3, 'f', 2, 64) + " µs"
	}
	return strconv.FormatFloat(ns, 'f', 0, 64) + " ns"
}

func showNumber(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return group(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// group sets thin digits apart: 1234567 is 1,234,567.
func group(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
