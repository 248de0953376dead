package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/github"
	"github.com/kernelgate/gate/gate/internal/printable"
	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// collectWorkflow is the file of the workflow that measures, unless another one
// is named.
const collectWorkflow = ".github/workflows/gate-collect.yml"

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "say on GitHub what a verdict is: check, annotations, comment",
		ArgsUsage: "VERDICT",
		Description: "Writes a check run on the commit that the workflow's event names, and one comment on its pull\n" +
			"request. Without the right to do that it writes a commit status, and otherwise annotates the log. The\n" +
			"token is read from GITHUB_TOKEN, the address of the API from GITHUB_API_URL.\n\n" +
			"Exit status: that of the verdict; 3 if it passes and could not be published.",
		Flags: append(githubFlags(),
			&cli.StringFlag{Name: "name", Value: "gate", Usage: "the check's `NAME`, by which a branch rule requires it"},
			&cli.StringFlag{Name: "comment", Value: github.CommentUpdate, Usage: "`" + strings.Join(github.CommentModes, "|") + "`: one comment, which is edited; none while nothing changed; none"},
			&cli.StringFlag{Name: "author", Value: "github-actions[bot]", Usage: "the `LOGIN` whose comments are ours: with an app, its name and [bot]"},
			&cli.BoolFlag{Name: "pending", Usage: "say that a verdict will come; there is no VERDICT yet"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the requests that would write, and send nothing"},
		),
		Action: runPublish,
	}
}

func githubFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "workflow", Value: collectWorkflow, Usage: "on workflow_run, the `FILE` of the workflow that measured; no other counts"}}
}

// reach opens GitHub for the event of this workflow.
func reach(c *cli.Context, dry io.Writer) (*github.Client, *github.Matter, *event.Event, error) {
	e, err := event.Read(environment)
	if err != nil {
		return nil, nil, nil, err
	}
	if e == nil {
		return nil, nil, nil, exit.Usagef("gate report shows a verdict anywhere", "there is no event: gate does not run in a workflow of GitHub's")
	}
	client, err := github.New(github.Options{API: environment("GITHUB_API_URL"), Token: environment("GITHUB_TOKEN"), DryRun: dry}, e.Repository.FullName)
	if err != nil {
		return nil, nil, nil, err
	}
	m, err := client.Matter(c.Context, e, c.String("workflow"))
	return client, m, e, err
}

func runPublish(c *cli.Context) error {
	if c.Bool("pending") == (c.NArg() == 1) || c.NArg() > 1 {
		return exit.Usagef("gate judge --out FOLDER writes one", "publish needs one verdict.json, or --pending")
	}
	if !slices.Contains(github.CommentModes, c.String("comment")) {
		return exit.Usagef("known: "+strings.Join(github.CommentModes, ", "), "--comment cannot be %q", c.String("comment"))
	}
	var dry io.Writer
	if c.Bool("dry-run") {
		dry = c.App.Writer
	}
	p := github.Publication{Name: c.String("name"), Comment: c.String("comment"), Author: c.String("author"), Now: time.Now}
	if c.Bool("pending") {
		client, m, _, err := reach(c, dry)
		if err == nil {
			_, err = client.Pending(c.Context, m, p)
		}
		return err
	}
	v, unread := readVerdict(c, c.Args().First())
	if e, err := event.Read(environment); unread != nil && (e == nil || err != nil) {
		return exit.Usagef("gate judge --out FOLDER writes one", "%w", unread)
	}
	client, m, _, err := reach(c, dry)
	if err != nil {
		return err
	}
	if unread != nil { // a check that was begun has to end
		v = &verdict.Verdict{Schema: verdict.Schema, ToolFailure: true, Head: verdict.Side{Commit: m.Head},
			Base: verdict.Side{Why: "nothing was judged"}, Notes: []string{"there is no verdict, because the step before this one failed: its log says why"}}
	}
	out := client.Publish(context.WithoutCancel(c.Context), v, m, p)
	for _, n := range out.Notes {
		fmt.Fprintf(c.App.ErrWriter, "gate: note: %s\n", printable.Line(n))
	}
	fmt.Fprintf(c.App.ErrWriter, "gate: published as: %s %s\n", out.Level, printable.Line(out.URL))
	if err := output(map[string]string{"verdict": v.Status.String(), "check-url": out.URL}); err != nil {
		return err
	}
	if out.Level == github.ByNone {
		if err := report.Write(c.App.Writer, v, report.Options{Format: "github"}); err != nil {
			return err
		}
		if err := summarize(v); err != nil {
			return err
		}
		if v.ExitCode() == exit.Pass {
			return exit.Quiet(exit.Tool)
		}
	}
	if code := v.ExitCode(); code != exit.Pass {
		return exit.Quiet(code)
	}
	return nil
}

// output hands values on to other steps. They are words and addresses of
// GitHub's; what could begin another line is left out.
func output(values map[string]string) error {
	path := environment("GITHUB_OUTPUT")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("writing the step's outputs: %w", err)
	}
	defer f.Close()
	for _, name := range []string{"verdict", "check-url"} {
		if v, ok := values[name]; ok && printable.Line(v) == v {
			if _, err := fmt.Fprintf(f, "%s=%s\n", name, v); err != nil {
				return fmt.Errorf("writing the step's outputs: %w", err)
			}
		}
	}
	return nil
}
