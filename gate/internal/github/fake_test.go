package github

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

const head = "0123456789abcdef0123456789abcdef01234567"

// A fake is a GitHub that remembers. Every request to it, and every reply, is
// held against GitHub's own description of its API.
type fake struct {
	t        *testing.T
	router   routers.Router
	mu       sync.Mutex
	requests []string
	checks   []node
	comments []node
	statuses []node
	files    []node
	pulls    []node
	run      node
	replies  []func(w http.ResponseWriter, r *http.Request) bool // before the usual one; each once
	deny     string                                              // what begins so is not permitted
	server   *httptest.Server
	slept    []time.Duration

	texts     map[string]string // files of the head
	names     []string          // of artifacts
	artifacts [][]byte
	forged    bool           // the digest is another
	created   map[int]string // when an artifact was, by its place
	expired   map[int]bool
	storage   *httptest.Server
}

// keep gives the run an artifact of one file.
func (f *fake) keep(name, file string, data []byte) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	w, err := z.Create(file)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil || z.Close() != nil {
		f.t.Fatal(err)
	}
	f.names, f.artifacts = append(f.names, name), append(f.artifacts, buf.Bytes())
}

func (f *fake) digest(i int) string {
	sum := sha256.Sum256(f.artifacts[i])
	if f.forged {
		sum[0]++
	}
	return hex.EncodeToString(sum[:])
}

func newFake(t *testing.T) *fake {
	t.Helper()
	data, err := os.ReadFile(pruned)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatal(err)
	}
	doc.Servers = nil
	f := &fake{t: t}
	if f.router, err = gorillamux.NewRouter(doc); err != nil {
		t.Fatal(err)
	}
	f.pulls = []node{f.pull(7, head)}
	f.server = httptest.NewServer(f)
	f.storage = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the storage was sent the token")
		}
		if i, err := strconv.Atoi(strings.Trim(r.URL.Path, "/")); err == nil {
			w.Write(f.artifacts[i-1])
		}
	}))
	t.Cleanup(f.server.Close)
	t.Cleanup(f.storage.Close)
	return f
}

func (f *fake) pull(number int, sha string) node {
	repo := node{"id": 1, "full_name": "o/r"}
	side := func(ref, sha string) node {
		return node{"ref": ref, "sha": sha, "label": "o:" + ref, "repo": repo, "user": node{"login": "a", "id": 5, "type": "User"}}
	}
	return node{"number": number, "state": "open", "head": side("change", sha), "base": side("main", strings.Repeat("b", 40))}
}

