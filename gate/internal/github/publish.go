package github

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v57/github"

	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// What GitHub takes.
const (
	mostAnnotations = 50 // a request
	mostPublished   = 1000
	mostTitle       = 255
	mostStatus      = 140 // characters of a status
	mostComments    = 2000
)

// Modes of the comment.
const (
	CommentUpdate   = "update"    // one comment, edited in place
	CommentOnChange = "on-change" // the same, and none while nothing happened
	CommentOff      = "off"
)

// CommentModes are those that there are.
var CommentModes = []string{CommentUpdate, CommentOnChange, CommentOff}

// A Publication is what to say, and under which name.
type Publication struct {
	Name    string // of the check; a branch rule requires it by this name
	Comment string // a mode
	Author  string // whose comments are ours
	Now     func() time.Time
}

// A Level is the best place that took the verdict.
type Level string

// The levels, best first. None means that nothing of GitHub's took it, and that
// the log, the summary and the text have to do.
const (
	ByCheck  Level = "check"
	ByStatus Level = "status"
	ByNone   Level = "none"
)

// A Published says where the verdict can be read.
type Published struct {
	Level Level
	URL   string
	Notes []string // what did not work and why; none of it changes the verdict
}

// Pending announces that a verdict will come, so that none of an earlier run
// stands for it.
func (c *Client) Pending(ctx context.Context, m *Matter, p Publication) (*Published, error) {
	title := "measuring"
	if at, err := time.Parse(time.RFC3339, m.Queued); err == nil {
		title = "queued since " + at.UTC().Format("15:04") + " UTC"
	}
	run, _, err := c.api.Checks.CreateCheckRun(ctx, c.owner, c.repo, github.CreateCheckRunOptions{Name: p.Name, HeadSHA: m.Head, Status: github.String("in_progress"),
		StartedAt: &github.Timestamp{Time: p.Now().UTC().Truncate(time.Second)}, ExternalID: external(m), DetailsURL: optional(m.URL),
		Output: &github.CheckRunOutput{Title: &title, Summary: github.String("The change is measured; the verdict follows. Without one, this check is not a pass.")}})
	if err != nil {
		return nil, denied(fmt.Errorf("making the check: %w", err), "checks: write")
	}
	return &Published{Level: ByCheck, URL: run.GetHTMLURL()}, nil
}

// Publish says what the verdict is, as well as the token allows.
func (c *Client) Publish(ctx context.Context, v *verdict.Verdict, m *Matter, p Publication) *Published {
	out := &Published{Level: ByCheck}
	var err error
	if out.URL, err = c.check(ctx, v, m, p, out); err != nil {
		out.note("the check could not be written: %v", err)
		out.Level = ByStatus
		if err = c.status(ctx, v, m, p); err != nil {
			out.note("the commit's status could not be written: %v", err)
			out.Level = ByNone
		}
	}
	if err := c.comment(ctx, v, m, p, out.URL); err != nil {
		out.note("the comment could not be written: %v", err)
	}
	return out
}

func (p *Published) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// external ties a check to the run that measured.
func external(m *Matter) *string {
	if m.Run == 0 {
		return nil
	}
	return github.String("run-" + strconv.FormatInt(m.Run, 10))
}

// conclusion never lets an open question pass: GitHub takes neutral and skipped
// for a pass.
func conclusion(v *verdict.Verdict) string {
	switch v.ExitCode() {
	case 0:
		return "success"
	case 1:
		return "failure"
	}
	return "action_required"
}

// check writes the check: begun first, then annotations in batches, and the
// conclusion with the last of them.
func (c *Client) check(ctx context.Context, v *verdict.Verdict, m *Matter, p Publication, out *Published) (url string, err error) {
	notes, err := c.annotations(ctx, v, m)
	if err != nil {
		out.note("no line of code is annotated: %v", err)
	}
	run, err := c.begun(ctx, m, p)
	if err != nil {
		return "", denied(err, "checks: write")
	}
	output := github.CheckRunOutput{Title: github.String(cutBytes(report.Title(v), mostTitle)), Summary: github.String(report.Markdown(v, report.OutputBytes))}
	for from := 0; ; from += mostAnnotations {
		batch := notes[min(from, len(notes)):min(from+mostAnnotations, len(notes))]
		last := from+mostAnnotations >= len(notes)
		output.Annotations = batch
		u := github.UpdateCheckRunOptions{Name: p.Name, Status: github.String("in_progress"), Output: &output, DetailsURL: optional(m.URL), ExternalID: external(m)}
		if last {
			u.Status, u.Conclusion = github.String("completed"), github.String(conclusion(v))
			u.CompletedAt = &github.Timestamp{Time: p.Now().UTC().Truncate(time.Second)}
		}
		run, _, err := c.api.Checks.UpdateCheckRun(ctx, c.owner, c.repo, run.GetID(), u)
		if err != nil {
			return "", denied(err, "checks: write")
		}
		if last {
			return run.GetHTMLURL(), nil
		}
	}
}

