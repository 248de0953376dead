package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// An outcome is the verdict on one kernel. Estimates are relative changes.
type outcome struct {
	Kernel     string   `json:"kernel"`
	Group      string   `json:"group"`
	Extra      int      `json:"extra,omitempty"` // planted work
	Status     string   `json:"status"`
	RedRules   int      `json:"red_rules"`
	Pairs      int      `json:"pairs"`
	Typical    *float64 `json:"typical,omitempty"`
	Mean       *float64 `json:"mean,omitempty"`
	GPUSeconds *float64 `json:"gpu_seconds,omitempty"` // in timed batches, both arms, all regimes
	Reason     string   `json:"reason,omitempty"`      // of a verdict that is not a pass
}

// A line is one check.
type line struct {
	Phase        string    `json:"phase"`
	Profile      string    `json:"profile"`
	Run          int       `json:"run"`
	Kernels      int       `json:"kernels"`
	Questions    int       `json:"questions"` // Holm's procedure runs over all of them
	Red          int       `json:"red"`
	Inconclusive int       `json:"inconclusive"`
	Pass         int       `json:"pass"`
	CheckSeconds float64   `json:"check_seconds"` // of the whole command
	WallSeconds  float64   `json:"wall_seconds"`  // of the experiment
	TimedSeconds float64   `json:"timed_seconds"` // of those, in a timed batch
	Notes        []string  `json:"notes,omitempty"`
	Outcomes     []outcome `json:"outcomes"`
}

// lineOf counts a verdict. A kernel that the plants do not name is an error.
func lineOf(c *check, plants []plant) (line, error) {
	l := line{Kernels: len(c.verdict.Kernels), CheckSeconds: c.seconds, Notes: c.verdict.Notes}
	for _, k := range c.verdict.Kernels {
		i := slices.IndexFunc(plants, func(p plant) bool { return p.name == k.Name })
		if i < 0 {
			return l, fmt.Errorf("the verdict names %s, which was not planted", k.Name)
		}
		o := outcomeOf(k, c.records[k.Identity])
		o.Group, o.Extra = plants[i].group, max(0, plants[i].extra)
		switch k.Status {
		case verdict.Fail:
			l.Red++
		case verdict.Pass:
			l.Pass++
		default:
			l.Inconclusive++
		}
		for _, f := range k.Findings {
			if f.Tier == evidence.Latency {
				l.Questions++
			}
		}
		l.Outcomes = append(l.Outcomes, o)
	}
	for _, r := range c.records {
		if r.Experiment != nil {
			l.WallSeconds = math.Max(l.WallSeconds, r.Experiment.WallSeconds)
			l.TimedSeconds = math.Max(l.TimedSeconds, r.Experiment.TimedSeconds)
		}
	}
	return l, nil
}

func outcomeOf(k verdict.KernelVerdict, r *evidence.Record) outcome {
	o := outcome{Kernel: k.Name, Status: k.Status.String()}
	for _, f := range k.Findings {
		if f.Status != verdict.Pass && o.Reason == "" {
			o.Reason = f.Rule + ": " + f.Reason
		}
		if f.Interval == nil {
			continue
		}
		if f.Status == verdict.Fail {
			o.RedRules++
		}
		o.Pairs = max(o.Pairs, f.Interval.Pairs)
		estimate := f.Interval.Estimate
		if f.Metric == "latency.mean" {
			o.Mean = &estimate
		} else {
			o.Typical = &estimate
		}
	}
	if s, ok := secondsAPair(r); ok && o.Pairs > 0 {
		s *= float64(o.Pairs)
		o.GPUSeconds = &s
	}
	return o
}

// secondsAPair is the time in timed batches that a pair of processes costs. It
// comes from the record of a copy, which is the same code.
func secondsAPair(r *evidence.Record) (float64, bool) {
	if r == nil || r.Experiment == nil || len(r.Experiment.Rounds) == 0 {
		return 0, false
	}
	sum, pairs := 0.0, 0
	for _, b := range r.Experiment.Rounds {
		regimes := map[evidence.CacheState]bool{}
		for _, s := range slices.Concat(b.Base, b.Head) {
			regimes[s.CacheState] = true
			for _, t := range s.BatchesNS {
				sum += t * float64(s.Calls) * 1e-9
			}
		}
		if len(regimes) > 0 {
			pairs += len(b.Base) / len(regimes)
		}
	}
	return sum / float64(pairs), pairs > 0
}

// A group is all outcomes of one kind at one profile.
type group struct{ profile, name string }

// writeTable sums up lines, a row for each profile and group.
func writeTable(w io.Writer, lines []line) error {
	rows := map[group][]outcome{}
	var order []group
	for _, l := range lines {
		for _, o := range l.Outcomes {
			g := group{l.Profile, o.Group}
			if rows[g] == nil {
				order = append(order, g)
			}
			rows[g] = append(rows[g], o)
		}
	}
	slices.SortStableFunc(order, func(a, b group) int {
		return cmp.Or(cmp.Compare(a.profile, b.profile), cmp.Compare(a.name, b.name))
	})
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "profile\tgroup\tdecisions\tred\tinconclusive\tpass\tpairs mean\tpairs max\ttypical mean\tsd\ttimed GPU s a kernel")
	for _, g := range order {
		writeRow(tw, g, rows[g])
	}
	return tw.Flush()
}

func writeRow(w io.Writer, g group, all []outcome) {
	count := map[string]int{}
	var pairs, typical, gpu []float64
	for _, o := range all {
		count[o.Status]++
		pairs = append(pairs, float64(o.Pairs))
		if o.Typical != nil {
			typical = append(typical, *o.Typical)
		}
		if o.GPUSeconds != nil {
			gpu = append(gpu, *o.GPUSeconds)
		}
	}
	m, sd := moments(typical)
	meanPairs, _ := moments(pairs)
	seconds, _ := moments(gpu)
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%.1f\t%.0f\t%+.3f %%\t%.3f %%\t%.3f\n", g.profile, g.name, len(all), count["fail"],
		len(all)-count["fail"]-count["pass"], count["pass"], meanPairs, slices.Max(pairs), 100*m, 100*sd, seconds)
}

// moments are the mean and the standard deviation; NaN where there are too few.
func moments(xs []float64) (mean, sd float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	if len(xs) == 0 {
		return math.NaN(), math.NaN()
	}
	sum := 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	if len(xs) < 2 {
		return mean, math.NaN()
	}
	return mean, math.Sqrt(sum / float64(len(xs)-1))
}

// keep writes a line as JSON.
func keep(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
