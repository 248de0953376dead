package compare

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

func benchmarkRequest(kernels, blocks int) []Experiment {
	rng := rand.New(rand.NewPCG(51, 0))
	experiments := make([]Experiment, kernels)
	for i := range experiments {
		experiments[i] = Experiment{Name: fmt.Sprintf("kernel%05d", i), Limits: Limits{Tolerance: 0.005, Detect: 0.02}, Blocks: normalBlocks(rng, blocks, 0.003, 0)}
	}
	return experiments
}

// reportCPU adds the processor time of an operation, which a busy machine does
// not stretch as it does the wall time.
func reportCPU(b *testing.B) func() {
	before := cpuSeconds(b)
	return func() { b.ReportMetric((cpuSeconds(b)-before)*1000/float64(b.N), "cpu-ms/op") }
}

func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// BenchmarkDecide1000 judges 1,000 experiments of two metrics each.
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
			defer reportCPU(b)()
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
	base, head := make([]evidence.Value, kernels*metrics), make([]evidence.Value, kernels*metrics)
	for i := range base {
		base[i], head[i] = exactly(float64(rng.IntN(256))), exactly(float64(rng.IntN(256)))
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		worse := 0
		for i := range base {
			if w, ok := Exact(base[i], head[i]).Worsening(LowerBetter); ok && w > 0.01 {
				worse++
			}
		}
		if worse == 0 {
			b.Fatal("nothing is worse")
		}
	}
}
