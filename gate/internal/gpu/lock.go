package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// LockDir is where the locks of this machine lie. It is one folder for all
// users, so it does not follow TMPDIR, which differs from job to job.
const LockDir = "/tmp/gate-locks"

const (
	leastWait   = 20 * time.Millisecond // a look at who holds the lock takes less
	holderLimit = 4 << 10               // bytes of a lock file
)

// A Lock is the right to measure on one GPU. It ends with Release, or with the
// process.
type Lock struct {
	file *os.File
}

// A Holder is who has a lock, by its own account: the file is writable by
// everybody, so it is good for a message and for nothing else.
type Holder struct {
	PID     int    `json:"pid"`     // in the holder's own PID namespace; 0 when not known
	Command string `json:"command"` // "" when not known
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "an unknown process"
	}
	return fmt.Sprintf("process %d (%s)", h.PID, h.Command)
}

var errHeld = errors.New("is in use")

// Acquire takes the exclusive lock of a GPU and waits for it up to wait.
//
// Every gate on the machine that sees the same /tmp respects it. Containers
// and services with a /tmp of their own do not, unless LockDir is shared with
// them.
func Acquire(ctx context.Context, uuid string, wait time.Duration) (*Lock, error) {
	return AcquireIn(ctx, LockDir, uuid, wait)
}

// AcquireIn is Acquire with another folder.
func AcquireIn(ctx context.Context, dir, uuid string, wait time.Duration) (*Lock, error) {
	f, err := openLock(dir, uuid)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", uuid, err)
	}
	start := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, max(wait, leastWait), errHeld)
	defer cancel()
	err = disk.Lock(limited, f)
	if err == nil {
		signHolder(f)
		return &Lock{file: f}, nil
	}
	defer f.Close()
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("%s %w by %v (waited %v)", uuid, errHeld, readHolder(f), time.Since(start).Round(time.Second))
	}
	return nil, fmt.Errorf("lock %s: %w", uuid, err)
}

// Release gives the lock back.
func (l *Lock) Release() error {
	if l.file == nil {
		return errors.New("the lock is already released")
	}
	l.file.Truncate(0) // only the message is lost if it cannot be
	err := l.file.Close()
	l.file = nil
	return err
}

// HeldIn tells who has the lock of a GPU in a folder, without waiting. held is
// false when nobody has.
func HeldIn(dir, uuid string) (h Holder, held bool, err error) {
	path, err := lockPath(dir, uuid)
	if err != nil {
		return Holder{}, false, err
	}
	f, err := disk.OpenExistingLock(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, err
	}
	defer f.Close()
	if free, err := disk.TryLock(f, true); free || err != nil {
		return Holder{}, false, err
	}
	return readHolder(f), true, nil
}

func lockPath(dir, uuid string) (string, error) {
	if err := checkUUID(uuid); err != nil {
		return "", err
	}
	return filepath.Join(dir, strings.ReplaceAll(uuid, "/", "_")+".lock"), nil
}

// openLock opens the lock file of a GPU and makes what is missing. Folder and
// file are open to every user; the sticky bit keeps users from removing each
// other's files.
func openLock(dir, uuid string) (*os.File, error) {
	path, err := lockPath(dir, uuid)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o777); err == nil {
		os.Chmod(dir, 0o777|os.ModeSticky) // the umask does not hold here; refused, the folder is this user's alone
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return disk.OpenLock(path, 0o666)
}

// signHolder writes who holds the lock. It is a courtesy to those who wait, so
// a failure changes nothing.
func signHolder(f *os.File) {
	data, err := json.Marshal(Holder{PID: os.Getpid(), Command: printable.Cut(strings.Join(os.Args, " "), 200)})
	if err != nil {
		return
	}
	f.Truncate(0)
	f.WriteAt(append(data, '\n'), 0)
}

func readHolder(f *os.File) Holder {
	buf := make([]byte, holderLimit)
	n, _ := f.ReadAt(buf, 0) // a short file ends in io.EOF
	var h Holder
	if json.Unmarshal(buf[:n], &h) != nil || h.PID <= 0 {
		return Holder{}
	}
	h.Command = printable.Cut(h.Command, 200)
	return h
}
