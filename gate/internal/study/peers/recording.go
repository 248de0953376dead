package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Each round of the recording runs one process for each of these, in this
// order: the base, the same binary again, and four with planted extra work.
var contenders = []string{"base", "unchanged", "+1 %", "+2 %", "+3 %", "+5 %"}

// A recording holds the batch times in nanoseconds by kind, round and contender.
type recording struct {
	kinds  []string // sorted
	rounds int
	times  map[string][][][]float64
}

// maxLine bounds a line of the recording.
const maxLine = 1 << 20

// readRecording reads gzipped JSON lines and checks that no process is missing.
func readRecording(path string) (recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return recording{}, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return recording{}, fmt.Errorf("%s: %w", path, err)
	}
	r := recording{times: map[string][][][]float64{}}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if err := r.add(lines.Bytes()); err != nil {
			return recording{}, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return recording{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := r.complete(); err != nil {
		return recording{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// add reads one process.
func (r *recording) add(line []byte) error {
	var row struct {
		Kind         string    `json:"kind"`
		Microseconds []float64 `json:"us"`
		Round        int       `json:"round"`
		Order        int       `json:"order"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	const maxRounds = 10_000
	if row.Round < 0 || row.Round >= maxRounds || row.Order < 0 {
		return fmt.Errorf("round %d and order %d are out of range", row.Round, row.Order)
	}
	for len(r.times[row.Kind]) <= row.Round {
		r.times[row.Kind] = append(r.times[row.Kind], make([][]float64, len(contenders)))
	}
	to := &r.times[row.Kind][row.Round][row.Order%len(contenders)]
	for _, us := range row.Microseconds {
		*to = append(*to, 1000*us)
	}
	return nil
}

// complete fills in kinds and rounds, and refuses gaps.
func (r *recording) complete() error {
	for kind, rounds := range r.times {
		r.kinds = append(r.kinds, kind)
		r.rounds = max(r.rounds, len(rounds))
	}
	slices.Sort(r.kinds)
	if len(r.kinds) == 0 {
		return fmt.Errorf("no process was recorded")
	}
	for _, kind := range r.kinds {
		for round := range r.rounds {
			for c := range contenders {
				if round >= len(r.times[kind]) || len(r.times[kind][round][c]) < 10 {
					return fmt.Errorf("round %d of %s lacks the process %q or ten times of it", round, kind, contenders[c])
				}
			}
		}
	}
	return nil
}