// begun is the check that was announced for this run, or a new one.
func (c *Client) begun(ctx context.Context, m *Matter, p Publication) (*github.CheckRun, error) {
	if m.Run != 0 {
		list, _, err := c.api.Checks.ListCheckRunsForRef(ctx, c.owner, c.repo, m.Head, &github.ListCheckRunsOptions{CheckName: &p.Name, Filter: github.String("latest"),
			ListOptions: github.ListOptions{PerPage: 100}})
		if err != nil {
			return nil, err
		}
		for _, r := range list.CheckRuns {
			if r.GetExternalID() == *external(m) && r.GetStatus() != "completed" && r.GetName() == p.Name {
				return r, nil
			}
		}
	}
	run, _, err := c.api.Checks.CreateCheckRun(ctx, c.owner, c.repo, github.CreateCheckRunOptions{Name: p.Name, HeadSHA: m.Head, Status: github.String("in_progress"),
		ExternalID: external(m), DetailsURL: optional(m.URL), StartedAt: &github.Timestamp{Time: p.Now().UTC().Truncate(time.Second)}})
	return run, err
}

// annotations are those at files of the pull request. A path that it does not
// have is somebody's claim.
func (c *Client) annotations(ctx context.Context, v *verdict.Verdict, m *Matter) ([]*github.CheckRunAnnotation, error) {
	changes, _, err := c.Changes(ctx, m)
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	for _, f := range changes {
		files[f.Name] = f.Status != "removed"
	}
	var out []*github.CheckRunAnnotation
	for _, a := range report.Annotations(v) {
		if !files[a.File] || len(out) == mostPublished {
			continue
		}
		line := max(a.Line, 1)
		out = append(out, &github.CheckRunAnnotation{Path: github.String(a.File), StartLine: &line, EndLine: &line, AnnotationLevel: github.String(a.Level),
			Title: github.String(cutBytes(a.Title, mostTitle)), Message: github.String(cutBytes(a.Text, 60_000))})
	}
	return out, nil
}

func (c *Client) status(ctx context.Context, v *verdict.Verdict, m *Matter, p Publication) error {
	state := map[string]string{"success": "success", "failure": "failure", "action_required": "error"}[conclusion(v)]
	_, _, err := c.api.Repositories.CreateStatus(ctx, c.owner, c.repo, m.Head, &github.RepoStatus{State: &state, Context: &p.Name,
		Description: github.String(cutBytes(report.Title(v), mostStatus)), TargetURL: optional(m.URL)})
	return denied(err, "statuses: write")
}

// comment keeps one comment on the pull request up to date. One that somebody
// else wrote is not ours, whatever it says.
func (c *Client) comment(ctx context.Context, v *verdict.Verdict, m *Matter, p Publication, url string) error {
	if m.Pull == 0 || p.Comment == CommentOff {
		return nil
	}
	if moved, err := c.moved(ctx, m); err != nil || moved {
		return denied(err, "pull-requests: write")
	}
	marker, body := commentBody(v, url)
	old, err := c.ours(ctx, m, p, marker)
	quiet := p.Comment == CommentOnChange && v.Status == verdict.Pass && v.Counts.Unchanged == v.Counts.Kernels
	switch {
	case err != nil:
	case len(old) == 0 && quiet:
	case len(old) == 0:
		_, _, err = c.api.Issues.CreateComment(ctx, c.owner, c.repo, m.Pull, &github.IssueComment{Body: &body})
	}
	for _, k := range old { // two runs at once may each have written one
		if err == nil && k.GetBody() != body {
			_, _, err = c.api.Issues.EditComment(ctx, c.owner, c.repo, k.GetID(), &github.IssueComment{Body: &body})
		}
	}
	return denied(err, "pull-requests: write")
}

// commentBody is the comment, and how its first line begins.
func commentBody(v *verdict.Verdict, url string) (marker, body string) {
	key := sha256.Sum256([]byte(v.Policy))
	marker = "<!-- gate:v1 key=" + hex.EncodeToString(key[:6])
	link := ""
	if url != "" {
		link = "[All findings](" + url + ")\n"
	}
	text := report.Markdown(v, report.CommentBytes-1000-len(link))
	sum := sha256.Sum256([]byte(text))
	return marker, marker + " body=" + hex.EncodeToString(sum[:6]) + " -->\n" + text + link
}

func (c *Client) ours(ctx context.Context, m *Matter, p Publication, marker string) ([]*github.IssueComment, error) {
	var found []*github.IssueComment
	for page, seen := 1, 0; page > 0 && seen < mostComments; {
		list, resp, err := c.api.Issues.ListComments(ctx, c.owner, c.repo, m.Pull, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{Page: page, PerPage: 100}})
		if err != nil {
			return nil, err
		}
		for _, k := range list {
			if strings.HasPrefix(k.GetBody(), marker) && k.GetUser().GetLogin() == p.Author && k.GetUser().GetType() == "Bot" {
				found = append(found, k)
			}
		}
		page, seen = resp.NextPage, seen+len(list)
	}
	return found, nil
}

// cutBytes ends a text at a number of bytes, in whole characters.
func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	return strings.ToValidUTF8(s[:most-len(more)], "") + more
}

func cutName(fullName string) (owner, repo string, ok bool) {
	owner, repo, ok = strings.Cut(cmp.Or(fullName, "/"), "/")
	return owner, repo, ok
}
