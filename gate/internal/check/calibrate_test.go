package check

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
)

// selfTimed is an A/A run with a spread between launches, in both states of
// the caches; 8 launches a block.
func selfTimed(code string, spread float64, blocks int) *evidence.Record {
	random := rand.New(rand.NewPCG(11, uint64(blocks)))
	r := recordAt(code, "")
	r.Tier, r.Metrics, r.Checks = evidence.Calibration, nil, nil
	r.AA = &evidence.AA{Blocks: blocks, LaunchSeconds: 0.5, TimedSeconds: 0.01}
	for range 8 * blocks {
		for i, ns := range []float64{1000, 4000} {
			level := ns * math.Exp(spread*random.NormFloat64())
			r.Samples = append(r.Samples, evidence.Sample{Regime: []string{"warm", "cold"}[i], BatchesNS: []float64{level, level + random.Float64()}})
		}
	}
	return r
}

// TestFindableIsWhatACalibrationSaysOfIt: at the max_regression that is
// proposed a kernel can be gated, and at a little less it cannot.
func TestFindableIsWhatACalibrationSaysOfIt(t *testing.T) {
	profile, err := compare.Profile("standard")
	if err != nil {
		t.Fatal(err)
	}
	for _, spread := range []float64{0.03, 0.05, 0.1} {
		blocks, err := compare.AABlocks(selfTimed("c1", spread, 10).Samples, "warm")
		if err != nil {
			t.Fatal(err)
		}
		for _, floor := range []float64{0, 12, 40} { // ns, of 1,000
			at := func(effect float64) (compare.Limits, compare.Calibration) {
				limits, err := compare.MaxRegression(profile, effect)
				if err == nil {
					limits, err = limits.WithFloor(floor, 1000)
				}
				if err != nil {
					t.Fatal(err)
				}
				c, err := compare.Calibrate(blocks, limits, compare.SequentialPlan(), 4)
				if err != nil {
					t.Fatal(err)
				}
				return limits, c
			}
			limits, c := at(0.02)
			effect, ok := findable(*c.MDE90, limits, profile)
			if c.Gateable || !ok {
				t.Fatalf("spread %v, floor %v: %+v", spread, floor, c)
			}
			if _, c := at(effect); !c.Gateable {
				t.Errorf("spread %v, floor %v: %v is proposed: %s", spread, floor, effect, c.Detail)
			}
			if _, c := at(effect - 0.003); c.Gateable {
				t.Errorf("spread %v, floor %v: %v is proposed, and less would do: %s", spread, floor, effect, c.Detail)
			}
		}
	}
	if effect, ok := findable(5, compare.Limits{Tolerance: 0.005, Detect: 0.02}, profile); ok {
		t.Errorf("noise that outgrows every limit: %v", effect)
	}
}

func TestPlanIsWhatTheBudgetPaysFor(t *testing.T) {
	for _, c := range []struct {
		budget, launch float64
		pairs, looks   int
		reached        bool
	}{
		{120, 0.5, 120, 7, true}, {119, 0.5, 119, 6, true}, {1e9, 0.5, 120, 7, true}, {8, 0.5, 8, 1, true},
		{7.9, 0.5, 7, 1, false}, {12, 0.5, 12, 2, true}, {0.001, 0.5, 0, 1, false},
	} {
		got := Calibration{BudgetSeconds: c.budget}
		failed := recordAt("c0", "")
		failed.Failure = &evidence.Failure{Kind: evidence.Hang, Message: "hangs"}
		r := selfTimed("c1", 0.003, 10)
		r.AA.LaunchSeconds = c.launch
		got.run([]*evidence.Record{failed, r})
		plan, reached := got.plan()
		if got.BudgetPairs != c.pairs || len(plan.Looks) != c.looks || reached != c.reached || got.Blocks != 10 {
			t.Errorf("%v s at %v s a launch: %d pairs, looks %v, %v", c.budget, c.launch, got.BudgetPairs, plan.Looks, reached)
		}
		for i, l := range plan.Looks {
			if l != compare.SequentialPlan().Looks[i] {
				t.Errorf("look %v is not the experiment's", l)
			}
		}
	}
}

func calibrationJob(t *testing.T, rules ...string) (*job, *kase) {
	j := &job{stores: newStores(t), tree: &tree{policy: policyOf(t, rules...)}}
	j.Now = func() time.Time { return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC) }
	k := &kernel{name: "op/k", arch: "sm_90", facts: policy.KernelFacts{Name: "op/k", Arch: "sm_90", State: policy.NoBase}}
	return j, &kase{kernel: k, of: manifest.Case{Name: "small"}, head: at("c1"), base: at("c0"), key: h200.Key()}
}

func TestQuestionsAreThePolicys(t *testing.T) {
	for _, c := range []struct {
		rules string
		want  string // regime, rules, detect
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
		{"{id: a, metric: latency.typical, relative_to: ref, limit: 2};{id: b, metric: latency.typical};{id: c, metric: latency.p99}", "warm b 0.02", 1},
	} {
		j, s := calibrationJob(t, strings.Split(c.rules, ";")...)
		list, tests, err := j.questions(s, selfTimed("c1", 0.003, 10))
		var got []string
		for _, q := range list {
			got = append(got, strings.Join([]string{q.regime, strings.Join(q.rules, ","), strconv.FormatFloat(q.limits.Detect, 'g', 2, 64)}, " "))
		}
		if err != nil || tests != c.tests || strings.Join(got, ";") != c.want {
			t.Errorf("%s: %q, %d tests, %v", c.rules, got, tests, err)
		}
	}
}

func TestOnlyARecentCalibrationOfTheMachineIsUsed(t *testing.T) {
	const now = "2026-11-20T10:00:00Z"
	for _, c := range []struct {
		name, code, recorded string
		change               func(*evidence.Record)
		want                 bool
	}{
		{"now", "c1", now, nil, true},
		{"the base's code", "c0", now, nil, true},
		{"another code", "c2", now, nil, false},
		{"30 days old", "c1", "2026-10-21T10:00:00Z", nil, true},
		{"older", "c1", "2026-10-21T09:59:59Z", nil, false},
		{"of the future", "c1", "2026-11-20T10:00:01Z", nil, false},
		{"without a date", "c1", "", nil, false},
		{"of another machine", "c1", now, func(r *evidence.Record) {
			r.Provenance.Machine.Driver = "1"
			r.Address.Machine = r.Provenance.Machine.Key()
		}, false},
		{"without its conditions", "c1", now, func(r *evidence.Record) { r.AA = nil }, false},
	} {
		j, s := calibrationJob(t, "{id: a, metric: latency.typical, max_regression: 3%}")
		r := selfTimed(c.code, 0.003, 10)
		r.Provenance.Recorded = c.recorded
		if c.change != nil {
			c.change(r)
		}
		mustPut(t, j.stores.local, r)
		if got := j.calibration(s); (got != nil) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	j, s := calibrationJob(t, "{id: a, metric: latency.typical, max_regression: 3%}")
	mustPut(t, j.stores.local, selfTimed("c1", 0.003, 10))
	damage(t, j.stores.local)
	if got := j.calibration(s); got != nil {
		t.Errorf("damaged: %+v", got)
	}
}

func TestNothingCalibratedIsNotGateable(t *testing.T) {
	if (&Calibration{}).Gateable() || (&Calibration{Kernels: []Calibrated{{Gateable: true}, {}}}).Gateable() || !(&Calibration{Kernels: []Calibrated{{Gateable: true}}}).Gateable() {
		t.Error("gateable is not every kernel, and at least one")
	}
}
