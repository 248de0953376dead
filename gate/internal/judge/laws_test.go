package judge

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// rounds of every law; each starts from a seed that a failure prints.
const rounds = 150

func laws(t *testing.T, law func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	if testing.Short() {
		t.Skip("judges for long in one goroutine")
	}
	seed := time.Now().UnixNano()
	for i := range rounds {
		s := seed + int64(i)
		law(t, rand.New(rand.NewSource(s)))
		if t.Failed() {
			t.Fatalf("seed %d", s)
		}
	}
}

// earned is how much a status lets through.
func earned(s verdict.Status) int {
	switch s {
	case verdict.Pass:
		return 2
	case verdict.Warn:
		return 1
	}
	return 0
}

// mostPlanned is the number of rounds at the last look of the longest plan.
const mostPlanned = 30

// remove takes one piece of evidence away: a record, a metric, the checks or
// the samples of a record, the last block of an experiment.
func remove(r *rand.Rand, f *facts) string {
	k := f.kernels[r.Intn(len(f.kernels))]
	if r.Intn(4) == 0 || len(k.cases) == 0 {
		side := pick(r, &k.head, &k.old)
		if *side = without(r, *side); r.Intn(4) == 0 {
			*side = nil
		}
		return k.name + ": a static figure"
	}
	c := k.cases[r.Intn(len(k.cases))]
	all := c.all()
	at := r.Intn(len(all))
	a := all[at]
	where := fmt.Sprintf("%s, %s, record %d: ", k.name, c.name, at)
	if a.Record == nil || r.Intn(3) == 0 {
		*a = none(pick(r, "", "deleted"))
		return where + "the record"
	}
	record := *a.Record
	a.Record = &record
	if r.Intn(2) == 0 {
		record.Metrics = without(r, record.Metrics)
		return where + "a figure"
	}
	record.Checks, record.Samples = nil, nil
	record.Sessions = record.Sessions[:max(0, len(record.Sessions)-1)]
	if e := record.Experiment; e != nil {
		cut := *e
		if r.Intn(4) == 0 {
			cut.Stopped = "" // as if it had been interrupted
		}
		// An experiment that is longer than its plan is void. Without its last round
		// it is the experiment that was planned; that a round was taken away is for
		// the audit of the record to see.
		if len(cut.Rounds) <= mostPlanned {
			cut.Rounds = cut.Rounds[:max(0, len(cut.Rounds)-1)]
		}
		record.Experiment = &cut
	}
	return where + "checks, samples, the last session and the last block"
}

func without(r *rand.Rand, m evidence.Metrics) evidence.Metrics {
	out := evidence.Metrics{}
	for name, v := range m {
		if r.Intn(2) == 0 {
			out[name] = v
		}
	}
	return out
}

// improved says which kernel of a verdict, or whether all of it, lets more
// through than before.
func improved(before, after *verdict.Verdict) string {
	was := map[string]verdict.Status{}
	for _, k := range before.Kernels {
		was[k.Name] = k.Status
	}
	for _, k := range after.Kernels {
		if earned(k.Status) > earned(was[k.Name]) {
			return fmt.Sprintf("%s improves from %s to %s: before\n%safter\n%s", k.Name, was[k.Name], k.Status, summaryOf(before), summaryOf(after))
		}
	}
	if earned(after.Status) > earned(before.Status) {
		return fmt.Sprintf("before\n%safter\n%s", summaryOf(before), summaryOf(after))
	}
	return ""
}

func TestDeletingEvidenceNeverImproves(t *testing.T) {
	passes := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := randomPolicy(t, r), randomFacts(r, clearTime)
		before, ended := judged(t, p, f), stopped(t, p, f)
		if before.ExitCode() == 0 {
			passes++
		}
		for range 3 {
			what := remove(r, &f)
			if why := improved(before, judged(t, p, f)); why != "" {
				t.Errorf("%s is deleted: %s", what, why)
			}
			if why := improved(ended, stopped(t, p, f)); why != "" {
				t.Errorf("%s is deleted, and a failed tier stops: %s", what, why)
			}
		}
	})
	if passes < rounds/20 {
		t.Errorf("only %d of %d verdicts passed: the law was hardly put to a test", passes, rounds)
	}
}

