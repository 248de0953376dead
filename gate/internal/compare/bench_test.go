package compare

import (
	"math/rand/v2"
	"syscall"
	"testing"
)

func benchmarkRequest(kernels, rounds int) []Series {
	rng := rand.New(rand.NewPCG(51, 0))
	experiments := make([]Series, kernels)
	for i := range experiments {
		experiments[i] = Series{Limits: Limits{Tolerance: 0.005, Detect: 0.02}, Rounds: normalRounds(rng, rounds, 0.003, 0)}
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
	three, err := fixedPlan(3)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		plan   Plan
		rounds int
	}{{"fixed12", three, 3}, {"sequential12", SequentialPlan(), 3}, {"sequential120", SequentialPlan(), 30}} {
		experiments := benchmarkRequest(1000, c.rounds)
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
