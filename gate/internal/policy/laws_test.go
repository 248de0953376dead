package policy

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// rounds of every law; each starts from a seed that a failure prints.
const rounds = 150

func laws(t *testing.T, law func(t *testing.T, r *rand.Rand)) {
	t.Helper()
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
func earned(s Status) int {
	switch s {
	case Pass:
		return 2
	case Warn:
		return 1
	}
	return 0
}

// remove takes one piece of evidence away: a record, a metric, the checks or
// the samples of a record, the last block of an experiment.
func remove(r *rand.Rand, f *Facts) string {
	k := &f.Kernels[r.Intn(len(f.Kernels))]
	if r.Intn(4) == 0 {
		side := pick(r, &k.Head, &k.Old)
		*side = without(r, *side)
		return k.Name + ": a static figure"
	}
	c := &k.Cases[r.Intn(len(k.Cases))]
	c.Latency.References = slices.Clone(c.Latency.References)
	all := c.Arms()
	at := r.Intn(len(all))
	a := all[at]
	where := fmt.Sprintf("%s, %s, arm %d: ", k.Name, c.Name, at)
	if a.Record == nil || r.Intn(3) == 0 {
		*a = Arm{Missing: pick(r, "", "deleted")}
		return where + "the record"
	}
	record := *a.Record
	a.Record = &record
	if r.Intn(2) == 0 {
		record.Metrics = without(r, record.Metrics)
		return where + "a figure"
	}
	record.Checks, record.Samples = nil, nil
	if e := record.Experiment; e != nil {
		cut := *e
		cut.Blocks = cut.Blocks[:max(0, len(cut.Blocks)-1)]
		record.Experiment = &cut
	}
	return where + "checks, samples and the last block"
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

func TestDeletingEvidenceNeverImproves(t *testing.T) {
	passes := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := randomPolicy(t, r), randomFacts(r)
		before := judged(t, p, f)
		was := map[string]Status{}
		for _, k := range before.Kernels {
			was[k.Name] = k.Status
		}
		if before.ExitCode() == 0 {
			passes++
		}
		for range 3 {
			what := remove(r, &f)
			after := judged(t, p, f)
			if earned(after.Status) > earned(before.Status) {
				t.Errorf("%s is deleted: before\n%safter\n%s", what, summaryOf(before), summaryOf(after))
			}
			for _, k := range after.Kernels {
				if earned(k.Status) > earned(was[k.Name]) {
					t.Errorf("%s is deleted: %s improves from %s to %s\n%s", what, k.Name, was[k.Name], k.Status, summaryOf(after))
				}
			}
		}
	})
	if passes < rounds/20 {
		t.Errorf("only %d of %d verdicts passed: the law was hardly put to a test", passes, rounds)
	}
}

func TestAddingARuleNeverTurnsFailIntoPass(t *testing.T) {
	fails := 0
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r)
		before := judged(t, policyOf(t, false, rules), f)
		more := slices.Insert(slices.Clone(rules), r.Intn(len(rules)+1), ruleText(r, "more"))
		after := judged(t, policyOf(t, false, more), f)
		if earned(after.Status) > earned(before.Status) {
			t.Errorf("%s is added: before\n%safter\n%s", more, summaryOf(before), summaryOf(after))
		}
		if before.Status == Fail {
			fails++
		}
	})
	if fails < rounds/20 {
		t.Errorf("only %d of %d verdicts failed", fails, rounds)
	}
}

// worsen makes every figure and every time of the head worse.
func worsen(r *rand.Rand, f Facts) {
	by := 1 + r.Float64()
	metrics := func(head, base evidence.Metrics) {
		for name, v := range head {
			m, ok := LookupMetric(name)
			if !ok || !v.Known() {
				continue
			}
			x := v.Number*by + 1
			if m.Better == compare.HigherBetter && !m.Either {
				x = v.Number / by
			}
			if b := base.Get(name); m.Either && b.Known() && v.Number < b.Number {
				x = v.Number - by
			}
			head[name] = evidence.Of(x, v.Unit)
		}
	}
	slower := func(samples []evidence.Sample) {
		for _, s := range samples {
			for i := range s.BatchesNS {
				s.BatchesNS[i] *= by
			}
		}
	}
	for i := range f.Kernels {
		k := &f.Kernels[i]
		metrics(k.Head, k.Old)
		for j := range k.Cases {
			c := &k.Cases[j]
			for _, a := range []Arm{c.Correctness, c.Profile.Head, c.Latency.Head} {
				if a.Record == nil {
					continue
				}
				var base evidence.Metrics
				if c.Profile.Base.Record != nil {
					base = c.Profile.Base.Record.Metrics
				}
				metrics(a.Record.Metrics, base)
				slower(a.Record.Samples)
			}
			experiments := []Arm{c.Latency.Experiment}
			for _, ref := range c.Latency.References {
				experiments = append(experiments, ref.Experiment)
			}
			for _, e := range experiments {
				if e.Record == nil || e.Record.Experiment == nil {
					continue
				}
				for _, b := range e.Record.Experiment.Blocks {
					slower(b.Head)
				}
			}
		}
	}
}

