package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/metric"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// measured is what the records say of one rung, and of the step to it from the one
// before.
func (s scene) measured(k verdict.KernelVerdict, before *verdict.KernelVerdict) []byte {
	var out bytes.Buffer
	heading(&out, []string{mission + ", 1×8×512×64", "gate's records, " + s.machine})
	for _, name := range timedOn(k) {
		line(&out, []string{where("warm / cold", name), show(k, name, warm) + " / " + show(k, name, cold)})
	}
	line(&out, []string{"warm, with its 95 % interval", interval(k)})
	if before != nil {
		line(&out, []string{"warm, against " + short(before.Name), step(*before, k)})
	}
	for _, metric := range []string{warm, cold} {
		if len(byLibrary(k, mission, metric)) > 0 {
			line(&out, []string{"of the fastest SDPA, " + map[string]string{warm: "warm", cold: "cold"}[metric], share(k, metric)})
		}
	}
	line(&out, []string{"registers", registers(k)})
	for _, row := range []struct {
		name    string
		metrics []string
	}{
		{"spills, stack, shared memory", []string{"ptxas.spill_bytes", "ptxas.stack_bytes", "ncu.shared_bytes"}},
		{"achieved occupancy, tensor pipe active", []string{"ncu.achieved_occupancy", "ncu.tensor_pipe_utilization"}},
		{"shared-memory bank conflicts", []string{"ncu.shared_bank_conflicts"}},
		{"local-memory instructions", []string{"ncu.local_instructions"}},
	} {
		line(&out, []string{row.name, all(k, mission, row.metrics...)})
	}
	for _, name := range searchedOn(k) {
		line(&out, []string{where("memory errors, races", name), all(k, name, "sanitizer.memcheck", "sanitizer.racecheck")})
	}
	line(&out, []string{"results", correct(k)})
	if l4 := reported[short(k.Name)]; l4 != "" {
		line(&out, []string{"reported for an L4, µs", l4})
	}
	return out.Bytes()
}

// timedOn are the cases that a kernel was timed on, mission first even where it was not.
func timedOn(k verdict.KernelVerdict) []string {
	names := []string{mission}
	for _, f := range k.Figures {
		if f.Metrics.Get(warm).Known() && !slices.Contains(names, f.Case) {
			names = append(names, f.Case)
		}
	}
	return names
}

// interval is what the judge says of the warm time of all processes, where a rule
// bounds it.
func interval(k verdict.KernelVerdict) string {
	for _, f := range k.Findings {
		_, figures, ok := strings.Cut(f.Reason, ": ")
		if ok && f.Kind == string(plan.TimeLimit) && f.Metric == warm && f.Case == mission {
			return figures
		}
	}
	return "not recorded"
}

// searchedOn are the cases that a rule has compute-sanitizer search, and mission.
func searchedOn(k verdict.KernelVerdict) []string {
	names := []string{mission}
	for _, f := range k.Findings {
		if f.Tier == evidence.Sanitizer && !slices.Contains(names, f.Case) {
			names = append(names, f.Case)
		}
	}
	return names
}

func where(what, name string) string {
	if name == mission {
		return what
	}
	return what + ", case " + name
}

func show(k verdict.KernelVerdict, name, of string) string {
	v, _ := known(k, name, of)
	return shown(v)
}

func all(k verdict.KernelVerdict, name string, metrics ...string) string {
	var cells []string
	for _, m := range metrics {
		cells = append(cells, show(k, name, m))
	}
	return strings.Join(cells, ", ")
}

func shown(v evidence.Value) string {
	if !v.Known() {
		return "not recorded"
	}
	return metric.Show(v.Number, v.Unit())
}

// step is the time of a rung as a share of that of the one before.
func step(before, k verdict.KernelVerdict) string {
	from, ok := known(before, mission, warm)
	to, too := known(k, mission, warm)
	if !ok || !too {
		return "not recorded"
	}
	return fmt.Sprintf("%s → %s, %.2f ×", show(before, mission, warm), show(k, mission, warm), to.Number/from.Number)
}

func share(k verdict.KernelVerdict, metric string) string {
	f := fastest(k, mission, metric)
	if f == nil {
		return "not recorded"
	}
	return fmt.Sprintf("%s of %s's %s µs", ratio(*f), strings.TrimPrefix(f.RelativeTo, library), micros(*f))
}

// registers are those of each entry, where there are several.
func registers(k verdict.KernelVerdict) string {
	if len(k.Entries) < 2 {
		return show(k, mission, "ptxas.registers")
	}
	var each []string
	for _, e := range k.Entries {
		each = append(each, shown(e.Metrics.Get("ptxas.registers"))+" `"+e.Entry+"`")
	}
	return strings.Join(each, ", ")
}

// correct is what the checks of each case came to, and the largest error of all.
func correct(k verdict.KernelVerdict) string {
	var said []string
	of := map[string][]string{}
	for _, f := range k.Findings {
		if f.Rule != "correctness" || slices.Contains(of[f.Reason], f.Case) {
			continue
		}
		if of[f.Reason] == nil {
			said = append(said, f.Reason)
		}
		of[f.Reason] = append(of[f.Reason], f.Case)
	}
	for i, reason := range said {
		said[i] = reason + " (" + strings.Join(of[reason], ", ") + ")"
	}
	worst := 0.0
	for _, f := range k.Figures {
		worst = max(worst, f.Metrics.Get("check.relative_error").Number)
	}
	if worst > 0 {
		said = append(said, fmt.Sprintf("relative error at most %.2g", worst))
	}
	return orNone(strings.Join(said, "; "))
}
