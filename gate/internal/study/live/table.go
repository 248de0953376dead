package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"
)

// runTable writes the Markdown tables of recordings. Each file is one run, since
// machines differ.
func runTable(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) == 0 {
		return &usageError{"want the files of JSON lines"}
	}
	var all []recording
	for _, path := range args {
		r, err := readRecording(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
	var tables []string
	for _, t := range []string{unchangedTable(all), mixtureTable(all), plantedTable(all), epochTable(all), noiseTable(all)} {
		if t != "" {
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return errors.New("the files hold nothing that a table shows")
	}
	_, err := io.WriteString(stdout, strings.Join(tables, "\n"))
	return err
}

// markdown writes a table, or nothing without rows.
func markdown(columns []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	text := "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
	for _, row := range rows {
		text += "| " + strings.Join(row, " | ") + " |\n"
	}
	return text
}

// A score counts the verdicts on kernels of one kind.
type score struct {
	count               map[string]int
	all                 int
	pairs, effects, gpu []float64
}

func (s *score) add(o outcome) {
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.all++
	s.count[o.Status]++
	s.pairs = append(s.pairs, float64(o.Pairs))
	if o.Typical != nil {
		s.effects = append(s.effects, *o.Typical)
	}
	if o.GPUSeconds != nil {
		s.gpu = append(s.gpu, *o.GPUSeconds)
	}
}

// undecided is everything that is neither red nor a pass.
func (s *score) undecided() int { return s.all - s.count["fail"] - s.count["pass"] }

func (s *score) meanPairs() string {
	m, _ := moments(s.pairs)
	return fmt.Sprintf("%.1f", m)
}

func (s *score) seconds() string {
	if len(s.gpu) == 0 {
		return "—"
	}
	m, _ := moments(s.gpu)
	return fmt.Sprintf("%.3f", m)
}

// mostOf is the upper bound of a share, with a confidence of 95 %, by Clopper and
// Pearson.
func mostOf(of, all int) float64 {
	if of == all {
		return 1
	}
	return distuv.Beta{Alpha: float64(of + 1), Beta: float64(all - of)}.Quantile(0.95)
}

func atMost(of, all int) string {
	return fmt.Sprintf("%d of %d (at most %.1f %%)", of, all, 100*mostOf(of, all))
}

func atLeast(of, all int) string {
	return fmt.Sprintf("%d of %d (at least %.1f %%)", of, all, 100*(1-mostOf(all-of, all)))
}

// mixtureTable has a row for each kind of kernel at each profile.
func mixtureTable(all []recording) string {
	scores := map[group]*score{}
	for _, r := range all {
		for _, l := range r.checks {
			for _, o := range l.Outcomes {
				g := group{l.Profile, o.Group}
				if l.Phase != "mix" {
					continue
				}
				if scores[g] == nil {
					scores[g] = &score{}
				}
				scores[g].add(o)
			}
		}
	}
	var rows [][]string
	for _, g := range slices.SortedFunc(maps.Keys(scores), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(a.name, b.name))
	}) {
		s := scores[g]
		rows = append(rows, []string{g.profile, g.name, fmt.Sprint(s.all), fmt.Sprint(s.count["fail"]), fmt.Sprint(s.undecided()),
			fmt.Sprint(s.count["pass"]), s.meanPairs(), s.seconds()})
	}
	return markdown([]string{"profile", "kernels", "decisions", "red", "inconclusive", "passed", "pairs", "GPU seconds timed a kernel"}, rows)
}

