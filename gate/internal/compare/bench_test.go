package compare

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func benchmarkRequest(kernels, blocks int) []Experiment {
	rng := rand.New(rand.NewPCG(51, 0))
	experiments := make([]Experiment, kernels)
	for i := range experiments {
		experiments[i] = Experiment{Name: fmt.Sprintf("kernel%05d", i), Limits: Limits{Tolerance: 0.005, Detect: 0.02}, Blocks: normalBlocks(rng, blocks, 0.003, 0)}
	}
	return experiments
}

func BenchmarkDecide1000(b *testing.B) {
	three, err := FixedPlan(3)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		plan   Plan
		blocks int
	}{{"fixed12", three, 3}, {"sequential12", SequentialPlan(), 3}, {"sequential120", SequentialPlan(), 30}} {
		experiments := benchmarkRequest(1000, c.blocks)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decide(experiments, c.plan); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExact compares 50 exact metrics of 10,000 kernels.
func BenchmarkExact(b *testing.B) {
	const kernels, metrics = 10_000, 50
	rng := rand.New(rand.NewPCG(52, 0))
	base, head := make([]Value, kernels*metrics), make([]Value, kernels*metrics)
	for i := range base {
		base[i], head[i] = Known(float64(rng.IntN(256))), Known(float64(rng.IntN(256)))
	}
	b.ReportAllocs()
	for b.Loop() {
		worse := 0
		for i := range base {
			if w, ok := Exact(base[i], head[i]).Worsening(Relative, LowerBetter); ok && w > 0.01 {
				worse++
			}
		}
		if worse == 0 {
			b.Fatal("nothing is worse")
		}
	}
}
