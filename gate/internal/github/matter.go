package github

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/google/go-github/v57/github"

	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/project"
)

// A Matter is what a verdict is about, as GitHub tells it.
type Matter struct {
	Head   string // commit of the change
	Pull   int    // 0 where there is no open pull request of that commit
	Run    int64  // the run that measured
	URL    string // of that run
	Queued string // since when it waits, as GitHub writes it

	started string // when this attempt of the run began
	changes []project.Change
	cut     bool
	listed  bool
}

// mostFiles is what GitHub lists of a pull request at most.
const mostFiles = 3000

// Matter tells from an event what is judged. Of a run that another one follows,
// GitHub is asked again, and only the workflow that is expected counts.
func (c *Client) Matter(ctx context.Context, e *event.Event, workflow string) (*Matter, error) {
	switch {
	case e == nil:
		return nil, errors.New("there is no event: gate does not run in a workflow")
	case e.PullRequest != nil:
		return &Matter{Head: e.PullRequest.Head.SHA, Pull: e.PullRequest.Number}, nil
	case e.MergeGroup != nil:
		return &Matter{Head: e.MergeGroup.HeadSHA}, nil
	case e.Run != nil:
		return c.ofRun(ctx, e, workflow)
	case e.Name == event.Push && e.After != "":
		return &Matter{Head: e.After}, nil
	}
	return nil, fmt.Errorf("nothing is judged on the event %s", e.Name)
}

// A run has fields that go-github does not know.
type run struct {
	event.Run
	Repository event.Repository `json:"repository"`
}

func (c *Client) ofRun(ctx context.Context, e *event.Event, workflow string) (*Matter, error) {
	var r run
	if c.dry {
		r = run{*e.Run, e.Repository}
	} else if err := c.get(ctx, fmt.Sprintf("repos/%s/%s/actions/runs/%d", c.owner, c.repo, e.Run.ID), &r); err != nil {
		return nil, denied(fmt.Errorf("asking for the run that measured: %w", err), "actions: read")
	}
	switch {
	case r.Repository.ID != e.Repository.ID || r.ID != e.Run.ID || r.HeadSHA != e.Run.HeadSHA:
		return nil, errors.New("the run that measured is another than the event says")
	case r.Attempt != e.Run.Attempt:
		return nil, fmt.Errorf("the run that measured was started again since (attempt %d, and this is about attempt %d): the verdict of that one follows", r.Attempt, e.Run.Attempt)
	case r.Path != workflow:
		return nil, fmt.Errorf("the run that measured is of %q, and %q is expected", r.Path, workflow)
	case r.Event != event.PullRequest && r.Event != event.MergeGroup:
		return nil, fmt.Errorf("the run that measured was started by %q", r.Event)
	}
	m := &Matter{Head: r.HeadSHA, Run: r.ID, URL: r.URL, Queued: r.CreatedAt, started: r.StartedAt}
	if r.Event == event.PullRequest && r.HeadRepo != nil {
		var err error
		if m.Pull, err = c.pullOf(ctx, r, e.Repository.DefaultBranch); err != nil {
			return nil, denied(fmt.Errorf("looking for the pull request: %w", err), "pull-requests: read")
		}
	}
	return m, nil
}

// pullOf is the open pull request of a run's commit and repository, 0 for none. Of
// several it is the one into the default branch, whose policy judges: by the files
// of another one, nothing may seem to change. What the run itself lists is empty
// for forks.
func (c *Client) pullOf(ctx context.Context, r run, branch string) (int, error) {
	owner, _, _ := cutName(r.HeadRepo.FullName)
	pulls, _, err := c.api.PullRequests.List(ctx, c.owner, c.repo, &github.PullRequestListOptions{State: "open", Head: owner + ":" + r.HeadBranch,
		ListOptions: github.ListOptions{PerPage: 100}})
	if err != nil {
		return 0, err
	}
	found := 0
	for _, p := range pulls {
		if p.GetHead().GetSHA() != r.HeadSHA || p.GetHead().GetRepo().GetID() != r.HeadRepo.ID {
			continue
		}
		if p.GetBase().GetRef() == branch {
			return p.GetNumber(), nil
		}
		found = p.GetNumber()
	}
	return found, nil
}

// Changes are the files of the pull request, by their old and their new names; nil
// where there is none. Cut reports that there may be others: GitHub lists so many
// and no more, and those of the newest commit, which need not be the one that is
// judged.
func (c *Client) Changes(ctx context.Context, m *Matter) (changes []project.Change, cut bool, err error) {
	if m.Pull == 0 || m.listed {
		return m.changes, m.cut, nil
	}
	m.changes = nil
	for page := 1; page > 0 && len(m.changes) < mostFiles; {
		files, resp, err := c.api.PullRequests.ListFiles(ctx, c.owner, c.repo, m.Pull, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, true, denied(fmt.Errorf("listing the files of the pull request: %w", err), "pull-requests: read")
		}
		m.changes = append(m.changes, changesOf(files)...)
		page = resp.NextPage
	}
	moved, err := c.moved(ctx, m)
	if err != nil {
		return nil, true, denied(fmt.Errorf("asking for the pull request: %w", err), "pull-requests: read")
	}
	m.listed, m.cut = true, moved || len(m.changes) >= mostFiles
	return m.changes, m.cut, nil
}

// Bounds of the files that are read of a head.
const (
	mostTexts = 100
	mostText  = 64 << 10
)

// Texts are files of the head by their names, which a bundle gives. One that is
// not there, is not a file or is too large is left out, and so is a name that could
// lead to another address.
func (c *Client) Texts(ctx context.Context, m *Matter, names []string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names[:min(len(names), mostTexts)] {
		if !fs.ValidPath(name) || strings.ContainsAny(name, "\\%?#:") {
			continue
		}
		file, _, _, err := c.api.Repositories.GetContents(ctx, c.owner, c.repo, name, &github.RepositoryContentGetOptions{Ref: m.Head})
		var refused *github.ErrorResponse
		if errors.As(err, &refused) && refused.Response.StatusCode == http.StatusNotFound {
			continue
		}
		if err != nil {
			return nil, denied(fmt.Errorf("reading %s of the change: %w", name, err), "contents: read")
		}
		if file.GetType() != "file" || file.GetSize() > mostText {
			continue
		}
		if text, err := file.GetContent(); err == nil {
			out[name] = text
		}
	}
	return out, nil
}

// Moved reports whether the pull request has a newer commit.
func (c *Client) moved(ctx context.Context, m *Matter) (bool, error) {
	if c.dry {
		return false, nil
	}
	p, _, err := c.api.PullRequests.Get(ctx, c.owner, c.repo, m.Pull)
	if err != nil {
		return false, err
	}
	return p.GetHead().GetSHA() != m.Head, nil
}

// get reads what go-github has no type for.
func (c *Client) get(ctx context.Context, path string, into any) error {
	req, err := c.api.NewRequest("GET", path, nil)
	if err != nil {
		return err
	}
	_, err = c.api.Do(ctx, req, into)
	return err
}
