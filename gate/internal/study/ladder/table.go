package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// reported is what public status reports say of kernels of the same design, on an
// L4, in µs. r06 is without its softmax there.
var reported = map[string]string{
	"r01": "2870", "r02": "1324", "r03": "1028", "r04a": "1844", "r04b": "1776", "r05": "1169",
	"r06": "198", "r07": "986", "r08": "221", "r09": "131", "r10": "98",
}

const shown = "mission" // the case of the table

// A column is one figure of a kernel.
type column struct {
	name, metric, format string
	scale                float64
}

var columns = []column{
	{"warm µs", "latency.typical", "%.2f", 1e-3},
	{"cold µs", "latency.cold_typical", "%.2f", 1e-3},
	{"registers", "ptxas.registers", "%.0f", 1},
	{"spills B", "ptxas.spill_bytes", "%.0f", 1},
	{"stack B", "ptxas.stack_bytes", "%.0f", 1},
	{"static shared B", "ptxas.shared_bytes", "%.0f", 1},
	{"occupancy %", "ncu.achieved_occupancy", "%.1f", 1},
	{"bank conflicts", "ncu.shared_bank_conflicts", "%.0f", 1},
	{"tensor %", "ncu.tensor_pipe_utilization", "%.1f", 1},
	{"memory errors", "sanitizer.memcheck", "%.0f", 1},
	{"races", "sanitizer.racecheck", "%.0f", 1},
}

// table is one line for each rung of the first verdict, in the order of their names.
func table(verdicts ...*verdict.Verdict) []byte {
	var out bytes.Buffer
	header := []string{"kernel", "L4 µs, reported"}
	for _, c := range columns {
		header = append(header, c.name)
	}
	header = append(header, "of the fastest SDPA")
	line(&out, header)
	line(&out, strings.Split(strings.Repeat("---,", len(header)-1)+"---", ","))
	kernels := slices.SortedFunc(slices.Values(verdicts[0].Kernels), func(a, b verdict.KernelVerdict) int { return strings.Compare(a.Name, b.Name) })
	for _, k := range kernels {
		rung := path.Base(k.Name)
		if path.Dir(k.Name) != "attention" || !strings.HasPrefix(rung, "r") {
			continue
		}
		number, _, _ := strings.Cut(rung, "_")
		cells := []string{fmt.Sprintf("[%s](attention/%s)", rung, rung), orNone(reported[number])}
		for _, c := range columns {
			cells = append(cells, c.of(figures(k.Name, verdicts)))
		}
		line(&out, append(cells, ofFastest(k.Findings)))
	}
	return out.Bytes()
}

// figures are those of a kernel in all verdicts, and what its rules were judged by:
// what compute-sanitizer found stands there alone.
func figures(kernel string, verdicts []*verdict.Verdict) []verdict.CaseFigures {
	var all []verdict.CaseFigures
	for _, v := range verdicts {
		for _, k := range v.Kernels {
			if k.Name == kernel {
				all = append(append(all, k.Figures...), judgedBy(k.Findings)...)
			}
		}
	}
	return all
}

func judgedBy(findings []verdict.Finding) []verdict.CaseFigures {
	var all []verdict.CaseFigures
	for _, f := range findings {
		if f.Head != nil && f.RelativeTo == "" {
			all = append(all, verdict.CaseFigures{Case: f.Case, Metrics: evidence.Metrics{f.Metric: *f.Head}})
		}
	}
	return all
}

func line(out *bytes.Buffer, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

func orNone(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// of is the figure of the case that is shown, or of the static tier.
func (c column) of(figures []verdict.CaseFigures) string {
	for _, f := range figures {
		if value := f.Metrics.Get(c.metric); value.Known() && (f.Case == "" || f.Case == shown) {
			return fmt.Sprintf(c.format, value.Number*c.scale)
		}
	}
	return "–"
}

// ofFastest is the largest share of the time of any library that a kernel was
// timed beside: that of the fastest one.
func ofFastest(findings []verdict.Finding) string {
	most := 0.0
	for _, f := range findings {
		if f.Case == shown && f.Metric == "latency.typical" && strings.HasPrefix(path.Base(f.RelativeTo), "sdpa_") && f.Interval != nil {
			most = max(most, 1+f.Interval.Estimate)
		}
	}
	if most == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", most)
}
