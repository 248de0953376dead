package policy

import (
	"math/rand/v2"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// selfTimed is an A/A run of so many launches whose times are near 1,000 ns.
func selfTimed(regime string, launches int) *evidence.Record {
	random := rand.New(rand.NewPCG(7, 7))
	r := &evidence.Record{Tier: evidence.Calibration, AA: &evidence.AA{Blocks: launches / 8}, Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z"}}
	for range launches {
		level := 1000 * (1 + 0.004*random.NormFloat64())
		r.Samples = append(r.Samples, evidence.Sample{Regime: regime, BatchesNS: []float64{level, level + random.Float64(), level + random.Float64()}})
	}
	return r
}

func TestNoiseStandsBesideTimesThatPass(t *testing.T) {
	p, err := Parse([]byte("version: 1\nkernels: k\nstore: s\nrules:\n  - {id: ceiling, metric: latency.typical, limit: 2us}\n  - {id: slower, metric: latency.typical, max_regression: 4%}\n"), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ceiling, slower := p.Rules[0], p.Rules[1]
	seen := 0.01
	base := evidence.Of(1000, "ns")
	for _, c := range []struct {
		name     string
		rule     Rule
		state    State
		status   Status
		interval *Interval
		record   *evidence.Record
		want     bool
	}{
		{"a limit", ceiling, Changed, Pass, nil, selfTimed("warm", 80), true},
		{"a limit on unchanged code", ceiling, Unchanged, Pass, nil, selfTimed("warm", 80), true},
		{"no calibration", ceiling, Changed, Pass, nil, nil, false},
		{"a limit that fails", ceiling, Changed, Fail, nil, selfTimed("warm", 80), false},
		{"a limit that is open", ceiling, Changed, Inconclusive, nil, selfTimed("warm", 80), false},
		{"another state of the caches", ceiling, Changed, Pass, nil, selfTimed("cold", 80), false},
		{"too few blocks", ceiling, Changed, Pass, nil, selfTimed("warm", 72), false},
		{"a block cut short", ceiling, Changed, Pass, nil, selfTimed("warm", 83), false},
		{"unchanged code", slower, Unchanged, Pass, nil, selfTimed("warm", 80), false},
		{"the experiment tells", slower, Changed, Pass, &Interval{MDE90: &seen}, selfTimed("warm", 80), false},
		{"the experiment does not", slower, Changed, Pass, &Interval{}, selfTimed("warm", 80), true},
	} {
		j := judge{policy: p, kernel: &KernelFacts{State: c.state}, times: &times{}}
		f := Finding{Status: c.status, Interval: c.interval, Base: &base}
		j.addNoise(c.rule, &CaseFacts{Calibration: c.record}, &f)
		if (f.Noise != nil) != c.want || f.Status != c.status {
			t.Errorf("%s: %+v, status %s", c.name, f.Noise, f.Status)
		}
		if f.Noise != nil && (f.Noise.MDE90 < 0.005 || f.Noise.MDE90 > 0.04 || f.Noise.Recorded != "2026-11-20T10:00:00Z") {
			t.Errorf("%s: %+v", c.name, f.Noise)
		}
	}
}
