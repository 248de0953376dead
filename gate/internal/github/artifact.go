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

	"github.com/google/go-github/v57/github"

	"github.com/kernelgate/gate/gate/internal/bundle"
)

// Artifacts that hold a bundle, each one file.
var (
	artifactName = regexp.MustCompile(`^gate-bundle(?:-[0-9]{1,3})?$`)
	fileInside   = "gate.bundle"
)

// mostArtifacts is more than the shards of a change.
const mostArtifacts = 256

// An artifact has fields that go-github does not know.
type artifact struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Size    int64  `json:"size_in_bytes"`
	Digest  string `json:"digest"`
	Expired bool   `json:"expired"`
}

// Bundles are the files that the run of a matter left, as bytes. What is in them
// is for package bundle to believe or not.
func (c *Client) Bundles(ctx context.Context, m *Matter) ([][]byte, error) {
	var list struct {
		Artifacts []artifact `json:"artifacts"`
	}
	if err := c.get(ctx, fmt.Sprintf("repos/%s/%s/actions/runs/%d/artifacts?per_page=100", c.owner, c.repo, m.Run), &list); err != nil {
		return nil, denied(fmt.Errorf("listing what the run that measured left: %w", err), "actions: read")
	}
	found := slices.DeleteFunc(list.Artifacts, func(a artifact) bool { return !artifactName.MatchString(a.Name) || a.Expired })
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

// Fits reports whether a commit of a branch lies between where a change left the
// branch and its end: the change was measured against what it goes to, and not
// against something older that suits it. Includes reports whether the change has
// that commit among its ancestors, so that nothing was merged to measure it.
func (c *Client) Fits(ctx context.Context, base, head, branch string) (fits, includes bool, err error) {
	var left [2]string
	for i, from := range []string{base, branch} {
		found, _, err := c.api.Repositories.CompareCommits(ctx, c.owner, c.repo, from, head, &github.ListOptions{PerPage: 1})
		if err != nil {
			return false, false, denied(fmt.Errorf("asking where the change left the branch: %w", err), "contents: read")
		}
		left[i] = found.GetMergeBaseCommit().GetSHA()
	}
	return left[0] != "" && left[0] == left[1], left[0] == base, nil
}
