package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/verdict"
)

// reported is what public status reports say of kernels of the same design, on an
// L4, in µs.
var reported = map[string]string{
	"r01": "2870", "r02": "1324", "r03": "1028", "r04a": "1844", "r04b": "1776", "r05": "1169",
	"r06": "198 without softmax", "r07": "986", "r08": "221", "r09": "131", "r10": "98",
}

// A column is one figure of a kernel.
type column struct {
	name, metric, format string
	scale                float64
}

var (
	wrong   = column{"wrong classes", "check.failed_classes", "%.0f", 1}
	spills  = column{"spills B", "ptxas.spill_bytes", "%.0f", 1}
	onWarm  = column{"warm µs", warm, "%.2f", 1e-3}
	banks   = column{"bank conflicts", "ncu.shared_bank_conflicts", "%.0f", 1}
	memory  = column{"memory errors", "sanitizer.memcheck", "%.0f", 1}
	races   = column{"races", "sanitizer.racecheck", "%.0f", 1}
	columns = []column{
		onWarm,
		{"cold µs", cold, "%.2f", 1e-3},
		{"registers", "ptxas.registers", "%.0f", 1},
		spills,
		{"stack B", "ptxas.stack_bytes", "%.0f", 1},
		{"shared B", "ncu.shared_bytes", "%.0f", 1},
		{"occupancy %", "ncu.achieved_occupancy", "%.1f", 1},
		banks,
		{"tensor %", "ncu.tensor_pipe_utilization", "%.1f", 1},
		wrong, memory, races,
	}
	planted = []column{wrong, memory, races, spills, banks, {"active SMs", "ncu.active_sms", "%.1f", 1}, onWarm}
)

func (c column) of(k verdict.KernelVerdict) string { return c.on(k, mission) }

// on is the figure of a kernel on a case, and a dash where none is recorded.
func (c column) on(k verdict.KernelVerdict, name string) string {
	if v, ok := known(k, name, c.metric); ok {
		return fmt.Sprintf(c.format, v.Number*c.scale)
	}
	return "–"
}

// names are the headings of columns.
func names(columns []column) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return out
}

// figures are the cells of a kernel in columns.
func figures(columns []column, k verdict.KernelVerdict) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.of(k))
	}
	return out
}

// ladder is one line for each rung.
func (s scene) ladder() []byte {
	var out bytes.Buffer
	heading(&out, slices.Concat([]string{"kernel", "L4 µs, reported"}, names(columns), []string{"of the fastest SDPA"}))
	for _, k := range s.rungs() {
		rung := path.Base(k.Name)
		first := []string{fmt.Sprintf("[%s](attention/%s)", rung, rung), orNone(reported[short(k.Name)])}
		share := "–"
		if f := fastest(k, mission, warm); f != nil {
			share = fmt.Sprintf("%.3f", 1+f.Interval.Estimate)
		}
		line(&out, slices.Concat(first, figures(columns, k), []string{share}))
	}
	return out.Bytes()
}

// fixtures is one line for each planted defect.
func (s scene) fixtures() []byte {
	var out bytes.Buffer
	heading(&out, slices.Concat([]string{"fixture", "fails"}, names(planted), []string{"of r11, same run"}))
	for _, k := range s.those(func(name string) bool { return path.Dir(name) == "fixtures" }) {
		first, share := []string{"`" + path.Base(k.Name) + "`", strings.Join(fails(k), ", ")}, "–"
		for _, f := range k.Findings {
			if short(f.RelativeTo) == "r11" && f.Interval != nil {
				share = ratio(f)
			}
		}
		line(&out, slices.Concat(first, figures(planted, k), []string{share}))
	}
	return out.Bytes()
}

// fails are the rules that a kernel breaks.
func fails(k verdict.KernelVerdict) []string {
	var rules []string
	for _, f := range k.Findings {
		if f.Status == verdict.Fail && !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

// libraries are the times of each library, and of the rungs that were timed beside it.
func (s scene) libraries() []byte {
	rungs := slices.DeleteFunc(s.rungs(), func(k verdict.KernelVerdict) bool { return len(byLibrary(k, mission, warm)) == 0 })
	if len(rungs) == 0 {
		return []byte("No rung was timed beside a library.\n")
	}
	header := []string{"library", "warm µs", "cold µs"}
	for _, k := range rungs {
		header = append(header, short(k.Name)+" of it, warm", "cold")
	}
	var out bytes.Buffer
	heading(&out, header)
	for _, f := range byLibrary(rungs[0], mission, warm) {
		cells := []string{path.Base(f.RelativeTo), micros(f), micros(against(rungs[0], mission, f.RelativeTo, cold))}
		for _, k := range rungs {
			cells = append(cells, ratio(against(k, mission, f.RelativeTo, warm)), ratio(against(k, mission, f.RelativeTo, cold)))
		}
		line(&out, cells)
	}
	return out.Bytes()
}

// against is the finding that compares a kernel with one library. It has no interval
// where that was not timed.
func against(k verdict.KernelVerdict, name, other, metric string) verdict.Finding {
	for _, f := range byLibrary(k, name, metric) {
		if f.RelativeTo == other {
			return f
		}
	}
	return verdict.Finding{}
}

// micros is the time of what a kernel was timed beside.
func micros(f verdict.Finding) string {
	if f.Base == nil || !f.Base.Known() {
		return "–"
	}
	return fmt.Sprintf("%.2f", f.Base.Number/1e3)
}

// ratio is the share of a time that a kernel takes, with its 95 % interval.
func ratio(f verdict.Finding) string {
	if f.Interval == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", 1+f.Interval.Estimate, 1+f.Interval.Low, 1+f.Interval.High)
}

func heading(out *bytes.Buffer, cells []string) {
	line(out, cells)
	line(out, slices.Repeat([]string{"---"}, len(cells)))
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