// TestAddingARuleNeverTurnsFailIntoPass holds but for two things that a policy
// asks for: a trade (replaces:) takes the place of a rule, and a further rule on
// a time shares the error rate of the change with the others. A time that lies
// between its tolerance and what has to be found may be called either way, and one
// that is barely red among m tests can be undecided, and even pass, among m+1. A
// time beyond what has to be found stays red; no time here lies between the two.
func TestAddingARuleNeverTurnsFailIntoPass(t *testing.T) {
	fails := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r, clearTime)
		before := judged(t, policyOf(t, false, rules), f)
		more := slices.Insert(slices.Clone(rules), r.Intn(len(rules)+1), ruleText(r, "more"))
		for _, after := range []*verdict.Verdict{judged(t, policyOf(t, false, more), f), stopped(t, policyOf(t, false, more), f)} {
			if earned(after.Status) > earned(before.Status) {
				t.Errorf("%s is added: before\n%safter\n%s", more, summaryOf(before), summaryOf(after))
			}
		}
		if before.Status == verdict.Fail {
			fails++
		}
	})
	if fails < rounds/20 {
		t.Errorf("only %d of %d verdicts failed", fails, rounds)
	}
}

// worsen makes every figure and every time of the head worse.
func worsen(r *rand.Rand, f facts) {
	by, done := 1+r.Float64(), map[*kase]bool{}
	metrics := func(head, base evidence.Metrics) {
		for name, v := range head {
			m, ok := metric.Lookup(name)
			if !ok || !v.Known() {
				continue
			}
			x := v.Number*by + 1
			if m.Better == metric.Higher {
				x = v.Number / by
			}
			if b := base.Get(name); m.Better == metric.Neither && b.Known() && v.Number < b.Number {
				x = v.Number - by
			}
			head[name] = evidence.Of(x, v.Unit())
		}
	}
	slower := func(samples []evidence.Sample) {
		for _, s := range samples {
			for i := range s.BatchesNS {
				s.BatchesNS[i] *= by
			}
		}
	}
	for _, k := range f.kernels {
		if k.like != "" {
			continue // its figures are another kernel's
		}
		metrics(k.head, k.old)
		for _, c := range k.cases {
			if done[c] {
				continue
			}
			done[c] = true
			for _, side := range []struct{ head, base fact }{{c.correctness, c.baseCorrectness}, {c.profile, c.baseProfile}, {c.alone, fact{}}} {
				if side.head.Record == nil {
					continue
				}
				var base evidence.Metrics
				if side.base.Record != nil {
					base = side.base.Metrics
				}
				metrics(side.head.Metrics, base)
				slower(side.head.Samples)
			}
			experiments := []fact{c.experiment}
			for _, ref := range c.references {
				experiments = append(experiments, ref.experiment)
			}
			for _, e := range experiments {
				if e.Record == nil || e.Experiment == nil {
					continue
				}
				for _, b := range e.Experiment.Rounds {
					slower(b.Head)
				}
			}
		}
	}
}

func TestWorseNeverTurnsFailIntoPass(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := randomPolicy(t, r), randomFacts(r, anyTime)
		before := judged(t, p, f)
		worsen(r, f)
		for _, after := range []*verdict.Verdict{judged(t, p, f), stopped(t, p, f)} {
			if before.Status == verdict.Fail && after.ExitCode() == 0 {
				t.Errorf("everything got worse: before\n%safter\n%s", summaryOf(before), summaryOf(after))
			}
		}
	})
}

