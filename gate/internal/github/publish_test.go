package github

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// verdictOf has so many kernels that fail, each at its own file.
func verdictOf(failing int) *verdict.Verdict {
	v := &verdict.Verdict{Schema: verdict.Schema, Policy: "policies.yaml", Reproduce: "gate check"}
	for i := range max(failing, 1) {
		f := verdict.Finding{Rule: "latency", Severity: verdict.Red, Status: verdict.Pass, Reason: "within the limit"}
		if failing > 0 {
			f.Status, f.Reason = verdict.Fail, fmt.Sprint("slower <b>@you</b> ", i, strings.Repeat("x", 400))
		}
		v.Kernels = append(v.Kernels, verdict.KernelVerdict{Name: fmt.Sprintf("op/k%04d", i), File: "k.yaml", Source: fmt.Sprintf("k%d.cu", i), Line: i + 1, Arch: "sm_90",
			State: verdict.Unchanged, Findings: []verdict.Finding{f}})
	}
	v.Conclude()
	return v
}

var (
	usual       = Publication{Name: "gate", Comment: CommentUpdate, Author: "github-actions[bot]", Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	pullRequest = &event.Event{Name: event.PullRequest, Repository: event.Repository{ID: 1, FullName: "o/r"},
		PullRequest: &event.Pull{Number: 7, Head: event.Branch{SHA: head, Repo: &event.Repository{ID: 1}}}}
)

func publish(t *testing.T, f *fake, v *verdict.Verdict, p Publication) *Published {
	t.Helper()
	c := f.client()
	m, err := c.Matter(context.Background(), pullRequest, "")
	if err != nil {
		t.Fatal(err)
	}
	return c.Publish(context.Background(), v, m, p)
}

// TestPublish: a check with every annotation, 50 a request, and a comment; the
// second time the comment is left alone.
func TestPublish(t *testing.T) {
	f := newFake(t)
	var names []string
	for i := range 151 {
		names = append(names, fmt.Sprintf("k%d.cu", i))
	}
	f.changes(names[:101]...)
	out := publish(t, f, verdictOf(151), usual)
	if out.Level != ByCheck || out.URL == "" || len(out.Notes) > 0 {
		t.Errorf("%+v", out)
	}
	c := f.checks[0]
	if c["status"] != "completed" || c["conclusion"] != "failure" || c["output"].(node)["annotations_count"] != 101 {
		t.Errorf("%v", c)
	}
	if n := f.sent("PATCH /repos/o/r/check-runs/"); n != 3 {
		t.Errorf("%d updates for 101 annotations", n)
	}
	if f.sent("GET /repos/o/r/pulls/7/files") != 2 {
		t.Error("the second page of files was not read")
	}
	if len(f.comments) != 1 || !strings.HasPrefix(f.comments[0]["body"].(string), "<!-- gate:v1 key=") {
		t.Errorf("%v", f.comments)
	}
	publish(t, f, verdictOf(151), usual)
	if len(f.comments) != 1 || len(f.checks) != 2 {
		t.Errorf("%d comments, %d checks", len(f.comments), len(f.checks))
	}
	before := f.comments[0]["body"]
	publish(t, f, verdictOf(0), usual)
	if len(f.comments) != 1 || f.comments[0]["body"] == before || f.checks[2]["conclusion"] != "success" {
		t.Errorf("%v", f.comments)
	}
}

// TestOpenIsNeverNeutral: neutral and skipped let a required check pass.
func TestOpenIsNeverNeutral(t *testing.T) {
	f := newFake(t)
	v := verdictOf(1)
	v.Kernels[0].Findings[0].Status = verdict.Inconclusive
	v.Counts = verdict.Counts{}
	v.Conclude()
	publish(t, f, v, usual)
	if f.checks[0]["conclusion"] != "action_required" {
		t.Errorf("%v", f.checks[0]["conclusion"])
	}
	v.ToolFailure = true
	publish(t, f, v, usual)
	if f.checks[1]["conclusion"] != "action_required" {
		t.Errorf("%v", f.checks[1]["conclusion"])
	}
	v = verdictOf(0)
	v.ToolFailure = true
	publish(t, f, v, usual)
	if f.checks[2]["conclusion"] == "success" {
		t.Error("a tool failed, and the check passes")
	}
}

// TestCommentsFitAndAreOurs: a stolen marker is not ours, 70,000 characters are
// cut, a moved head is left alone, and nothing is said where nothing happened.
func TestCommentsFitAndAreOurs(t *testing.T) {
	f := newFake(t)
	marker, body := commentBody(verdictOf(400), "https://github.example/o/r/runs/1")
	if len(body) > 65_536 || !strings.Contains(body, "more finding") {
		t.Errorf("%d bytes", len(body))
	}
	for i := range 130 {
		f.comments = append(f.comments, f.commentBy("mallory", "User", marker+fmt.Sprint(i)), f.commentBy("mallory[bot]", "Bot", marker), f.commentBy("github-actions[bot]", "Bot", "see "+marker))
	}
	publish(t, f, verdictOf(400), usual)
	if n := len(f.comments); n != 391 || f.sent("PATCH /repos/o/r/issues/comments/") != 0 {
		t.Errorf("%d comments, %q", n, f.requests)
	}
	publish(t, f, verdictOf(1), usual)
	if n := len(f.comments); n != 391 || f.sent("PATCH /repos/o/r/issues/comments/391") != 1 {
		t.Errorf("%d comments, %q", n, f.requests)
	}
	f.pulls[0] = f.pull(7, strings.Repeat("c", 40))
	publish(t, f, verdictOf(2), usual)
	if f.sent("PATCH /repos/o/r/issues/comments/") != 1 {
		t.Error("the comment of a moved pull request was edited")
	}
	quiet := newFake(t)
	p := usual
	p.Comment = CommentOnChange
	publish(t, quiet, verdictOf(0), p)
	p.Comment = CommentOff
	publish(t, quiet, verdictOf(3), p)
	if len(quiet.comments) != 0 {
		t.Errorf("%v", quiet.comments)
	}
}

// TestTheNextBestPlace: without the right to write checks a status says it, and
// without that the caller does. A comment that fails changes nothing.
func TestTheNextBestPlace(t *testing.T) {
	for deny, want := range map[string]Level{"POST /repos/o/r/check-runs": ByStatus, "POST /repos/o/r": ByNone, "PATCH /repos/o/r/check-runs": ByStatus,
		"POST /repos/o/r/issues": ByCheck, "GET /repos/o/r/pulls/7/files": ByCheck} {
		f := newFake(t)
		f.deny = deny
		out := publish(t, f, verdictOf(60), usual)
		if out.Level != want || len(out.Notes) == 0 || !strings.Contains(strings.Join(out.Notes, "\n"), "permissions: ") {
			t.Errorf("%s: %+v", deny, out)
		}
		if want == ByStatus && (len(f.statuses) != 1 || f.statuses[0]["state"] != "failure") {
			t.Errorf("%s: %v", deny, f.statuses)
		}
	}
}

// TestAskingAgain: limits are waited for as GitHub says, failures of reads and
// updates are repeated, and what could happen twice is not.
func TestAskingAgain(t *testing.T) {
	limit := func(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, `{"message":"You have exceeded a secondary rate limit"}`)
			return true
		}
	}
	for name, c := range map[string]struct {
		reply func(http.ResponseWriter, *http.Request) bool
		slept time.Duration
	}{
		"429":             {limit(429, "Retry-After", "17"), 17 * time.Second},
		"403 and a date":  {limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1800000030"), 31 * time.Second},
		"403 in words":    {limit(403), time.Minute},
		"429 and silence": {limit(429), time.Minute},
		"502 of a read":   {limit(502), time.Second},
	} {
		f := newFake(t)
		f.replies = append(f.replies, c.reply)
		out := publish(t, f, verdictOf(0), usual)
		if out.Level != ByCheck || len(f.slept) == 0 || f.slept[0] != c.slept {
			t.Errorf("%s: %+v, slept %v", name, out, f.slept)
		}
	}
	f := newFake(t)
	pass := func(http.ResponseWriter, *http.Request) bool { return false }
	f.replies = append(f.replies, pass, pass, limit(500)) // the files, the pull request, then the check
	out := publish(t, f, verdictOf(0), usual)
	if f.sent("POST /repos/o/r/check-runs") != 1 || out.Level != ByStatus {
		t.Errorf("%+v, %q", out, f.requests)
	}
	f = newFake(t)
	for range 20 {
		f.replies = append(f.replies, limit(429, "Retry-After", "1"))
	}
	if _, _, err := f.client().Changes(context.Background(), &Matter{Pull: 7}); err == nil || len(f.requests) != mostTries {
		t.Errorf("%v after %d requests", err, len(f.requests))
	}
}

