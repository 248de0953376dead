package github

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v57/github"

	"github.com/kernelgate/gate/gate/internal/bundle"
	"github.com/kernelgate/gate/gate/internal/project"
)

// Artifacts that hold a bundle, each one file.
var (
	artifactName = regexp.MustCompile(`^gate-bundle(?:-[0-9]{1,3})?$`)
	fileInside   = "gate.bundle"
)

// Bounds of what a run left: bundles are at most as many as shards.
const (
	mostArtifacts = 256
	mostListed    = 2000
)

// An artifact has fields that go-github does not know.
type artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Size    int64  `json:"size_in_bytes"`
	Digest  string `json:"digest"`
	Expired bool   `json:"expired"`
	Created string `json:"created_at"`
}

// Bundles are the files that the run of a matter left, as bytes. What is in them
// is for package bundle to believe or not.
func (c *Client) Bundles(ctx context.Context, m *Matter) ([][]byte, error) {
	var found []artifact
	for page := 1; ; page++ {
		var list struct {
			Total     int        `json:"total_count"`
			Artifacts []artifact `json:"artifacts"`
		}
		if err := c.get(ctx, fmt.Sprintf("repos/%s/%s/actions/runs/%d/artifacts?per_page=100&page=%d", c.owner, c.repo, m.Run, page), &list); err != nil {
			return nil, denied(fmt.Errorf("listing what the run that measured left: %w", err), "actions: read")
		}
		found = append(found, list.Artifacts...)
		if len(list.Artifacts) == 0 || len(found) >= list.Total || len(found) > mostListed {
			break
		}
	}
	found = ofAttempt(found, m.started)
	if len(found) == 0 || len(found) > mostArtifacts {
		return nil, fmt.Errorf("the run that measured left %d bundles", len(found))
	}
	var out [][]byte
	for _, a := range found {
		data, err := c.bundle(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("artifact %d: %w", a.ID, err)
		}
		out = append(out, data)
	}
	return out, nil
}

// ofAttempt are the bundles of one attempt of a run. A run that was started again
// lists those of earlier attempts as well: they were judged, and what an attempt
// does not measure is missing.
func ofAttempt(all []artifact, started string) []artifact {
	since, err := time.Parse(time.RFC3339, started)
	return slices.DeleteFunc(all, func(a artifact) bool {
		at, wrong := time.Parse(time.RFC3339, a.Created)
		return !artifactName.MatchString(a.Name) || a.Expired || err == nil && (wrong != nil || at.Before(since))
	})
}

func (c *Client) bundle(ctx context.Context, a artifact) ([]byte, error) {
	const most = bundle.MostBytes + 1<<16
	if a.Size > most {
		return nil, fmt.Errorf("it has %d bytes, which no bundle has", a.Size)
	}
	req, err := c.api.NewRequest("GET", fmt.Sprintf("repos/%s/%s/actions/artifacts/%d/zip", c.owner, c.repo, a.ID), nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.api.BareDo(ctx, req)
	var moved *github.ErrorResponse
	if errors.As(err, &moved) && moved.Response.StatusCode == http.StatusFound {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := c.plain(ctx, resp.Header.Get("Location"), most)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if want, ok := strings.CutPrefix(a.Digest, "sha256:"); ok && want != hex.EncodeToString(sum[:]) {
		return nil, errors.New("it has another digest than GitHub says")
	}
	return inside(data)
}

// plain reads an address that carries its own right to be read: the token goes
// to the API alone.
func (c *Client) plain(ctx context.Context, url string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: c.bare, CheckRedirect: noRedirect}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its storage answers %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, err
}

// inside is the one file that an artifact holds.
func inside(data []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("it is not a zip file: %w", err)
	}
	if len(z.File) != 1 || z.File[0].Name != fileInside || !z.File[0].Mode().IsRegular() {
		return nil, fmt.Errorf("it does not hold %s and nothing else", fileInside)
	}
	r, err := z.File[0].Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, bundle.MostBytes+1))
	if err == nil && len(text) > bundle.MostBytes {
		err = fmt.Errorf("it holds more than %d bytes", bundle.MostBytes)
	}
	return text, err
}

// mostCompared is what GitHub lists of two commits at most.
const mostCompared = 300

// A Distance is what lies between the commit that a change was measured against
// and the change.
type Distance struct {
	Fits     bool // the commit lies between where the change left the branch and its end, and is not something older that suits it
	Includes bool // the change has that commit among its ancestors, so that nothing was merged to measure it
	Changes  []project.Change
	Cut      bool // there may be other files
}

// Distance asks GitHub how a change lies to a commit and to a branch.
func (c *Client) Distance(ctx context.Context, base, head, branch string) (Distance, error) {
	var left [2]string
	var d Distance
	for i, from := range []string{base, branch} {
		found, _, err := c.api.Repositories.CompareCommits(ctx, c.owner, c.repo, from, head, &github.ListOptions{PerPage: 1})
		if err != nil {
			return d, denied(fmt.Errorf("asking where the change left the branch: %w", err), "contents: read")
		}
		if left[i] = found.GetMergeBaseCommit().GetSHA(); i == 0 {
			d.Changes, d.Cut = changesOf(found.Files), len(found.Files) >= mostCompared
		}
	}
	d.Fits, d.Includes = left[0] != "" && left[0] == left[1], left[0] == base
	return d, nil
}

// changesOf are files by their old and their new names.
func changesOf(files []*github.CommitFile) []project.Change {
	var out []project.Change
	for _, f := range files {
		out = append(out, project.Change{Name: f.GetFilename(), Status: f.GetStatus()})
		if old := f.GetPreviousFilename(); old != "" {
			out = append(out, project.Change{Name: old, Status: "removed"})
		}
	}
	return out
}
