package github

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/event"
	"github.com/kernelgate/gate/gate/internal/project"
)

var (
	passes  = func(http.ResponseWriter, *http.Request) bool { return false }
	replies = map[string]func(http.ResponseWriter, *http.Request) bool{
		"a limit": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		},
		"no reply": func(w http.ResponseWriter, _ *http.Request) bool { panic(http.ErrAbortHandler) },
		"a 502":    func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true },
		"a 404":    func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true },
		"no JSON": func(w http.ResponseWriter, _ *http.Request) bool {
			io.WriteString(w, "<html>")
			return true
		},
	}
)

// TestEveryCallGoesWrongOnce: whatever happens to any one request, a verdict that
// fails is never shown as a pass, and a limit changes nothing at all.
func TestEveryCallGoesWrongOnce(t *testing.T) {
	whole := newFake(t)
	whole.changes("k0.cu")
	publish(t, whole, verdictOf(1), usual)
	for name, reply := range replies {
		for i := range whole.requests {
			f := newFake(t)
			f.changes("k0.cu")
			for range i {
				f.replies = append(f.replies, passes)
			}
			f.replies = append(f.replies, reply)
			out := publish(t, f, verdictOf(1), usual)
			for _, c := range f.checks {
				if c["conclusion"] == "success" {
					t.Errorf("%s to %s: %v", name, whole.requests[i], c)
				}
			}
			done := len(f.checks) == 1 && f.checks[0]["conclusion"] == "failure"
			if name == "a limit" && (!done || len(f.comments) != 1 || len(out.Notes) > 0) || out.Level == ByCheck && !done || out.Level == ByStatus && len(f.statuses) != 1 {
				t.Errorf("%s to %s: %+v, %v", name, whole.requests[i], out, f.checks)
			}
		}
	}
}

// TestEveryCallIsLimited: all of them, once each.
func TestEveryCallIsLimited(t *testing.T) {
	f := newFake(t)
	f.changes("k0.cu")
	for range 20 {
		f.replies = append(f.replies, replies["a limit"], passes)
	}
	if out := publish(t, f, verdictOf(1), usual); out.Level != ByCheck || len(out.Notes) > 0 || len(f.checks) != 1 || len(f.comments) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestTwoJudgesAtOnce each wrote a comment; from then on both say the same, also
// after somebody has edited one.
func TestTwoJudgesAtOnce(t *testing.T) {
	f := newFake(t)
	publish(t, f, verdictOf(1), usual)
	f.comments = append(f.comments, f.commentBy("github-actions[bot]", "Bot", f.comments[0]["body"].(string)))
	f.comments[1]["body"] = strings.ReplaceAll(f.comments[1]["body"].(string), "fail", "pass")
	publish(t, f, verdictOf(2), usual)
	if len(f.comments) != 2 || f.comments[0]["body"] != strings.ReplaceAll(f.comments[1]["body"].(string), "/runs/1", "/runs/2") || strings.Contains(f.comments[1]["body"].(string), "pass:") {
		t.Errorf("%v", f.comments)
	}
}

// TestArtifactsOfOneAttempt: a run that was started again lists what its earlier
// attempts left, and storage may stumble.
func TestArtifactsOfOneAttempt(t *testing.T) {
	f := newFake(t)
	for i := range 130 {
		f.keep(fmt.Sprint("log", i), "log", nil)
	}
	f.keep("gate-bundle", "gate.bundle", []byte("old"))
	f.keep("gate-bundle", "gate.bundle", []byte("new"))
	f.keep("gate-bundle-1", "gate.bundle", []byte("gone"))
	f.created, f.expired = map[int]string{131: "2026-01-01T10:00:01Z", 132: "2026-01-01T10:00:02Z"}, map[int]bool{132: true}
	serve, stumbled := f.storage.Config.Handler, false
	f.storage.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !stumbled {
			stumbled = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		serve.ServeHTTP(w, r)
	})
	got, err := f.client().Bundles(context.Background(), &Matter{Run: 9, started: "2026-01-01T10:00:00Z"})
	if err != nil || len(got) != 1 || string(got[0]) != "new" || !stumbled {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := f.client().Bundles(context.Background(), &Matter{Run: 9, started: "2026-01-01T12:00:00Z"}); err == nil {
		t.Errorf("an attempt that left nothing: %q", got)
	}
}

// TestFilesThatHide: a file under its old name, files beyond what GitHub lists,
// and those of a commit that was pushed meanwhile.
func TestFilesThatHide(t *testing.T) {
	ask := func(f *fake) ([]project.Change, bool) {
		changes, cut, err := f.client().Changes(context.Background(), &Matter{Head: head, Pull: 7})
		if err != nil {
			t.Fatal(err)
		}
		return changes, cut
	}
	f := newFake(t)
	f.changes("new.cuh")
	f.files[0]["previous_filename"] = "old.cuh"
	if got, cut := ask(f); cut || !slices.Contains(got, project.Change{Name: "old.cuh", Status: "removed"}) || len(got) != 2 {
		t.Errorf("%v, %v", got, cut)
	}
	f.pulls[0] = f.pull(7, strings.Repeat("c", 40))
	if _, cut := ask(f); !cut {
		t.Error("files of another commit are taken for all of this one's")
	}
	f = newFake(t)
	f.changes(slices.Repeat([]string{"a"}, mostFiles)...)
	if _, cut := ask(f); !cut {
		t.Error("3000 files are taken for all")
	}
}

// TestPullIntoTheDefaultBranch: another one of the same commit may show no file.
func TestPullIntoTheDefaultBranch(t *testing.T) {
	for _, into := range []string{"main", "release"} {
		f := newFake(t)
		f.pulls = append(f.pulls, f.pull(8, head))
		f.pulls[0]["base"].(node)["ref"], f.pulls[1]["base"].(node)["ref"] = "release", into
		f.run = node{"id": 9, "run_attempt": 1, "event": "pull_request", "path": "c.yml", "head_sha": head, "head_branch": "change", "head_repository": node{"id": 1, "full_name": "o/r"},
			"repository": node{"id": 1, "full_name": "o/r"}, "status": "completed", "conclusion": "success", "created_at": "2026-01-01T10:00:00Z", "run_started_at": "2026-01-01T10:00:00Z", "html_url": "https://github.example/run/9"}
		e := &event.Event{Name: event.WorkflowRun, Repository: event.Repository{ID: 1, FullName: "o/r", DefaultBranch: "main"}, Run: &event.Run{ID: 9, Attempt: 1, HeadSHA: head}}
		if m, err := f.client().Matter(context.Background(), e, "c.yml"); err != nil || m.Pull != 8 {
			t.Errorf("%s: %+v, %v", into, m, err)
		}
	}
}
