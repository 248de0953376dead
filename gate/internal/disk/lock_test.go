package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := OpenLock(path, 0o666)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func try(t *testing.T, f *os.File, shared, want bool) {
	t.Helper()
	if got, err := TryLock(f, shared); got != want || err != nil {
		t.Errorf("shared: %v; got it: %v, want %v; %v", shared, got, want, err)
	}
}

func TestLocksExclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := OpenExistingLock(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no lock: %v", err)
	}
	one, two := open(t, path), open(t, path)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("in spite of the umask: %v, %v", info, err)
	}
	try(t, one, false, true)
	try(t, two, false, false)
	try(t, two, true, false)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if err := Lock(ctx, two); !errors.Is(err, why) {
		t.Errorf("waited for a lock that is held: %v", err)
	}
	closed := make(chan error)
	time.AfterFunc(20*time.Millisecond, func() { closed <- one.Close() })
	done := make(chan error)
	go func() { done <- Lock(context.Background(), two) }()
	must(t, <-closed)
	must(t, <-done)
	try(t, two, true, true) // an exclusive lock becomes a shared one
	three := open(t, path)
	try(t, three, true, true)
	try(t, three, false, false)
	if _, err := TryLock(one, false); err == nil {
		t.Error("locked a file that is closed")
	}
}

func TestOneMakesTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			f, err := OpenLock(path, 0o644)
			if err != nil {
				t.Error(err)
				return
			}
			f.Close()
		})
	}
	all.Wait()
}
