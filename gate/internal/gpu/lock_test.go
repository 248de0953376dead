package gpu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testUUID = "GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f"

// TestMain lets the test binary be another gate: with GATE_TEST_LOCK set it
// takes the lock in that folder, says so and sleeps.
func TestMain(m *testing.M) {
	dir := os.Getenv("GATE_TEST_LOCK")
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := AcquireIn(context.Background(), dir, testUUID, time.Minute); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	time.Sleep(10 * time.Minute)
}

func TestLockHeldByAnotherProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	other := exec.Command(os.Args[0], "some\x1b[31m", "words")
	other.Env = append(os.Environ(), "GATE_TEST_LOCK="+dir)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}

	_, err = AcquireIn(context.Background(), dir, testUUID, 0)
	want := fmt.Sprintf("%s is in use by process %d (", testUUID, other.Process.Pid)
	if !errors.Is(err, errHeld) || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), `some\u001b[31m words) (waited 0s)`) {
		t.Fatalf("error %v, want %s", err, want)
	}
	if h, is, err := HeldIn(dir, testUUID); !is || err != nil || h.PID != other.Process.Pid {
		t.Errorf("held: %+v, %v, %v", h, is, err)
	}

	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	l, err := AcquireIn(context.Background(), dir, testUUID, time.Minute)
	if err != nil {
		t.Fatalf("the lock outlives its process: %v", err)
	}
	other.Wait()
	if h, is, err := HeldIn(dir, testUUID); !is || err != nil || h.PID != os.Getpid() {
		t.Errorf("held: %+v, %v, %v", h, is, err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if h, is, err := HeldIn(dir, testUUID); is || err != nil || h != (Holder{}) {
		t.Errorf("held after release: %+v, %v, %v", h, is, err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, testUUID+".lock")); err != nil || len(data) != 0 {
		t.Errorf("the file still names a holder: %q, %v", data, err)
	}
	if err := l.Release(); err == nil {
		t.Error("released twice")
	}
}

func TestLockExcludes(t *testing.T) {
	dir := t.TempDir()
	var inside, count atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			l, err := AcquireIn(context.Background(), dir, testUUID, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 {
				t.Error("two hold the lock")
			}
			HeldIn(dir, testUUID) // looking must not disturb
			count.Add(1)
			inside.Add(-1)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if count.Load() != 20 {
		t.Errorf("%d of 20 got the lock", count.Load())
	}
}

func TestLockPerGPU(t *testing.T) {
	dir := t.TempDir()
	for _, uuid := range []string{testUUID, "GPU-00000000-7d0e-4b6a-9c55-0a1b2c3d4e5f", "MIG-GPU-3f1c9a52-7d0e-4b6a-9c55-0a1b2c3d4e5f/7/0"} {
		l, err := AcquireIn(context.Background(), dir, uuid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
	}
}

func TestLockStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	l, err := AcquireIn(context.Background(), dir, testUUID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := AcquireIn(ctx, dir, testUUID, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestLockRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, uuid := range []string{"", "GPU-", "GPU-../../../tmp/x", "../" + testUUID, testUUID + "\n", "GPU-" + strings.Repeat("a", 300)} {
		if _, err := AcquireIn(context.Background(), dir, uuid, 0); err == nil {
			t.Errorf("locked %q", uuid)
		}
		if _, _, err := HeldIn(dir, uuid); err == nil {
			t.Errorf("asked for %q", uuid)
		}
	}
	path, err := lockPath(dir, testUUID)
	if err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func() error{
		"link":   func() error { return os.Symlink(victim, path) },
		"fifo":   func() error { return unix.Mkfifo(path, 0o666) },
		"folder": func() error { return os.Mkdir(path, 0o777) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if _, err := AcquireIn(context.Background(), dir, testUUID, 0); err == nil {
			t.Errorf("locked a %s", name)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the linked file now holds %q, %v", data, err)
	}
}

func TestLockIsOpenToEveryUser(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	dir := filepath.Join(t.TempDir(), "locks")
	l, err := AcquireIn(context.Background(), dir, testUUID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o777 || info.Mode()&os.ModeSticky == 0 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	path, err := lockPath(dir, testUUID)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("file: %v, %v", info.Mode(), err)
	}
}

func TestHolderIsNotTrusted(t *testing.T) {
	for _, text := range []string{"", "{", "null", `{"pid":-1,"command":"x"}`, `{"pid":"1"}`, strings.Repeat("x", 3*holderLimit)} {
		dir := tree(t, map[string]string{testUUID + ".lock": text})
		f, err := os.Open(filepath.Join(dir, testUUID+".lock"))
		if err != nil {
			t.Fatal(err)
		}
		if h := readHolder(f); h != (Holder{}) {
			t.Errorf("%.40q: %+v", text, h)
		}
		f.Close()
	}
}