// TestEqualSidesNeverRegress: no rule that compares finds a change between a
// kernel and itself.
func TestEqualSidesNeverRegress(t *testing.T) {
	compared := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := policyOf(t, false, randomRules(r)), randomFacts(r, anyTime)
		for _, k := range f.kernels {
			k.state, k.broken, k.baseBroken, k.old = verdict.Changed, plan.Side{}, plan.Side{}, k.head
			for _, c := range k.cases {
				c.baseProfile, c.baseCorrectness = c.profile, c.correctness
				c.experiment = just(experiment(r, 3, 100_000))
				if r.Intn(2) == 0 {
					for b := range c.experiment.Experiment.Rounds {
						block := &c.experiment.Experiment.Rounds[b]
						block.Head = block.Base
					}
				}
			}
		}
		for _, k := range judged(t, p, f).Kernels {
			for _, found := range k.Findings {
				if !strings.HasPrefix(found.Accepts, "max_regression") || found.Base == nil && found.Interval == nil {
					continue
				}
				if compared++; found.Status == verdict.Fail {
					t.Errorf("%s: %+v", k.Name, found)
				}
			}
		}
	})
	if compared < rounds {
		t.Errorf("only %d findings compared anything", compared)
	}
}

// sortFindings puts findings where the order of rules and cases cannot reach.
func sortFindings(v *verdict.Verdict) {
	for i := range v.Kernels {
		k := &v.Kernels[i]
		slices.SortFunc(k.Findings, func(a, b verdict.Finding) int {
			return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Case, b.Case), strings.Compare(a.Machine, b.Machine))
		})
		slices.SortFunc(k.Figures, func(a, b verdict.CaseFigures) int {
			return cmp.Or(strings.Compare(a.Case, b.Case), strings.Compare(a.Machine, b.Machine))
		})
	}
}

func encoded(t *testing.T, v *verdict.Verdict) string {
	t.Helper()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOrderLeavesTheBytes(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r, anyTime)
		judge := pick(r, judged, stopped)
		first := judge(t, policyOf(t, false, rules), f)
		shuffled := facts{kernels: slices.Clone(f.kernels), options: f.options}
		r.Shuffle(len(shuffled.kernels), func(i, j int) {
			shuffled.kernels[i], shuffled.kernels[j] = shuffled.kernels[j], shuffled.kernels[i]
		})
		if again := judge(t, policyOf(t, false, rules), shuffled); encoded(t, again) != encoded(t, first) {
			t.Errorf("kernels in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		for i, k := range shuffled.kernels {
			other := *k
			other.cases = slices.Clone(k.cases)
			slices.Reverse(other.cases)
			shuffled.kernels[i] = &other
		}
		again := judge(t, policyOf(t, false, rules), shuffled)
		sortFindings(first)
		sortFindings(again)
		if encoded(t, again) != encoded(t, first) {
			t.Errorf("rules and cases in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
	})
}

// TestEverySubjectIsAnswered: each has a finding with a reason in words, each
// question exactly one, and no text holds a zero byte.
func TestEverySubjectIsAnswered(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := randomPolicy(t, r), randomFacts(r, anyTime)
		asked, _ := f.known(t, p)
		v := pick(r, judged, stopped)(t, p, f)
		findings := 0
		for _, k := range v.Kernels {
			findings += len(k.Findings)
			if len(k.Findings) == 0 {
				t.Errorf("%s has no finding", k.Name)
			}
			for _, found := range k.Findings {
				if found.Reason == "" || found.Rule == "" || found.Severity == "" {
					t.Errorf("%s: %+v", k.Name, found)
				}
			}
		}
		if len(v.Kernels) != len(f.kernels) || findings != len(asked.Questions) {
			t.Errorf("%d kernels of %d, %d findings of %d questions", len(v.Kernels), len(f.kernels), findings, len(asked.Questions))
		}
		if text := encoded(t, v); strings.Contains(text, "\x00") || strings.Contains(text, `\u0000`) {
			t.Errorf("a zero byte: %s", text)
		}
	})
}

