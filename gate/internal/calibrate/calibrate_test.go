package calibrate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// selfTimed is an A/A run of ten rounds of 8 processes, with a spread between
// processes, in both states of the caches.
func selfTimed(spread float64) *evidence.Record {
	random := rand.New(rand.NewPCG(11, 10))
	r := &evidence.Record{Tier: evidence.Calibration, Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z"},
		AA: &evidence.AA{Rounds: 10, ProcessSeconds: 0.5, TimedSeconds: 0.01}}
	for range 8 * r.AA.Rounds {
		for i, ns := range []float64{1000, 4000} {
			level := ns * math.Exp(spread*random.NormFloat64())
			r.Samples = append(r.Samples, evidence.Sample{CacheState: []evidence.CacheState{evidence.Warm, evidence.Cold}[i], BatchesNS: []float64{level, level + random.Float64()}})
		}
	}
	return r
}

func policyOf(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	text := "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\nrules:\n  - " + strings.Join(rules, "\n  - ") + "\n"
	p, err := policy.Parse([]byte(text), "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWhatIsProposedCanBeGated: at the max_regression that is proposed a kernel
// can be gated, and at a little less it cannot, with a floor and without.
func TestWhatIsProposedCanBeGated(t *testing.T) {
	profile, err := compare.Profile("standard")
	if err != nil {
		t.Fatal(err)
	}
	for _, spread := range []float64{0.03, 0.1} {
		rounds, err := compare.AARounds(selfTimed(spread).Samples, evidence.Warm)
		if err != nil {
			t.Fatal(err)
		}
		for _, floor := range []float64{0, 40} { // ns, of 1,000
			bound := compare.Bound{Limits: profile, FloorNS: floor}
			given, err := bound.At(1000)
			if err != nil {
				t.Fatal(err)
			}
			c := calibration{limits: profile, Calibration: &verdict.Calibration{Tests: 4, BudgetPairs: 120}}
			at := func(effect float64) (compare.Limits, error) { return c.limitsOf(effect, given) }
			effect, ok, err := compare.Findable(rounds, compare.SequentialPlan(), 120, 4, at)
			if err != nil || !ok {
				t.Fatalf("spread %v, floor %v: %v, %v", spread, floor, ok, err)
			}
			for share, gateable := range map[float64]bool{1: true, 0.8: false} {
				limits, err := at(share * effect)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := compare.SpreadOf(rounds, limits, compare.SequentialPlan(), 120, 4); err != nil || got.Gateable != gateable {
					t.Errorf("spread %v, floor %v: %v of %v is proposed: %s, %v", spread, floor, share, effect, got.Detail, err)
				}
			}
		}
	}
}

func TestPairsAreWhatTheBudgetPaysFor(t *testing.T) {
	for _, c := range []struct {
		budget, process float64
		pairs           int
	}{{120, 0.5, 120}, {119, 0.5, 119}, {1e8, 0.5, 120}, {7.9, 0.5, 7}, {0.001, 0.5, 0}} {
		failed := &evidence.Record{Tier: evidence.Calibration, Failure: &evidence.Failure{Kind: evidence.Hang, Message: "hangs"}}
		r := selfTimed(0.003)
		r.AA.ProcessSeconds = c.process
		got := newCalibration(&policy.Policy{Budget: time.Duration(c.budget * float64(time.Second))}, []*evidence.Record{failed, r})
		if got.BudgetPairs != c.pairs || got.Rounds != 10 {
			t.Errorf("%v s at %v s a process: %d pairs, %d rounds", c.budget, c.process, got.BudgetPairs, got.Rounds)
		}
	}
}

func TestQuestionsAreThePolicys(t *testing.T) {
	for _, c := range []struct {
		rules string
		want  string // cache state, rules, detect
		tests int
	}{
		{"{id: a, metric: ncu.waves, max_regression: 1}", "warm  0.02", 0},
		{"{id: a, metric: latency.typical, limit: 20us}", "warm  0.02", 0},
		{"{id: a, metric: latency.typical, max_regression: 3%}", "warm a 0.03", 1},
		{"{id: a, metric: latency.typical, max_regression: 3%};{id: b, metric: latency.mean, max_regression: 3%}", "warm a,b 0.03", 2},
		{"{id: a, metric: latency.typical, max_regression: 3%};{id: b, metric: latency.mean, max_regression: 5%}", "warm a 0.03;warm b 0.05", 2},
		{"{id: a, metric: latency.typical, max_regression: 3%};{id: b, metric: latency.cold_typical, max_regression: 3%}", "warm a 0.03;cold b 0.03", 2},
		{"{id: a, metric: latency.typical, max_regression: 3%, kernels: [other/*]}", "warm  0.02", 0},
		// A floor is another share of another metric's time: 40 ns of 1,000 and of 1,000.4.
		{"{id: a, metric: latency.typical, max_regression: 2%, floor: 40ns};{id: b, metric: latency.mean, max_regression: 2%, floor: 40ns}", "warm a,b 0.055", 2},
		{"{id: a, metric: latency.typical, max_regression: 2%, floor: 40ns};{id: b, metric: latency.mean, max_regression: 2%, floor: 45ns}", "warm a 0.055;warm b 0.06", 2},
		// A ratio shares the error rate and has no row; advice has neither.
		{"{id: a, metric: latency.typical, relative_to: ref, limit: 2};{id: b, metric: latency.typical};{id: c, metric: latency.p99}", "warm b 0.02", 2},
	} {
		p := policyOf(t, strings.Split(c.rules, ";")...)
		s := &plan.Subject{Name: "op/k", Arch: "sm_90", Op: "op", State: verdict.NoBase, Head: plan.Side{Identity: evidence.Identity{Code: "c", Host: "h"}}, Cases: []plan.Case{{Name: "small"}}}
		asked := plan.Make(p, asChanged([]*plan.Subject{s}), plan.Options{})
		r := selfTimed(0.003)
		of := newCalibration(p, []*evidence.Record{r})
		of.Tests = max(1, asked.Family())
		rows, err := of.rows(asked, plan.Task{Key: evidence.Key{At: evidence.Address{Case: "small"}}, Subject: asked.Subjects[0]}, r)
		var got []string
		for _, row := range rows {
			got = append(got, strings.Join([]string{string(row.CacheState), strings.Join(row.Rules, ","), strconv.FormatFloat(row.Limits.Detect, 'g', 2, 64)}, " "))
			if row.Figures == nil || row.Kernel != "op/k" || row.Arch != "sm_90" || row.Case != "small" {
				t.Errorf("%s: %+v", c.rules, row)
			}
		}
		if err != nil || asked.Family() != c.tests || strings.Join(got, ";") != c.want {
			t.Errorf("%s: %q, %d tests, %v", c.rules, got, asked.Family(), err)
		}
	}
}