func TestWorseNeverTurnsFailIntoPass(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := randomPolicy(t, r), randomFacts(r)
		before := judged(t, p, f)
		worsen(r, f)
		if after := judged(t, p, f); before.Status == Fail && after.ExitCode() == 0 {
			t.Errorf("everything got worse: before\n%safter\n%s", summaryOf(before), summaryOf(after))
		}
	})
}

// TestEqualSidesNeverRegress: no rule that compares finds a change between a
// kernel and itself.
func TestEqualSidesNeverRegress(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		p, f := policyOf(t, false, randomRules(r)), randomFacts(r)
		for i := range f.Kernels {
			k := &f.Kernels[i]
			k.State, k.Broken, k.BaseProblem, k.Old = Changed, nil, "", k.Head
			for j := range k.Cases {
				c := &k.Cases[j]
				c.Profile.Base = c.Profile.Head
				c.Latency.Experiment = reused(experiment(r, 3, 100_000))
				if r.Intn(2) == 0 {
					for b := range c.Latency.Experiment.Record.Experiment.Blocks {
						block := &c.Latency.Experiment.Record.Experiment.Blocks[b]
						block.Head = block.Base
					}
				}
			}
		}
		for _, k := range judged(t, p, f).Kernels {
			for _, finding := range k.Findings {
				failed := finding.Status == Fail && strings.HasPrefix(finding.Accepts, "max_regression")
				if failed && (finding.Base != nil || isTime(finding)) {
					t.Errorf("%s: %+v", k.Name, finding)
				}
			}
		}
	})
}

func isTime(f Finding) bool { return f.Tier == evidence.Latency && f.Interval != nil }

// sortFindings puts findings where the order of rules and cases cannot reach.
func sortFindings(v *Verdict) {
	for i := range v.Kernels {
		k := &v.Kernels[i]
		slices.SortFunc(k.Findings, func(a, b Finding) int {
			return strings.Compare(a.Rule+"\x00"+a.Case+"\x00"+a.Machine, b.Rule+"\x00"+b.Case+"\x00"+b.Machine)
		})
		slices.SortFunc(k.Figures, func(a, b CaseFigures) int { return strings.Compare(a.Case+"\x00"+a.Machine, b.Case+"\x00"+b.Machine) })
	}
}

func encoded(t *testing.T, v *Verdict) string {
	t.Helper()
	data, err := v.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOrderLeavesTheBytes(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		rules, f := randomRules(r), randomFacts(r)
		first := judged(t, policyOf(t, false, rules), f)
		shuffled := Facts{Kernels: slices.Clone(f.Kernels)}
		r.Shuffle(len(shuffled.Kernels), func(i, j int) {
			shuffled.Kernels[i], shuffled.Kernels[j] = shuffled.Kernels[j], shuffled.Kernels[i]
		})
		if again := judged(t, policyOf(t, false, rules), shuffled); encoded(t, again) != encoded(t, first) {
			t.Errorf("kernels in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
		r.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		for i := range shuffled.Kernels {
			k := &shuffled.Kernels[i]
			k.Cases = slices.Clone(k.Cases)
			slices.Reverse(k.Cases)
		}
		again := judged(t, policyOf(t, false, rules), shuffled)
		sortFindings(first)
		sortFindings(again)
		if encoded(t, again) != encoded(t, first) {
			t.Errorf("rules and cases in another order:\n%s\n%s", encoded(t, first), encoded(t, again))
		}
	})
}

// TestExitFollowsTheWorstKernel: the whole is no better than its worst part,
// and the counts are those of the parts.
func TestExitFollowsTheWorstKernel(t *testing.T) {
	laws(t, func(t *testing.T, r *rand.Rand) {
		v := judged(t, randomPolicy(t, r), randomFacts(r))
		least := 2
		for i, k := range v.Kernels {
			least = min(least, earned(k.Status))
			if i > 0 && worse(k.Status, v.Kernels[i-1].Status) {
				t.Errorf("%s stands behind %s", k.Name, v.Kernels[i-1].Name)
			}
		}
		if earned(v.Status) != least || (v.ExitCode() == 0) != (least > 0) {
			t.Errorf("%s", summaryOf(v))
		}
		c := v.Counts
		if c.Passed+c.Failed+c.Undecided != c.Kernels || c.Kernels != len(v.Kernels) {
			t.Errorf("%+v", c)
		}
	})
}
