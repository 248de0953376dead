package judge

import (
	"math/rand"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// selfTimed is an A/A run of so many processes whose times are near 100 µs.
func selfTimed(r *rand.Rand, state evidence.CacheState, processes int) *evidence.Record {
	record := &evidence.Record{AA: &evidence.AA{Blocks: processes / 8}, Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z"}}
	for range processes {
		level := 100_000 * (1 + 0.004*r.NormFloat64())
		record.Samples = append(record.Samples, evidence.Sample{CacheState: state, BatchesNS: []float64{level, level + r.Float64(), level + r.Float64()}})
	}
	return record
}
