package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// A level is a slowdown in percent and how many kernels have it.
type level struct {
	percent float64
	copies  int
}

// parseLevels reads "1:10,2:12": ten kernels at +1 %, twelve at +2 %.
func parseLevels(text string) ([]level, error) {
	var out []level
	for _, part := range strings.Split(text, ",") {
		percent, copies, ok := strings.Cut(part, ":")
		p, err := strconv.ParseFloat(percent, 64)
		n, err2 := strconv.Atoi(copies)
		if !ok || err != nil || err2 != nil || !(p >= 0 && p <= 100) || n < 1 || n > 500 {
			return nil, &usageError{fmt.Sprintf("%q is not PERCENT:KERNELS", part)}
		}
		for _, l := range out {
			if l.percent == p {
				return nil, &usageError{fmt.Sprintf("%g %% is given twice", p)}
			}
		}
		out = append(out, level{p, n})
	}
	return out, nil
}

// runPlanted checks kernels that were made slower by known amounts.
func runPlanted(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s session
	f := flag.NewFlagSet("planted", flag.ContinueOnError)
	f.SetOutput(stderr)
	out, work, arguments := s.flags(f)
	standard := f.String("standard", "1:2,2:22,3:3,5:3", "PERCENT:KERNELS,… at the standard profile")
	strict := f.String("strict", "1:24,2:3,3:3", "PERCENT:KERNELS,… at the strict profile")
	series := f.Int("series", 4, "series of processes, as many as a kernel alone takes, that measure the true effects")
	runs := f.Int("runs", 100, "checks of each profile, at most")
	if err := f.Parse(args); err != nil {
		return &usageError{err.Error()}
	}
	plan := map[string][]level{}
	for name, text := range map[string]string{"standard": *standard, "strict": *strict} {
		levels, err := parseLevels(text)
		if err != nil {
			return err
		}
		plan[name] = levels
	}
	if err := s.open(*out, *work, *arguments, stderr); err != nil {
		return err
	}
	return s.close(stdout, s.planted(ctx, plan, *series, *runs))
}

var profiles = []string{"standard", "strict"}

func (s *session) planted(ctx context.Context, plan map[string][]level, series, runs int) error {
	amounts, err := s.calibrate(ctx, percents(plan), series)
	if err != nil {
		return fmt.Errorf("calibrating: %w", err)
	}
	r, err := newRepository(ctx, filepath.Join(s.lab.dir, "planted"), s.kernels)
	if err != nil {
		return err
	}
	plants := map[string][]plant{}
	for _, profile := range profiles {
		for _, l := range plan[profile] {
			for i := range l.copies {
				plants[profile] = append(plants[profile], plant{name: fmt.Sprintf("fixtures/%s_e%04d_%03d", profile, amounts[l.percent], i),
					from: fixture, group: fmt.Sprintf("+%g %%", l.percent), extra: amounts[l.percent]})
			}
		}
		if err := r.compared(profile, s.experiment); err != nil {
			return err
		}
	}
	if err := r.commitBoth(ctx, append(append([]plant{}, plants["standard"]...), plants["strict"]...)); err != nil {
		return err
	}
	for n := 1; n <= runs; n++ {
		for _, profile := range profiles {
			if !s.fits(profile) {
				continue
			}
			if err := s.once(ctx, r, "planted", profile, n, plants[profile], "--base", "HEAD~1", "fixtures/"+profile+"_*"); err != nil {
				return err
			}
		}
		if !s.fits("standard") && !s.fits("strict") {
			break
		}
	}
	return nil
}

// commitBoth makes the base, without extra work, and the head on top of it.
func (r *repository) commitBoth(ctx context.Context, plants []plant) error {
	base := append([]plant{}, plants...)
	for i := range base {
		base[i].extra = min(0, base[i].extra)
		if base[i].tail != 0 {
			base[i].tail = noTail
		}
	}
	if err := r.add(base); err != nil {
		return err
	}
	if err := r.commit(ctx, "base"); err != nil {
		return err
	}
	if err := r.add(plants); err != nil {
		return err
	}
	return r.commit(ctx, "slower")
}

// percents are the slowdowns that any profile asks for.
func percents(plan map[string][]level) []float64 {
	var out []float64
	seen := map[float64]bool{}
	for _, profile := range profiles {
		for _, l := range plan[profile] {
			if !seen[l.percent] {
				seen[l.percent] = true
				out = append(out, l.percent)
			}
		}
	}
	return out
}
