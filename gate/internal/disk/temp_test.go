package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ended is the owner that a process of this machine was.
func ended(t *testing.T) string {
	t.Helper()
	sleep := exec.Command("sleep", "600")
	must(t, sleep.Start())
	_, start, err := stat(sleep.Process.Pid)
	must(t, err)
	owner := fmt.Sprintf("%s-%d-%s", world(), sleep.Process.Pid, start)
	if gone, known := Gone(owner); gone || !known {
		t.Errorf("alive: gone is %v, known is %v", gone, known)
	}
	must(t, sleep.Process.Kill())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if gone, known := Gone(owner); gone && known { // nobody has waited for it yet
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a process that nobody waits for counts as alive")
		}
	}
	sleep.Wait()
	return owner
}

func TestOwnersAreToldApart(t *testing.T) {
	if gone, known := Gone(Owner()); gone || !known {
		t.Errorf("this process: gone is %v, known is %v", gone, known)
	}
	parts := strings.Split(Owner(), "-")
	for name, c := range map[string]struct {
		owner       string
		gone, known bool
	}{
		"ended":                       {ended(t), true, true},
		"another of the same number":  {parts[0] + "-" + parts[1] + "-1", true, true},
		"of another machine":          {"000000000000-" + parts[1] + "-" + parts[2], false, false},
		"empty":                       {"", false, false},
		"no number":                   {parts[0] + "-x-1", false, false},
		"that did not know its start": {parts[0] + "-" + parts[1] + "-", false, false},
	} {
		if gone, known := Gone(c.owner); gone != c.gone || known != c.known {
			t.Errorf("%s: gone is %v, known is %v", name, gone, known)
		}
	}
}

// Who cannot be looked at is not taken for gone.
func TestAnOwnerThatCannotBeLookedAt(t *testing.T) {
	defer func() { readStat = os.ReadFile }()
	stat, err := os.ReadFile("/proc/self/stat")
	must(t, err)
	cache := t.TempDir()
	mine, err := TempDir(cache, "nvcc")
	must(t, err)
	for name, c := range map[string]struct {
		text        string
		err         error
		gone, known bool
	}{
		"as it is":                {string(stat), nil, false, true},
		"too many files are open": {"", syscall.EMFILE, false, false},
		"no memory":               {"", syscall.ENOMEM, false, false},
		"not allowed":             {"", syscall.EACCES, false, false},
		"nothing is said":         {"", nil, false, false},
		"half is said":            {string(stat[:len(stat)/4]), nil, false, false},
		"it ended while read":     {"", syscall.ESRCH, true, true},
		"there is none":           {"", syscall.ENOENT, true, true},
	} {
		readStat = func(string) ([]byte, error) { return []byte(c.text), c.err }
		if gone, known := Gone(Owner()); gone != c.gone || known != c.known {
			t.Errorf("%s: gone is %v, known is %v", name, gone, known)
		}
		if !c.gone {
			SweepTemp(cache)
			wantOnly(t, filepath.Join(cache, "tmp"), filepath.Base(mine))
		}
	}
}

func TestSweepRemovesWhatWasLeft(t *testing.T) {
	cache, other := t.TempDir(), "000000000000-1-1"
	mine, err := TempDir(cache, "nvcc")
	must(t, err)
	left, yesterday := ended(t)+"-nvcc-1", time.Now().Add(-25*time.Hour)
	users := []string{"notes", "2024-05-06-07", "photo-1-2-3", other, ".tmp-x"} // which no gate made
	for _, name := range append(users, left+"/sub", other+"-nvcc-1", other+"-nvcc-2") {
		must(t, os.MkdirAll(filepath.Join(cache, "tmp", name), 0o755))
	}
	must(t, os.Chmod(filepath.Join(cache, "tmp", left, "sub"), 0))
	for _, name := range append(users, other+"-nvcc-2") {
		must(t, os.Chtimes(filepath.Join(cache, "tmp", name), yesterday, yesterday))
	}
	SweepTemp(cache)
	wantOnly(t, filepath.Join(cache, "tmp"), append(users, other+"-nvcc-1", filepath.Base(mine))...)
	must(t, RemoveTemp(mine))
	wantOnly(t, filepath.Join(cache, "tmp"), append(users, other+"-nvcc-1")...)
	SweepTemp(filepath.Join(cache, "none"))
}

func TestWritingAFileRemovesWhatAKillLeftOfIt(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{unnamed + ended(t) + "-1", unnamed + Owner() + "-1", "other"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, WriteFile(filepath.Join(dir, "file"), nil))
	wantOnly(t, dir, unnamed+Owner()+"-1", "file", "other")
}
