package main

import (
	"slices"
)

// honest are the kinds whose extra work is extra time. The label of tiny
// counts loop steps of a kernel that is mostly launch overhead.
var honest = []string{"fma", "mma", "stream"}

// A row counts what a rule says.
type row struct {
	name, reads string
	kernels     share   // unchanged kernels called slower
	requests    share   // unchanged pull requests of all kinds with a red kernel
	found       []share // planted slowdowns called slower, by contender
}

// A share is a count of decisions.
type share struct{ of, all int }

// add counts one decision.
func (s *share) add(yes bool) {
	s.all++
	if yes {
		s.of++
	}
}

// A verdict says whether a kind is red in one pull request.
type verdict func(kind string) bool

// judgeAll applies every rule to every round, and the gate to every window.
func judgeAll(r recording) ([]row, error) {
	var rows []row
	for _, one := range rules() {
		out := row{name: one.name, reads: one.reads, found: make([]share, len(contenders))}
		for round := one.earliest; round < r.rounds; round++ {
			for c := 1; c < len(contenders); c++ {
				out.count(r, c, func(kind string) bool {
					var history [][]float64
					for _, earlier := range r.times[kind][:round] {
						history = append(history, earlier[0])
					}
					now := r.times[kind][round]
					return one.slower(history, now[0], now[c])
				})
			}
		}
		rows = append(rows, out)
	}
	for _, profile := range profiles {
		out, err := judgeGate(r, profile)
		if err != nil {
			return nil, err
		}
		rows = append(rows, out)
	}
	return rows, nil
}

// count adds one pull request: all kinds against one contender.
func (o *row) count(r recording, contender int, red verdict) {
	anyRed := false
	for _, kind := range r.kinds {
		slower := red(kind)
		anyRed = anyRed || slower
		if contender == 1 {
			o.kernels.add(slower)
		}
		if slices.Contains(honest, kind) {
			o.found[contender].add(slower)
		}
	}
	if contender == 1 {
		o.requests.add(anyRed)
	}
}
