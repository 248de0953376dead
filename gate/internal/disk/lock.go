package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockProbe = 5 * time.Millisecond // who only looks who holds a lock is gone by then
	lockPoll  = 50 * time.Millisecond
)

// OpenLock opens a lock file, and makes it with these permissions, whatever
// the umask, when it is not there. A lock ends when its file is closed, or
// with the process.
func OpenLock(path string, perm fs.FileMode) (*os.File, error) {
	f, err := OpenExistingLock(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, perm)
	if errors.Is(err, fs.ErrExist) {
		return OpenExistingLock(path)
	}
	if err == nil {
		f.Chmod(perm)
	}
	return f, err
}

// OpenExistingLock opens a lock file without creating it: where
// fs.protected_regular is set, the kernel refuses O_CREAT on another user's
// file in a sticky folder, even when it exists. A file that is only readable
// can be locked as well.
func OpenExistingLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return f, nil
}

// TryLock takes the lock of an open file, or says that somebody has it. A
// shared lock excludes exclusive ones only.
func TryLock(f *os.File, shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// Lock waits for the exclusive lock of an open file until the context ends;
// its error is the context's cause then.
func Lock(ctx context.Context, f *os.File) error { return lock(ctx, f, false) }

// LockShared is Lock for a lock that excludes exclusive ones only.
func LockShared(ctx context.Context, f *os.File) error { return lock(ctx, f, true) }

func lock(ctx context.Context, f *os.File, shared bool) error {
	pause := lockProbe
	for {
		if ok, err := TryLock(f, shared); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
			pause = lockPoll
		}
	}
}
