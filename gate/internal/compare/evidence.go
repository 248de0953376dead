package compare

import (
	"fmt"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// Launches summarises the samples of one state, in the order measured.
func Launches(samples []evidence.Sample, state evidence.CacheState) ([]Launch, error) {
	var launches []Launch
	for _, s := range samples {
		if s.CacheState != state {
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

// BlockOf summarises a recorded block of one state.
func BlockOf(b evidence.Block, state evidence.CacheState) (Block, error) {
	var out Block
	for _, side := range []struct {
		from []evidence.Sample
		to   *[perArm]Launch
	}{{b.Base, &out.Base}, {b.Head, &out.Head}} {
		launches, err := Launches(side.from, state)
		if err != nil {
			return out, fmt.Errorf("block %d: %w", b.Number+1, err)
		}
		if len(launches) != perArm {
			return out, fmt.Errorf("block %d has %d %s launches of one arm, not %d", b.Number+1, len(launches), state, perArm)
		}
		copy(side.to[:], launches)
	}
	return out, nil
}

// AABlocks groups the samples of one state of an A/A run into its blocks; they
// stand in the order measured.
func AABlocks(samples []evidence.Sample, state evidence.CacheState) ([]AABlock, error) {
	var launches [][]float64
	for _, s := range samples {
		if s.CacheState == state {
			launches = append(launches, s.BatchesNS)
		}
	}
	if len(launches) == 0 || len(launches)%blockSize != 0 {
		return nil, fmt.Errorf("%d %s launches are no whole blocks of %d", len(launches), state, blockSize)
	}
	blocks := make([]AABlock, 0, len(launches)/blockSize)
	for whole := range slices.Chunk(launches, blockSize) {
		blocks = append(blocks, AABlock(whole))
	}
	return blocks, nil
}

// BaseTime is the median of a pilot's launches, in ns.
func BaseTime(pilot []evidence.Sample, state evidence.CacheState, m Summary) (float64, error) {
	launches, err := Launches(pilot, state)
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
		out = append(out, evidence.SessionLaunch{CacheState: s.CacheState, Typical: l.Typical, Mean: l.Mean})
	}
	return out, nil
}

// SessionOf is a recorded session in one state.
func SessionOf(s evidence.Session, state evidence.CacheState) Session {
	var out Session
	for _, l := range s.Launches {
		if l.CacheState == state {
			out.Launches = append(out.Launches, Launch{Typical: l.Typical, Mean: l.Mean})
		}
	}
	return out
}