func (f *fake) client() *Client {
	f.t.Helper()
	c, err := New(Options{API: f.server.URL, Token: "secret", wait: waiter{now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		sleep: func(_ context.Context, d time.Duration) error { f.slept = append(f.slept, d); return nil }}}, "o/r")
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	if r.Header.Get("Authorization") != "Bearer secret" {
		f.t.Errorf("%s %s carries no token", r.Method, r.URL)
	}
	route, params, err := f.router.FindRoute(r)
	if err != nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	for q := range r.URL.Query() {
		if route.Operation.Parameters.GetByInAndName("query", q) == nil {
			f.t.Errorf("%s %s: there is no parameter %q", r.Method, r.URL, q)
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		http.Error(w, `{"message":"Validation Failed"}`, http.StatusUnprocessableEntity)
		return
	}
	if len(f.replies) > 0 {
		first := f.replies[0]
		f.replies = f.replies[1:]
		if first(w, r) {
			return
		}
	}
	if f.deny != "" && strings.HasPrefix(r.Method+" "+r.URL.Path, f.deny) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"message":"Resource not accessible by integration"}`)
		return
	}
	rec := httptest.NewRecorder()
	f.answer(rec, r, body)
	if rec.Code == http.StatusNotFound { // GitHub says so of everything
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes())
		return
	}
	reply := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: rec.Code, Header: rec.Header()}
	reply.SetBodyBytes(rec.Body.Bytes())
	if err := openapi3filter.ValidateResponse(r.Context(), reply); err != nil {
		f.t.Errorf("the fake's reply to %s %s: %v", r.Method, r.URL, err)
	}
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

var (
	oneCheck   = regexp.MustCompile(`/check-runs/(\d+)$`)
	oneComment = regexp.MustCompile(`/issues/comments/(\d+)$`)
)

func (f *fake) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var in node
	json.Unmarshal(body, &in)
	send := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(v)
	}
	path := strings.TrimPrefix(r.URL.Path, "/repos/o/r")
	switch {
	case r.Method == "POST" && path == "/check-runs":
		f.checks = append(f.checks, f.checkRun(len(f.checks)+1, in))
		send(201, f.checks[len(f.checks)-1])
	case r.Method == "PATCH" && oneCheck.MatchString(path):
		id, _ := strconv.Atoi(oneCheck.FindStringSubmatch(path)[1])
		send(200, f.update(f.checks[id-1], in))
	case strings.HasSuffix(path, "/check-runs"):
		send(200, node{"total_count": len(f.checks), "check_runs": append([]node{}, f.checks...)})
	case r.Method == "POST" && strings.HasPrefix(path, "/statuses/"):
		in["id"], in["node_id"], in["url"], in["avatar_url"], in["target_url"] = 1, "x", "https://x", "https://x", "https://x"
		in["created_at"], in["updated_at"], in["creator"] = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", node{"login": "a", "id": 1, "type": "Bot"}
		f.statuses = append(f.statuses, in)
		send(201, in)
	case r.Method == "POST" && path == "/issues/7/comments":
		f.comments = append(f.comments, f.commentBy("github-actions[bot]", "Bot", in["body"].(string)))
		send(201, f.comments[len(f.comments)-1])
	case path == "/issues/7/comments":
		f.page(w, r, f.comments, send)
	case oneComment.MatchString(path):
		id, _ := strconv.Atoi(oneComment.FindStringSubmatch(path)[1])
		f.comments[id-1]["body"] = in["body"]
		send(200, f.comments[id-1])
	case path == "/pulls/7/files":
		f.page(w, r, f.files, send)
	case path == "/pulls/7":
		send(200, f.pulls[0])
	case path == "/pulls":
		send(200, f.pulls)
	case strings.HasSuffix(path, "/artifacts"):
		var list []node
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		for i := range f.artifacts {
			if i/100 != max(page, 1)-1 {
				continue
			}
			list = append(list, node{"id": i + 1, "node_id": "x", "name": f.names[i], "size_in_bytes": len(f.artifacts[i]), "url": "https://x", "archive_download_url": "https://x", "expired": f.expired[i],
				"created_at": cmp.Or(f.created[i], "2026-01-01T00:00:00Z"), "expires_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "digest": "sha256:" + f.digest(i)})
		}
		send(200, node{"total_count": len(f.artifacts), "artifacts": append([]node{}, list...)})
	case strings.HasSuffix(path, "/zip"):
		w.Header().Set("Location", f.storage.URL+"/"+strings.Split(path, "/")[3])
		w.WriteHeader(http.StatusFound)
	case strings.HasPrefix(path, "/contents/"):
		name := strings.TrimPrefix(path, "/contents/")
		text, ok := f.texts[name]
		if r.URL.Query().Get("ref") != head && r.URL.Query().Get("ref") != f.run["head_sha"] || !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"message":"Not Found"}`)
			return
		}
		send(200, node{"type": "file", "encoding": "base64", "size": len(text), "name": filepath.Base(name), "path": name, "content": base64.StdEncoding.EncodeToString([]byte(text)), "sha": head,
			"url": "https://x", "git_url": "https://x", "html_url": "https://x", "download_url": "https://x", "_links": node{"git": "https://x", "html": "https://x", "self": "https://x"}})
	case strings.HasPrefix(path, "/compare/"):
		sha := strings.Repeat("b", 40)
		if strings.HasPrefix(path, "/compare/old") {
			sha = strings.Repeat("a", 40)
		}
		send(200, node{"merge_base_commit": node{"sha": sha}, "files": append([]node{}, f.files[:min(len(f.files), mostCompared)]...), "status": "ahead", "ahead_by": 1, "behind_by": 0})
	case strings.HasPrefix(path, "/actions/runs/"):
		send(200, f.run)
	default:
		f.t.Errorf("the fake has no answer to %s %s", r.Method, r.URL)
		send(404, node{})
	}
}

// page sends one page of a list, with a link to the next.
func (f *fake) page(w http.ResponseWriter, r *http.Request, all []node, send func(int, any)) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page = max(page, 1)
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, f.server.URL, r.URL.Path, page+1))
	}
	send(200, append([]node{}, all[from:to]...))
}

func (f *fake) checkRun(id int, in node) node {
	c := node{"id": id, "node_id": "x", "head_sha": in["head_sha"], "external_id": in["external_id"], "url": "https://x", "html_url": fmt.Sprintf("https://github.example/o/r/runs/%d", id),
		"details_url": "https://x", "status": "queued", "conclusion": nil, "started_at": in["started_at"], "completed_at": nil, "name": in["name"], "app": nil,
		"check_suite": node{"id": 1}, "pull_requests": []any{},
		"output": node{"title": nil, "summary": nil, "text": nil, "annotations_count": 0, "annotations_url": "https://x"}}
	return f.update(c, in)
}

func (f *fake) update(c, in node) node {
	for _, k := range []string{"status", "conclusion", "completed_at"} {
		if in[k] != nil {
			c[k] = in[k]
		}
	}
	if c["status"] == "completed" && c["conclusion"] == nil {
		f.t.Error("a check is completed without a conclusion")
	}
	if out, ok := in["output"].(node); ok {
		to := c["output"].(node)
		to["title"], to["summary"] = out["title"], out["summary"]
		if a, ok := out["annotations"].([]any); ok {
			to["annotations_count"] = to["annotations_count"].(int) + len(a)
		}
	}
	return c
}

func (f *fake) commentBy(login, kind, body string) node {
	return node{"id": len(f.comments) + 1, "body": body, "user": node{"login": login, "id": 3, "type": kind}, "html_url": "https://github.example/c"}
}

func (f *fake) changes(names ...string) {
	f.files = nil
	for _, n := range names {
		f.files = append(f.files, node{"sha": head, "filename": n, "status": "modified", "additions": 1, "deletions": 1, "changes": 2,
			"blob_url": "https://x", "raw_url": "https://x", "contents_url": "https://x"})
	}
}

// sent counts the requests that begin so.
func (f *fake) sent(prefix string) int {
	return len(slices.DeleteFunc(slices.Clone(f.requests), func(r string) bool { return !strings.HasPrefix(r, prefix) }))
}
