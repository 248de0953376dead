package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A session is what aa and planted have in common.
type session struct {
	lab        lab
	kernels    string
	budget     time.Duration
	experiment string // the budget of one check's experiment
	out        *os.File
	stderr     io.Writer
	end        time.Time
	lines      []line
	cost       map[string]float64 // seconds of the last check, by profile
}

func (s *session) flags(f *flag.FlagSet) (out, work, arguments *string) {
	f.StringVar(&s.lab.gate, "gate", "bin/gate", "the gate")
	f.StringVar(&s.kernels, "kernels", "kernels", "the folder of our kernels")
	f.DurationVar(&s.budget, "budget", 8*time.Minute, "begin no check that would end later")
	f.StringVar(&s.experiment, "experiment-budget", "120s", "the policy's budget of an experiment")
	return f.String("out", "", "file of JSON lines, appended to"), f.String("work", "", "an empty folder to work in (default: a temporary one)"),
		f.String("arguments", "", "further arguments of gate check, by spaces")
}

// open starts the clock.
func (s *session) open(out, work, arguments string, stderr io.Writer) (err error) {
	s.end, s.cost, s.stderr = time.Now().Add(s.budget), map[string]float64{}, stderr
	s.lab.extra = strings.Fields(arguments)
	if s.lab.gate, err = filepath.Abs(s.lab.gate); err != nil {
		return err
	}
	if work == "" {
		if work, err = os.MkdirTemp("", "gate-live-"); err != nil {
			return err
		}
	}
	if s.lab.dir, err = filepath.Abs(work); err != nil {
		return err
	}
	if out == "" {
		return &usageError{"want -out FILE"}
	}
	s.out, err = os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return err
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.stderr, "%s left: %s\n", time.Until(s.end).Round(time.Second), fmt.Sprintf(format, args...))
}

// fits reports whether another check like the profile's last ends in time.
func (s *session) fits(profile string) bool {
	return time.Until(s.end).Seconds() > s.cost[profile]
}

// once runs one check of one profile and keeps its line.
func (s *session) once(ctx context.Context, r *repository, phase, profile string, number int, plants []plant, args ...string) error {
	ctx, cancel := context.WithDeadline(ctx, s.end)
	defer cancel()
	c, err := s.lab.check(ctx, r, append([]string{"--force", "--policy", profile + ".yaml"}, args...)...)
	if err != nil {
		return err
	}
	l, err := lineOf(c, plants)
	if err != nil {
		return err
	}
	l.Phase, l.Profile, l.Run = phase, profile, number
	s.lines, s.cost[profile] = append(s.lines, l), min(c.seconds, l.WallSeconds+buildsReused)
	s.say("%s %s run %d: %d red, %d inconclusive, %d pass; %.0f s, %.2f s timed", phase, profile, number, l.Red, l.Inconclusive, l.Pass, l.CheckSeconds, l.TimedSeconds)
	return keep(s.out, l)
}

// close prints the table of what there is. A check that the deadline cut is no
// error once others have ended.
func (s *session) close(stdout io.Writer, err error) error {
	if len(s.lines) > 0 && !time.Now().Before(s.end) {
		s.say("the budget is used: %v", err)
		err = nil
	}
	if tableErr := writeTable(stdout, s.lines); err == nil {
		err = tableErr
	}
	if closeErr := s.out.Close(); err == nil {
		err = closeErr
	}
	return err
}

// buildsReused is more than a check takes beside its experiment once everything
// is compiled, in seconds.
const buildsReused = 10

const timeRule = "{id: time, metric: latency.typical, limit: 1s}"
