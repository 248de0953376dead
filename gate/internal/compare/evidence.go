package compare

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Launches summarises the samples of one regime, in the order measured.
func Launches(samples []evidence.Sample, regime string) ([]Launch, error) {
	var launches []Launch
	for _, s := range samples {
		if s.Regime != regime {
			continue
		}
		l, err := Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		launches = append(launches, l)
	}
	return launches, nil
}

// BlockOf summarises a recorded block of one regime.
func BlockOf(b evidence.Block, regime string) (Block, error) {
	var out Block
	for _, side := range []struct {
		from []evidence.Sample
		to   *[perArm]Launch
	}{{b.Base, &out.Base}, {b.Head, &out.Head}} {
		launches, err := Launches(side.from, regime)
		if err != nil {
			return out, fmt.Errorf("block %d: %w", b.Number+1, err)
		}
		if len(launches) != perArm {
			return out, fmt.Errorf("block %d has %d %s launches of one arm, not %d", b.Number+1, len(launches), regime, perArm)
		}
		copy(side.to[:], launches)
	}
	return out, nil
}

// AABlocks groups the samples of one regime of an A/A run into its blocks; they
// stand in the order measured.
func AABlocks(samples []evidence.Sample, regime string) ([]AABlock, error) {
	var launches [][]float64
	for _, s := range samples {
		if s.Regime == regime {
			launches = append(launches, s.BatchesNS)
		}
	}
	if len(launches) == 0 || len(launches)%blockSize != 0 {
		return nil, fmt.Errorf("%d %s launches are no whole blocks of %d", len(launches), regime, blockSize)
	}
	blocks := make([]AABlock, 0, len(launches)/blockSize)
	for whole := range slices.Chunk(launches, blockSize) {
		blocks = append(blocks, AABlock(whole))
	}
	return blocks, nil
}

// BaseTime is the median of a pilot's launches, in ns.
func BaseTime(pilot []evidence.Sample, regime string, m Metric) (float64, error) {
	launches, err := Launches(pilot, regime)
	if err != nil {
		return 0, err
	}
	s, err := SummarizeArm(launches, m)
	return s.Median, err
}

// NewSession summarises the samples of one job.
func NewSession(samples []evidence.Sample) ([]evidence.SessionLaunch, error) {
	var out []evidence.SessionLaunch
	for _, s := range samples {
		l, err := Summarize(s.BatchesNS)
		if err != nil {
			return nil, err
		}
		out = append(out, evidence.SessionLaunch{Regime: s.Regime, Typical: l.Typical, Mean: l.Mean})
	}
	return out, nil
}

// SessionOf is a recorded session in one regime.
func SessionOf(s evidence.Session, regime string) Session {
	var out Session
	for _, l := range s.Launches {
		if l.Regime == regime {
			out.Launches = append(out.Launches, Launch{Typical: l.Typical, Mean: l.Mean})
		}
	}
	return out
}
