package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holding starts a script that is held, in a folder of its own, and returns once the
// script has made the file "ready".
func holding(t *testing.T, ctx context.Context, script string, change func(*Command)) (dir string, letGo func(), result func() (Result, error)) {
	t.Helper()
	dir = t.TempDir()
	hold, done := make(chan struct{}), make(chan struct{})
	var r Result
	var err error
	c := shell(script, func(c *Command) { c.Dir, c.Hold = dir, hold })
	if change != nil {
		change(&c)
	}
	go func() {
		defer close(done)
		r, err = c.Run(ctx)
	}()
	for !exists(dir, "ready") {
		time.Sleep(time.Millisecond)
	}
	return dir, func() { close(hold) }, func() (Result, error) { <-done; return r, err }
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// A child that is held gets as far as its first word, for longer than its limits,
// and then loses nothing of what it writes.
func TestHeldChildWaitsAtItsFirstWord(t *testing.T) {
	const more = 200_000 // more than a pipe holds
	var lines []string
	dir, letGo, result := holding(t, context.Background(), "touch ready; echo word; touch on; seq 1 200000; exit 3", func(c *Command) {
		c.Most, c.Idle, c.Limit = 4<<20, time.Minute, time.Minute
		c.Lines = func(s string) { lines = append(lines, s) }
	})
	time.Sleep(200 * time.Millisecond)
	if exists(dir, "on") {
		t.Error("it went on")
	}
	letGo()
	r, err := result()
	if err != nil || r.Code != 3 || !strings.HasPrefix(string(r.Stdout), "word\n1\n2\n") || !strings.HasSuffix(string(r.Stdout), "\n200000\n") {
		t.Errorf("%v, status %d, %d bytes", err, r.Code, len(r.Stdout))
	}
	if len(lines) != more+1 || lines[0] != "word" {
		t.Errorf("%d lines were told", len(lines))
	}
}

func TestLimitsCountFromWhenAChildIsLetGo(t *testing.T) {
	for name, set := range map[string]func(*Command){
		"idle": func(c *Command) { c.Idle = time.Second }, "limit": func(c *Command) { c.Limit = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, letGo, result := holding(t, context.Background(), "touch ready; echo word; sleep 60", set)
			time.Sleep(1200 * time.Millisecond)
			letGo()
			if r, err := result(); err != nil || r.Stopped == "" || string(r.Stdout) != "word\n" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// What is held does not keep its caller: it is killed with the context, and its own
// end is its end.
func TestHeldChildEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir, _, result := holding(t, ctx, "echo $$ >pid; touch ready; echo word; touch on; sleep 60", nil)
	cancel()
	if _, err := result(); !errors.Is(err, context.Canceled) || exists(dir, "on") {
		t.Errorf("cancelled: %v", err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	wantGone(t, strings.TrimSpace(string(pid)))
	_, _, result = holding(t, context.Background(), "touch ready; echo no device >&2; kill -SEGV $$", nil)
	if r, err := result(); err != nil || r.Signal != "segmentation fault" || r.Stderr != "no device\n" {
		t.Errorf("by itself: %+v, %v", r, err)
	}
	hold := make(chan struct{})
	if _, err := (Command{Path: "/bin/sh", Dir: "/nowhere", Limit: time.Minute, Hold: hold}).Run(context.Background()); err == nil {
		t.Error("a child that cannot be started was held")
	}
}
