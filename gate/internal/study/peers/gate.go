package main

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/compare"
)

// gateRounds is the number of rounds in a decision of the gate: three blocks.
const gateRounds = 12

// profiles are the gate's rows.
var profiles = []string{"standard", "strict"}

// judgeGate decides over every window of twelve rounds.
func judgeGate(r recording, profile string) (row, error) {
	out := row{name: "**gate, " + profile + "**", reads: "12 + 12 processes", found: make([]share, len(contenders))}
	for from := 0; from+gateRounds <= r.rounds; from++ {
		for c := 1; c < len(contenders); c++ {
			outcomes, err := request(r, from, c, profile)
			if err != nil {
				return row{}, err
			}
			out.count(r, c, func(kind string) bool { return outcomes[kind].Decision == compare.Regressed })
		}
	}
	return out, nil
}

// request judges twelve rounds of all kinds against one contender as one pull
// request. Every four rounds stand in for a block, although their order was
// fixed.
func request(r recording, from, contender int, profile string) (map[string]compare.Outcome, error) {
	limits, err := compare.Profile(profile)
	if err != nil {
		return nil, err
	}
	plan, err := compare.FixedPlan(gateRounds / 4)
	if err != nil {
		return nil, err
	}
	var experiments []compare.Series
	for _, kind := range r.kinds {
		blocks, err := blocksOf(r.times[kind][from:from+gateRounds], contender)
		if err != nil {
			return nil, fmt.Errorf("%s from round %d: %w", kind, from, err)
		}
		experiments = append(experiments, compare.Series{Limits: limits, Rounds: blocks})
	}
	outcomes, err := compare.Decide(experiments, plan)
	if err != nil {
		return nil, err
	}
	byKind := map[string]compare.Outcome{}
	for i, o := range outcomes {
		byKind[r.kinds[i]] = o
	}
	return byKind, nil
}

// blocksOf makes blocks of the base and one contender.
func blocksOf(rounds [][][]float64, contender int) ([]compare.Round, error) {
	blocks := make([]compare.Round, len(rounds)/4)
	for i, round := range rounds {
		base, err := compare.Summarize(round[0])
		if err != nil {
			return nil, err
		}
		head, err := compare.Summarize(round[contender])
		if err != nil {
			return nil, err
		}
		blocks[i/4].Base, blocks[i/4].Head = append(blocks[i/4].Base, base), append(blocks[i/4].Head, head)
	}
	return blocks, nil
}
