package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestSeriesAtItsBounds: what Decide refuses, counted from 1 as a reader counts.
func TestSeriesAtItsBounds(t *testing.T) {
	plan := fixed(t, 3)
	ok := Series{Limits: standard(t), Rounds: steady(3, 0)}
	short := Series{Limits: standard(t), Rounds: steady(2, 0)}
	short.Rounds[1].Head = short.Rounds[1].Head[:3]
	many := make([]Series, maxExperiments+1)
	for _, c := range []struct {
		experiments []Series
		want        string // of the error; "" is none
	}{
		{nil, ""},
		{[]Series{ok, {Limits: standard(t)}}, ""},
		{[]Series{ok, {Limits: standard(t), Rounds: steady(4, 0)}}, "experiment 2: it holds 16 pairs, its plan ends at 12"},
		{[]Series{ok, short}, "experiment 2: round 2 has 4 and 3 processes, the plan 4 of each arm"},
		{many[1:], "experiment 1: limits need"},
		{many, "1048577 experiments, at most 1048576 are judged together"},
	} {
		err := validAll(c.experiments, plan)
		if (c.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if got := ok.pairs(); got != 12 {
		t.Errorf("three rounds of four are %d pairs", got)
	}
	if got := (Series{Summaries: []Summary{P99}}).used(); !slices.Equal(got, []Summary{Typical, Mean, P99}) {
		t.Errorf("a gated p99 uses %v", got)
	}
}

// TestTimesAtTheirBounds: the shortest and the longest time are times, and a
// process may have as many batches as are read.
func TestTimesAtTheirBounds(t *testing.T) {
	for x, want := range map[float64]bool{shortest: true, longest: true, shortest * 0.999: false, longest * 1.001: false} {
		if usable(x) != want {
			t.Errorf("%v ns is a time: %v, want %v", x, usable(x), want)
		}
	}
	if got := percentile([]float64{10, 20, 40}, 0.75); got != 30 {
		t.Errorf("three quarters of 10, 20 and 40 is %v, want 30", got)
	}
	many := make([]float64, maxBatches+1)
	for i := range many {
		many[i] = 1
	}
	if p, err := Summarize(many[1:]); err != nil || p != (Process{1, 1, 1}) {
		t.Errorf("%d batches: %v, %v", maxBatches, p, err)
	}
	if _, err := Summarize(many); !errors.Is(err, errInvalidProcess) {
		t.Errorf("%d batches: %v", maxBatches+1, err)
	}
}
