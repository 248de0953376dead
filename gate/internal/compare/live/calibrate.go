package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// trialAmounts are tried to learn what one unit of work costs. The first is the
// base; the others reach from 1 % to 10 % of a kernel of 50–200 µs.
var trialAmounts = []int{0, 32, 96, 256}

// A truth is what many launches say of an amount of work.
type truth struct {
	Phase    string  `json:"phase"`   // "trial" or "truth"
	Percent  float64 `json:"percent"` // the effect, rounded
	Extra    int     `json:"extra"`
	Launches int     `json:"launches"`
	Effect   float64 `json:"effect"`  // mean of ln(time / time of the base in the same process)
	Error    float64 `json:"error"`   // standard error of it
	BaseNS   float64 `json:"base_ns"` // mean of the base
}

// calibrate chooses the amount of work for each slowdown and measures what it
// truly costs.
func (s *session) calibrate(ctx context.Context, percents []float64, series int) (map[float64]int, error) {
	trial, err := s.series(ctx, "trial", trialAmounts, 1)
	if err != nil {
		return nil, err
	}
	var xs, ys []float64
	for _, t := range trial[1:] {
		xs, ys = append(xs, float64(t.Extra)), append(ys, math.Expm1(t.Effect))
	}
	a, b, err := fit(xs, ys)
	if err != nil {
		return nil, err
	}
	s.say("base %.0f ns; extra work of n costs %.4f %% + n · %.5f %%", trial[0].BaseNS, 100*a, 100*b)
	amounts, list := map[float64]int{}, []int{0}
	for _, p := range percents {
		amounts[p] = max(0, int(math.Round((p/100-a)/b)))
		if p == 0 {
			amounts[p] = 0
		} else if amounts[p] == 0 || slices.Contains(list, amounts[p]) {
			return nil, fmt.Errorf("no amount of work of its own costs %g %%", p)
		}
		if p != 0 {
			list = append(list, amounts[p])
		}
	}
	_, err = s.series(ctx, "truth", list, series)
	return amounts, err
}

// fit is the least-squares line a + b·x.
func fit(xs, ys []float64) (a, b float64, err error) {
	mx, _ := moments(xs)
	my, _ := moments(ys)
	var sxy, sxx float64
	for i := range xs {
		sxy += (xs[i] - mx) * (ys[i] - my)
		sxx += (xs[i] - mx) * (xs[i] - mx)
	}
	b = sxy / sxx
	if !(b > 0) {
		return 0, 0, fmt.Errorf("more work takes no more time: %v at %v", ys, xs)
	}
	return my - b*mx, b, nil
}

// series times the fixture with each amount, several times 8 processes that
// all of them share, and compares them with the first inside each process.
func (s *session) series(ctx context.Context, phase string, amounts []int, times int) ([]truth, error) {
	r, err := newRepository(ctx, filepath.Join(s.lab.dir, phase), s.kernels)
	if err != nil {
		return nil, err
	}
	var plants []plant
	for _, n := range amounts {
		plants = append(plants, plant{name: fmt.Sprintf("fixtures/e%04d", n), from: fixture, extra: n})
	}
	if err := r.add(plants); err != nil {
		return nil, err
	}
	if err := r.policy("time.yaml", "", timeRule); err != nil {
		return nil, err
	}
	if err := r.commit(ctx, phase); err != nil {
		return nil, err
	}
	launches := make([][]float64, len(amounts))
	for range times {
		if err := s.oneSeries(ctx, r, plants, launches); err != nil {
			return nil, err
		}
	}
	var out []truth
	for i, n := range amounts {
		t := truthOf(launches[0], launches[i])
		t.Phase, t.Extra = phase, n
		t.Percent = math.Round(math.Expm1(t.Effect)*1e5) / 1e3
		s.say("%s: extra %d: %+.3f ± %.3f %% of %.0f ns, %d launches", phase, n, 100*t.Effect, 100*t.Error, t.BaseNS, t.Launches)
		if err := keep(s.out, t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (s *session) oneSeries(ctx context.Context, r *repository, plants []plant, launches [][]float64) error {
	c, err := s.lab.check(ctx, r, "--force", "--policy", "time.yaml", "--base", "none")
	if err != nil {
		return err
	}
	for i, p := range plants {
		record, err := recordOf(c, p.name)
		if err != nil {
			return err
		}
		found, err := compare.Launches(record.Samples, "warm")
		if err != nil {
			return err
		}
		for _, l := range found {
			launches[i] = append(launches[i], l.Typical)
		}
		if len(launches[i]) != len(launches[0]) || len(found) == 0 {
			return fmt.Errorf("%s has %d launches, the base %d", p.name, len(launches[i]), len(launches[0]))
		}
	}
	return nil
}

func recordOf(c *check, name string) (*evidence.Record, error) {
	for _, k := range c.verdict.Kernels {
		if k.Name != name {
			continue
		}
		if r := c.records[k.Identity]; r != nil {
			return r, nil
		}
		return nil, fmt.Errorf("%s left no record: %+v", name, k.Findings)
	}
	return nil, fmt.Errorf("the verdict does not name %s", name)
}

// truthOf compares launch by launch: both times come from one process.
func truthOf(base, head []float64) truth {
	var logs []float64
	for i := range base {
		logs = append(logs, math.Log(head[i]/base[i]))
	}
	mean, sd := moments(logs)
	ns, _ := moments(base)
	t := truth{Launches: len(logs), Effect: mean, Error: sd / math.Sqrt(float64(len(logs))), BaseNS: ns}
	if math.IsNaN(t.Error) {
		t.Error = 0
	}
	return t
}