// TestExitFollowsTheWorstKernel: the whole is no better than its worst part, a
// tool that failed for a rule, a warning one too, is never exit 0, and the
// counts are those of the parts.
func TestExitFollowsTheWorstKernel(t *testing.T) {
	standing := map[verdict.Status]int{verdict.NotCompared: 0, verdict.Pass: 1, verdict.Warn: 2, verdict.Inconclusive: 3, verdict.Fail: 4}
	laws(t, func(t *testing.T, r *rand.Rand) {
		v := judged(t, randomPolicy(t, r), randomFacts(r, anyTime))
		least, tool := 2, false
		for i, k := range v.Kernels {
			least = min(least, earned(k.Status))
			for _, f := range k.Findings {
				tool = tool || f.Tool && f.Status == verdict.Inconclusive && f.Severity != verdict.Info
			}
			if i > 0 && standing[k.Status] > standing[v.Kernels[i-1].Status] {
				t.Errorf("%s stands after %s", k.Name, v.Kernels[i-1].Name)
			}
		}
		if earned(v.Status) != least || v.ToolFailure != tool || (v.ExitCode() == 0) != (least > 0 && !tool) {
			t.Errorf("%s", summaryOf(v))
		}
		c := v.Counts
		if c.Passed+c.Failed+c.Undecided != c.Kernels || c.Kernels != len(v.Kernels) {
			t.Errorf("%+v", c)
		}
	})
}

// TestTheJudgeCountsNoMoreThanTheDriver: whatever is measured, in which order,
// and whatever fails on the way, no time is judged among more tests than the
// driver was told when it measured.
func TestTheJudgeCountsNoMoreThanTheDriver(t *testing.T) {
	series := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p := randomPolicy(t, r)
		if r.Intn(4) == 0 {
			p.AfterFailure = policy.Continue
		}
		asked, all := randomFacts(r, anyTime).known(t, p)
		l := &evidence.Ledger{}
		for _, n := range asked.Needs(l) {
			if e := all.Find(n); e.Record != nil && (n.Tier == evidence.Static || r.Intn(3) == 0) {
				l.Put(e.Record, evidence.Reused)
			}
		}
		asked, err := asked.Move(h200, l)
		if err != nil {
			t.Fatal(err)
		}
		told := asked.Family()
		for {
			asked = Stop(asked, l)
			step := asked.Next(l)
			if step == nil {
				break
			}
			if step.Together() {
				series++
				if told = min(told, len(step.Tests)+step.Plan.Elsewhere); len(step.Tests)+step.Plan.Elsewhere != asked.Family() || step.Plan.Elsewhere < 0 {
					t.Errorf("the driver is told %d tests and %d elsewhere, the family has %d", len(step.Tests), step.Plan.Elsewhere, asked.Family())
				}
			}
			for _, task := range step.Tasks {
				if e := all.Find(evidence.NeedOf(task.Key)); e.Record != nil && r.Intn(10) > 0 {
					l.Put(e.Record, evidence.Measured)
				} else {
					l.Try(task.Key)
					l.Because("it was tried", task.Key)
				}
			}
		}
		if asked.Family() > told {
			t.Errorf("the judge counts %d tests, the driver was told %d", asked.Family(), told)
		}
		j := judge{plan: asked, ledger: l}
		found, err := j.decideTimes()
		if err != nil {
			t.Fatal(err)
		}
		gated := len(found.stored)
		for i := range asked.Questions {
			q := &asked.Questions[i]
			if o, ok := found.decided[q.ID()]; ok && q.Weight != verdict.Info {
				if gated++; o.Tests > told {
					t.Errorf("%s is judged among %d tests, the driver was told %d", q, o.Tests, told)
				}
			}
		}
		if gated > asked.Family() {
			t.Errorf("%d times are judged, the family has %d", gated, asked.Family())
		}
		if _, err := Judge(asked, l); err != nil {
			t.Error(err)
		}
	})
	if series < rounds/10 {
		t.Errorf("only %d series were measured", series)
	}
}

