package main

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

const (
	mission    = "mission"            // the case of the ladder
	longKernel = "attention/r14_long" // of another policy, and no rung
	library    = "attention/sdpa_"    // how the names of the libraries begin
	warm, cold = "latency.typical", "latency.cold_typical"
)

// A scene is what all verdicts say: each kernel once, with the findings and figures of
// all of them, by name.
type scene struct {
	kernels []verdict.KernelVerdict
	machine string
}

func gather(verdicts []*verdict.Verdict) scene {
	var s scene
	for _, v := range verdicts {
		for _, m := range v.Machines {
			s.machine = cmp.Or(s.machine, m.Description)
		}
		for _, k := range v.Kernels {
			if have := s.named(k.Name); have != nil {
				have.Findings = slices.Concat(have.Findings, k.Findings)
				have.Figures = slices.Concat(have.Figures, k.Figures)
				continue
			}
			s.kernels = append(s.kernels, k)
		}
	}
	slices.SortFunc(s.kernels, func(a, b verdict.KernelVerdict) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (s scene) named(name string) *verdict.KernelVerdict {
	i := slices.IndexFunc(s.kernels, func(k verdict.KernelVerdict) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &s.kernels[i]
}

func (s scene) rungs() []verdict.KernelVerdict {
	return s.those(func(name string) bool { return strings.HasPrefix(name, "attention/r") && name != longKernel })
}

func (s scene) those(match func(string) bool) []verdict.KernelVerdict {
	return slices.DeleteFunc(slices.Clone(s.kernels), func(k verdict.KernelVerdict) bool { return !match(k.Name) })
}

// known is a figure of one case, or of the static tier, where any verdict knows it.
// What compute-sanitizer found stands in findings alone.
func known(k verdict.KernelVerdict, name, metric string) (evidence.Value, bool) {
	for _, f := range k.Figures {
		if v := f.Metrics.Get(metric); v.Known() && (f.Case == "" || f.Case == name) {
			return v, true
		}
	}
	for _, f := range k.Findings {
		if f.Metric == metric && f.Case == name && f.RelativeTo == "" && f.Head != nil && f.Head.Known() {
			return *f.Head, true
		}
	}
	return evidence.Value{}, false
}

// byLibrary are the findings that compare a kernel with a library, one for each.
func byLibrary(k verdict.KernelVerdict, name, metric string) []verdict.Finding {
	var out []verdict.Finding
	for _, f := range k.Findings {
		again := func(o verdict.Finding) bool { return o.RelativeTo == f.RelativeTo }
		if f.Case == name && f.Metric == metric && strings.HasPrefix(f.RelativeTo, library) && !slices.ContainsFunc(out, again) {
			out = append(out, f)
		}
	}
	return out
}

// fastest is the finding about the fastest library. It is nil where one of the libraries
// was not timed, since that one may be the fastest.
func fastest(k verdict.KernelVerdict, name, metric string) *verdict.Finding {
	all := byLibrary(k, name, metric)
	if len(all) == 0 || slices.ContainsFunc(all, func(f verdict.Finding) bool { return f.Interval == nil }) {
		return nil
	}
	most := slices.MaxFunc(all, func(a, b verdict.Finding) int { return cmp.Compare(a.Interval.Estimate, b.Interval.Estimate) })
	return &most
}

func short(name string) string {
	number, _, _ := strings.Cut(path.Base(name), "_")
	return number
}
