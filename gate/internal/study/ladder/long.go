package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// long is a line for each shape: the rates of the kernel for long sequences and of the
// libraries that were timed in the same processes, by the work that the op states. Of
// what is not recorded it says why.
func (s scene) long(shapes []shape) ([]byte, error) {
	k := s.named(longKernel)
	if k == nil {
		return nil, fmt.Errorf("no verdict judges %s: kernels/attention/long.yaml does", longKernel)
	}
	var libraries, header, missing []string
	for _, f := range k.Findings {
		if f.Metric == cold && strings.HasPrefix(f.RelativeTo, library) && !slices.Contains(libraries, f.RelativeTo) {
			libraries, header = append(libraries, f.RelativeTo), append(header, path.Base(f.RelativeTo))
		}
	}
	var out bytes.Buffer
	heading(&out, slices.Concat([]string{"TFLOP/s, cold", "r14"}, header, []string{"r14 over the fastest", "tensor %", "warps that wait, per issued instruction"}))
	for _, at := range shapes {
		best := fastest(*k, at.name, cold)
		cells := []string{at.dims, "–"}
		if best != nil {
			cells[1] = at.rate(best.Head)
		}
		for _, name := range libraries {
			f := against(*k, at.name, name, cold)
			cells = append(cells, at.rate(f.Base))
			if f.Interval == nil && !slices.Contains(missing, f.Reason) {
				missing = append(missing, f.Reason)
			}
		}
		tensor := column{metric: "ncu.tensor_pipe_utilization", format: "%.1f", scale: 1}
		line(&out, append(cells, speed(best), tensor.on(*k, at.name), stalls(*k, at.name)))
	}
	for i, reason := range missing {
		if i == 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "- not recorded: %s\n", reason)
	}
	return out.Bytes(), nil
}

// rate is that of the stated work in a time, in TFLOP/s.
func (at shape) rate(ns *evidence.Value) string {
	if ns == nil || !ns.Known() {
		return "–"
	}
	return fmt.Sprintf("%.0f", at.flops/ns.Number/1e3)
}

// speed is the rate of a kernel as a multiple of the library's, with its 95 % interval.
func speed(f *verdict.Finding) string {
	if f == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", 1/(1+f.Interval.Estimate), 1/(1+f.Interval.High), 1/(1+f.Interval.Low))
}

// stalls are the three reasons for which most warps wait; those that are selected do
// not.
func stalls(k verdict.KernelVerdict, name string) string {
	type stall struct {
		reason string
		warps  float64
	}
	var all []stall
	for _, f := range k.Figures {
		for m, v := range f.Metrics {
			reason, ok := strings.CutPrefix(m, "ncu.stall.")
			if ok && f.Case == name && v.Known() && reason != "selected" {
				all = append(all, stall{reason, v.Number})
			}
		}
	}
	if len(all) == 0 {
		return "–"
	}
	slices.SortFunc(all, func(a, b stall) int {
		return cmp.Or(cmp.Compare(b.warps, a.warps), strings.Compare(a.reason, b.reason))
	})
	var said []string
	for _, x := range all[:min(3, len(all))] {
		said = append(said, fmt.Sprintf("`%s` %.2f", x.reason, x.warps))
	}
	return strings.Join(said, ", ")
}
