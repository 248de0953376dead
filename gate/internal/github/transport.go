package github

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// Bounds of asking again. GitHub asks for writes one after the other, a second
// apart, and after a limit of its own at least a minute of silence.
const (
	mostTries   = 5
	mostWaiting = 10 * time.Minute
	shortWait   = time.Second
	limitWait   = time.Minute
	mostReply   = 128 << 20 // more than a bundle
)

// A waiter passes time, and tells it.
type waiter struct {
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
}

func (w waiter) orSleep() waiter {
	if w.sleep == nil {
		w.sleep = func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if w.now == nil {
		w.now = time.Now
	}
	return w
}

// retrying sends a request again where GitHub says that it was too much, or,
// where nothing can happen twice, that it failed. go-github takes a 429 for an
// ordinary error.
type retrying struct {
	next http.RoundTripper
	wait waiter
}

func (t *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	idempotent := req.Method == http.MethodGet || req.Method == http.MethodPatch
	waited := time.Duration(0)
	for try := 1; ; try++ {
		again := req.Clone(req.Context())
		if body != nil {
			again.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, err := t.next.RoundTrip(again)
		pause, ask := t.pause(resp, err, try, idempotent)
		if !ask || try == mostTries || waited+pause > mostWaiting {
			return limited(resp), err
		}
		if resp != nil {
			resp.Body.Close()
		}
		if err := t.wait.sleep(req.Context(), pause); err != nil {
			return nil, err
		}
		waited += pause
	}
}

// limited bounds a reply.
func limited(resp *http.Response) *http.Response {
	if resp != nil && resp.Body != nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, mostReply), resp.Body}
	}
	return resp
}

// pause says whether to ask again, and after how long.
func (t *retrying) pause(resp *http.Response, err error, try int, idempotent bool) (time.Duration, bool) {
	grows := time.Duration(1) << (try - 1)
	switch {
	case err != nil:
		return shortWait * grows, idempotent
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusForbidden && limits(resp):
	case resp.StatusCode >= 500:
		return shortWait * grows, idempotent
	default:
		return 0, false
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
		return time.Duration(min(s, 1<<20)) * time.Second, true
	}
	if at, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && resp.Header.Get("X-RateLimit-Remaining") == "0" {
		return max(time.Unix(at, 0).Sub(t.wait.now()), 0) + shortWait, true
	}
	return limitWait * grows, true
}

// limits tells a limit from a permission that is missing: both are a 403.
func limits(resp *http.Response) bool {
	if resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0" {
		return true
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && (bytes.Contains(body, []byte("secondary rate limit")) || bytes.Contains(body, []byte("secondary-rate-limits")))
}

// printing prints what would be sent, and answers as if nothing were there yet.
type printing struct{ w io.Writer }

func (t *printing) RoundTrip(req *http.Request) (*http.Response, error) {
	reply := "[]"
	if req.Method != http.MethodGet {
		reply = `{"id":1}`
	}
	fmt.Fprintf(t.w, "%s %s\n", req.Method, printable.Line(req.URL.String()))
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		var pretty bytes.Buffer
		if json.Indent(&pretty, bytes.TrimSpace(data), "", "  ") == nil {
			fmt.Fprintf(t.w, "%s\n", printable.JSON(pretty.Bytes()))
		}
	}
	if strings.Contains(req.URL.Path, "/check-runs") && req.Method == http.MethodGet {
		reply = `{"total_count":0,"check_runs":[]}`
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(reply))}, nil
}
