package plan

import (
	"math"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// TestPreviewSaysWhatTakesHowLong: every record is counted once, a check, a
// profile and a process each take their time, and what is there takes none.
func TestPreviewSaysWhatTakesHowLong(t *testing.T) {
	p := bound(t, policyOf(t, false, nil, rules...), Options{}, []evidence.Machine{h200}, subject("op/k", verdict.Changed, "small"))
	l := &evidence.Ledger{}
	// three checks, two profiles, ten processes of the head alone, and a pilot with
	// eight pairs of processes of two experiments
	want := 3*1.9 + 2*(2.1+0.3) + 10*(0.3+0.2) + 17*(0.3+2*0.2)
	got := p.Preview(l)
	if got.Measured != 8 || math.Abs(got.GPUSeconds-want) > 1e-9 {
		t.Errorf("%d records in %.2f s, want 8 in %.2f s", got.Measured, got.GPUSeconds, want)
	}
	answers := func(v Preview) map[Answer]int {
		n := map[Answer]int{}
		for _, a := range v.Questions {
			n[a.Answer]++
		}
		return n
	}
	if n := answers(got); n[IsMissing] != 2 || n[IsRecorded] != 1 || n[IsMeasured] != len(got.Questions)-3 { // the compiler's report, twice, and advice, which asks for nothing
		t.Errorf("%v", n)
	}

	for s := p.Next(l); s != nil; s = p.Next(l) {
		answer(s, l)
	}
	for _, q := range p.Questions {
		for _, n := range q.Needs {
			if n.Tier == evidence.Static {
				l.Put(recordAt(*n.Key), evidence.Measured)
			}
		}
	}
	got = p.Preview(l)
	if n := answers(got); got.Measured != 0 || got.GPUSeconds != 0 || n[IsBuilt] != 2 || n[IsRecorded] != len(got.Questions)-2 {
		t.Errorf("with all there: %+v", got)
	}
}

// TestCasesShareAStartOfTheProfiler: a kernel costs one start, each of its cases a
// little, and other code of the same kernel a start of its own.
func TestCasesShareAStartOfTheProfiler(t *testing.T) {
	task := func(side, kernel, kase, reference string) Task {
		at := evidence.Address{Identity: code(side, kernel), Case: kase}
		return Task{Key: evidence.Key{Tier: evidence.Profile, At: at}, Subject: &Subject{Name: kernel}, Reference: reference}
	}
	s := Step{Tier: evidence.Profile, Tasks: []Task{task("head", "op/k", "small", ""), task("head", "op/j", "small", ""), task("head", "op/k", "large", "")}}
	if got, want := s.seconds(), 2*2.1+3*0.3; math.Abs(got-want) > 1e-9 {
		t.Errorf("two kernels with three cases: %.2f s, want %.2f s", got, want)
	}
	s.Tasks = append(s.Tasks, task("base", "op/k", "small", ""), task("base", "op/k", "small", "op/ref"))
	if got, want := s.seconds(), 4*2.1+5*0.3; math.Abs(got-want) > 1e-9 {
		t.Errorf("with other code and a reference: %.2f s, want %.2f s", got, want)
	}
}
