// Package github says on GitHub what a verdict came to, and reads from GitHub
// whom a run is about. It is the only importer of go-github.
package github

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v57/github"

	"github.com/kernelgate/gate/gate/internal/exit"
)

// Options say how to reach GitHub.
type Options struct {
	API       string    // GITHUB_API_URL; github.com's when ""
	Token     string    // of the workflow, or of an app
	DryRun    io.Writer // requests that would write are printed here and not sent; nil sends them
	transport http.RoundTripper
	wait      waiter
}

// A Client speaks to one repository.
type Client struct {
	api         *github.Client
	owner, repo string
	dry         bool
	bare        http.RoundTripper // without a token
}

// New is a client for a repository, "owner/name".
func New(o Options, repository string) (*Client, error) {
	owner, repo, ok := strings.Cut(repository, "/")
	if !ok || owner == "" || repo == "" || strings.Contains(repo, "/") {
		return nil, exit.Usagef("publish runs in a workflow, whose event names the repository", "%q is not a repository", repository)
	}
	if o.Token == "" && o.DryRun == nil {
		return nil, exit.Usagef("in the workflow: env: {GITHUB_TOKEN: ${{ github.token }}}, or try --dry-run", "there is no GITHUB_TOKEN")
	}
	base, err := url.Parse(strings.TrimSuffix(o.API, "/") + "/")
	if o.API == "" {
		base, err = url.Parse("https://api.github.com/")
	}
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Hostname() != "127.0.0.1" {
		return nil, exit.Usagef("", "GITHUB_API_URL is not the address of an API: %q", o.API)
	}
	var t http.RoundTripper = &retrying{next: orDefault(o.transport), wait: o.wait.orSleep()}
	if o.DryRun != nil {
		t = &printing{w: o.DryRun}
	}
	api := github.NewClient(&http.Client{Transport: t, CheckRedirect: noRedirect})
	if o.Token != "" {
		api = api.WithAuthToken(o.Token)
	}
	api.BaseURL, api.UserAgent = base, "kernelgate"
	return &Client{api: api, owner: owner, repo: repo, dry: o.DryRun != nil, bare: &retrying{next: orDefault(o.transport), wait: o.wait.orSleep()}}, nil
}

func orDefault(t http.RoundTripper) http.RoundTripper {
	if t == nil {
		return http.DefaultTransport
	}
	return t
}

// noRedirect keeps the token from going anywhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// denied says of an error that a permission is missing, with the line that adds
// it.
func denied(err error, permission string) error {
	var e *github.ErrorResponse
	if !errors.As(err, &e) || e.Response == nil || e.Response.StatusCode != http.StatusForbidden && e.Response.StatusCode != http.StatusNotFound {
		return err
	}
	return fmt.Errorf("the token may not do that (in the job: permissions: %s): %w", permission, err)
}
