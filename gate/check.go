package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/project"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "build the kernels, collect the evidence that is missing, and judge it",
		ArgsUsage: "[KERNEL…]",
		Description: "Compares the working tree with the base: the merge-base with the revision that --base names, else\n" +
			"with the branch that the pull request goes to, else with the default branch. Kernels whose machine\n" +
			"code and host code are the base's are not measured again; on a machine without a GPU, recorded\n" +
			"evidence is judged.\n\n" +
			"Exit status: 0 pass, 1 a policy is broken, 2 usage or an invalid file, 3 a tool failed, 4 inconclusive.",
		Flags: append(append(commonFlags(), outputFlags()...),
			&cli.StringFlag{Name: "judge", Usage: "judge by the policy, the waivers and the ops of this `SIDE`: base or head (default: base in a pull request or a merge queue, else head)"},
			&cli.StringFlag{Name: "tiers", Usage: "ask only these `TIERS`, in their order: static, which needs no GPU, then correctness, sanitizer (which may be left out), profile, latency (default: all)"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the questions, what would answer each, and about how many GPU seconds that takes"}),
		Action: func(c *cli.Context) error { return runCheck(c, false) },
	}
}

func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "policy", Usage: "the policy `FILE` (default: policies.yaml at the root of the repository)"},
		&cli.StringFlag{Name: "base", Usage: "compare with the merge-base of this `REVISION`; \"none\" judges limits only"},
		&cli.StringFlag{Name: "nvcc", Usage: "the compiler's `PATH` (default: $CUDA_HOME, PATH, then gate's own)"},
		&cli.StringFlag{Name: "store", Usage: "the `FOLDER` or URL of recorded evidence (default: the policy's)"},
		&cli.StringFlag{Name: "gpu", Usage: "measure on the GPU with this `UUID` or index alone (default: all that are free and of one kind)"},
		&cli.BoolFlag{Name: "no-gpu", Usage: "measure nothing, judge what is recorded"},
		&cli.BoolFlag{Name: "force", Usage: "time again, unchanged kernels too"},
		&cli.DurationFlag{Name: "wait", Value: 10 * time.Minute, Usage: "wait for a `DURATION` for a GPU that another run holds"},
		&cli.DurationFlag{Name: "hang", Value: 30 * time.Second, Usage: "a kernel that is silent for a longer `DURATION` hangs"},
		&cli.IntFlag{Name: "jobs", Usage: "compile this `NUMBER` of kernels at once", DefaultText: "one for each core"},
	}
}

func outputFlags() []cli.Flag {
	return append(reportFlags(), &cli.StringFlag{Name: "out", Usage: "also write verdict.json into this `FOLDER`"})
}

// options reads the flags of check, baseline record and calibrate. A flag that
// a command does not have is not set.
func options(c *cli.Context, s *screen) (_ check.Options, release func(), err error) {
	if err := sensibleLimits(c); err != nil {
		return check.Options{}, nil, err
	}
	tiers, err := check.Tiers(c.String("tiers"))
	if err != nil {
		return check.Options{}, nil, err
	}
	compared, release, err := compared(c, s)
	return check.Options{
		Tiers: tiers, Options: compared,
		NoGPU: c.Bool("no-gpu"), Force: c.Bool("force"), GPU: c.String("gpu"),
		Wait: c.Duration("wait"), Idle: c.Duration("hang"), Progress: s.step, Announce: s.announce,
	}, release, err
}

// compared reads the flags that say what is compared with what. Until release is
// called nobody cleans the cache.
func compared(c *cli.Context, s *screen) (_ project.Options, release func(), err error) {
	if err := knownLook(c); err != nil {
		return project.Options{}, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return project.Options{}, nil, err
	}
	cache, release, err := openCache(c)
	return project.Options{Dir: dir, Cache: cache, Policy: c.String("policy"), Base: c.String("base"), Kernels: c.Args().Slice(),
		Judge: project.Judge(c.String("judge")), Store: c.String("store"), NVCC: c.String("nvcc"), Jobs: c.Int("jobs"), Env: environment, Built: s.built}, release, err
}

func runCheck(c *cli.Context, record bool) (err error) {
	screen := newScreen(c)
	defer screen.close()
	o, release, err := options(c, screen)
	if err != nil {
		return err
	}
	defer release()
	o.Record, o.Moves = record, c.Bool("toolchain")
	if e, err := event.Read(environment); err == nil { // the base says what is wrong with it
		o.Attempt = attempt(e)
	}
	if record {
		o.Judge = project.JudgeHead
	}
	if c.Bool("verbose") {
		var lines []string
		o.Timeline = func(l []string) { lines = l }
		defer func() { // after the report, which it explains; to a reader that went away nothing is said
			if !errors.Is(err, syscall.EPIPE) {
				screen.timeline(lines)
			}
		}()
	}
	if c.Bool("dry-run") {
		if format := c.String("format"); !slices.Contains(report.Listings, format) {
			return exit.Usagef("known: "+strings.Join(report.Listings, ", "), "--dry-run has no format %q", format)
		}
		p, err := check.Preview(c.Context, o)
		screen.close()
		if err != nil {
			return err
		}
		return report.WritePreview(c.App.Writer, p, c.String("format"))
	}
	v, err := check.Run(c.Context, o)
	screen.close()
	if err != nil {
		return err
	}
	if err := writeVerdict(c.String("out"), v); err != nil {
		return err
	}
	return show(c, v, report.Options{Announced: screen.readOn(c.App.Writer), Below: startedBelow(c, v, o.Options)})
}

// startedBelow is the folder in which the command was started, from the root;
// "" where nothing in the report names a file.
func startedBelow(c *cli.Context, v *verdict.Verdict, o project.Options) string {
	if len(v.Notes) == 0 && !slices.ContainsFunc(v.Kernels, func(k verdict.KernelVerdict) bool { return k.Detail != "" }) {
		return ""
	}
	root, _, _, err := project.Find(c.Context, o)
	if err != nil {
		return ""
	}
	below, err := filepath.Rel(root, o.Dir)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(below)
}

// sensibleLimits refuses values that would be replaced by the default without a word.
func sensibleLimits(c *cli.Context) error {
	switch {
	case c.Duration("hang") <= 0:
		return exit.Usagef("", "--hang needs a time above 0, not %s", c.Duration("hang"))
	case c.Duration("wait") < 0:
		return exit.Usagef("", "--wait needs a time, not %s", c.Duration("wait"))
	case c.IsSet("jobs") && c.Int("jobs") < 1:
		return exit.Usagef("", "--jobs needs at least 1, not %d", c.Int("jobs"))
	}
	return nil
}