// unchangedTable has a row for each kernel, and one for all of a profile.
func unchangedTable(all []recording) string {
	scores, checks, wall := map[group]*score{}, map[string]int{}, map[string][]float64{}
	for _, r := range all {
		for _, l := range r.checks {
			if l.Phase != "aa" {
				continue
			}
			checks[l.Profile]++
			wall[l.Profile] = append(wall[l.Profile], l.WallSeconds/float64(l.Kernels))
			for _, o := range l.Outcomes {
				for _, name := range []string{o.Group, "~"} { // after every name
					g := group{l.Profile, name}
					if scores[g] == nil {
						scores[g] = &score{}
					}
					scores[g].add(o)
				}
			}
		}
	}
	var rows [][]string
	for _, g := range slices.SortedFunc(maps.Keys(scores), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(a.name, b.name))
	}) {
		s, name, seconds := scores[g], g.name, ""
		if name == "~" {
			m, _ := moments(wall[g.profile])
			name, seconds = "all", fmt.Sprintf("%.2f", m)
		}
		rows = append(rows, []string{g.profile, name, fmt.Sprint(checks[g.profile]), fmt.Sprint(s.all), atMost(s.count["fail"], s.all),
			fmt.Sprint(s.undecided()), fmt.Sprint(s.count["pass"]), s.meanPairs(), s.seconds(), seconds})
	}
	return markdown([]string{"profile", "kernel", "checks", "decisions", "red", "inconclusive", "passed", "pairs",
		"GPU seconds timed a kernel", "wall seconds a kernel"}, rows)
}

// A planted row is one amount of work of one run, at one profile.
type plantedRow struct {
	run     int
	profile string
	extra   int
}

// plantedTable has a row for each amount of work, by what it costs.
func plantedTable(all []recording) string {
	scores, levels := map[plantedRow]*score{}, map[plantedRow]string{}
	for i, r := range all {
		for _, l := range r.checks {
			for _, o := range l.Outcomes {
				if l.Phase != "planted" {
					continue
				}
				at := plantedRow{i, l.Profile, o.Extra}
				if scores[at] == nil {
					scores[at], levels[at] = &score{}, o.Group
				}
				scores[at].add(o)
			}
		}
	}
	cost := func(at plantedRow) truth { return all[at.run].truths[at.extra] }
	var rows [][]string
	for _, at := range slices.SortedFunc(maps.Keys(scores), func(a, b plantedRow) int {
		return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(cost(a).Effect, cost(b).Effect), cmp.Compare(a.run, b.run))
	}) {
		s, t := scores[at], cost(at)
		m, sd := moments(s.effects)
		rows = append(rows, []string{at.profile, levels[at], fmt.Sprintf("%+.2f ± %.2f %%", 100*math.Expm1(t.Effect), 100*t.Error),
			fmt.Sprintf("%+.2f %% (sd %.2f)", 100*m, 100*sd), atLeast(s.count["fail"], s.all), fmt.Sprint(s.count["pass"]),
			fmt.Sprint(s.undecided()), s.meanPairs(), s.seconds()})
	}
	return markdown([]string{"profile", "planted", "true effect", "estimates", "found", "passed", "inconclusive", "pairs",
		"GPU seconds timed a kernel"}, rows)
}

// epochTable has a row for each kernel and what is renewed, by run.
func epochTable(all []recording) string {
	var rows [][]string
	for _, r := range all {
		for _, renew := range []string{"buffers", "modules", "context"} {
			for _, name := range slices.Sorted(maps.Keys(r.epochs[renew])) {
				rows = append(rows, epochCells(renew, name, r.epochs[renew][name]))
			}
		}
	}
	return markdown(epochColumns, rows)
}

// noiseTable has a row for each kernel and case that was calibrated. Two rules
// whose limits differ by less than is shown make one row.
func noiseTable(all []recording) string {
	var rows [][]string
	for _, r := range all {
		for _, n := range r.noise {
			mde := "none"
			if n.Figures.MDE90 != nil {
				mde = fmt.Sprintf("%.2f %%", 100**n.Figures.MDE90)
			}
			_, name, _ := strings.Cut(n.Kernel, "/")
			rows = append(rows, []string{name, n.Case, fmt.Sprintf("%.2f %%", 100*n.Figures.Process), fmt.Sprintf("%.2f %%", 100*n.Figures.Batch),
				fmt.Sprintf("%.0f %%", 100*n.Figures.Between), fmt.Sprintf("%.2f", n.Figures.Lag1), mde, fmt.Sprintf("%.2f %%", 100*n.Limits.Detect), fmt.Sprint(n.Figures.Pairs)})
		}
	}
	return markdown([]string{"kernel", "case", "processes σ", "batches σ", "between", "lag-1", "MDE90", "detect", "pairs"}, slices.CompactFunc(rows, slices.Equal))
}