// TestWhoIsJudged: the run is GitHub's, of the workflow that is expected, and of
// this repository; the pull request is one of the run's commit and repository.
func TestWhoIsJudged(t *testing.T) {
	follow := func(change func(e *event.Event, f *fake)) (*Matter, error) {
		f := newFake(t)
		e := &event.Event{Name: event.WorkflowRun, Repository: event.Repository{ID: 1, FullName: "o/r"}, Run: &event.Run{ID: 9, Attempt: 2, HeadSHA: head, Event: "pull_request",
			Path: "collect.yml", HeadBranch: "change", HeadRepo: &event.Repository{ID: 1, FullName: "o/r"}}}
		f.run = node{"id": 9, "run_attempt": 2, "event": "pull_request", "path": "collect.yml", "head_sha": head, "head_branch": "change", "head_repository": node{"id": 1, "full_name": "o/r"},
			"repository": node{"id": 1, "full_name": "o/r"}, "status": "completed", "conclusion": "success", "created_at": "2026-01-01T10:00:00Z", "run_started_at": "2026-01-01T11:00:00Z", "html_url": "https://github.example/run/9"}
		if change != nil {
			change(e, f)
		}
		return f.client().Matter(context.Background(), e, "collect.yml")
	}
	if m, err := follow(nil); err != nil || m.Head != head || m.Pull != 7 || m.Run != 9 {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := follow(func(_ *event.Event, f *fake) { f.pulls[0] = f.pull(7, strings.Repeat("c", 40)) }); err != nil || m.Pull != 0 {
		t.Errorf("a pull request of another commit: %+v, %v", m, err)
	}
	if m, err := follow(func(_ *event.Event, f *fake) { f.pulls[0]["head"].(node)["repo"] = node{"id": 2, "full_name": "o/r"} }); err != nil || m.Pull != 0 {
		t.Errorf("a pull request of another repository: %+v, %v", m, err)
	}
	for name, change := range map[string]func(e *event.Event, f *fake){
		"another commit":     func(_ *event.Event, f *fake) { f.run["head_sha"] = strings.Repeat("c", 40) },
		"another attempt":    func(_ *event.Event, f *fake) { f.run["run_attempt"] = 3 },
		"another repository": func(_ *event.Event, f *fake) { f.run["repository"] = node{"id": 2, "full_name": "o/r"} },
		"another workflow":   func(_ *event.Event, f *fake) { f.run["path"] = "evil.yml" },
		"another event":      func(_ *event.Event, f *fake) { f.run["event"] = "workflow_dispatch" },
	} {
		if m, err := follow(change); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestPendingIsCompleted: the check that says that it waits is the one that the
// verdict is written into.
func TestPendingIsCompleted(t *testing.T) {
	f := newFake(t)
	m := &Matter{Head: head, Run: 9, URL: "https://github.example/run/9", Queued: "2026-01-01T10:07:00Z"}
	if _, err := f.client().Pending(context.Background(), m, usual); err != nil {
		t.Fatal(err)
	}
	if title := f.checks[0]["output"].(node)["title"]; title != "queued since 10:07 UTC" || f.checks[0]["status"] != "in_progress" {
		t.Errorf("%v", f.checks[0])
	}
	f.client().Publish(context.Background(), verdictOf(0), m, usual)
	if len(f.checks) != 1 || f.checks[0]["conclusion"] != "success" {
		t.Errorf("%v", f.checks)
	}
	if f.checks[0]["name"] != "gate" {
		t.Errorf("the name became %v", f.checks[0]["name"])
	}
}

// TestDryRunSendsNothing, and prints what it would.
func TestDryRunSendsNothing(t *testing.T) {
	var out bytes.Buffer
	c, err := New(Options{API: "https://github.example/api/v3", DryRun: &out}, "o/r")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Publish(context.Background(), verdictOf(1), &Matter{Head: head, Pull: 7}, usual)
	for _, want := range []string{"POST https://github.example/api/v3/repos/o/r/check-runs\n", `"conclusion": "failure"`, "POST https://github.example/api/v3/repos/o/r/issues/7/comments\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if p.Level != ByCheck || strings.Contains(out.String(), "\u202e") {
		t.Errorf("%+v", p)
	}
}

func TestTokensGoNowhereElse(t *testing.T) {
	for _, api := range []string{"http://github.example/api/v3", "ftp://x", "://", "https://"} {
		if _, err := New(Options{API: api, Token: "secret"}, "o/r"); err == nil {
			t.Errorf("%s is taken", api)
		}
	}
	var seen []string
	evil := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Authorization")) })
	f, other := newFake(t), newFake(t)
	other.server.Config.Handler = evil
	f.replies = append(f.replies, func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, strings.Replace(other.server.URL, "127.0.0.1", "localhost", 1)+"/x", http.StatusFound)
		return true
	})
	f.client().Changes(context.Background(), &Matter{Pull: 7})
	if slices.ContainsFunc(seen, func(s string) bool { return s != "" }) {
		t.Errorf("%q", seen)
	}
}

// TestArtifactsAreTakenByNumber, one plain file each, and only those whose name
// is a bundle's.
func TestArtifactsAreTakenByNumber(t *testing.T) {
	f := newFake(t)
	f.keep("other", "gate.bundle", []byte("no"))
	f.keep("gate-bundle", "gate.bundle", []byte("one"))
	f.keep("gate-bundle-2", "gate.bundle", []byte("two"))
	got, err := f.client().Bundles(context.Background(), &Matter{Run: 9})
	if err != nil || len(got) != 2 || string(got[0]) != "one" || string(got[1]) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	f.forged = true
	if got, err := f.client().Bundles(context.Background(), &Matter{Run: 9}); err == nil {
		t.Errorf("%q", got)
	}
	for _, file := range []string{"../gate.bundle", "gate.bundle/", "GATE.BUNDLE", "x"} {
		f := newFake(t)
		f.keep("gate-bundle", file, nil)
		if got, err := f.client().Bundles(context.Background(), &Matter{Run: 9}); err == nil {
			t.Errorf("%s: %q", file, got)
		}
	}
	if got, err := newFake(t).client().Bundles(context.Background(), &Matter{Run: 9}); err == nil {
		t.Errorf("%q", got)
	}
}

// TestTheBaseIsNotChosenByTheChange: an older commit of the branch suits a change
// that would be slower than what it goes to.
func TestTheBaseIsNotChosenByTheChange(t *testing.T) {
	for base, want := range map[string]bool{"new": true, "old": false} {
		f := newFake(t)
		f.changes("a.cu")
		d, err := f.client().Distance(context.Background(), base, head, "main")
		if err != nil || d.Fits != want || d.Includes || len(d.Changes) != 1 || d.Cut {
			t.Errorf("%s: %+v, %v", base, d, err)
		}
		f.changes(slices.Repeat([]string{"a.cu"}, 900)...)
		if d, err := f.client().Distance(context.Background(), base, head, "main"); err != nil || !d.Cut {
			t.Errorf("%s: 300 files are taken for all, %v", base, err)
		}
	}
}

// TestTextsAreFilesOfTheHead: a name comes from a bundle, and leads nowhere else.
func TestTextsAreFilesOfTheHead(t *testing.T) {
	f := newFake(t)
	f.texts = map[string]string{"kernels/a b/kernel.yaml": "retire: x\n", "kernels/large/kernel.yaml": strings.Repeat("#", mostText+1)}
	names := []string{"kernels/a b/kernel.yaml", "kernels/none/kernel.yaml", "kernels/large/kernel.yaml", "../../../../user", "/etc/passwd", "a/../../b", "x?ref=main", "x#y", "x%2fy", ""}
	got, err := f.client().Texts(context.Background(), &Matter{Head: head}, names)
	if err != nil || len(got) != 1 || got["kernels/a b/kernel.yaml"] != "retire: x\n" || len(f.requests) != 3 {
		t.Errorf("%v, %v, %v", got, err, f.requests)
	}
	for range mostTexts + 50 {
		names = append(names, "kernels/many/kernel.yaml")
	}
	f.requests = nil
	f.client().Texts(context.Background(), &Matter{Head: head}, names)
	if len(f.requests) > mostTexts {
		t.Errorf("%d requests", len(f.requests))
	}
	f.deny = "GET /repos/o/r/contents"
	if _, err := f.client().Texts(context.Background(), &Matter{Head: head}, names); err == nil || !strings.Contains(err.Error(), "contents: read") {
		t.Errorf("%v", err)
	}
}
