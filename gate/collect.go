package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/bundle"
	"github.com/kernelgate/gate/gate/internal/check"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
)

// bundleFile is what collect writes unless another name is given.
const bundleFile = "gate.bundle"

func collectCommand() *cli.Command {
	return &cli.Command{
		Name:      "collect",
		Usage:     "measure a change for another run that judges it; needs no credential",
		ArgsUsage: "[KERNEL…]",
		Description: "The untrusted half of a check: builds both sides, measures what is missing, and writes a bundle of\n" +
			"the change's kernels with their records. gate judge makes a verdict of it where nothing of the\n" +
			"change runs. With --shard, only the KERNELs are measured; a bundle of each shard is needed.\n\n" +
			"Exit status: 0 when the bundle is written, whatever the verdict will be.",
		Flags: append(commonFlags(),
			&cli.StringFlag{Name: "bundle", Value: bundleFile, Usage: "write this `FILE`"},
			&cli.StringFlag{Name: "shard", Usage: "this is shard `I/N`, which measures the KERNELs that are named"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "on standard error, print errors only"}),
		Action: runCollect,
	}
}

func runCollect(c *cli.Context) error {
	e, err := event.Read(environment)
	if err != nil {
		return err
	}
	if err := harmless(e); err != nil {
		return err
	}
	screen := newScreen(c)
	defer screen.close()
	o, release, err := options(c, screen)
	if err != nil {
		return err
	}
	defer release()
	if o.Share, err = share(c.String("shard"), o.Kernels); err != nil {
		return err
	}
	if o.Share.Of > 0 {
		o.Kernels = nil
	}
	o.Attempt = attempt(e)
	data, v, err := check.Collect(c.Context, o, headOf(e))
	screen.close()
	if err != nil {
		return err
	}
	name := c.String("bundle")
	if err := disk.WriteFile(name, data); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	fmt.Fprintf(c.App.Writer, "%s: %d bytes, %d kernels; %d records measured now, %d reused, %d missing\n",
		name, len(data), v.Counts.Kernels, v.Counts.Measured, v.Counts.Reused, v.Counts.Missing)
	return nil
}

// harmless refuses to run the code of somebody else where there is a credential
// that it could use.
func harmless(e *event.Event) error {
	if e == nil {
		return nil
	}
	const hint = "collect runs on the event pull_request or merge_group, in a job with permissions: contents: read and no token in its environment"
	switch e.Name {
	case event.PullRequestTarget, event.WorkflowRun:
		return exit.Usagef(hint, "collect runs the code of a change, and a run of the event %s holds the rights of the repository", e.Name)
	}
	for _, name := range tokens {
		if e.Foreign() && environment(name) != "" {
			return exit.Usagef(hint, "collect runs the code of a pull request from a fork, and %s is set", name)
		}
	}
	return nil
}

// tokens are variables in which workflows hand on a credential.
var tokens = []string{"GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}

// headOf is the commit that GitHub knows a change by. What is checked out of a
// pull request is a merge.
func headOf(e *event.Event) string {
	if e != nil && e.PullRequest != nil {
		return e.PullRequest.Head.SHA
	}
	return ""
}

// share reads --shard 2/3 with the kernels of that shard.
func share(shard string, kernels []string) (check.Share, error) {
	if shard == "" {
		return check.Share{}, nil
	}
	number, of, _ := strings.Cut(shard, "/")
	n, err := strconv.Atoi(number)
	m, otherErr := strconv.Atoi(of)
	if err != nil || otherErr != nil || n < 1 || m < n || m > 256 {
		return check.Share{}, exit.Usagef("--shard 2/3 is the second of three", "--shard cannot be %q", shard)
	}
	return check.Share{Shard: bundle.Shard{Number: n, Of: m}, Kernels: kernels}, nil
}

// attempt is how often GitHub has run this workflow for the change, 0 at a desk.
func attempt(e *event.Event) int {
	switch {
	case e == nil:
		return 0
	case e.Run != nil:
		return max(e.Run.Attempt, 1)
	case e.PullRequest != nil || e.MergeGroup != nil:
		return e.Attempt
	}
	return 0
}

// readBundles reads files. One that is not there is a mistake of the command
// line.
func readBundles(names []string) ([][]byte, error) {
	var out [][]byte
	for _, name := range names {
		data, err := disk.ReadFile(name, bundle.MostBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, exit.Usagef("gate collect writes one", "%w", err)
		}
		if err != nil {
			data = nil // no bundle, which is the change's fault
		}
		out = append(out, data)
	}
	return out, nil
}

// unpackBundles reads all bundles of a change, or says why they are refused.
func unpackBundles(files [][]byte) (bundles []*bundle.Bundle, refused string) {
	for _, data := range files {
		b, err := bundle.Read(data)
		if err != nil {
			return nil, "the bundle is refused: " + err.Error()
		}
		bundles = append(bundles, b)
	}
	return bundles, ""
}
