package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
)

// A mixture is what one check holds: kernels whose processes share the GPU.
type mixture struct {
	tails, unchanged, planted, extra int
}

// runMixture checks kernels of three kinds at once, so that they share their
// processes: some that are almost twice as slow in a quarter of the processes,
// some that are unchanged, and some that were made slower by a known amount.
func runMixture(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s session
	var m mixture
	f := flag.NewFlagSet("mix", flag.ContinueOnError)
	f.SetOutput(stderr)
	out, work, arguments := s.flags(f)
	f.IntVar(&m.tails, "tails", 20, "kernels that are slow in 25 % of the processes")
	f.IntVar(&m.unchanged, "unchanged", 50, "kernels that are unchanged, half of either kind")
	f.IntVar(&m.planted, "planted", 50, "kernels that are slower in every process")
	f.IntVar(&m.extra, "extra", 58, "what makes them slower, in steps; 27 cost about 1.1 %, 58 about 2.1 %")
	profile := f.String("profile", "standard", "standard, strict or loose")
	if err := f.Parse(args); err != nil {
		return &usageError{err.Error()}
	}
	if m.tails < 0 || m.unchanged < 0 || m.planted < 0 || m.extra < 1 || m.tails+m.unchanged+m.planted < 1 {
		return &usageError{"want at least one kernel, and an amount of work"}
	}
	if err := s.open(*out, *work, *arguments, stderr); err != nil {
		return err
	}
	return s.close(stdout, s.mixture(ctx, *profile, m))
}

func (s *session) mixture(ctx context.Context, profile string, m mixture) error {
	r, err := newRepository(ctx, filepath.Join(s.lab.dir, "mix-"+profile), s.kernels)
	if err != nil {
		return err
	}
	if err := r.compared(profile, s.experiment); err != nil {
		return err
	}
	plants := m.plants()
	if err := r.commitBoth(ctx, plants); err != nil {
		return err
	}
	return s.once(ctx, r, "mix", profile, 1, plants, "--base", "HEAD~1")
}

func (m mixture) plants() []plant {
	var out []plant
	for i := range m.tails {
		out = append(out, plant{name: fmt.Sprintf("fixtures/tail_%03d", i), from: fixture, group: "slow in 25 % of the processes", tail: 25})
	}
	for i := range m.unchanged {
		p := plant{name: fmt.Sprintf("fixtures/same_%03d", i), from: fixture, group: "unchanged"}
		if i%2 == 1 {
			p = plant{name: fmt.Sprintf("attention/same_%03d", i), from: r11, group: "unchanged", extra: -1}
		}
		out = append(out, p)
	}
	for i := range m.planted {
		out = append(out, plant{name: fmt.Sprintf("fixtures/slow_%03d", i), from: fixture, group: fmt.Sprintf("%d steps more", m.extra), extra: m.extra})
	}
	return out
}
