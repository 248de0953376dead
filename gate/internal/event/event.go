// Package event reads what GitHub says of the event that started a workflow
// run. Who a run is about (repository, commit, pull request, attempt) comes from
// here and from GitHub's API, and never from what a change produced.
package event

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// mostPayload bounds the file: GitHub delivers no event that is larger.
const mostPayload = 25 << 20

// The events that gate tells apart.
const (
	PullRequest       = "pull_request"
	PullRequestTarget = "pull_request_target"
	MergeGroup        = "merge_group"
	Push              = "push"
	WorkflowRun       = "workflow_run"
)

// An Event is what started a workflow run. Fields that an event does not have
// are zero.
type Event struct {
	Name    string `json:"-"`
	Attempt int    `json:"-"` // of this run, from 1; a later one was asked for by hand

	Action      string     `json:"action"`
	Repository  Repository `json:"repository"`
	PullRequest *Pull      `json:"pull_request"`
	MergeGroup  *Group     `json:"merge_group"`
	Run         *Run       `json:"workflow_run"`
	Before      string     `json:"before"` // of a push
	After       string     `json:"after"`
}

// A Repository is named by its number: a fork can have any name.
type Repository struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"`
	DefaultBranch string `json:"default_branch"`
}

// A Pull is the pull request that an event is about.
type Pull struct {
	Number int    `json:"number"`
	Head   Branch `json:"head"`
	Base   Branch `json:"base"`
}

// A Branch is one side of a pull request. The repository of a head can be gone.
type Branch struct {
	Ref  string      `json:"ref"`
	SHA  string      `json:"sha"`
	Repo *Repository `json:"repo"`
}

// A Group is what a merge queue tries.
type Group struct {
	HeadSHA string `json:"head_sha"`
	BaseSHA string `json:"base_sha"`
}

// A Run is the workflow run that another one follows.
type Run struct {
	ID         int64       `json:"id"`
	Attempt    int         `json:"run_attempt"`
	Event      string      `json:"event"`
	Path       string      `json:"path"`
	HeadSHA    string      `json:"head_sha"`
	HeadBranch string      `json:"head_branch"`
	HeadRepo   *Repository `json:"head_repository"`
	Status     string      `json:"status"`
	Conclusion string      `json:"conclusion"`
	CreatedAt  string      `json:"created_at"`
	StartedAt  string      `json:"run_started_at"` // of this attempt
	URL        string      `json:"html_url"`
}

// Read returns the event of the workflow that gate runs in, nil outside of one.
func Read(env func(string) string) (*Event, error) {
	name := env("GITHUB_EVENT_NAME")
	if env("GITHUB_ACTIONS") != "true" || name == "" {
		return nil, nil
	}
	data, err := disk.ReadFile(env("GITHUB_EVENT_PATH"), mostPayload)
	if err != nil {
		return nil, fmt.Errorf("reading the event that GITHUB_EVENT_PATH names: %w", err)
	}
	e := &Event{Name: name}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("reading the event that GITHUB_EVENT_PATH names: %w", err)
	}
	e.Attempt, _ = strconv.Atoi(env("GITHUB_RUN_ATTEMPT"))
	e.Attempt = max(e.Attempt, 1)
	if (name == PullRequest || name == PullRequestTarget) && e.PullRequest == nil ||
		name == MergeGroup && e.MergeGroup == nil || name == WorkflowRun && e.Run == nil {
		return nil, fmt.Errorf("the event that GITHUB_EVENT_PATH names is not a %s", name)
	}
	return e, nil
}

// Foreign reports whether the change comes from another repository than the one
// that judges it. A head whose repository is gone counts as foreign.
func (e *Event) Foreign() bool {
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Head.Repo == nil || e.PullRequest.Head.Repo.ID != e.Repository.ID
	case e.Run != nil:
		return e.Run.HeadRepo == nil || e.Run.HeadRepo.ID != e.Repository.ID
	}
	return false
}
