package judge

import (
	"math/rand"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// selfTimed is an A/A run of so many processes whose times are near 100 µs.
func selfTimed(r *rand.Rand, state evidence.CacheState, processes int) *evidence.Record {
	record := &evidence.Record{AA: &evidence.AA{Rounds: processes / 8}, Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z"}}
	for range processes {
		level := 100_000 * (1 + 0.004*r.NormFloat64())
		record.Samples = append(record.Samples, evidence.Sample{CacheState: state, BatchesNS: []float64{level, level + r.Float64(), level + r.Float64()}})
	}
	return record
}

// twoTimes is a limit on a time and a comparison of it.
const twoTimes = "version: 1\nkernels: k\nstore: s\nrules:\n  - {id: ceiling, metric: latency.typical, limit: 200us}\n  - {id: slower, metric: latency.typical, max_regression: 4%}\n"

// asks finds the question of a rule.
func asks(t *testing.T, f facts, p *policy.Policy, rule string) (judge, *plan.Question) {
	t.Helper()
	asked, l := f.known(t, p)
	for i := range asked.Questions {
		if asked.Questions[i].Name == rule {
			return judge{plan: asked, ledger: l}, &asked.Questions[i]
		}
	}
	t.Fatalf("nothing asks %s", rule)
	return judge{}, nil
}

func TestNoiseStandsBesideTimesThatPass(t *testing.T) {
	p := parse(t, twoTimes)
	seen, base := 0.01, evidence.Of(100_000, "ns")
	r := rand.New(rand.NewSource(7))
	whole := just(selfTimed(r, evidence.Warm, 80))
	for _, c := range []struct {
		name, rule string
		state      verdict.State
		status     verdict.Status
		interval   *verdict.Interval
		record     fact
		want       bool
	}{
		{"a limit", "ceiling", verdict.Changed, verdict.Pass, nil, whole, true},
		{"a limit on unchanged code", "ceiling", verdict.Unchanged, verdict.Pass, nil, whole, true},
		{"no calibration", "ceiling", verdict.Changed, verdict.Pass, nil, fact{}, false},
		{"a limit that fails", "ceiling", verdict.Changed, verdict.Fail, nil, whole, false},
		{"a limit that is open", "ceiling", verdict.Changed, verdict.Inconclusive, nil, whole, false},
		{"another state of the caches", "ceiling", verdict.Changed, verdict.Pass, nil, just(selfTimed(r, evidence.Cold, 80)), false},
		{"too few blocks", "ceiling", verdict.Changed, verdict.Pass, nil, just(selfTimed(r, evidence.Warm, 72)), false},
		{"a block cut short", "ceiling", verdict.Changed, verdict.Pass, nil, just(selfTimed(r, evidence.Warm, 83)), false},
		{"unchanged code", "slower", verdict.Unchanged, verdict.Pass, nil, whole, false},
		{"the experiment tells", "slower", verdict.Changed, verdict.Pass, &verdict.Interval{MDE90: &seen}, whole, false},
		{"the experiment does not", "slower", verdict.Changed, verdict.Pass, &verdict.Interval{}, whole, true},
	} {
		j, q := asks(t, change(func(k *kernel, of *kase) { k.state, of.calibration = c.state, c.record }), p, c.rule)
		f := j.withNoise(q, verdict.Finding{Status: c.status, Interval: c.interval, Base: &base})
		if (f.Noise != nil) != c.want || f.Status != c.status {
			t.Errorf("%s: %+v, status %s", c.name, f.Noise, f.Status)
		}
		if f.Noise != nil && (f.Noise.MDE90 < 0.005 || f.Noise.MDE90 > 0.04 || f.Noise.Recorded != "2026-11-20T10:00:00Z") {
			t.Errorf("%s: %+v", c.name, f.Noise)
		}
	}
}

// TestOnlyARecentCalibrationOfTheMachineIsUsed: drivers, rooms and neighbours
// change.
func TestOnlyARecentCalibrationOfTheMachineIsUsed(t *testing.T) {
	const today = "2026-11-25T10:00:00Z"
	for _, c := range []struct {
		name, code, recorded string
		change               func(*evidence.Record)
		want                 bool
	}{
		{"now", "head of op/k", today, nil, true},
		{"the base's code", "base of op/k", today, nil, true},
		{"another code", "another", today, nil, false},
		{"30 days old", "head of op/k", "2026-10-26T10:00:00Z", nil, true},
		{"older", "head of op/k", "2026-10-26T09:59:59Z", nil, false},
		{"of the future", "head of op/k", "2026-11-25T10:00:01Z", nil, false},
		{"without a date", "head of op/k", "", nil, false},
		{"of another machine", "head of op/k", today, func(r *evidence.Record) { r.Address.Machine = "h200-00000000" }, false},
		{"without its conditions", "head of op/k", today, func(r *evidence.Record) { r.AA = nil }, false},
		{"a failure", "head of op/k", today, func(r *evidence.Record) { r.Failure = broke(evidence.Hang).Failure }, false},
	} {
		for _, rule := range []string{"slower", "ceiling"} {
			j, q := asks(t, good(), parse(t, twoTimes), rule)
			r := selfTimed(rand.New(rand.NewSource(7)), evidence.Warm, 80)
			r.Tier, r.Address, r.Provenance.Recorded = evidence.Calibration, q.Need(evidence.Shown, evidence.Calibration).At, c.recorded
			r.Address.Code = c.code
			if c.change != nil {
				c.change(r)
			}
			j.ledger.Put(r, evidence.Reused)
			if got := j.calibration(q); (got != nil) != c.want {
				t.Errorf("%s, %s: %+v", c.name, rule, got)
			}
		}
	}
}
