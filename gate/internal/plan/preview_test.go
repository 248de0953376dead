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
	want := 3*1.9 + 2*2.4 + 10*(0.3+0.2) + 17*(0.3+2*0.2)
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
