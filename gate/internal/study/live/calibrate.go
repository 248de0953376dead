package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

const (
	candidates  = 12    // amounts that are tried for each level
	stepPercent = 0.034 // what a step costs, about: the layout of the code moves it
	trialSeries = 2
	truthRounds = 2  // amounts that turn out too small are chosen once more
	spacers     = 12 // kernels of a process, at least: the first few are faster
)

// A truth is what many processes say of an amount of work.
type truth struct {
	Phase     string  `json:"phase"`   // "trial" or "truth"
	Percent   float64 `json:"percent"` // the effect, rounded
	Extra     int     `json:"extra"`
	Processes int     `json:"launches"`
	Effect    float64 `json:"effect"`  // median of ln(time / time of the base in the same process)
	Error     float64 `json:"error"`   // standard error of it
	BaseNS    float64 `json:"base_ns"` // mean of the base
}

// calibrate chooses the amount of work for each slowdown and measures what it
// truly costs.
func (s *session) calibrate(ctx context.Context, percents []float64, series int) (map[float64]int, error) {
	tried := trialAmounts(percents)
	trial, err := s.series(ctx, "trial", "trial", tried, trialSeries)
	if err != nil {
		return nil, err
	}
	known := map[int]truth{}
	for _, t := range trial {
		known[t.Extra] = t
	}
	for round := 1; ; round++ {
		amounts, err := choose(known, percents)
		if err != nil {
			return nil, err
		}
		truths, err := s.series(ctx, "truth", fmt.Sprintf("truth%d", round), spaced(amounts, tried), series)
		if err != nil {
			return nil, err
		}
		for _, t := range truths {
			known[t.Extra] = t
		}
		if round == truthRounds || reached(known, amounts) {
			return amounts, nil
		}
	}
}

// trialAmounts spreads candidates around what each slowdown should take.
func trialAmounts(percents []float64) []int {
	out := []int{0}
	for _, p := range percents {
		for i := range candidates {
			n := int(math.Round(p / stepPercent * (0.6 + 0.6*float64(i)/(candidates-1))))
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// spaced are the chosen amounts after the base, and others that fill a process.
func spaced(amounts map[float64]int, tried []int) []int {
	out := []int{0}
	for _, n := range slices.Concat(slices.Sorted(maps.Values(amounts)), tried) {
		if !slices.Contains(out, n) && (len(out) <= len(amounts) || len(out) < spacers) {
			out = append(out, n)
		}
	}
	return out
}

// choose takes, of all amounts that surely cost each slowdown, the one that costs
// least. What costs less than the slowdown may pass.
func choose(known map[int]truth, percents []float64) (map[float64]int, error) {
	amounts := map[float64]int{}
	for _, p := range percents {
		if p == 0 {
			amounts[p] = 0
			continue
		}
		found := false
		for n, t := range known {
			if costs(t, p) && (!found || t.Effect < known[amounts[p]].Effect) {
				amounts[p], found = n, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no amount among %v costs %g %%", slices.Sorted(maps.Keys(known)), p)
		}
		for q, n := range amounts {
			if q != p && n == amounts[p] {
				return nil, fmt.Errorf("an amount of %d costs %g %% and %g %%", n, q, p)
			}
		}
	}
	return amounts, nil
}

// costs reports whether an amount slows down by that percentage at least.
func costs(t truth, percent float64) bool { return t.Effect-t.Error >= math.Log1p(percent/100) }

// reached reports whether every amount costs what it is to cost.
func reached(known map[int]truth, amounts map[float64]int) bool {
	for p, n := range amounts {
		if !costs(known[n], p) {
			return false
		}
	}
	return true
}

// series times the fixture with each amount, several times the processes of a
// check that all of them share, and compares them with the first inside each.
func (s *session) series(ctx context.Context, phase, folder string, amounts []int, times int) ([]truth, error) {
	r, err := newRepository(ctx, filepath.Join(s.lab.dir, folder), s.kernels)
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
	processes := make([][]float64, len(amounts))
	for range times {
		if err := s.oneSeries(ctx, r, plants, processes); err != nil {
			return nil, err
		}
	}
	var out []truth
	for i, n := range amounts {
		t := truthOf(processes[0], processes[i])
		t.Phase, t.Extra = phase, n
		t.Percent = math.Round(math.Expm1(t.Effect)*1e5) / 1e3
		s.say("%s: extra %d: %+.3f ± %.3f %% of %.0f ns, %d processes", phase, n, t.Percent, 100*t.Error, t.BaseNS, t.Processes)
		if err := keep(s.out, t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (s *session) oneSeries(ctx context.Context, r *repository, plants []plant, processes [][]float64) error {
	c, err := s.lab.check(ctx, r, "--force", "--policy", "time.yaml", "--base", "none")
	if err != nil {
		return err
	}
	for i, p := range plants {
		record, err := recordOf(c, p.name)
		if err != nil {
			return err
		}
		found, err := compare.Processes(record.Samples, "warm")
		if err != nil {
			return err
		}
		for _, l := range found {
			processes[i] = append(processes[i], l.Typical)
		}
		if len(processes[i]) != len(processes[0]) || len(found) == 0 {
			return fmt.Errorf("%s has %d processes, the base %d", p.name, len(processes[i]), len(processes[0]))
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

// truthOf compares process by process: both times come from one process. A kernel
// that is timed first in its process is some tenths of a percent faster, hence
// the median. Its standard error is half the width of the middle √n values.
func truthOf(base, head []float64) truth {
	var logs []float64
	for i := range base {
		logs = append(logs, math.Log(head[i]/base[i]))
	}
	slices.Sort(logs)
	n := float64(len(logs))
	low, high := int(math.Floor((n-math.Sqrt(n))/2)), int(math.Ceil((n+math.Sqrt(n))/2))-1
	ns, _ := moments(base)
	return truth{Processes: len(logs), Effect: (logs[(len(logs)-1)/2] + logs[len(logs)/2]) / 2, Error: (logs[high] - logs[low]) / 2, BaseNS: ns}
}