// TestUnmeasuredTestsCount: what was not measured is part of the family as well,
// so that a time is judged the same whether the others were measured or not.
func TestUnmeasuredTestsCount(t *testing.T) {
	p := policyOf(t, false, []string{"{id: latency, metric: latency.typical, max_regression: 2%}", "{id: mean, metric: latency.mean, max_regression: 2%}", "{id: tail, metric: latency.p99, max_regression: 10%}"})
	f := good()
	for _, name := range []string{"op/m", "op/n"} {
		k := good().kernels[0]
		k.name, k.cases[0].experiment = name, fact{}
		f.kernels = append(f.kernels, k)
	}
	asked, l := f.known(t, p)
	j := judge{plan: asked, ledger: l}
	found, err := j.decideTimes()
	if err != nil {
		t.Fatal(err)
	}
	for i := range asked.Questions {
		q := &asked.Questions[i]
		want := 6 // two rules on three kernels; advice counts by itself
		if q.Name == "tail" {
			want = 1
		}
		if o, ok := found.decided[q.ID()]; ok && o.Tests != want || ok != (q.Subject.Name == "op/k" && q.Kind == plan.Experiment) {
			t.Errorf("%s: judged %v among %d tests, want %d", q, ok, o.Tests, want)
		}
	}
}

// TestUnmeasuredTestsCountAgainstSessions as well: one time alone is proven
// slower, and not as one of many.
func TestUnmeasuredTestsCountAgainstSessions(t *testing.T) {
	p := policyOf(t, true, []string{"{id: latency, metric: latency.typical, max_regression: 2%}"})
	for others, want := range map[int]verdict.Status{0: verdict.Fail, 40: verdict.Inconclusive} {
		f := change(func(_ *kernel, c *kase) {
			c.alone, c.experiment = just(timedAt(rand.New(rand.NewSource(4)), 102_000)), fact{}
		})
		for i := range others {
			f.kernels = append(f.kernels, &kernel{name: fmt.Sprintf("op/z%d", i), state: verdict.Changed, cases: []*kase{{name: "small"}}})
		}
		for _, k := range judged(t, p, f).Kernels {
			if k.Name == "op/k" && k.Status != want {
				t.Errorf("beside %d others: %s, want %s: %+v", others, k.Status, want, k.Findings)
			}
		}
	}
}

// TestWaiversAndTradesOnlyCoverWhatTheySay: a policy with a waiver or a trade lets
// through what one without them lets through, and of the rest nothing but findings
// that name the waiver or the trade.
func TestWaiversAndTradesOnlyCoverWhatTheySay(t *testing.T) {
	covered := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := rulesOf(standard), randomFacts(r, clearTime)
		strict := policyOf(t, false, rules)
		lax := policyOf(t, false, append(slices.Clone(rules), "{id: pay, replaces: spills, metric: ptxas.spill_bytes, limit: 64, when: {metric: latency.typical, min_improvement: 1%}}"))
		for _, k := range f.kernels {
			for _, rule := range []string{"registers", "stack", "latency", "occupancy"} {
				lax.Waivers = append(lax.Waivers, policy.Waiver{Rule: rule, Kernel: k.name,
					Ceiling: policy.Amount{Number: float64(r.Intn(2)) * 1e9, Text: "c", Set: true}, Until: now.AddDate(0, 0, r.Intn(3)-1), Owner: "o", Reason: "r"})
			}
		}
		was := map[string]verdict.Finding{}
		of := func(k verdict.KernelVerdict, f verdict.Finding) string {
			return strings.Join([]string{k.Name, f.Rule, f.Kind, f.Case, f.Machine}, "|")
		}
		for _, k := range judged(t, strict, f).Kernels {
			for _, found := range k.Findings {
				was[of(k, found)] = found
			}
		}
		for _, k := range judged(t, lax, f).Kernels {
			for _, found := range k.Findings {
				before, asked := was[of(k, found)]
				if !asked || before.Status != verdict.Fail || before.Severity != verdict.Red || found.Status == verdict.Fail && found.Severity == verdict.Red {
					continue
				}
				covered++
				waived := found.Waiver != nil && found.Waiver.State == verdict.Used && found.Waiver.DaysLeft >= 0 && found.Head != nil && found.Head.Known()
				if !waived && found.Trade != "pay" && !(found.Status == verdict.Inconclusive && found.Rule == "spills") {
					t.Errorf("%s: before %+v, after %+v", of(k, found), before, found)
				}
			}
		}
	})
	if covered < rounds/20 {
		t.Errorf("only %d findings were covered", covered)
	}
}
