package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
)

// runUnchanged checks code that is its own base: every red is a false one.
func runUnchanged(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s session
	f := flag.NewFlagSet("aa", flag.ContinueOnError)
	f.SetOutput(stderr)
	out, work, arguments := s.flags(f)
	copies := f.Int("copies", 15, "of each of the two kernels")
	runs := f.Int("runs", 10, "checks")
	profile := f.String("profile", "standard", "standard, strict or loose")
	if err := f.Parse(args); err != nil {
		return &usageError{err.Error()}
	}
	if *copies < 1 || *copies > 500 || *runs < 1 {
		return &usageError{"want 1 to 500 copies and at least one run"}
	}
	if err := s.open(*out, *work, *arguments, stderr); err != nil {
		return err
	}
	return s.close(stdout, s.unchanged(ctx, *profile, *copies, *runs))
}

func (s *session) unchanged(ctx context.Context, profile string, copies, runs int) error {
	r, err := newRepository(ctx, filepath.Join(s.lab.dir, "aa"), s.kernels)
	if err != nil {
		return err
	}
	var plants []plant
	for i := range copies {
		plants = append(plants,
			plant{name: fmt.Sprintf("attention/a%03d", i), from: r11, group: "r11", extra: -1},
			plant{name: fmt.Sprintf("attention/b%03d", i), from: r02, group: "r02", extra: -1})
	}
	if err := r.add(plants); err != nil {
		return err
	}
	if err := r.compared(profile, s.experiment); err != nil {
		return err
	}
	if err := r.commit(ctx, "unchanged"); err != nil {
		return err
	}
	for n := 1; n <= runs && s.fits(profile); n++ {
		if err := s.once(ctx, r, "aa", profile, n, plants, "--base", "HEAD"); err != nil {
			return err
		}
	}
	return nil
}
