package main

import (
	"fmt"

	"github.com/kernelgate/gate/gate/internal/compare"
)

// gateRounds is the number of recorded rounds that a decision of the gate has at
// least: three of its own. It reads as many more as its plan asks for.
const gateRounds = 12

// profiles are the gate's rows.
var profiles = []string{"standard", "strict"}

// judgeGate decides from every round on that leaves twelve.
func judgeGate(r recording, profile string) (row, error) {
	out := row{name: "**gate, " + profile + "**", reads: "8 + 8 processes or more, by the product's plan", found: make([]share, len(contenders))}
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

// request judges all kinds against one contender as one pull request, by the
// product's plan. Every four recorded rounds stand in for one of the gate's,
// although their order was fixed.
func request(r recording, from, contender int, profile string) (map[string]compare.Outcome, error) {
	limits, err := compare.Profile(profile)
	if err != nil {
		return nil, err
	}
	var experiments []compare.Series
	for _, kind := range r.kinds {
		blocks, err := blocksOf(r.times[kind][from:from+(r.rounds-from)/4*4], contender)
		if err != nil {
			return nil, fmt.Errorf("%s from round %d: %w", kind, from, err)
		}
		experiments = append(experiments, compare.Series{Limits: limits, Rounds: blocks})
	}
	outcomes, err := compare.Decide(experiments, compare.SequentialPlan())
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
